"""What functions prove of their excess over a line, against 60 digits: for every function of the catalogue."""

from __future__ import annotations

import warnings
from decimal import Decimal, localcontext

import numpy as np
import pytest
from catalogue import FUNCTIONS, ORDERED, SIZE
from exact_functions import INFINITE, SIXTY_DIGITS, SLACK, dot, exact, exactly

import saddleback as sb
from saddleback.certificates.closed_rows import ClosedRows
from saddleback.common.rounded import UNIT, Rounded

every_function = pytest.mark.parametrize("name", FUNCTIONS)
both_sides = pytest.mark.parametrize("conjugate", [False, True], ids=["function", "conjugate"])

UNPROVED = {
    "Multinomial counts",
    "TotalVariation1D + L1",
    "TotalVariation1D + L1 + NonNegative",
}
"""Functions that assume the rounding of their values."""

OF_CLASSES = {"Multinomial", "MulticlassHinge", "MulticlassHinge weightless"}
"""Functions of rows of y that the certificate closes."""

OF_SUMS = ORDERED | OF_CLASSES | {"Simplex", "Simplex + Linear"}
"""Functions that do not prove that the entries of a slope have the right sums."""


@pytest.fixture(autouse=True)
def _digits():
    with localcontext(SIXTY_DIGITS):
        yield


def bound(name, conjugate):
    f = FUNCTIONS[name].bind((SIZE,))
    return f.conjugate() if conjugate else f


def pairs(f, rng, count):
    """Yield points with slopes: subgradients, the same outside of the domain, and any slopes."""
    for k in range(count):
        v = rng.normal(size=SIZE) * 10.0 ** rng.integers(-2, 2)
        p = f.prox(v, 1.0)
        s = f.conjugate().domain.project(v - p)
        if k % 4 == 1:
            s = f.conjugate().domain.project(s * (1 + 0.3 * rng.normal(size=SIZE)))
        elif k % 4 == 2:
            s = 1.5 * s
        elif k % 4 == 3:
            s = rng.normal(size=SIZE)
        yield p, s


def surroundings(rng, p, s, scale):
    """Return a radius, and a slope with low digits and an error."""
    if scale == 0:
        return None, Rounded.around(s)
    radius = scale * np.abs(p) * rng.random(SIZE) * (rng.random(SIZE) < 0.7)
    low = UNIT * 0.3 * s * rng.normal(size=SIZE)
    error = scale * np.abs(s) * rng.random(SIZE) * (rng.random(SIZE) < 0.7)
    return (radius if rng.random() < 0.6 else None), Rounded(s, low, error, 3 * np.abs(s))


def samples(rng, centre, error, count=4):
    """Yield exact vectors within an error: the centre, corners and others."""
    yield centre
    for k in range(count):
        shares = rng.choice([-1.0, 0.0, 1.0], size=SIZE) if k % 2 else rng.uniform(-1, 1, SIZE)
        yield [c + e * t for c, e, t in zip(centre, error, exactly(shares), strict=True)]


def closed(domain, y, radius):
    """Return a dual point whose rows add to 0 within its radius, as the certificate gives it."""
    for rows in ClosedRows.of(domain, y):
        y, radius = rows.close(y, radius)
    return y, radius


def closed_slope(domain, slope):
    """Return such a slope."""
    high, error = closed(domain, slope.high, slope.error)
    low = slope.low if high is slope.high else np.zeros(SIZE)
    return slope._replace(high=high, low=low, error=np.zeros(SIZE) if error is None else error)


def with_sums(s, sums, error=None):
    """Return a slope whose sums over some coordinates are right, by the least known of these, or else the last."""
    s = list(s)
    for own, total in sums:
        left = own[-1] if error is None else max(own, key=lambda j: error[j])
        s[left] = total - sum(s[j] for j in own if j != left)
    return s


@every_function
@both_sides
@pytest.mark.parametrize("scale", [0.0, 1e-15, 1e-9, 1e-2])
def test_bounds_contain_the_exact_numbers(name, conjugate, scale, rng):
    f = bound(name, conjugate)
    oracle = exact(f)
    for p, s in pairs(f, rng, 8):
        radius, slope = surroundings(rng, p, s, scale)
        if name in OF_CLASSES:
            p, radius = closed(f.domain, p, radius)
            slope = closed_slope(f.conjugate().domain, slope)
        found = f.excess(p, radius, slope)
        if oracle is None:
            assert name in UNPROVED
            assert not (found.point_inside and found.slope_inside)
            continue
        points = [exactly(p)] if radius is None else list(samples(rng, exactly(p), exactly(radius)))
        centre = [h + t for h, t in zip(exactly(slope.high), exactly(slope.low), strict=True)]
        slopes = list(samples(rng, centre, exactly(slope.error)))
        for given_point in points:
            point = with_sums(given_point, oracle.of_points, radius)
            value = oracle.value(point)
            assert value < INFINITE or not found.point_inside
            assert value == INFINITE or contains(found.value, value)
            for given in slopes:
                own = with_sums(given, oracle.sums, slope.error if name in OF_CLASSES else None)
                check(found, oracle, point, own, value)


