"""Products with bounds on their rounding: every bound holds in rational arithmetic, for every operator."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import saddleback as sb
from saddleback.common.rounded import Rounded
from saddleback.operators import as_operator
from saddleback.operators.above import Above
from saddleback.operators.adjoint import Adjoint
from saddleback.operators.dense import Dense
from saddleback.operators.identity import ScaledIdentity
from saddleback.operators.sparse import Compressed, Transposed, both_ways
from saddleback.operators.stacked import hstack
from saddleback.operators.tasks import Tasks

SIZES = (9, 7)


def matrix(rng: np.random.Generator, spread: int) -> np.ndarray:
    """Return entries of very different sizes, some of which are 0."""
    A = rng.standard_normal(SIZES) * np.ldexp(1.0, rng.integers(-spread, spread, SIZES))
    return np.where(rng.random(SIZES) < 0.3, 0.0, A)


OPERATORS = {
    "dense by columns": lambda A: Dense(np.asfortranarray(A)),
    "dense by rows": lambda A: Dense(np.ascontiguousarray(A)),
    "dense in float32": lambda A: Dense(A.astype(np.float32)),
    "sparse by columns": lambda A: Compressed(sparse.csc_matrix(A)),
    "sparse by rows": lambda A: Transposed(sparse.csr_matrix(A)),
    "sparse both ways": lambda A: both_ways(Compressed(sparse.csc_matrix(A))),
    "adjoint": lambda A: Adjoint(Dense(A)),
    "side by side": lambda A: hstack(Dense(np.asfortranarray(A)), ScaledIdentity(SIZES[0], -3.0)),
    "one above the other": lambda A: Above([Dense(A), None, Compressed(sparse.csc_matrix(A))], [SIZES[0], 2, SIZES[0]]),
    "tasks": lambda A: Tasks(Dense(A), 2),
    "differences": lambda _: as_operator(sb.Differences(shape=(3, 4)), "A"),
    "repeated": lambda _: as_operator(sb.Repeat([0, 2, 2, 1, 0]), "A"),
    "identity": lambda _: ScaledIdentity(5, 0.1),
}


def distances(rounded: Rounded, exact: list[Fraction]) -> list[tuple[Fraction, Fraction]]:
    """Return the error of each entry and the bound on it."""
    return [
        (abs(Fraction(float(high)) + Fraction(float(low)) - true), Fraction(float(error)))
        for high, low, error, true in zip(rounded.high, rounded.low, rounded.error, exact, strict=True)
    ]


def product(A: np.ndarray, x: np.ndarray) -> list[Fraction]:
    """Return A x in rational arithmetic."""
    return [
        sum((Fraction(float(a)) * Fraction(float(b)) for a, b in zip(row, x, strict=True)), Fraction(0)) for row in A
    ]


@pytest.mark.parametrize("precise", [False, True])
@pytest.mark.parametrize("name", OPERATORS)
def test_bounds_hold(name: str, precise: bool) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        A = OPERATORS[name](matrix(rng, 30))
        entries = np.asarray(A.entries(), dtype=np.float64)
        for rounded, data, size in (
            (A.matvec_rounded, entries, A.shape[1]),
            (A.rmatvec_rounded, entries.T, A.shape[0]),
        ):
            v = rng.standard_normal(size) * np.ldexp(1.0, rng.integers(-30, 30, size))
            v[rng.random(size) < 0.2] = 0.0
            radius = np.abs(rng.standard_normal(size)) * 2.0**-20
            found = rounded(v, None, precise)
            assert all(error <= bound for error, bound in distances(found, product(data, v)))
            assert np.all(found.size >= np.abs(data) @ np.abs(v) * (1 - 2.0**-48))
            within = rounded(v, radius, precise)
            for end in (np.nextafter(v + radius, v), np.nextafter(v - radius, v)):
                assert all(error <= bound for error, bound in distances(within, product(data, end)))


@pytest.mark.parametrize("name", ["dense by columns", "dense by rows", "sparse by columns", "one above the other"])
def test_products_that_underflow_have_bounds(name: str) -> None:
    rng = np.random.default_rng(0)
    A = OPERATORS[name](matrix(rng, 2) * 2.0**-540)
    entries = np.asarray(A.entries())
    y = rng.standard_normal(A.shape[0]) * 2.0**-540
    found = A.rmatvec_rounded(y)
    assert all(error <= bound for error, bound in distances(found, product(entries.T, y)))


@pytest.mark.parametrize("name", ["dense by columns", "dense by rows", "sparse by columns", "differences"])
def test_more_digits_see_what_cancels(name: str) -> None:
    A = OPERATORS[name](matrix(np.random.default_rng(1), 1))
    y = np.ldexp(np.arange(1.0, A.shape[0] + 1), np.arange(A.shape[0]) * 5 % 40)
    plain, precise = A.rmatvec_rounded(y), A.rmatvec_rounded(y, precise=True)
    assert np.all(precise.error <= 1e-12 * plain.error)


@pytest.mark.parametrize("name", ["dense by columns", "sparse by rows", "side by side", "one above the other"])
@pytest.mark.parametrize("precise", [False, True])
def test_units_change_no_bit(name: str, precise: bool) -> None:
    rng = np.random.default_rng(2)
    data = matrix(rng, 3)
    rows, columns = np.ldexp(1.0, rng.integers(-40, 40, SIZES[0])), np.ldexp(1.0, rng.integers(-40, 40, SIZES[1]))
    plain, scaled = (OPERATORS[name](each) for each in (data, rows[:, None] * data * columns))
    heights, widths = plain.shape[0] // SIZES[0], slice(0, SIZES[1])
    y = rng.standard_normal(plain.shape[0])
    if heights > 1:
        rows = np.concatenate([rows, np.ones(2), rows])
    first, second = plain.rmatvec_rounded(y, None, precise), scaled.rmatvec_rounded(y / rows, None, precise)
    for one, other in zip(first, second, strict=True):
        assert np.array_equal(one[widths] * columns, other[widths])


@pytest.mark.parametrize("name", ["dense by columns", "dense by rows", "sparse by columns", "one above the other"])
def test_sums_that_lose_nothing_are_exact(name: str) -> None:
    rng = np.random.default_rng(3)
    data = rng.integers(-9, 10, SIZES) * np.ldexp(1.0, rng.integers(-30, 30, SIZES[0]))[:, None]
    A = OPERATORS[name](data)
    x, y = rng.integers(-9, 10, SIZES[1]).astype(float), rng.integers(-9, 10, A.shape[0]).astype(float)
    image = A.matvec_rounded(x, precise=True)
    assert np.all(image.error == 0)
    assert all(error == 0 for error, _ in distances(image, product(np.asarray(A.entries()), x)))
    assert np.any(A.rmatvec_rounded(y / 3.0, precise=True).error > 0)
