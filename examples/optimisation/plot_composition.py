"""
Which ingredients matter, if only their ratios are known?
=========================================================

Shares of bacteria, minerals or expenses sum to one, and counts depend on how long one has counted: only ratios mean
something. A model of the logarithms respects this if its coefficients sum to 0, since a common factor then cancels. An
ordinary Lasso does not, and its prediction changes with the units. With scikit-learn one would have to drop an
ingredient or take ratios to a chosen one, which changes what the penalty selects; here the constraint is one word.
"""

import matplotlib.pyplot as plt
import numpy as np

from saddleback.estimators import Lasso

rng = np.random.default_rng(0)
samples, parts = 100, 30
amounts = np.exp(rng.normal(0, 1, (samples, parts)) + rng.normal(0, 1, parts))
true = np.zeros(parts)
true[:6] = [1.0, -1.0, 0.8, -0.8, 0.5, -0.5]
y = np.log(amounts) @ true + 0.5 * rng.standard_normal(samples)

# %%
# In new samples the amounts are the same, but counted for another time in each sample.

times = np.exp(rng.normal(0, 1.5, (samples, 1)))
figure, axes = plt.subplots(1, 2, figsize=(8.5, 4.2), sharex=True, sharey=True, layout="constrained")
for axis, name, constraints in ((axes[0], "Lasso", None), (axes[1], "Lasso, zero sum", ["zero-sum"])):
    model = Lasso(alpha=0.05, constraints=constraints).fit(np.log(amounts[:50]), y[:50])
    before, after = (model.predict(np.log(scale * amounts[50:])) for scale in (1.0, times[50:]))
    print(f"{name}: sum of the coefficients {model.coef_.sum():.3f}, gap {model.certificate_.relative_gap:.0e}")
    axis.axline((0, 0), slope=1, color="0.6", linewidth=1)
    axis.plot(before, after, "o", color="C1" if constraints is None else "C0", alpha=0.8)
    axis.set(title=name, xlabel="prediction from the amounts", aspect="equal")
    axis.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("prediction if counted for another time")
plt.show()
