"""Tests of functions and operators on request, at many more points than in a solve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .common.arrays import Step, Vector
from .common.checks import ProbeError
from .functions import Convex, Term, as_term
from .functions.probes import Tested, Tests, probe, short
from .functions.user import UserFunction, UserTerm, user_functions
from .operators import Operator, as_operator
from .operators.linear_operator import linear_operators
from .problem import Problem

UNITS = (1.0, 1e-3, 1e-2, 0.1, 10.0, 100.0)
"""Sizes of the random points."""

ROUNDS = 4
"""Number of sets of random points for a function. In each set single coordinates are moved at another size."""

COORDINATES = 256
"""Largest number of coordinates that are moved one by one in each set."""

PAIRS = 8
"""Number of pairs of random vectors for an operator."""

ACCURACY = 1e-10
"""Largest violation of an identity of an operator, relative to the sizes of the products."""

MARGIN = 1e2
"""Largest violation in multiples of the rounding, if that is larger, as in float32."""


@dataclass(frozen=True)
class Report:
    """What ``check`` has tested: for every subject and identity, how often, and the worst violation.

    A violation is relative to the sizes of all terms of the identity, so that rounding alone gives about 1e-16.

    Attributes
    ----------
    tests : dict
        By subject and identity; each value has ``times`` and ``worst``.
    """

    tests: dict[tuple[str, str], Tested]

    def __repr__(self) -> str:
        lines = []
        for subject in dict.fromkeys(subject for subject, _ in self.tests):
            own = {identity: tested for (other, identity), tested in self.tests.items() if other == subject}
            width = max(map(len, own))
            lines.append(f"{subject}: all identities hold")
            lines += [
                f"  {identity:{width}}  {tested.times:6d} times, worst relative violation {tested.worst:.1e}"
                for identity, tested in own.items()
            ]
        return "\n".join(lines)


def check(source: Any, shape: int | tuple[int, ...] | None = None) -> Report:
    """Test whether the pieces of a function, or of an operator, belong together.

    A solve also tests whatever is not from the catalogue, but at few points. Here there are many points, of sizes from
    1e-3 to 100, the same for each call.

    Parameters
    ----------
    source : object, LinearOperator, matrix or Problem
        A function (an object with ``value(x)`` and ``prox(v, step)``, or a catalogue term), an operator, or a
        ``Problem``, of which all functions and operators are tested.
    shape : int or tuple of int, optional
        Size or shape of the variable of a function. It is not needed if the function knows it.

    Returns
    -------
    Report
        The identities that were tested, how often, and their worst relative violations.

    Raises
    ------
    ProbeError
        At the first identity that fails, with the point and the numbers.

    Notes
    -----
    Functions: z = (v - p) / step has to be a subgradient at p = prox(v, step), f(q) >= f(p) + <z, q - p>; with a
    conjugate, f(q) + f*(z) >= <q, z> with equality at p; if ``separable`` is True, f is a sum over coordinates.
    Operators: A is linear, <A x, y> = <x, A'y>, equal calls give equal results, and arguments are left as they are.

    A test of this kind can refute a function, but not prove it: an error that shows at no tested point is not found.

    Examples
    --------
    >>> import saddleback as sb
    >>> report = sb.check(sb.L1(0.5), 10)
    >>> max(tested.worst for tested in report.tests.values()) < 1e-12
    True
    """
    subjects: dict[tuple[str, str], Tested] = {}

    def add(subject: str, tests: Tests) -> None:
        subjects.update({(subject, identity): tested for identity, tested in tests.of.items()})

    if isinstance(source, Problem):
        source = source.refreshed()
        for j, (term, own) in enumerate(zip(source.terms, source.x_shapes, strict=True)):
            add(f"penalty[{j}]" if source.is_list else "penalty", _check_function(term.bind(own)))
        for cell in source.cells:
            add(cell.name, _check_operator(cell.fitted))
        for r, (term, own) in enumerate(zip(source.losses, source.y_shapes, strict=True)):
            add(f"loss[{r}]" if source.has_rows else "loss", _check_function(term.bind(own)))
    elif isinstance(source, Term) or hasattr(source, "value") or hasattr(source, "prox"):
        term = as_term(source, "source")
        add(type(source).__name__, _check_function(term.bind(_shape(term, shape))))
    else:
        add("A", _check_operator(as_operator(source, "A")))
    return Report(subjects)


def _shape(term: Term, shape: int | tuple[int, ...] | None) -> tuple[int, ...]:
    if shape is None and term.shape is None:
        raise TypeError("shape is missing: the function does not know the shape of its variable; give it, or the size")
    if shape is None:
        assert term.shape is not None
        return term.shape
    return (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(shape)


class _AsOwn:
    """A function of the library in the form of a user's object."""

    def __init__(self, function: Convex) -> None:
        self.value, self.conjugate = function.value, function.conjugate().value
        self.separable = len(function.blocks()) == function.blocks().start[-1]
        self.function = function

    def prox(self, v: Vector, step: Step) -> Vector:
        """Return its prox."""
        return self.function.prox(v, step)


