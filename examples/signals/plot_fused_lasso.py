"""
Which stretch of a spectrum predicts the outcome?
=================================================

Neighbouring wavelengths, genes or sensors often act in the same way. A Lasso picks scattered features from a stretch
and invents others. The fused Lasso also penalises the differences of neighbours, so that whole stretches have one
coefficient. scikit-learn does not have it, and R's genlasso adds a ridge penalty if there are fewer samples than
features, as here.
"""

import matplotlib.pyplot as plt
import numpy as np

from saddleback.estimators import FusedLasso, Lasso

rng = np.random.default_rng(0)
true = np.repeat([0.0, 1.0, 0.0, -2.0, 0.0], [60, 30, 50, 20, 40])
X = rng.standard_normal((120, true.size))
y = X @ true + rng.standard_normal(120)

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
for axis, model in zip(axes, (Lasso(alpha=0.1), FusedLasso(alpha=0.02, fused_alpha=0.2)), strict=True):
    model.fit(X, y)
    name, error = type(model).__name__, np.linalg.norm(model.coef_ - true)
    print(f"{name}: error {error:.1f}, certified relative gap {model.certificate_.relative_gap:.0e}")
    axis.plot(true, color="C1", linewidth=4, alpha=0.6, label="truth")
    axis.plot(model.coef_, color="C0", label="estimate")
    axis.set(title=f"{name}, error {error:.1f}", xlabel="position of the feature")
    axis.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("coefficient")
axes[0].legend(frameon=False, loc="lower left")
plt.show()
