"""
What moves in front of this camera?
===================================

A still scene is nearly the same in all frames, and what moves covers few pixels: a matrix with one frame per row is
the sum of a low-rank part and a sparse part. An ordinary PCA smears the walkers over the background, and subtracting
the median frame fails when the light changes. Common scripts for robust PCA stop when the parts nearly add up; here
the split is certified to be nearly the best one.
"""

import matplotlib.pyplot as plt
import numpy as np

from saddleback.estimators import RobustPCA

rng = np.random.default_rng(0)
frames, height, width = 40, 36, 40
rows, columns = np.mgrid[:height, :width]
scene = 0.5 + 0.3 * np.sin(rows / 6) * np.cos(columns / 9)
lamp = np.exp(-((rows - 10) ** 2 + (columns - 30) ** 2) / 200)
video = np.array([scene + 0.2 * np.sin(t / 8) * lamp for t in range(frames)])
for t in range(frames):
    for row, start, speed in ((8, 0, 0.9), (22, 35, -0.7)):  # two walkers
        column = int(start + speed * t) % (width - 4)
        video[t, row : row + 7, column : column + 4] = 1.2
video += 0.01 * rng.standard_normal(video.shape)
X = video.reshape(frames, -1)

# %%
# The weight of the low-rank part is relative to the light that changes: the largest singular value around the mean.

model = RobustPCA(low_rank_weight=0.2 * np.linalg.norm(X - X.mean(axis=0), 2), sparse_weight=0.08, tol=1e-4).fit(X)
print(f"rank {model.rank_}, {np.mean(model.sparse_ != 0):.1%} of the pixels move")
print(f"certified relative gap {model.certificate_.relative_gap:.0e}")

# %%
chosen = [0, 19, 39]
parts = {"video": X, "background": model.low_rank_, "what moves": np.abs(model.sparse_)}
figure, axes = plt.subplots(len(parts), len(chosen), figsize=(7, 6.6), layout="constrained")
for line, (name, part) in zip(axes, parts.items(), strict=True):
    for axis, frame in zip(line, chosen, strict=True):
        axis.imshow(part[frame].reshape(height, width), cmap="gray", vmin=0, vmax=1.2)  # one scale for all
        axis.set(xticks=[], yticks=[])
    line[0].set_ylabel(name, fontsize="large")
for axis, frame in zip(axes[0], chosen, strict=True):
    axis.set_title(f"frame {frame + 1}")
plt.show()