def _check_function(function: Convex) -> Tests:
    """Test a function, or each part of a sum of functions."""
    tests = Tests()
    found = user_functions(function)
    own = [each for each, _, _ in found]
    if not own:
        size = int(function.blocks().start[-1])
        own = [UserFunction(UserTerm(_AsOwn(function)), (size,))]
    for each in own:
        for seed in range(ROUNDS):
            units = UNITS[seed:] + UNITS[:seed]
            probe(each, tests, units, COORDINATES, seed)
    return tests


def _check_operator(A: Operator) -> Tests:
    check, rng = _Check(A), np.random.default_rng(0)
    rows, columns = A.shape
    xs, ys = _vectors(rng, columns), _vectors(rng, rows)
    images = check.products(A.matvec, "matvec", xs)
    slopes = check.products(A.rmatvec, "rmatvec", ys)
    norm = max(_length(image) / _length(x) for x, image in zip(xs + ys, images + slopes, strict=True))
    for x, image in zip(xs, images, strict=True):
        for y, slope in zip(ys, slopes, strict=True):
            size = norm * _length(x) * _length(y)
            check.hold("adjoint: <A x, y> = <x, A'y>", float(image @ y), float(x @ slope), size, x, y)
    return check.tests


def _vectors(rng: np.random.Generator, size: int) -> list[Vector]:
    """Return dense random vectors, two of other sizes, ones, and some with a single entry."""
    dense = [rng.standard_normal(size) for _ in range(PAIRS)]
    single = [np.zeros(size) for _ in range(min(size, PAIRS))]
    for vector, i in zip(single, rng.choice(size, len(single), replace=False), strict=True):
        vector[i] = 1.0
    return [*dense, 1e-6 * dense[0], 1e6 * dense[1], np.ones(size), *single]


class _Check:
    """Tests an operator, and records the tests."""

    def __init__(self, A: Operator) -> None:
        self.A = A
        self.tests = Tests()

    def products(self, product: Callable[[Vector], Vector], kind: str, points: list[Vector]) -> list[Vector]:
        """Test the products with some points, of which the first are dense, and their sums; return the products."""
        for operator in linear_operators(self.A):
            vector = points[0][: operator.shape[kind == "matvec"]].copy()
            operator.measure(kind, vector, getattr(operator, kind)(vector))
        found = []
        for point in points:
            given = point.copy()
            first, second = product(given), product(given)
            if not np.array_equal(given, point):
                raise ProbeError(f"{kind} of A changed the vector that it was given: it has to return a new one")
            size = _length(first) + _length(second)
            self.hold(f"repeated: two calls of {kind} agree", _length(first - second), 0.0, size, point)
            found.append(first)
        for i in range(PAIRS - 1):
            a, b = 0.5 + i, -2.0 + 0.3 * i
            whole = product(a * points[i] + b * points[i + 1])
            parts = a * found[i] + b * found[i + 1]
            size = _length(whole) + abs(a) * _length(found[i]) + abs(b) * _length(found[i + 1])
            identity = f"linear: {kind}(a x + b x') = a {kind}(x) + b {kind}(x')"
            self.hold(identity, _length(whole - parts), 0.0, size, points[i], points[i + 1])
        return found

    def hold(self, identity: str, left: float, right: float, size: float, *at: Vector) -> None:
        """Test that both sides are equal, relative to a size."""
        violation = abs(left - right) / size if size > 0 else 0.0
        self.tests.record(identity, violation)
        rounding = max((operator.rounding for operator in linear_operators(self.A)), default=0.0)
        if not violation <= max(ACCURACY, MARGIN * rounding):
            sides = f"{left:.9g} and {right:.9g}" if right else f"a difference of {left:.9g}"
            where = " and ".join(short(vector) for vector in at)
            raise ProbeError(f"A fails '{identity}': {sides}, a relative violation of {violation:.1e}, at {where}")


def _length(vector: Vector) -> float:
    return float(np.linalg.norm(vector))
