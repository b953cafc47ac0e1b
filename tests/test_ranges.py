"""Data of any size: correct results unless squares overflow or underflow, otherwise a clear error; never a warning."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

import saddleback as sb
from saddleback.methods import OSGA, Start
from saddleback.steps.strengths import operator_norm

RNG = np.random.default_rng(3)
A, B = RNG.standard_normal((12, 8)), RNG.standard_normal(12)
LOSSES = [sb.Squared, sb.Absolute, sb.Huber, sb.Norm2, sb.Equality]


@pytest.mark.parametrize("made", [np.asarray, sparse.csc_matrix, sparse.csr_matrix])
@pytest.mark.parametrize(("scale", "word"), [(1e160, "overflow"), (1e300, "overflow"), (1e-160, "underflow")])
def test_a_matrix_whose_squares_overflow_or_underflow_is_rejected(made, scale, word):
    with pytest.raises(ValueError, match=rf"A has a column of length .*, whose squares {word}: .*; change the units"):
        sb.Problem(sb.L1(0.1), made(A * scale), sb.Squared(B))


@pytest.mark.parametrize("loss", [sb.Squared, sb.Absolute, sb.Logistic])
def test_the_length_of_the_targets_is_found_without_threads_of_the_blas(loss, monkeypatch):
    """They would spin for some time after a problem of many rows is made, on a core that the solve needs."""
    b = np.sign(RNG.standard_normal(20_000))
    expected = np.linalg.norm(b)
    monkeypatch.setattr(np.linalg, "norm", None)
    problem = sb.Problem(sb.L1(1.0), sparse.eye_array(20_000, 3, format="csc"), loss(b))
    assert problem.model.target_norm == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("loss", LOSSES)
def test_targets_whose_squares_overflow_or_underflow_are_rejected(loss):
    with pytest.raises(
        ValueError, match=r"the data of the loss has a vector of length 2e\+120, whose squares overflow"
    ):
        sb.Problem(sb.L1(0.1), A, loss(np.full(12, 6e119)))
    with pytest.raises(ValueError, match=r"the data of the loss has a vector of length .*, whose squares underflow"):
        sb.Problem(sb.L1(0.1), A, loss(B * 1e-200))


def test_zeros_are_accepted():
    problem = sb.Problem(sb.L1(0.1), np.zeros((12, 8)), sb.Squared(np.zeros(12)))
    assert sb.solve(problem).status is sb.Status.OPTIMAL


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("of_A", [1e-110, 1e-40, 1e40, 1e110])
@pytest.mark.parametrize("of_b", [1e-110, 1.0, 1e100])
def test_accepted_data_end_with_a_status_and_without_a_warning(loss, of_A, of_b):
    if not 1e-150 < of_b / of_A < 1e150:
        with pytest.raises(
            ValueError, match=r"x would have entries of .*, whose squares (over|under)flow; expected size"
        ):
            sb.Problem(sb.L1(0.1), A * of_A, loss(B * of_b))
        return
    problem = sb.Problem(sb.L1(0.1), A * of_A, loss(B * of_b))
    result = sb.solve(problem, max_passes=50)
    assert isinstance(result.status, sb.Status)
    sb.certify(problem, result.x, result.y)


def test_a_gradient_whose_square_overflows_or_underflows_is_rejected():
    with pytest.raises(
        ValueError, match=r"the gradient of the loss at 0 has entries up to .*: y would have entries of"
    ):
        sb.Problem(sb.L1(0.1), A, sb.Squared(B * 1e110, scale=1e110))


PARAMETERS = {
    "alpha": (1e240, lambda huge: sb.L1(huge)),
    "c": (1e240, lambda huge: sb.Linear(np.array([1.0, -huge]))),
    "weights": (1e120, lambda huge: sb.L1(1.0, np.array([1.0, huge]))),
    "lower": (1e150, lambda huge: sb.Box(-huge, np.inf)),
    "upper": (1e150, lambda huge: sb.Interval(0.0, huge)),
    "b": (1e120, lambda huge: sb.Absolute(np.array([-huge, 1.0]))),
    "delta": (1e120, lambda huge: sb.Huber(B, huge)),
    "scale": (1e120, lambda huge: sb.Squared(B, scale=huge)),
    "sample_weight": (1e120, lambda huge: sb.Norm2(B, sample_weight=np.full(12, huge))),
}


@pytest.mark.parametrize("name", list(PARAMETERS))
@pytest.mark.parametrize("excess", [10.0, np.inf])
def test_a_parameter_out_of_range_is_rejected_by_name(name, excess):
    largest, make = PARAMETERS[name]
    with pytest.raises(
        ValueError, match=rf"^{name} has the value .*: expected numbers of at most {largest:.0e} in".replace("+", r"\+")
    ):
        make(min(excess * largest, 1e308))
    make(largest)


@pytest.mark.parametrize("unit", [1e-100, 1e100])
@pytest.mark.parametrize("penalty", [sb.L1, sb.SquaredL2, lambda alpha: sb.NonNegative() + sb.Linear(alpha)])
def test_solutions_do_not_depend_on_units(unit, penalty):
    """If A and b are in units of 1e100, alpha and c have the size of A'b, which is 1e200."""
    plain = sb.solve(sb.Problem(penalty(0.5), A, sb.Squared(B)), tol=1e-9)
    result = sb.solve(sb.Problem(penalty(0.5 * unit**2), A * unit, sb.Squared(B * unit)), tol=1e-9)
    assert result.status is sb.Status.OPTIMAL
    np.testing.assert_allclose(result.x, plain.x, atol=1e-4)


