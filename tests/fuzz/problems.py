"""Random problems, each in two forms with the same numbers: for the library and for ``functions.py``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import saddleback as sb

from . import functions as own
from .certificate import Statement
from .functions import Real
from .storage import Matrix, Stored, store

Shape = tuple[int, ...]
Draw = np.random.Generator


@dataclass
class Drawn:
    """A function that makes a problem for the library, and the same problem in plain numpy.

    ``feasible`` and ``bounded`` say that this is known of the problem; ``inside`` is a point of the domain of f.
    """

    make: Callable[[], sb.Problem]
    statement: Statement
    x_shapes: list[Shape]
    y_shape: Shape
    is_list: bool
    feasible: bool
    bounded: bool
    inside: list[NDArray[Any]]
    arrays: list[NDArray[Any]]
    name: str
    replacements: dict[str, Any] = field(default_factory=dict)


@dataclass
class Term:
    """A penalty or loss for the library, and the same in plain numpy."""

    make: Callable[[], Any]
    statement: Any
    name: str
    arrays: list[NDArray[Any]] = field(default_factory=list)
    bounded: bool = True


def entries(rng: Draw, m: int, n: int) -> Matrix:
    """Return a matrix, which may have degenerate rows and columns."""
    kind = rng.random()
    if kind < 0.5:
        A = rng.standard_normal((m, n))
    elif kind < 0.7:
        A = rng.standard_normal((m, n)) * (rng.random((m, n)) < rng.uniform(0.05, 0.6))
    elif kind < 0.8:
        A = rng.integers(-2, 3, (m, n)).astype(float)
    elif kind < 0.87:
        A = rng.standard_normal((m, 1)) @ rng.standard_normal((1, n))
    elif kind < 0.94:
        A = rng.standard_normal((m, n)) + 10.0 ** rng.uniform(0, 3)
    else:
        A = np.zeros((m, n)) if rng.random() < 0.2 else np.ones((m, n))
    for damage in np.flatnonzero(rng.random(6) < 0.08):
        i, j, k = rng.integers(m), rng.integers(n), rng.integers(n)
        if damage == 0:
            A[:, j] = 0.0
        elif damage == 1:
            A[i] = 0.0
        elif damage == 2:
            A[:, j] = A[:, k]
        elif damage == 3:
            A[:, j] = -2.0 * A[:, k]
        elif damage == 4:
            A[i] = A[rng.integers(m)]
        else:
            A[:, j] = 1.0
    if rng.random() < 0.15:
        A = A * 10.0 ** rng.uniform(-3, 3, n)
    if rng.random() < 0.1:
        A = A * 10.0 ** rng.uniform(-3, 3, (m, 1))
    return A


def targets(rng: Draw, shape: Shape, near: Matrix, scale: float) -> Matrix:
    """Return data of a loss near A x for some x; they may be degenerate."""
    kind = rng.random()
    if kind < 0.06:
        b = np.zeros(shape)
    elif kind < 0.12:
        b = np.full(shape, rng.standard_normal())
    elif kind < 0.2:
        b = np.round(rng.standard_normal(shape))
    elif kind < 0.3:
        b = near.reshape(shape) / scale if scale > 0 else near.reshape(shape)
    else:
        b = near.reshape(shape) / (np.abs(near).max() or 1.0) + rng.uniform(0, 1) * rng.standard_normal(shape)
    return b * scale


def loss(rng: Draw, shape: Shape, near: Matrix, scale: float) -> Term:
    """Return a loss; ``near`` is A x for an x in the domain of f."""
    b = targets(rng, shape, near, scale)
    z = np.where(rng.random(shape) < rng.uniform(0.2, 0.9), 1.0, -1.0)
    weighted, scaled = rng.random() < 0.3, rng.random() < 0.3
    w = rng.uniform(0.2, 3.0, shape) * (rng.random(shape) < 0.85) if weighted else np.ones(shape)
    s = float(rng.choice([1.0 / b.size, 0.5, 7.0])) if scaled else 1.0
    given: dict[str, Any] = {"sample_weight": w} if weighted else {}
    given |= {"scale": s} if scaled else {}
    strength = Real(s) * w.astype(Real).ravel()
    flat = b.astype(Real).ravel()
    spread = float(np.abs(b).max()) or 1.0
    names = ["Squared", "Absolute", "Pinball", "Huber", "EpsilonInsensitive", "Hinge", "SquaredHinge", "Logistic"]
    name = str(rng.choice([*names, "Norm2", "Equality", "Interval"]))
    options: tuple[float, ...] = ()
    statement: Any
    match name:
        case "Squared":
            statement = own.Squared(flat, strength)
        case "Absolute":
            statement = own.Tilted(flat, strength, Real(1), Real(1), Real(0))
        case "Pinball":
            q = float(rng.choice([0.0, 0.1, 0.5, 0.8, 1.0]))
            options, statement = (q,), own.Tilted(flat, strength, Real(q), 1 - Real(q), Real(0))
        case "Huber":
            delta = float(spread * rng.choice([0.0, 0.01, 0.3, 3.0]))
            options, statement = (delta,), own.Huber(flat, strength, Real(delta))
        case "EpsilonInsensitive":
            epsilon = float(spread * rng.choice([0.0, 0.05, 0.5]))
            options, statement = (epsilon,), own.Tilted(flat, strength, Real(1), Real(1), Real(epsilon))
        case "Hinge" | "SquaredHinge" | "Logistic":
            statement = getattr(own, name)(z.astype(Real).ravel(), strength)
            return Term(lambda: getattr(sb, name)(z, **given), statement, name, [z, w])
        case "Norm2":
            statement = own.Norm2(flat, w.astype(Real).ravel(), Real(s))
        case _:
            return constraint(rng, name, shape, b, near)
    return Term(lambda: getattr(sb, name)(b, *options, **given), statement, name, [b, w])


def constraint(rng: Draw, name: str, shape: Shape, b: Matrix, near: Matrix) -> Term:
    """Return Equality or Interval, around a point of the range of A in most cases."""
    centre = near.reshape(shape) if rng.random() < 0.8 else b
    if name == "Equality":
        flat = centre.astype(Real).ravel()
        return Term(lambda: sb.Equality(centre), own.Interval(flat, flat), name, [centre])
    size = float(np.abs(centre).max()) or 1.0
    low = centre - size * rng.uniform(0, 1, shape) * (rng.random(shape) < 0.8)
    high = centre + size * rng.uniform(0, 1, shape) * (rng.random(shape) < 0.8)
    low, high = np.where(rng.random(shape) < 0.3, -np.inf, low), np.where(rng.random(shape) < 0.3, np.inf, high)
    statement = own.Interval(low.astype(Real).ravel(), high.astype(Real).ravel())
    return Term(lambda: sb.Interval(low, high), statement, name, [low, high])


def grouping(rng: Draw, n: int) -> tuple[Any, list[NDArray[np.int64]]]:
    """Return groups of n columns in a form that users may write, and as lists of indices."""
    form = rng.random()
    if form < 0.25:
        size = int(rng.choice([d for d in range(1, n + 1) if n % d == 0]))
        return size, [np.arange(at, at + size) for at in range(0, n, size)]
    cuts = np.sort(rng.choice(np.arange(1, n), size=int(rng.integers(0, min(n - 1, 4) + 1)), replace=False))
    sizes = np.diff(np.concatenate([[0], cuts, [n]])).astype(int)
    if form < 0.5:
        ends = np.concatenate([[0], np.cumsum(sizes)])
        given = sizes.tolist() if rng.random() < 0.5 else sizes
        return given, [np.arange(a, b) for a, b in pairwise(ends)]
    members = np.split(rng.permutation(n), cuts)
    return ([g.tolist() for g in members] if rng.random() < 0.5 else members), members


def penalty(rng: Draw, shape: Shape, alpha: float, size: float) -> Term:
    """Return a penalty of about the given weight on a variable of about the given size; terms may be added to it."""
    base = str(rng.choice(["Zero", "L1", "L1", "SquaredL2", "ElasticNet", "GroupL2", "SparseGroup", "Nuclear"]))
    if base in ("GroupL2", "SparseGroup"):
        return group_penalty(rng, base, shape, alpha)
    if base == "Nuclear":
        return nuclear(rng, shape, alpha)
    return separable(rng, base, shape, alpha, size)


def pieces(rng: Draw, shape: Shape, alpha: float) -> tuple[list[Callable[[], Any]], NDArray[Any], str, list[Any]]:
    """Return a linear term in one of six cases: a function that makes it, its values, its name and its arrays."""
    c = np.zeros(shape)
    if rng.random() > 0.16:
        return [], c, "", []
    given = alpha * rng.uniform(-1, 1, shape) if rng.random() < 0.7 else alpha * rng.uniform(-1, 1)
    array = np.broadcast_to(given, shape).copy()
    return [lambda: sb.Linear(given)], array, " + Linear", [np.asarray(given)]


def separable(rng: Draw, base: str, shape: Shape, alpha: float, size: float) -> Term:
    """Return a coordinatewise penalty."""
    slope, curvature = np.zeros(shape), np.zeros(shape)
    add, c, added, arrays = pieces(rng, shape, alpha)
    make: Callable[[], Any] = sb.Zero
    match base:
        case "L1":
            weights = rng.uniform(0.1, 2, shape) * (rng.random(shape) < 0.8) if rng.random() < 0.3 else None
            slope = np.full(shape, alpha) if weights is None else alpha * weights
            arrays += [] if weights is None else [weights]
            make = lambda: sb.L1(alpha, weights)  # noqa: E731
        case "SquaredL2":
            curvature = np.full(shape, alpha)
            make = lambda: sb.SquaredL2(alpha)  # noqa: E731
        case "ElasticNet":
            ratio = float(rng.choice([0.0, 0.3, 0.9, 1.0]))
            slope, curvature = np.full(shape, alpha * ratio), np.full(shape, alpha * (1 - ratio))
            make = lambda: sb.ElasticNet(alpha, ratio)  # noqa: E731
    lower, upper = np.full(shape, -np.inf), np.full(shape, np.inf)
    kind = rng.random()
    if kind < 0.12:
        lower, added = np.zeros(shape), added + " + NonNegative"
        add = [*add, sb.NonNegative]
    elif kind < 0.3:
        lower, upper, box = bounds(rng, shape, size)
        added += " + Box"
        add = [*add, lambda: sb.Box(*box)]
        arrays += [np.asarray(side) for side in box]
    flat = (np.asarray(each, dtype=Real).ravel() for each in (slope, curvature, c, lower, upper))
    linear = bool(np.any(c))
    finite = bool(np.all(np.isfinite(lower)) and np.all(np.isfinite(upper)))
    return Term(summed(make, add), own.Separable(*flat), base + added, arrays, bounded=not linear or finite)


def summed(make: Callable[[], Any], add: Sequence[Callable[[], Any]]) -> Callable[[], Any]:
    """Return a function that makes the sum of some terms."""
    return lambda: sum((each() for each in add), start=make()) if add else make()


def bounds(rng: Draw, shape: Shape, size: float) -> tuple[NDArray[Any], NDArray[Any], tuple[Any, Any]]:
    """Return bounds as arrays, and as the user gives them: scalars or arrays, finite or infinite, with or without 0."""
    if rng.random() < 0.5:
        low = size * float(rng.choice([-1.0, 0.0, 0.1, -np.inf]))
        high = low + size if np.isfinite(low) else float(rng.choice([0.0, size]))
        return np.full(shape, low), np.full(shape, high), (low, high)
    centre = size * rng.uniform(-1, 1, shape)
    low = np.where(rng.random(shape) < 0.3, -np.inf, centre - size * rng.uniform(0, 1, shape))
    high = np.where(rng.random(shape) < 0.3, np.inf, centre + size * rng.uniform(0, 1, shape))
    fixed = rng.random(shape) < 0.1
    low, high = np.where(fixed, centre, low), np.where(fixed, centre, high)
    return low, high, (low, high)


def group_penalty(rng: Draw, base: str, shape: Shape, alpha: float) -> Term:
    """Return GroupL2 or SparseGroup; a group of a matrix variable consists of some of its rows."""
    n, tasks = shape[0], int(np.prod(shape[1:], dtype=int))
    given, members = grouping(rng, n)
    ratio = 0.0 if base == "GroupL2" else float(rng.choice([0.0, 0.4, 1.0]))
    weights = rng.uniform(0.2, 2, len(members)) * (rng.random(len(members)) < 0.9) if rng.random() < 0.3 else None
    add, c, added, arrays = pieces(rng, shape, alpha)
    sign = bool(rng.random() < 0.15)
    if sign:
        add, added = [*add, sb.NonNegative], added + " + NonNegative"
    flat = [(g[:, None] * tasks + np.arange(tasks)).ravel() for g in members]
    w = np.sqrt([g.size for g in members]) if weights is None else weights
    statement = own.Grouped(
        np.full(n * tasks, Real(alpha) * Real(ratio)),
        c.astype(Real).ravel(),
        flat,
        Real(alpha) * (1 - Real(ratio)) * w.astype(Real),
        sign,
    )
    arrays += [] if weights is None else [weights]

    def make() -> Any:
        if base == "GroupL2":
            return sb.GroupL2(alpha, given, weights)
        return sb.SparseGroup(alpha, given, ratio, weights)

    return Term(summed(make, add), statement, base + added, arrays, bounded=not np.any(c))


def nuclear(rng: Draw, shape: Shape, alpha: float) -> Term:
    """Return a nuclear norm, which makes a matrix of a flat variable."""
    n = int(np.prod(shape))
    rows = int(rng.choice([d for d in range(1, n + 1) if n % d == 0]))
    matrix = (shape[0], shape[1]) if len(shape) == 2 else (rows, n // rows)
    add, c, added, arrays = pieces(rng, matrix, alpha)
    statement = own.Nuclear(Real(alpha), matrix, c.astype(Real).ravel())
    make = summed(lambda: sb.Nuclear(alpha, matrix), add)
    return Term(make, statement, "Nuclear" + added, arrays, bounded=not np.any(c))


@dataclass
class Units:
    """Powers of ten by which A, the targets and alpha are multiplied."""

    A: float = 1.0
    b: float = 1.0
    alpha: float = 1.0


def block(rng: Draw, m: int, y_shape: Shape, units: Units) -> tuple[Any, Stored | None, Matrix, Shape]:
    """Return a block of A as the user gives it, its storage, its matrix for flat vectors, and the shape of its x."""
    tasks = int(np.prod(y_shape[1:], dtype=int))
    if rng.random() < 0.12:
        scale = float(rng.choice([1.0, 1.0, -2.0, 0.5]))
        return sb.Identity(scale) if scale != 1 else sb.Identity(), None, scale * np.eye(m * tasks), y_shape
    n = int(rng.choice([1, 2, 3, 4, 6, 8, 12, 20])) if rng.random() < 0.93 else int(rng.integers(30, 120))
    stored = store(entries(rng, m, n) * units.A, rng)
    shape = (n,) if len(y_shape) == 1 else (n, tasks)
    return stored.given, stored, np.kron(stored.entries, np.eye(tasks)) if tasks > 1 else stored.entries, shape


def draw(rng: Draw, units: Units) -> Drawn:
    """Return a random problem in the given units."""
    m = int(rng.choice([1, 2, 3, 5, 8, 12, 20])) if rng.random() < 0.95 else int(rng.integers(30, 80))
    y_shape: Shape = (m,) if rng.random() < 0.87 else (m, int(rng.integers(1, 4)))
    is_list = bool(rng.random() < 0.25)
    blocks = [block(rng, m, y_shape, units) for _ in range(int(rng.integers(1, 4)) if is_list else 1)]
    size = float(np.clip(units.b / units.A, 1e-300, 1e300))
    terms, inside = [], []
    for _, _, A, shape in blocks:
        strength = float(np.abs(A).sum(axis=0).max()) * 10.0 ** rng.uniform(-3, 0.3) * units.alpha
        term = penalty(rng, shape, strength, size)
        if isinstance(term.statement, own.Nuclear) and len(shape) == 1:
            shape = term.statement.shape
        start = size * rng.standard_normal(int(np.prod(shape))) * (rng.random(int(np.prod(shape))) < 0.5)
        terms.append(term)
        inside.append(np.asarray(term.statement.project(start.astype(Real)), dtype=float).reshape(shape))
    images = (A.astype(Real) @ x.ravel() for (_, _, A, _), x in zip(blocks, inside, strict=True))
    near = np.clip(np.sum(list(images), axis=0), -1e300, 1e300).astype(float)
    g = loss(rng, y_shape, near, units.b)
    matrices = [A.astype(Real) for _, _, A, _ in blocks]
    unknown = [stored is not None and stored.name == "LinearOperator" for _, stored, _, _ in blocks]
    statement = Statement([term.statement for term in terms], matrices, g.statement, unknown)
    slack = g.statement.missed(np.sum([A @ x.ravel() for A, x in zip(matrices, inside, strict=True)], axis=0))
    given = [A for A, _, _, _ in blocks]
    arrays = [array for term in (*terms, g) for array in term.arrays]
    arrays += [array for _, stored, _, _ in blocks if stored for array in stored.arrays]

    def make() -> sb.Problem:
        if is_list:
            return sb.Problem([term.make() for term in terms], given, g.make())
        return sb.Problem(terms[0].make(), given[0], g.make())

    kinds = " ".join(stored.name if stored else "Identity" for _, stored, _, _ in blocks)
    sizes = " ".join("x".join(map(str, A.shape)) for A in matrices)
    return Drawn(
        make,
        statement,
        [x.shape for x in inside],
        y_shape,
        is_list,
        feasible=not np.any(slack),
        bounded=all(term.bounded for term in terms),
        inside=inside,
        arrays=arrays,
        name=f"{' | '.join(term.name for term in terms)} / {kinds} {sizes} / {g.name}",
    )