def contains(bounds, exact_value):
    """Return whether bounds contain a number."""
    return Decimal(bounds.low) - SLACK <= exact_value <= Decimal(bounds.high) + SLACK


def check(found, oracle, point, slope, value):
    """Compare what is known of a point and a slope with exact numbers."""
    at, product = oracle.conjugate(slope), dot(point, slope)
    assert at < INFINITE or not found.slope_inside
    if at < INFINITE:
        assert contains(found.conjugate, at)
        assert value == INFINITE or Decimal(found.gap) + SLACK >= value + at - product
    elif oracle.nearest is not None and value < INFINITE:
        near = oracle.nearest(slope)
        assert Decimal(found.gap) + SLACK >= value + oracle.conjugate(near) - dot(point, near)
        assert Decimal(found.missed) + SLACK >= sum(
            abs(x) * abs(a - b) for x, a, b in zip(point, slope, near, strict=True)
        )


@every_function
def test_the_gap_far_away_is_not_too_small(name, rng):
    """Exponentials of -745 have one binary digit, and those of -760 none."""
    f = bound(name, False)
    oracle, slopes = exact(f), f.conjugate().domain
    for distance in (690.0, 740.0, 744.9, 745.1, 800.0):
        p = f.domain.project(distance * rng.choice([-1.0, 1.0], SIZE))
        slope = Rounded.around(slopes.project(rng.uniform(-0.6, 0.6, SIZE)))
        if name in OF_CLASSES:
            slope = closed_slope(slopes, slope)
        found = f.excess(p, None, slope)
        if oracle is not None:
            given = exactly(p)
            check(
                found,
                oracle,
                given,
                with_sums(exactly(slope.high), oracle.sums, slope.error if name in OF_CLASSES else None),
                oracle.value(given),
            )


@every_function
@both_sides
@pytest.mark.parametrize("scale", [0.0, 1e-9])
def test_the_multiple_of_a_slope_is_inside(name, conjugate, scale, rng):
    f = bound(name, conjugate)
    oracle, domain = exact(f), f.conjugate().domain
    for p, s in pairs(f, rng, 12):
        _, slope = surroundings(rng, p, 2 * s, scale)
        found = f.excess(p, None, slope)
        assert 0 < found.multiple <= 1
        largest = domain.largest_multiple(slope.high)
        if name in UNPROVED | OF_SUMS or not largest > 0 or not found.multiple < 1:
            continue
        known = 1e-9 if "Nuclear" in name else 1e-11  # the domain of the former has a tolerance of 1e-10
        assert found.multiple >= largest * (1 - known - 100 * scale)
        centre = [h + t for h, t in zip(exactly(slope.high), exactly(slope.low), strict=True)]
        for given in samples(rng, centre, exactly(slope.error)):
            own = [Decimal(found.multiple) * each for each in with_sums(given, oracle.sums)]
            assert oracle.conjugate(own) < INFINITE


@every_function
@both_sides
def test_an_optimum_is_certified(name, conjugate, rng):
    """Next to a subgradient the gap is a few roundings of the terms."""
    f = bound(name, conjugate)
    for _ in range(8):
        v = rng.normal(size=SIZE) * 10.0 ** rng.integers(-2, 2)
        p = f.prox(v, 1.0)
        s = f.conjugate().domain.project(v - p)
        found = f.excess(p, None, Rounded(s, 0 * s, 0 * s, np.abs(s) + np.abs(v)))
        terms = found.value.size + found.conjugate.size + np.abs(p) @ np.abs(s) + v @ v
        assert found.rounded
        assert found.infeasibility == 0
        assert found.gap + found.missed <= 1e-11 * terms
        if name not in UNPROVED:
            assert found.gap - found.exact <= 1e-13 * terms


