"""The ends of enclosures are rounded outwards: in exact arithmetic, the excess there is at least the given one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

import saddleback as sb
from saddleback.common.arrays import Blocks
from saddleback.functions.group import GroupNorms
from saddleback.functions.logistic import LogisticLoss
from saddleback.functions.piecewise import PiecewiseQuadratic

mp.dps = 60


def exact_excess(parameters: list[float], p: float, s: float) -> Fraction | float:
    """Return F(p) + F*(s) - p s for one coordinate, in rational arithmetic."""
    left, right, quadratic, lower, upper = parameters
    q, slope = Fraction(quadratic), Fraction(s)

    def value(t: Fraction) -> Fraction:
        return (Fraction(right) if t > 0 else Fraction(left)) * t + q * t * t / 2

    if not lower <= p <= upper:
        return np.inf
    candidates = [Fraction(end) for end in (lower, upper) if np.isfinite(end)]
    candidates += [Fraction(0)] if lower <= 0 <= upper else []
    if q > 0:
        candidates += [t for t in ((slope - Fraction(side)) / q for side in (left, right)) if lower <= t <= upper]
    elif (s > right and upper == np.inf) or (s < left and lower == -np.inf):
        return np.inf
    point = Fraction(p)
    return value(point) + max(slope * t - value(t) for t in candidates) - point * slope


def random_member(rng: np.random.Generator) -> list[float]:
    """Return the parameters of one coordinate, with all kinds of bounds, in random units."""
    left, right = sorted(rng.standard_normal(2)) if rng.random() < 0.7 else [float(rng.standard_normal())] * 2
    quadratic = float(rng.choice([0.0, rng.random(), 1e8 * rng.random(), 1e-8 * rng.random()]))
    offset = float(rng.choice([0.0, 1e9, -1e4]))
    ends = sorted(rng.standard_normal(2) * rng.choice([1.0, 1e6])) if rng.random() < 0.7 else [-1.0, 1.0]
    lower = float(rng.choice([-np.inf, min(ends[0], 0.0), ends[0]]))
    upper = float(rng.choice([np.inf, max(ends[1], 0.0), max(ends[1], lower + 0.1)]))
    return [float(left) + offset, float(right) + offset, quadratic, lower, upper]


def at_least(found: Fraction | float, excess: float) -> bool:
    return found == np.inf or found >= Fraction(excess)


@pytest.mark.parametrize("seed", range(20))
def test_the_ends_of_one_coordinate_have_at_least_the_excess(seed: int) -> None:
    rng = np.random.default_rng(seed)
    proper = 0
    for _ in range(100):
        parameters = random_member(rng)
        F = PiecewiseQuadratic(*(np.array([each]) for each in parameters))
        excess = float(rng.choice([0.0, 1.0])) * 10.0 ** rng.uniform(-20, 5)
        domain = F.conjugate_domain
        guess = parameters[0] + float(rng.choice([0.0, 1.0])) * rng.standard_normal() * 10.0 ** rng.uniform(-9, 9)
        low = domain.project(np.array([guess]))
        high = domain.project(low + rng.choice([0.0, abs(rng.standard_normal())]))
        lower, upper = F.enclosure(low, high, excess)
        point = F.domain.project(np.array([float(rng.choice([0.0, 1.0])) * rng.standard_normal()]))
        beyond = F.domain.project(point + rng.choice([0.0, abs(rng.standard_normal())]))
        least, most = F.conjugate().enclosure(point, beyond, excess)
        for end, slope, bound in ((lower[0], low[0], parameters[3]), (upper[0], high[0], parameters[4])):
            if np.isfinite(end) and end != bound:
                proper += 1
                assert at_least(exact_excess(parameters, end, slope), excess), (parameters, end, slope, excess)
        for end, slope, bound in (
            (least[0], point[0], domain.lower[0]),
            (most[0], beyond[0], domain.upper[0]),
        ):
            if np.isfinite(end) and end != bound:
                proper += 1
                assert at_least(exact_excess(parameters, slope, end), excess), (parameters, end, slope, excess)
    assert proper > 100


@pytest.mark.parametrize("seed", range(5))
def test_the_slopes_at_the_ends_are_beyond_the_given_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(100):
        parameters = random_member(rng)
        left, right, quadratic, _, _ = parameters
        F = PiecewiseQuadratic(*(np.array([each]) for each in parameters))
        low = parameters[0] + rng.standard_normal(1)
        high = low + rng.choice([0.0, abs(rng.standard_normal())])
        lower, upper = (float(end[0]) for end in F.with_slopes(low, high))
        curvature = Fraction(quadratic)
        if np.isfinite(upper) and upper < parameters[4]:
            assert Fraction(right if upper >= 0 else left) + curvature * Fraction(upper) >= high[0]
        if np.isfinite(lower) and lower > parameters[3]:
            assert Fraction(left if lower <= 0 else right) + curvature * Fraction(lower) <= low[0]


@pytest.mark.parametrize("seed", range(5))
def test_the_ends_of_the_logistic_loss_have_at_least_the_excess(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(50):
        label, weight = float(rng.choice([-1.0, 1.0])), float(rng.random() * 10.0 ** rng.integers(-6, 6))
        excess = float(rng.choice([0.0, weight * 10.0 ** rng.uniform(-18, 1)]))
        share = float(rng.choice([rng.random(), 1e-12 * rng.random(), 1.0 - 1e-12 * rng.random()]))
        slopes = [-label * weight * each for each in (share, min(share * 1.001, 1.0))]
        low, high = (np.array([each]) for each in sorted(slopes))
        loss = LogisticLoss(np.array([label]), np.array([weight]))
        for end, slope, side in zip(loss.enclosure(low, high, excess), (low, high), (-1, 1), strict=True):
            if not np.isfinite(end[0]):
                continue
            u, p = mpf(end[0]), -label * mpf(slope[0]) / mpf(weight)
            entropy = p * mp.log(p) + (1 - p) * mp.log(1 - p)
            found = weight * (mp.log(1 + mp.exp(-label * u)) + entropy) - u * mpf(slope[0])
            assert found >= mpf(excess) - weight * mpf(10) ** -40
            assert side * (u - label * (mp.log(1 - p) - mp.log(p))) >= 0


@pytest.mark.parametrize("seed", range(5))
def test_no_group_near_a_slope_is_outside_of_its_ends(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(50):
        left, right = -rng.random(3), rng.random(3)
        norms = GroupNorms(Blocks(None, np.array([0, 3])), np.array([1.0]), left, right)
        low = rng.standard_normal(3) * rng.choice([0.3, 0.8])
        high = low + rng.choice([0.0, 1e-3]) * rng.random(3)
        excess = float(10.0 ** rng.uniform(-12, 1))
        ends = norms.enclosure(low, high, excess)
        longest = norms.longest(low, high, excess)
        for z in (low, high, 0.5 * (low + high)):
            pull = z - np.clip(z, left, right)
            if np.linalg.norm(pull) >= 1.0:
                continue
            for direction in (pull, np.sign(pull + 1e-3), rng.standard_normal(3), *np.eye(3), *-np.eye(3)):
                # the excess is linear along a ray from 0, where it is 0
                rise = mp.sqrt(sum(mpf(d) ** 2 for d in direction))
                rise += sum(mpf(d) * (mpf(right[i] if d > 0 else left[i]) - mpf(z[i])) for i, d in enumerate(direction))
                if rise > 0:
                    x = [mpf(excess) / rise * mpf(d) for d in direction]
                    assert all(ends[0][i] <= x[i] <= ends[1][i] for i in range(3))
                    assert mp.sqrt(sum(each**2 for each in x)) <= longest[0]


@pytest.mark.parametrize(
    "loss", [sb.Poisson, sb.Gamma, lambda b: sb.Tweedie(b, 1.3)], ids=["poisson", "gamma", "mixed"]
)
@pytest.mark.parametrize("excess", [1e-12, 1e-6, 1e-2, 1.0])
def test_points_near_a_line_below_a_loss_with_a_log_link(loss, excess, rng):
    """The ends of the enclosure are beyond all points whose excess is at most the given one, and not far beyond."""
    f = loss(rng.integers(1, 6, 200).astype(float)).bind((200,))
    u = rng.normal(size=200)
    slope = f.subgradient(u)
    low, high = f.enclosure(slope, slope, excess)
    assert np.all((low < u) & (u < high))
    share = excess / f.curvature_at(u)
    assert np.all(high - low < 20 * np.sqrt(share) + 20 * share + 1e-7)
    for end in (low, high):
        assert np.all(f.row_excess(end, slope).value >= excess * (1 - 1e-6))
