"""The fallback: block passes continue from multipliers that take too many steps."""

from __future__ import annotations

import numpy as np
import pytest

import saddleback as sb
from saddleback.layers import fallback


@pytest.fixture
def problem(rng) -> sb.Problem:
    A = rng.standard_normal((60, 90))
    b = A[:, :20].sum(axis=1) + rng.standard_normal(60)
    alpha = 0.1 * float(np.abs(A.T @ np.sign(b)).max())
    return sb.Problem(sb.L1(alpha), A, sb.Absolute(b))


@pytest.fixture
def short(monkeypatch):
    """Let three Newton steps be too many."""
    monkeypatch.setattr(fallback, "USUAL_STEPS", 1)
    monkeypatch.setattr(fallback, "OVERRUN", 2)


def test_block_passes_continue_and_say_so(problem, short):
    result = sb.solve(problem, method="multipliers", finish=False)
    assert result.status is sb.Status.OPTIMAL
    assert result.method == "multipliers + sp-bcd"
    assert result.settings["newton_steps"] == 3
    assert any(note.startswith("block passes from pass") and "3 Newton steps" in note for note in result.history.notes)
    plain = sb.solve(problem, method="sp-bcd", finish=False)
    assert result.objective == pytest.approx(plain.objective, rel=3e-6)


def test_they_continue_from_the_point_of_the_multipliers(problem, short):
    """The best certificate never gets worse, and the passes of both methods count."""
    result = sb.solve(problem, method="multipliers", finish=False, tol=1e-8)
    errors, passes = np.array(result.history.error), np.array(result.history.passes)
    assert np.all(np.diff(errors) <= 0)
    assert np.all(np.diff(passes) > 0)


def test_it_can_be_switched_off(problem, short):
    result = sb.solve(problem, method="multipliers", finish=False, fallback=False)
    assert result.status is sb.Status.OPTIMAL
    assert result.method == "multipliers"
    assert result.settings["newton_steps"] > 3


def test_a_run_without_trouble_does_not_use_it(problem):
    assert sb.solve(problem, method="multipliers", finish=False).method == "multipliers"


def test_a_checkpoint_goes_on_on_both_sides_of_it(problem, short, tmp_path):
    whole = sb.solve(problem, method="multipliers", finish=False, tol=1e-9)
    for limit in (2, 30):
        path = tmp_path / f"{limit}.npz"
        part = sb.solve(problem, method="multipliers", finish=False, tol=1e-9, max_passes=limit, checkpoint=path)
        assert part.status is sb.Status.MAX_PASSES
        resumed = sb.solve(problem, method="multipliers", finish=False, tol=1e-9, resume=path)
        assert np.array_equal(resumed.x, whole.x)
        assert np.array_equal(resumed.y, whole.y)
