"""The pictures of the document."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from ..common.outputs import replacing
from .growth import slope

COLOURS = ("tab:blue", "tab:orange", "tab:green")


def draw_ratios(ratios: Mapping[str, list[float]], path: Path) -> None:
    """Draw one bar per race that has a ratio, and one dot per problem."""
    shown = [(name, values) for name, values in ratios.items() if values][::-1]
    if not shown:
        return
    figure = _figure(7, 0.8 + 0.35 * len(shown))
    axes = figure.subplots()
    for height, (_, values) in enumerate(shown):
        axes.barh(height, geometric_mean(values) - 1, left=1, color="tab:blue", alpha=0.5)
        axes.plot(values, [height] * len(values), "k.", markersize=4)
    axes.set_yticks(range(len(shown)), [name for name, _ in shown])
    axes.set_xscale("log")
    axes.axvline(1, color="k", linewidth=1)
    axes.set_xlabel("time of the fastest other library / ours (to the right we are faster)")
    axes.grid(alpha=0.3, axis="x")
    with replacing(path) as stream:
        figure.savefig(stream, format="png", dpi=100)


def draw_growth(record: dict[str, Any], path: Path) -> None:
    """Draw the time of a pass against the stored entries, with the fitted powers."""
    figure = _figure(6, 4)
    axes = figure.subplots()
    points = record["points"]
    layouts = dict.fromkeys(point["layout"] for point in points)
    for layout, colour in zip(layouts, COLOURS, strict=False):
        of_layout = [point for point in points if point["layout"] == layout]
        for i, (count, style) in enumerate(zip(record["threads"], ("--", "-"), strict=True)):
            axes.loglog(
                [point["entries"] for point in of_layout],
                [point["seconds"][i] for point in of_layout],
                style,
                marker=".",
                color=colour,
                label=f"{layout}, {count} thread{'s' * (count > 1)}: power {slope(points, layout, i):.2f}",
            )
    axes.set_xlabel("stored entries")
    axes.set_ylabel("seconds of a pass")
    axes.grid(alpha=0.3)
    axes.legend()
    with replacing(path) as stream:
        figure.savefig(stream, format="png", dpi=100)


def _figure(width: float, height: float) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("the figures need matplotlib: pip install 'saddleback[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained")
