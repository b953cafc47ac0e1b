"""Packages that Saddleback does not require: a test that uses one which is not installed is skipped."""

from __future__ import annotations

from typing import Any

import pytest


class optional:
    """A module that is imported when an attribute of it is first read, as in ``cp = optional("cvxpy")``."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(pytest.importorskip(self._name), attribute)
