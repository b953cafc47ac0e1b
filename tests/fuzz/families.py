"""Every function of the library in any units: the same function of x and u, whose columns and rows change their units.

A family makes a term in given units of its entries and of the objective. ``together`` says which entries have to have
the same unit, and ``FIXED`` which have their own by definition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import saddleback as sb

from .functions import FIXED

Vector = NDArray[np.float64]
Draw = np.random.Generator


@dataclass(frozen=True)
class Family:
    """A function in all units; one that is ``tied`` has one unit for all entries."""

    together: NDArray[np.int64]
    make: Callable[[Vector, float], Any]

    def drawn_units(self, rng: Draw, largest: int) -> Vector:
        """Return random units of the entries."""
        exponents = rng.integers(-largest, largest + 1, self.together.size)
        return np.where(self.together == FIXED, 1.0, np.ldexp(1.0, exponents[self.together]))


def free(size: int, make: Callable[[Vector, float], Any]) -> Family:
    """Return a family with a unit per entry."""
    return Family(np.arange(size), make)


def tied(size: int, make: Callable[[float, float], Any]) -> Family:
    """Return a family with one unit."""
    return Family(np.zeros(size, dtype=np.int64), lambda units, objective: make(float(units[0]), objective))


def fixed(size: int, make: Callable[[float], Any]) -> Family:
    """Return a family whose entries have a unit by definition."""
    return Family(np.full(size, FIXED), lambda _, objective: make(objective))


# --- penalties: those of K x, times the objective -------------------------------------------------------------------


def _groups(n: int) -> tuple[list[list[int]], NDArray[np.int64]]:
    groups = [list(range(n // 2)), list(range(n // 2, n))]
    return groups, np.repeat([0, 1], [n // 2, n - n // 2])


def _grouped(
    n: int, term: Callable[[list[list[int]], Vector], Any], more: Callable[[Vector, float], Any] | None = None
) -> Family:
    """Return a penalty on the norms of two groups; more may be added to it."""
    groups, together = _groups(n)
    weights = np.sqrt([len(g) for g in groups])

    def make(k: Vector, s: float) -> Any:
        norms = term(groups, weights * k[[g[0] for g in groups]] * s)
        return norms if more is None else norms + more(k, s)

    return Family(together, make)


def penalty(name: str, n: int, rng: Draw) -> Family:
    """Return a penalty whose domain contains points near 0."""
    a = float(rng.uniform(0.05, 1.0))
    w, c = rng.uniform(0.5, 2.0, n), 0.5 * a * rng.uniform(-1, 1, n)
    match name:
        case "Zero":
            return free(n, lambda k, s: sb.Zero())
        case "L1":
            return free(n, lambda k, s: sb.L1(1.0, a * k * s))
        case "SquaredL2":
            return free(n, lambda k, s: sb.ElasticNet(1.0, 0.0, a * k**2 * s))
        case "ElasticNet":
            return free(n, lambda k, s: sb.L1(1.0, a * k * s) + sb.ElasticNet(1.0, 0.0, w * k**2 * s))
        case "Box":
            return free(n, lambda k, s: sb.L1(1.0, a * k * s) + sb.Box(-0.4 / k, np.linspace(0.2, 1.0, n) / k))
        case "NonNegative":
            return free(n, lambda k, s: sb.NonNegative())
        case "Linear + Box":
            return free(n, lambda k, s: sb.Linear(c * k * s) + sb.Box(-1.0 / k, 1.0 / k))
        case "L1 + Linear":
            return free(n, lambda k, s: sb.L1(1.0, a * k * s) + sb.Linear(c * k * s))
        case "GroupL2":
            return _grouped(n, lambda groups, weights: sb.GroupL2(a, groups, weights))
        case "GroupL2 + NonNegative":
            return _grouped(n, lambda groups, weights: sb.GroupL2(a, groups, weights) + sb.NonNegative())
        case "SparseGroup":
            return _grouped(
                n, lambda groups, weights: sb.GroupL2(a, groups, weights), lambda k, s: sb.L1(1.0, 0.5 * a * k * s)
            )
        case "GroupElasticNet":
            return _grouped(
                n,
                lambda groups, weights: sb.GroupL2(a, groups, weights),
                lambda k, s: sb.ElasticNet(1.0, 0.0, w * k**2 * s),
            )
        case "GroupLInf":
            return _grouped(n, lambda groups, weights: sb.GroupLInf(a, groups, weights))
        case "ByColumns":
            h = n // 2
            first, second = np.arange(h), np.arange(h, n)
            return Family(
                np.concatenate([np.zeros(h, dtype=np.int64), second]),
                lambda k, s: sb.ByColumns(
                    [(sb.GroupL2(a * k[0] * s, [h], [1.0]), first), (sb.L1(1.0, a * k[h:] * s), second)]
                ),
            )
        case "Nuclear":
            return tied(n, lambda k, s: sb.Nuclear(a * k * s, (2, n // 2)))
        case "LInf":
            return tied(n, lambda k, s: sb.LInf(a * k * s))
        case "SLOPE":
            return tied(n, lambda k, s: sb.SLOPE(np.linspace(1.5, 0.1, n), a * k * s))
        case "Simplex":
            return tied(n, lambda k, s: sb.Simplex(1.5 / k))
        case "L1Ball":
            return tied(n, lambda k, s: sb.L1Ball(0.2 * n / k))
        case "Isotonic":
            return tied(n, lambda k, s: sb.Isotonic())
        case "TotalVariation1D":
            return tied(n, lambda k, s: sb.TotalVariation1D(a * k * s))
        case "TotalVariation1D + L1":
            return tied(n, lambda k, s: sb.TotalVariation1D(a * k * s) + sb.L1(0.5 * k * s))
    raise AssertionError(name)


PENALTIES = [
    *("Zero", "L1", "SquaredL2", "ElasticNet", "Box", "NonNegative", "Linear + Box", "L1 + Linear"),
    *("GroupL2", "GroupL2 + NonNegative", "SparseGroup", "GroupElasticNet", "GroupLInf", "ByColumns"),
    *("Nuclear", "LInf", "SLOPE", "Simplex", "L1Ball", "Isotonic", "TotalVariation1D", "TotalVariation1D + L1"),
]


# --- losses: those of u / L, times the objective --------------------------------------------------------------------


def loss(name: str, b: Vector, feasible: Vector, rng: Draw) -> Family:
    """Return a loss with targets b; ``feasible`` is Ax for some x in the domain of the penalty."""
    m = b.size
    w, q = rng.uniform(0.5, 2.0, m), rng.uniform(0.1, 0.9, m)
    z = np.where(b > 0, 1.0, -1.0)
    match name:
        case "Squared":
            return free(m, lambda u, s: sb.Squared(b * u, w * s / u**2))
        case "Absolute":
            return free(m, lambda u, s: sb.Absolute(b * u, w * s / u))
        case "Pinball":
            return free(m, lambda u, s: sb.Pinball(b * u, q, w * s / u))
        case "Huber":
            return free(m, lambda u, s: sb.Huber(b * u, 0.5 * u, w * s / u**2))
        case "EpsilonInsensitive":
            return free(m, lambda u, s: sb.EpsilonInsensitive(b * u, 0.2 * u, w * s / u))
        case "SquaredEpsilonInsensitive":
            return free(m, lambda u, s: sb.SquaredEpsilonInsensitive(b * u, 0.2 * u, w * s / u**2))
        case "SmoothedPinball":
            return free(m, lambda u, s: sb.SmoothedPinball(b * u, q, 0.5 * u, w * s / u))
        case "Expectile":
            return free(m, lambda u, s: sb.Expectile(b * u, q, w * s / u**2))
        case "Equality":
            return free(m, lambda u, s: sb.Equality(feasible * u))
        case "Interval":
            low = np.where(np.arange(m) % 3 == 0, -np.inf, feasible - rng.uniform(0, 0.3, m))
            high = np.where(np.arange(m) % 3 == 1, np.inf, feasible + rng.uniform(0, 0.3, m))
            return free(m, lambda u, s: sb.Interval(low * u, high * u))
        case "Hinge" | "SquaredHinge" | "Logistic":
            return fixed(m, lambda s: getattr(sb, name)(z, w * s))
        case "HuberisedHinge":
            return fixed(m, lambda s: sb.HuberisedHinge(z, 0.5, w * s))
        case "Poisson":
            return fixed(m, lambda s: sb.Poisson(np.floor(np.abs(3.0 * b)), w * s))
        case "Gamma":
            return fixed(m, lambda s: sb.Gamma(np.exp(0.5 * b), w * s))
        case "Tweedie":
            return fixed(m, lambda s: sb.Tweedie(np.where(b > 0, np.exp(0.5 * b), 0.0), 1.5, w * s))
        case "KullbackLeibler":
            known = np.where(feasible > 0, w, 0.0)  # the others have no constraint
            return fixed(m, lambda s: sb.KullbackLeibler(np.floor(np.abs(3.0 * b)), known * s))
        case "Multinomial":
            return fixed(m, lambda s: sb.Multinomial(np.abs(np.round(b, 1)).reshape(-1, 2), None, w[::2] * s))
        case "MulticlassHinge":
            return fixed(m, lambda s: sb.MulticlassHinge((b > 0)[::2], 2, w[::2] * s))
        case "Norm2":
            return tied(m, lambda u, s: sb.Norm2(b * u, w, s / u))
        case "TopK":
            return tied(m, lambda u, s: sb.TopK(b * u, m // 3, s / u))
        case "CVaR":
            return tied(m, lambda u, s: sb.CVaR(b * u, 0.6, s / u))
        case "Wilcoxon" | "Gini":
            return tied(m, lambda u, s: getattr(sb, name)(b * u, s / u))
    raise AssertionError(name)


LOSSES = [
    *("Squared", "Absolute", "Pinball", "Huber", "EpsilonInsensitive", "SquaredEpsilonInsensitive"),
    *("SmoothedPinball", "Expectile", "Equality", "Interval", "Hinge", "SquaredHinge", "Logistic", "HuberisedHinge"),
    *("Poisson", "Gamma", "Tweedie", "KullbackLeibler", "Multinomial", "MulticlassHinge"),
    *("Norm2", "TopK", "CVaR", "Wilcoxon", "Gini"),
]


@dataclass(frozen=True)
class Instance:
    """A problem over the catalogue: its matrix, its functions, and whether there is an intercept."""

    name: str
    A: Vector
    penalty: Family
    loss: Family
    intercept: bool

    def problem(self, rows: Vector, columns: Vector, intercept: float, objective: float) -> sb.Problem:
        """Return the problem in some units."""
        A = np.asfortranarray(rows[:, None] * self.A * columns)
        f, g = self.penalty.make(columns, objective), self.loss.make(rows, objective)
        return sb.Problem([f, sb.Zero()], [A, intercept * rows], g) if self.intercept else sb.Problem(f, A, g)


def drawn(seed: int) -> Instance:
    """Return a random problem: every penalty with every loss in turn."""
    rng = np.random.default_rng(seed)
    names = PENALTIES[seed % len(PENALTIES)], LOSSES[seed // len(PENALTIES) % len(LOSSES)]
    tall, is_sparse, intercept, empty, duplicate = rng.random(5) < (0.5, 0.4, 0.3, 0.2, 0.2)
    m, n = (14, 6) if tall else (6, 10)
    A = rng.standard_normal((m, n)) * (rng.random((m, n)) < (0.5 if is_sparse else 1.0))
    if duplicate:
        A[:, 1] = A[:, 0]
    if empty:
        A[rng.integers(m)] = 0.0
    f = penalty(names[0], n, rng)
    ones = np.ones(n)
    inside = f.make(ones, 1.0).bind((n,)).domain.project(np.clip(rng.uniform(0, 0.4, n), 0, 0.2))
    b = A @ (rng.standard_normal(n) * (rng.random(n) < 0.5)) + rng.standard_normal(m)
    g = loss(names[1], b, A @ inside + 0.1 * intercept, rng)
    return Instance(f"{names[0]} / {names[1]} {m}x{n}", A, f, g, bool(intercept))
