"""The linear models of this library."""

from __future__ import annotations

from typing import Any

from .stated import Reader


def linear(model: Any, X: Any, y: Any, weight: Any) -> list[Any]:
    """Read any linear model: it states its problems itself."""
    return list(model._posed(X, y, weight))


MODELS: dict[str, Reader] = {"LinearModel": linear}
"""By the name of the base class."""
