"""Solves with tolerances that cannot be reached end within their limits, without an error and without a warning."""

from __future__ import annotations

import pytest
from stress import complaint


@pytest.mark.parametrize("seed", range(8))
def test_limits_hold(seed):
    assert not complaint(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 600, 50))
def test_limits_hold_for_many(first):
    assert not [found for seed in range(first, first + 50) if (found := complaint(seed))]