@pytest.mark.parametrize("tiny", [1e-121, 5e-324])
def test_weights_too_small_to_divide_by_are_rejected(tiny):
    weight = np.where(np.arange(12) == 3, tiny, 1.0)
    with pytest.raises(
        ValueError, match=r"^sample_weight has the value .* at index \[3\]: expected 0 or numbers of at le"
    ):
        sb.Squared(B, sample_weight=weight)
    with pytest.raises(ValueError, match=r"^scale has the value .*: expected 0 or numbers of at least 1e-120"):
        sb.Squared(B) / (1 / tiny if tiny > 1e-300 else 1e308)
    with pytest.raises(ValueError, match=r"^scale \* sample_weight has the value 1e-160"):
        sb.Problem(sb.L1(0.1), A, sb.Squared(B, sample_weight=np.full(12, 1e-80), scale=1e-80))


@pytest.mark.parametrize("scale", [1e130, 1e250, 1e-130])
@pytest.mark.parametrize("loss", [sb.Squared, sb.Absolute])
def test_a_linear_operator_whose_squares_overflow_or_underflow_is_rejected(loss, scale):
    problem = sb.Problem(sb.L1(0.1), aslinearoperator(A * scale), loss(B))
    with pytest.raises(
        ValueError, match=r"^matvec of A returned numbers of size .*: expected sizes from 1e-120 to 1e\+1"
    ):
        sb.solve(problem)


@pytest.mark.parametrize("scale", [1e-115, 1e-90, 1e90, 1e115])
def test_the_norm_of_an_operator_is_found_in_any_unit(scale):
    """The Lanczos method squares A'A, which is the fourth power of the entries."""
    expected = np.linalg.norm(A, 2)
    found, _ = operator_norm(lambda x: scale * (A @ x), lambda y: scale * (A.T @ y), 8)
    assert np.sqrt(found) / scale == pytest.approx(expected, rel=1e-9)


def test_certificates_of_points_far_away_do_not_warn():
    problem = sb.Problem(sb.Box(0.0, 1.0) + sb.Linear(1e100), A, sb.Squared(B))
    assert sb.certify(problem, np.full(8, 1e250), np.full(12, 1e250)).error >= 1
    with pytest.raises(ValueError, match=r"^x has entries up to 1e\+250 in size: expected at most 1e\+150"):
        sb.certify(problem, np.full(8, 1e250))


def test_starts_out_of_range_are_rejected():
    problem = sb.Problem(sb.L1(0.1), A, sb.Squared(B))
    with pytest.raises(ValueError, match=r"^x0 has entries up to 1e\+151 in size: expected at most 1e\+150; scale it"):
        sb.solve(problem, x0=np.full(8, -1e151))
    with pytest.raises(ValueError, match=r"^y0 has entries up to 1e\+151"):
        sb.solve(problem, y0=np.full(12, 1e151))


def test_steps_of_osga_do_not_overflow():
    """After many failed steps alpha is tiny, and a successful step would multiply it by a factor that overflows."""
    model, method = sb.Problem(sb.L1(0.1), A, sb.Absolute(B)).model, OSGA()
    state = method.init(model, Start(np.zeros(8), np.zeros(12)))
    for _ in range(100):
        state.alpha = 1e-9
        state.minorant.eta = 1e3  # a predicted decrease that the next step exceeds by far
        state = method.advance(state, 1.0)
    assert np.isfinite(state.value)
    assert 0 < state.alpha <= 0.7
