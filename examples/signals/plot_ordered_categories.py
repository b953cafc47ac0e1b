"""
Which neighbouring age bands can share one tariff?
==================================================

Rates per year of age are noisy, and bands that are cut by hand hide where the risk really changes. The fused Lasso
finds the bands: it penalises jumps between neighbours, so that most of them vanish. A smoother would blur the jumps,
and a regression tree decides on one cut at a time and never takes it back.
"""

import matplotlib.pyplot as plt
import numpy as np

from saddleback.estimators import FusedLasso

rng = np.random.default_rng(0)
ages = np.arange(18, 80)
truth = np.select([ages < 23, ages < 30, ages < 68], [0.24, 0.14, 0.08], 0.15)
insured = rng.integers(150, 500, ages.size)
claims = rng.poisson(insured * truth)

# %%
# One column per age, without a penalty on the effects themselves. The rates are weighted by the numbers of insured.

X = np.eye(ages.size)
model = FusedLasso(alpha=0.0, fused_alpha=0.0015)
model.fit(X, claims / insured, sample_weight=insured)
rates = model.predict(X)
starts = ages[1:][np.abs(np.diff(rates)) > 0.001]
print(f"bands begin at the ages {[18, *starts.tolist()]}")
print(f"certified relative gap {model.certificate_.relative_gap:.0e}")

# %%
figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
axis.plot(ages, claims / insured, "o", color="0.7", markersize=4, label="claims per insured, by year of age")
axis.step(ages, truth, where="mid", color="C1", linewidth=4, alpha=0.6, label="truth")
axis.step(ages, rates, where="mid", color="C0", label="fused Lasso")
axis.set(xlabel="age", ylabel="claims per insured", ylim=(0, None))
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False)
plt.show()
