"""Moving objects in front of a still background: robust PCA of a video, with one frame per row.

The background is the same in every frame except for the light, so that it has low rank. Moving objects cover few
pixels, so that they are sparse. The video is simulated, unless the MAT file of a surveillance video of an escalator is
given.

    python examples/robust_pca_video.py [picture.png] [escalator_data.mat]
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.io import loadmat

from saddleback.estimators import RobustPCA


def make_video(frames=40, height=36, width=40, seed=0):
    """Return frames of a scene in changing light with two walkers, and the shape of a frame."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:height, :width]
    scene = 0.5 + 0.3 * np.sin(rows / 6) * np.cos(columns / 9)
    lamp = np.exp(-((rows - 10) ** 2 + (columns - 30) ** 2) / 200)
    video = np.array([scene + 0.2 * np.sin(t / 8) * lamp for t in range(frames)])
    for t in range(frames):
        for row, start, speed in ((8, 0, 0.9), (22, 35, -0.7)):
            column = int(start + speed * t) % (width - 4)
            video[t, row : row + 7, column : column + 4] = 1.2
    video += 0.01 * rng.standard_normal(video.shape)
    return video.reshape(frames, -1), (height, width)


def read_video(path):
    """Return the 200 frames of the escalator, 130 x 160 pixels by columns."""
    frames = loadmat(path)["X"].T.reshape(-1, 160, 130).transpose(0, 2, 1) / 255.0
    return frames.reshape(frames.shape[0], -1), frames.shape[1:]


def main(picture: str, path: str | None) -> None:
    """Split the video and draw three of its frames."""
    video, shape = make_video() if path is None else read_video(path)
    strength = 0.2 * np.linalg.norm(video - video.mean(axis=0), 2)
    model = RobustPCA(low_rank_weight=strength, sparse_weight=0.08, tol=1e-4).fit(video)
    moving = np.mean(model.sparse_ != 0)
    print(f"rank {model.rank_}, {moving:.1%} of the pixels move, {model.result_}")
    chosen = np.linspace(0, len(video) - 1, 3).astype(int)
    parts = {"video": video, "background": model.low_rank_, "what moves": np.abs(model.sparse_)}
    greys = {"cmap": "gray", "vmin": video.min(), "vmax": video.max()}  # one scale for all images
    _, axes = plt.subplots(len(chosen), len(parts), figsize=(8, 6), layout="constrained")
    for row, frame in zip(axes, chosen, strict=True):
        for axis, (name, part) in zip(row, parts.items(), strict=True):
            axis.imshow(part[frame].reshape(shape), **greys)
            axis.set_axis_off()
            axis.set_title(f"{name}, frame {frame}", fontsize=9)
    Path(picture).parent.mkdir(parents=True, exist_ok=True)
    plt.savefig(picture, dpi=150)
    print(f"The picture is in {Path(picture).resolve()}")


if __name__ == "__main__":
    main(*(sys.argv[1:] + ["out/robust_pca_video.png", None][len(sys.argv) - 1 :])[:2])
