"""The pictures of the experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .experiment import Panel, Picture


def draw(picture: Picture, folder: Path) -> Path | None:
    """Draw a picture as PNG and return where, or None without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    rows, columns = len(picture.panels), len(picture.panels[0])
    figure = Figure(figsize=(4.6 * columns, 3.4 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for panels, row in zip(picture.panels, axes, strict=True):
        for panel, axis in zip(panels, row, strict=True):
            _draw_panel(panel, axis)
    path = folder / f"{picture.name}.png"
    figure.savefig(path, dpi=90)
    return path


def _draw_panel(panel: Panel, axis: Any) -> None:
    for number, curve in enumerate(panel.curves):
        x, y = np.asarray(curve.x), np.asarray(curve.y)
        shown = np.isfinite(y) & (y > 0)  # a logarithmic axis has no place for the others
        style = "-" if number < 10 else "--"
        axis.semilogy(x[shown], y[shown], style, linewidth=1.2, label=curve.label)
    axis.set(title=panel.title, xlabel=panel.across, ylabel=panel.up)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=7)