@every_function
@both_sides
def test_the_exact_excess_is_that_of_the_numbers(name, conjugate, rng):
    f = bound(name, conjugate)
    oracle = exact(f)
    for p, s in pairs(f, rng, 8):
        s = f.conjugate().domain.project(s)
        found = f.excess(p, None, Rounded.around(s))
        if oracle is None:
            continue
        value, at = oracle.value(exactly(p)), oracle.conjugate(exactly(s))
        if value < INFINITE and at < INFINITE:
            terms = found.value.size + found.conjugate.size + p @ p + s @ s
            expected = float(value + at - dot(exactly(p), exactly(s)))
            assert found.exact == pytest.approx(expected, rel=1e-12, abs=1e-14 * terms)


@pytest.mark.parametrize("power", [-40, 60])
@every_function
@both_sides
def test_the_unit_of_the_objective_changes_no_bit(name, conjugate, power, rng):
    """f times 4^k has the slopes times 4^k, and its conjugate the points."""
    factor = 4.0**power
    f, scaled = FUNCTIONS[name].bind((SIZE,)), FUNCTIONS[name].times(factor).bind((SIZE,))
    if name in UNPROVED:
        pytest.skip("its values are assumed")
    for p, s in pairs(f, rng, 8):
        radius, slope = surroundings(rng, p, s, 1e-9)
        of_slope = Rounded(*(factor * each for each in slope))
        if conjugate:
            y, error = slope.high, slope.error
            of_point = Rounded.around(p, radius)
            found = f.conjugate().excess(y, error, of_point)
            other = scaled.conjugate().excess(factor * y, factor * error, of_point)
        else:
            found, other = f.excess(p, radius, slope), scaled.excess(p, radius, of_slope)
        assert other.infeasibility == found.infeasibility
        assert other.multiple == found.multiple
        assert other.gap == factor * found.gap
        assert other.missed == factor * found.missed
        assert other[-3:] == found[-3:]


HOMOGENEOUS = ["L1", "L1 weighted", "GroupL2", "GroupL2 scattered", "GroupL2 + L1", "SparseGroup"]
HOMOGENEOUS += ["LInf", "GroupLInf", "SLOPE", "TotalVariation1D"]


@pytest.mark.parametrize("name", HOMOGENEOUS)
def test_the_unit_of_the_columns_changes_no_bit(name, rng):
    """A norm of x / 2^k, with the weight times 2^k and slopes times 2^k."""
    factor = 2.0**37
    f, scaled = FUNCTIONS[name].bind((SIZE,)), FUNCTIONS[name].times(factor).bind((SIZE,))
    for p, s in pairs(f, rng, 8):
        _, slope = surroundings(rng, p, s, 1e-9)
        found = f.excess(p, None, slope)
        assert scaled.excess(p / factor, None, Rounded(*(factor * each for each in slope))) == found


@every_function
@both_sides
def test_numbers_out_of_range_are_no_numbers(name, conjugate, rng):
    """Infinite and huge vectors give an infinite gap, or a right one, without a warning."""
    f = bound(name, conjugate)
    p, s = next(pairs(f, rng, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for bad in (np.inf, -np.inf, np.nan, 1e300, -1e300, 1e-300):
            all_bad = np.full(SIZE, bad)
            for point, slope, error in ((all_bad, s, 0 * s), (p, all_bad, 0 * s), (p, s, np.abs(all_bad))):
                if name in UNPROVED and np.isfinite(bad):
                    continue
                found = f.excess(point, None, Rounded(slope, 0 * s, error, np.abs(slope)))
                numbers = [found.gap, found.missed, found.infeasibility, found.multiple]
                assert not np.any(np.isnan(numbers + list(found.value) + list(found.conjugate)))
                assert np.isfinite(bad) or found.gap == np.inf


@pytest.mark.parametrize("size", [5000])
def test_long_blocks(size, rng):
    """A group of thousands of columns is certified to nearly as many digits as a short one."""
    for term in (sb.GroupL2(0.5, size), sb.LInf(3.0), sb.SLOPE(np.linspace(2, 1, size)), sb.Norm2(np.zeros(size))):
        f = term.bind((size,))
        v = rng.normal(size=size) * 5
        p = f.prox(v, 1.0)
        s = f.conjugate().domain.project(v - p)
        found = f.excess(p, None, Rounded.around(s))
        assert found.gap + found.missed <= 1e-12 * (found.value.size + np.abs(p) @ np.abs(v))
        slope = Rounded.around(s).times(found.multiple)
        assert f.excess(p, None, slope).slope_inside
