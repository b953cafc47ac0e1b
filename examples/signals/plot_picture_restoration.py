"""
Can a picture be restored from half of its pixels?
==================================================

Total variation removes noise and keeps edges, and fills in what is missing with as little change as possible. The
denoisers of scikit-image have no missing pixels, and stop when their steps become short. Here missing pixels are NaN,
and the certificate says how close the picture is to the best one.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from saddleback.estimators import TotalVariationDenoiser

rng = np.random.default_rng(0)
picture = load_sample_image("china.jpg").mean(axis=2)[60:240, 180:400] / 255.0
noisy = picture + 0.1 * rng.standard_normal(picture.shape)
sparse = np.where(rng.random(picture.shape) < 0.5, noisy, np.nan)

# %%
# The same model restores both: one with noise, one with noise and half of the pixels missing. It penalises the
# absolute differences of neighbouring pixels; the isotropic variation, which is the default, takes longer if pixels
# are missing.

restored = {}
for name, damaged, alpha in (("noise", noisy, 0.09), ("noise, half missing", sparse, 0.12)):
    model = TotalVariationDenoiser(alpha=alpha, isotropic=False, tol=1e-3).fit(damaged)
    restored[name] = model.image_
    error = np.sqrt(np.mean((model.image_ - picture) ** 2))
    print(f"{name}: error {error:.3f} per pixel, certified relative gap {model.certificate_.relative_gap:.0e}")

# %%
figure, axes = plt.subplots(2, 2, figsize=(8, 6.9), layout="constrained")
panels = {
    "noise": noisy,
    "restored": restored["noise"],
    "half of the pixels missing": sparse,
    "restored from half of the pixels": restored["noise, half missing"],
}
for axis, (name, image) in zip(axes.flat, panels.items(), strict=True):
    axis.imshow(image, cmap="gray", vmin=0, vmax=1)
    axis.set_facecolor("#c44")
    axis.set(title=name, xticks=[], yticks=[])
plt.show()
