"""
How does a response rise with the dose, if it can only rise?
============================================================

More of a drug does not lower its effect, but noisy measurements go up and down. A monotone fit uses what is known.
``IsotonicRegression`` of scikit-learn has the squared loss alone, which a few failed measurements pull away. Here the
same constraint goes with any loss, such as the absolute loss for the median, or a quantile.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.isotonic import IsotonicRegression

import saddleback as sb

rng = np.random.default_rng(1)
dose = np.sort(rng.uniform(0, 10, 120))
truth = 1 / (1 + np.exp(-1.5 * (dose - 5)))
response = truth + 0.08 * rng.standard_normal(dose.size)
response[rng.random(dose.size) < 0.12] = 0.0  # failed measurements

# %%
# The penalty ``Isotonic`` says that the fitted values rise, the identity that they are compared with the data one by
# one, and the loss how.

median = sb.solve(sb.Problem(sb.Isotonic(), sb.Identity(), sb.Absolute(response)))
print(median)
mean = IsotonicRegression().fit_transform(dose, response)
for name, fit in {"squared loss": mean, "absolute loss": median.x}.items():
    print(f"{name}: mean error {np.abs(fit - truth).mean():.3f}")

# %%
figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
axis.plot(dose, response, "o", color="0.7", markersize=4, label="measurements")
axis.plot(dose, truth, color="C1", linewidth=4, alpha=0.6, label="truth")
axis.step(dose, mean, where="mid", color="C3", linestyle="--", label="rising, squared loss")
axis.step(dose, median.x, where="mid", color="C0", label="rising, absolute loss")
axis.set(xlabel="dose", ylabel="response")
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, loc="upper left")
plt.show()
