"""Cards: how objects show themselves in a notebook, as HTML without scripts that suits light and dark pages.

A class says what is on its card; this module says how a card looks.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

GOOD, FAIR, BAD = "#1f9d55", "#b7791f", "#d64545"
"""Colours of a status, which are readable on white and on black."""

LONGEST = 160
"""Characters of a fact; the middle of a longer one is left out."""

WIDTH, HEIGHT, MARGIN = 180, 36, 3
"""Size of a curve in pixels, and the distance of its ends from the edges."""


class Curve(NamedTuple):
    """A small curve below the facts.

    Attributes
    ----------
    x, y : the points; those that are not finite are left out.
    label : what the curve shows, in words.
    log : whether the ordinate is logarithmic, so that points must be positive.
    """

    x: ArrayLike
    y: ArrayLike
    label: str
    log: bool = False


def card(
    title: str,
    facts: Mapping[str, str],
    badge: tuple[str, str] | None = None,
    curve: Curve | None = None,
    note: str = "",
) -> str:
    """Return a card as HTML; all texts are escaped.

    Parameters
    ----------
    title : the name of the object.
    facts : values by their names.
    badge : a word and its colour, next to the title.
    curve : a curve below the facts.
    note : a sentence at the end.
    """
    mark = ""
    if badge is not None:
        word, colour = badge
        mark = (
            f'<span style="margin-left:.6em;padding:.1em .5em;border-radius:.3em;background:{colour};color:#fff;'
            f'font-size:85%">{escape(word)}</span>'
        )
    cells = "".join(
        f'<div style="text-align:left"><div style="opacity:.65;font-size:85%">{escape(name)}</div>'
        f'<div style="overflow-wrap:anywhere">{escape(_shortened(value))}</div></div>'
        for name, value in facts.items()
    )
    drawn = "" if curve is None else _drawn(curve)
    said = f'<div style="margin-top:.5em;opacity:.8;text-align:left">{escape(note)}</div>' if note else ""
    return (
        '<div style="display:inline-block;box-sizing:border-box;max-width:100%;padding:.7em 1em;margin:.2em 0;'
        "border:1px solid rgba(128,128,128,.45);border-radius:.5em;font-family:system-ui,sans-serif;font-size:14px;"
        'line-height:1.4">'
        f'<div style="margin-bottom:.4em;text-align:left"><b>{escape(title)}</b>{mark}</div>'
        f'<div style="display:flex;flex-wrap:wrap;gap:.4em 1.6em">{cells}</div>{drawn}{said}</div>'
    )


def _shortened(text: str) -> str:
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} ... {text[-half:]}"


def _drawn(curve: Curve) -> str:
    """Return a curve as inline SVG with its label; nothing if it has fewer than two points."""
    x, y = (np.asarray(values, dtype=float) for values in (curve.x, curve.y))
    if curve.log:
        y = np.log10(np.maximum(y, 1e-16))
    drawable = np.isfinite(x) & np.isfinite(y)
    if np.count_nonzero(drawable) < 2:
        return ""
    across = _within(x[drawable], MARGIN, WIDTH - MARGIN)
    down = _within(-y[drawable], MARGIN, HEIGHT - MARGIN)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, down, strict=True))
    label = escape(curve.label, quote=True)
    return (
        '<div style="display:flex;flex-wrap:wrap;align-items:center;gap:.3em .8em;margin-top:.5em">'
        f'<svg role="img" aria-label="{label}" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">'
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5" opacity=".8"/>'
        f'<circle cx="{across[-1]:.1f}" cy="{down[-1]:.1f}" r="2.5" fill="currentColor"/></svg>'
        f'<span style="opacity:.65;font-size:85%">{label}</span></div>'
    )


def _within(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return values moved and scaled into an interval; in its middle if they are all equal."""
    least, spread = values.min(), np.ptp(values)
    return low + (high - low) * (values - least) / spread if spread > 0 else np.full(values.shape, (low + high) / 2)
