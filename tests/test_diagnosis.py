"""The message of a run that reached its limit, for constructed histories and compared with runs that continue."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

import saddleback as sb
from saddleback.engine.diagnosis import diagnose, pace, spread
from saddleback.methods import Report
from saddleback.operators import as_operator
from saddleback.result import Certificate, History, Status
from saddleback.steps.strengths import WEIGHT_RANGE

REPORT = Report(primal_weight=1.0, blocks_per_iteration=1, n_blocks=63)


def certificate(error: float) -> Certificate:
    return Certificate(1.0 + error, 1.0, error, error, 0.0, 0.0)


def falling(halving: float, length: float = 1000.0) -> History:
    history = History()
    for passes in np.arange(10.0, length + 1, 10.0):
        history.add(passes, passes / 100, certificate(2.0 ** (-passes / halving)))
    return history


def said(history, tol=1e-6, status=Status.MAX_PASSES, weights=(), report=REPORT, by_hand=False, apart=None):
    return diagnose(status, history.rows[-1][2], tol, history, weights, report, by_hand, apart)


@pytest.mark.parametrize("halving", [20.0, 100.0, 310.0])
def test_the_rate_of_a_geometric_fall(halving):
    rate = pace(falling(halving))
    assert rate.halving == pytest.approx(halving)
    assert rate.left(1e-3, 1e-6) == pytest.approx(halving * np.log2(1e3))


def test_only_the_last_half_counts():
    history = falling(20.0, 500.0)
    last = history.error[-1]
    for passes in np.arange(510.0, 1001, 10.0):
        history.add(passes, passes / 100, certificate(last * 2.0 ** (-(passes - 500) / 200)))
    assert pace(history).halving == pytest.approx(200, rel=0.05)


def test_the_remaining_passes_and_the_limit_to_raise():
    history = falling(100.0)  # 2^-10 after 1000 passes
    text = said(history, tol=2.0**-20)
    assert "The relative gap halves every 100 passes: about 1,000 more to the tolerance at this rate." in text
    assert "Raise max_passes to about 2,500" in text
    assert "Raise time_limit to about 25," in said(history, tol=2.0**-20, status=Status.TIME_LIMIT)


def test_no_extrapolation_without_a_rate_or_a_tolerance():
    still = History()
    for passes in np.arange(10.0, 1001, 10.0):
        still.add(passes, 1.0, certificate(0.5))
    assert "has not fallen over the last 500 passes" in said(still)
    assert "too short" in said(falling(10.0, 30.0))
    assert "Raise max_passes, or tol" in said(falling(10.0, 30.0))
    assert "more to the tolerance" not in said(falling(100.0), tol=0.0)
    assert "halves every 100 passes." in said(falling(100.0), tol=0.0)
    assert "over 1e+07 more" in said(falling(6e6, 2e6), tol=1e-6)


def test_more_passes_are_not_advised_if_they_would_not_help():
    still = History()
    for passes in np.arange(10.0, 1001, 10.0):
        still.add(passes, 1.0, certificate(0.5))
    for history in (still, falling(6e6, 2e6)):
        assert "Raise max_passes" not in said(history)
        assert "A higher max_passes may not help: raise tol if this accuracy is enough" in said(history)
    assert "A higher time_limit may not help" in said(still, status=Status.TIME_LIMIT)


def test_a_run_without_a_tolerance_is_not_compared_with_one(rng):
    problem = sb.Problem(sb.L1(1.0), rng.standard_normal((30, 10)), sb.Absolute(rng.standard_normal(30)))
    told = sb.solve(problem, "pdhg", tol=0, max_passes=60).message
    assert told.startswith("The pass limit was reached. After ")
    assert "(no tolerance was set)" in told
    assert not re.search("before the tolerance|Raise|raise|to the tolerance", told)
    smooth = sb.Problem(sb.L1(1.0), np.eye(3), sb.Squared(np.zeros(3)))
    exact = sb.solve(smooth, tol=0, max_passes=40)
    assert exact.certificate.error == 0
    assert "The certified error is 0." in exact.message
    assert "too short" not in exact.message


def test_the_largest_figure_is_named():
    history = falling(100.0)
    history.rows[-1] = (*history.rows[-1][:2], Certificate(1.0, 1.0, 0.0, 0.0, 1e-5, 1e-3))
    assert said(history).startswith("The dual infeasibility")


def test_the_weight():
    history = falling(100.0)
    count = len(history)

    def weighed(values):
        return said(history, weights=list(zip(history.passes, values, strict=True)))

    assert "primal weight" not in weighed([1.0] * count)
    assert "primal weight" not in weighed([10.0] * (count // 4) + [1.0] * (count - count // 4))
    assert "still moves, by a factor of 3.1" in weighed([1.0] * (count - 3) + [3.1] * 3)
    assert "at its bound, 1e+05" in weighed([WEIGHT_RANGE] * count)


def test_choices_of_the_user():
    history = falling(100.0)
    assert "was set" not in said(history)
    assert "blocks_per_iteration=1 of 63 was set" in said(history, by_hand=True)
    assert "does not adapt" in said(history, report=Report(blocks_per_iteration=1, n_blocks=63))


def test_lengths():
    A = np.array([[1.0, 0.0, 2e4], [0.0, 0.0, 1.0]])
    columns, rows = spread(as_operator(A, "A"))
    assert columns == pytest.approx(np.hypot(2e4, 1))
    assert rows == pytest.approx(np.hypot(2e4, 1))
    assert spread(as_operator(aslinearoperator(A), "A")) is None
    assert "by a factor of 4e+05 and the rows by 1e+01" in said(falling(100.0), apart=(4e5, 10.0))
    assert "length" not in said(falling(100.0), apart=(9e2, 10.0))


@pytest.mark.parametrize("loss", ["Squared", "Pinball", "Hinge"])
def test_the_advice_of_a_limited_run_is_enough(loss, rng):
    """A run that follows the advice of its messages, at most a few times, reaches its tolerance."""
    A = rng.standard_normal((150, 60))
    b = A[:, :6].sum(axis=1) + rng.standard_t(3, 150)
    target = {"Squared": (b,), "Pinball": (b, 0.3), "Hinge": (np.sign(b),)}[loss]
    problem = sb.Problem(sb.L1(2.0), A, getattr(sb, loss)(*target))
    limit = 60.0
    for _ in range(6):
        result = sb.solve(problem, max_passes=limit)
        if result.status is sb.Status.OPTIMAL:
            break
        assert result.status is sb.Status.MAX_PASSES
        advised = re.search(r"Raise max_passes to about ([\d,]+)", result.message)
        limit = float(advised[1].replace(",", "")) if advised else 2 * limit
    assert result.status is sb.Status.OPTIMAL
    assert limit <= 5 * sb.solve(problem).passes


def test_a_choice_that_slows_a_run_is_named(rng):
    A = rng.standard_normal((40, 20))
    problem = sb.Problem(sb.L1(0.5), A * 10.0 ** np.linspace(-3, 3, 20), sb.Absolute(rng.standard_normal(40)))
    options = {"restarts": False, "working_set": False, "finish": False, "blocks_per_iteration": 20}
    result = sb.solve(problem, max_passes=200, tol=0, **options)
    for fact in ("blocks_per_iteration=20 of 20 was set", "does not adapt", "The columns of A differ in length"):
        assert fact in result.message


def test_a_run_that_has_hardly_begun_was_not_slow(rng):
    A, b = rng.standard_normal((60, 200)), rng.standard_normal(60)
    result = sb.solve(sb.Problem(sb.L1(1.0), A, sb.Absolute(b)), max_passes=2)
    assert result.status is sb.Status.MAX_PASSES
    assert "Newton" not in result.message


def test_the_methods_that_have_an_option_are_named(rng):
    problem = sb.Problem(sb.L1(1.0), rng.standard_normal((6, 4)), sb.Squared(np.ones(6)))
    with pytest.raises(
        TypeError, match=r"'fallback' is not an option of solve or of sp-bcd \(it is one of multipliers\)"
    ):
        sb.solve(problem, fallback=False)
