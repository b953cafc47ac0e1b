"""The style of all pictures: labels in words, a light grid, and no frame on the sides without a scale."""

from __future__ import annotations

from typing import Any

GREY, BAND = "0.75", "0.88"
"""Colours of lines and areas in the background."""


def plain(name: object) -> str:
    """Return a name that a user gave as matplotlib has to see it: a dollar sign would begin a formula in LaTeX."""
    return str(name).replace("$", r"\$")


def label(axis: Any, x: str, y: str, title: str = "") -> None:
    """Label a matplotlib axis, and give it the style of all pictures."""
    axis.set(xlabel=x, ylabel=y)
    if title:
        axis.set_title(title, fontsize="medium")
    axis.grid(alpha=0.3)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def new_axes(count: int, height: float = 3.5) -> Any:
    """Return an array of new matplotlib axes side by side."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plot() needs matplotlib: pip install 'saddleback[plot]'") from None
    return plt.subplots(1, count, figsize=(5.0 * count, height), layout="constrained", squeeze=False)[1][0]
