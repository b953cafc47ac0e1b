"""Problems that are hard to certify: many free columns, offsets, weights of all sizes, rows of rounding size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import functions as own
from . import twins
from .certificate import Statement
from .functions import Real
from .problems import Draw, Drawn

FREE = (0, 0, 1, 1, 2, 3, 8, 40, 120, 300)
"""Numbers of columns without a penalty."""

DYADIC = (0.25, 0.5, 1.0, 2.0)
"""Numbers whose products are not rounded, so that rational arithmetic solves the same problem."""


def matrix(rng: Draw, m: int, n: int) -> Any:
    """Return entries with few digits or with all of them, some of which are 0."""
    A = np.round(rng.standard_normal((m, n)) * 64) / 64 if rng.random() < 0.5 else rng.standard_normal((m, n))
    return np.where(rng.random((m, n)) < rng.choice([0.0, 0.3, 0.7]), 0.0, A)


def loss(rng: Draw, image: Any) -> tuple[Any, str]:
    """Return a loss with data near an image, and its name."""
    m = image.size
    name = str(rng.choice(["Squared", "Absolute", "Pinball", "Huber", "Epsilon", "Hinge", "SquaredHinge", "Logistic"]))
    strength = rng.choice(DYADIC, m).astype(Real)
    if rng.random() < 0.3:
        strength = np.ldexp(Real(1), rng.integers(-40, 41, m) * (rng.random(m) < rng.choice([0.1, 1.0])))
        name += " weighted"
    b = (np.round((image + rng.standard_normal(m)) * 64) / 64).astype(Real)
    labels = np.where(rng.random(m) < 0.5, Real(1), Real(-1))
    one = Real(1)
    match name.split()[0]:
        case "Squared":
            return own.Squared(b, strength), name
        case "Huber":
            return own.Huber(b, strength, Real(rng.choice(DYADIC))), name
        case "Absolute":
            return own.Tilted(b, strength, one, one, Real(0)), name
        case "Epsilon":
            return own.Tilted(b, strength, one, one, Real(rng.choice(DYADIC))), name
        case "Pinball":
            return own.Tilted(b, strength, Real(0.25), Real(0.75), Real(0)), name
        case labelled:
            return getattr(own, labelled)(labels, strength), name


def fit(rng: Draw) -> tuple[Statement, list[Any], str]:
    """Return a fit with a point of its domain."""
    free, n = int(rng.choice(FREE)), int(rng.integers(0, 12))
    n += free == n == 0
    m = int(rng.integers(2, 30)) if free < 10 else free + int(rng.integers(2, 2 * free))
    A, offset = matrix(rng, m, n + free), 0.0
    name = f"{m}x{n}+{free}"
    if free:
        A[:, n] = 1.0
        if rng.random() < 0.5:
            offset = float(np.round(10.0 ** rng.uniform(2, 12)))
            name += f" offset {offset:.0e}"
    if rng.random() < 0.2 and free > 1:
        A[:, n + 1] = A[:, n] + 2.0 ** -int(rng.integers(4, 50)) * (np.arange(m) % 2)
        name += " collinear"
    if rng.random() < 0.25:
        rows = rng.integers(0, m, 2)
        A[rows] *= np.ldexp(1.0, rng.integers(-70, -20, 2))[:, None]
        name += " tiny rows"
    x = np.round(rng.standard_normal(n + free)) * (rng.random(n + free) < 0.5)
    g, kind = loss(rng, A @ x)
    if isinstance(g, own.Target):
        g.b = g.b + offset
    slope = np.append(rng.choice(DYADIC, n) * 2.0 ** rng.integers(-3, 4), np.zeros(free)).astype(Real)
    curvature, linear = np.zeros(n + free, dtype=Real), np.zeros(n + free, dtype=Real)
    lower, upper = np.full(n + free, -np.inf, dtype=Real), np.full(n + free, np.inf, dtype=Real)
    if rng.random() < 0.3:
        curvature[:n] = rng.choice([0.0, *DYADIC], n)
    if rng.random() < 0.3:
        lower[:n], upper[:n] = rng.choice([-np.inf, -2.0, 0.0], n), rng.choice([np.inf, 1e6, 2.0, 0.0], n)
    penalty = own.Separable(slope, curvature, linear, lower, upper)
    inside = np.asarray(penalty.project(x.astype(Real)), dtype=float)
    return Statement([penalty], [A.astype(Real)], g), [inside], f"{name} {kind}"


def program(rng: Draw) -> tuple[Statement, list[Any], str]:
    """Return a linear program with a feasible point and a bound."""
    m, n = int(rng.integers(1, 9)), int(rng.integers(1, 12))
    A = matrix(rng, m, n)
    x, y = np.maximum(np.round(2 * rng.standard_normal(n)), 0.0), np.round(rng.standard_normal(m) * 4) / 4
    image = A @ x
    low = np.where(rng.random(m) < 0.3, image, image - rng.uniform(0, 2, m))
    high = np.where(rng.random(m) < 0.3, low, image + rng.uniform(0, 2, m))
    high = np.maximum(high, image)
    low = np.where((y < 0) | (rng.random(m) < 0.7), low, -np.inf)
    high = np.where((y > 0) | (rng.random(m) < 0.7), high, np.inf)
    cost = np.round(-(A.T @ y) * 2**20) / 2**20 + rng.uniform(2.0**-19, 1.0, n)
    zero, infinite = np.zeros(n, dtype=Real), np.full(n, np.inf, dtype=Real)
    penalty = own.Separable(zero, zero, cost.astype(Real), zero, infinite)
    g = own.Interval(low.astype(Real), high.astype(Real))
    return Statement([penalty], [A.astype(Real)], g), [x], f"{m}x{n} program"


def draw(rng: Draw) -> Drawn:
    """Return a random problem that is hard to certify."""
    statement, inside, name = program(rng) if rng.random() < 0.2 else fit(rng)
    storage = str(rng.choice(list(twins.STORAGES)))
    statement = twins.in_float64(statement)
    shapes: Sequence[tuple[int, ...]] = [A.shape[1:] for A in statement.matrices]
    return Drawn(
        lambda: twins.problem(statement, storage),
        statement,
        list(shapes),
        (statement.matrices[0].shape[0],),
        is_list=False,
        feasible=True,
        bounded=True,
        inside=inside,
        arrays=[],
        name=f"{name} {storage}",
    )
