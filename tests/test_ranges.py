"""Data of any size: right answers where squares are numbers, a named error where they are not, never a warning."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import saddleback as sb
from saddleback.methods import OSGA, Start

RNG = np.random.default_rng(3)
A, B = RNG.standard_normal((12, 8)), RNG.standard_normal(12)
LOSSES = [sb.Squared, sb.Absolute, sb.Huber, sb.Norm2, sb.Equality]


@pytest.mark.parametrize("made", [np.asarray, sparse.csc_matrix, sparse.csr_matrix])
@pytest.mark.parametrize(("scale", "word"), [(1e160, "overflow"), (1e300, "overflow"), (1e-160, "underflow")])
def test_a_matrix_whose_squares_are_no_numbers_is_refused(made, scale, word):
    with pytest.raises(ValueError, match=rf"A has a column of length .*, whose squares {word}: .*; rescale it"):
        sb.Problem(sb.L1(0.1), made(A * scale), sb.Squared(B))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("scale", "word"), [(1e130, "overflow"), (1e160, "overflow"), (1e-200, "underflow")])
def test_targets_whose_squares_are_no_numbers_are_refused(loss, scale, word):
    with pytest.raises(ValueError, match=rf"the data of the loss has a vector of length .*, whose squares {word}"):
        sb.Problem(sb.L1(0.1), A, loss(B * scale))


def test_nothing_is_refused_for_being_zero():
    problem = sb.Problem(sb.L1(0.1), np.zeros((12, 8)), sb.Squared(np.zeros(12)))
    assert sb.solve(problem).status is sb.Status.OPTIMAL


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("of_A", [1e-110, 1e-40, 1e40, 1e110])
@pytest.mark.parametrize("of_b", [1e-110, 1.0, 1e110])
def test_what_is_accepted_ends_with_a_status_and_without_a_warning(loss, of_A, of_b):
    result = sb.solve(sb.Problem(sb.L1(0.1), A * of_A, loss(B * of_b)), max_passes=50)
    assert isinstance(result.status, sb.Status)


def test_steps_of_osga_do_not_overflow():
    """After many steps of no use alpha is tiny, and one that helps lets it grow by more than a number can hold."""
    model, method = sb.Problem(sb.L1(0.1), A, sb.Absolute(B)).model, OSGA()
    state = method.init(model, Start(np.zeros(8), np.zeros(12)))
    for _ in range(100):
        state.alpha = 1e-9
        state.minorant.eta = 1e3  # a promise that the next step beats by far
        state = method.advance(state, 1.0)
    assert np.isfinite(state.value)
    assert 0 < state.alpha <= 0.7
