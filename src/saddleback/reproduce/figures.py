"""The pictures of the experiments."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from ..common.outputs import replacing
from .experiment import Panel, Picture

DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
"""Line styles of one colour: solid, dashed, dotted and dash-dotted."""

OURS = "default of saddleback"
"""The curve that is highlighted."""

LOGARITHMIC = {"seconds"}
"""Horizontal axes with a logarithmic scale."""


def draw(picture: Picture, folder: Path) -> Path | None:
    """Draw a picture as PNG and return its path; None without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    rows, columns = len(picture.panels), len(picture.panels[0])
    figure = Figure(figsize=(4.2 * columns + 2.2, 3.4 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    styles = line_styles(picture)
    lines: dict[str, Any] = {}
    for panels, row in zip(picture.panels, axes, strict=True):
        for panel, axis in zip(panels, row, strict=True):
            lines |= _draw_panel(panel, axis, styles)
    figure.legend(
        [lines[label] for label in styles], list(styles), loc="outside right upper", fontsize=8, frameon=False
    )
    path = folder / f"{picture.name}.png"
    with replacing(path) as stream:
        figure.savefig(stream, format="png", dpi=90)
    return path


def line_styles(picture: Picture) -> dict[str, dict[str, Any]]:
    """Return the style of each curve of a picture, by its label: the same in all panels, and different for each label.

    Variants of a method (PDMM1 and PDMM2; SP-BCD, K = 1 and SP-BCD, K = 3) share a colour and differ in their dashes.
    If there are more variants than dashes, each has a different colour.
    """
    labels = dict.fromkeys(curve.label for row in picture.panels for panel in row for curve in panel.curves)
    families: dict[str, list[str]] = {}
    for label in labels:
        families.setdefault(re.split(r"[\d,]| (?!of )", label)[0], []).append(label)
    groups = [
        group for own in families.values() for group in ([own] if len(own) <= len(DASHES) else [[each] for each in own])
    ]
    found: dict[str, dict[str, Any]] = {
        label: {"color": f"C{number % 10}", "linestyle": dash, "linewidth": 1.2 + 0.8 * (number // 10)}
        for number, group in enumerate(groups)
        for label, dash in zip(group, DASHES, strict=False)
    }
    if OURS in found:
        found[OURS] = {"color": "black", "linestyle": "-", "linewidth": 1.8}
    return {label: found[label] for label in labels}


def _draw_panel(panel: Panel, axis: Any, styles: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Draw the curves of a panel and return its lines by their labels."""
    lines = {}
    for curve in panel.curves:
        x, y = np.asarray(curve.x), np.asarray(curve.y)
        shown = np.isfinite(y) & (y > 0)  # a logarithmic axis cannot show the others
        (lines[curve.label],) = axis.semilogy(x[shown], y[shown], label=curve.label, **styles[curve.label])
    if panel.across in LOGARITHMIC:
        axis.set_xscale("log")
    axis.set(title=panel.title, xlabel=panel.across, ylabel=panel.up)
    axis.grid(alpha=0.3)
    return lines
