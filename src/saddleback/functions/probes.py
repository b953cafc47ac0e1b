r"""Tests of a user's function: whether its value, its prox and its conjugate belong together.

All tests use one inequality. The point :math:`p = \mathrm{prox}(v, s)` *claims* that :math:`z = (v - p) / s` is a
subgradient of f at p, which means

.. math:: f(q) \ge f(p) + \langle z, q - p \rangle \quad \text{for every } q,

and a conjugate claims :math:`f(q) \ge \langle q, z \rangle - f^*(z)`. A dual bound depends only on such a claim: if it
holds at a solution q, the bound is true. Both sides can be computed from values, so that a claim is tested at many
kinds of points q. Three kinds find errors that others miss:

- the prox of a v' close to v. If the prox moves, the two claims enclose :math:`f(p') - f(p)` up to
  :math:`\langle z' - z, p' - p \rangle`, so that an error in a single coordinate among many is found;
- v itself, and p with a single coordinate moved, for constraints that only one of ``prox`` and ``value`` respects;
- the prox with a long step, which diverges if z is outside the domain of the conjugate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..common.arrays import Indices, Step, Vector
from ..common.checks import ProbeError, rounding_of
from .contract import Convex
from .user import UserFunction, user_functions

ACCURACY = 1e-10
"""Largest violation of an inequality, relative to the sizes of its terms."""

CONJUGATE_ACCURACY = 1e-8
"""The same for the conjugate, whose code often has its own tolerance for its domain."""

MARGIN = 1e3
"""Largest violation in multiples of the rounding, if that is larger, as in float32."""

NEAR = 2e-9
"""Largest distance from the domain of f at which ``value`` may be finite."""

NEAR_CONJUGATE = 1e-11
"""Largest distance from the domain of f* at which ``conjugate`` may be finite."""

USELESS = 1e-3
"""Relative excess above which a conjugate is refused as too large. It would make bounds weak, but not wrong."""

UNITS = (1.0, 0.03, 30.0)
"""Sizes of the random points."""

CLOSE = 1e-4
"""Distance to a neighbour, relative to the size of a point."""

MEDIUM = 1_000
"""Number of coordinates from which random points have only the first of these sizes."""

LARGE = 20_000
"""Number of coordinates from which the prox of a function that is not separable may be as expensive as a pass, so that
fewer points are tested."""

COORDINATES = 64
"""Largest number of coordinates for which all are moved one by one."""

SOME = 16
"""Number of coordinates that are moved otherwise."""

FEW = 4
"""The same for an expensive function."""

TRIES = 4
"""How often the step of a random point is adapted."""

FAR = 1e100
"""Size of points that overflow in most formulas."""

COMPILED_SAMPLE = 256
"""Number of coordinates on which a compiled function, which is the same for each coordinate, is tested."""


class Claim(NamedTuple):
    """p = prox(v, step) with its value, and z = (v - p) / step, which should be a subgradient of f at p."""

    v: Vector
    step: Step
    p: Vector
    value: float
    z: Vector
    sizes: tuple[float, float, float]
    """||p||, ||z||, and the size to which the rounding of z is proportional."""

    def short(self) -> str:
        """Return the claim in words."""
        return f"p = prox(v, step) = {short(self.p)} for v = {short(self.v)} and step = {short(self.step)}"


class Bound(NamedTuple):
    """f(q) >= <q, z> - value for every q: the meaning of a conjugate value at z."""

    z: Vector
    value: float
    length: float


class Place(NamedTuple):
    """A point q with its value and its length; ``words`` describes it if a test fails."""

    value: float
    length: float
    words: Callable[[], str]


@dataclass
class Tested:
    """How often an inequality was tested, and its worst violation relative to the sizes of its terms."""

    times: int = 0
    worst: float = 0.0


@dataclass
class Tests:
    """All tests so far, by the name of the identity."""

    of: dict[str, Tested] = field(default_factory=dict)

    def record(self, identity: str, violation: float) -> None:
        """Add a test with its relative violation."""
        tested = self.of.setdefault(identity, Tested())
        tested.times += 1
        tested.worst = max(tested.worst, violation)


class Probe:
    """Tests one function; raises ``ProbeError`` at the first claim that does not hold.

    Parameters
    ----------
    function : the function.
    tests : the record of the tests.
    seed : seed of the random points.
    """

    def __init__(self, function: UserFunction, tests: Tests | None = None, seed: int = 0) -> None:
        self.f = function
        self.name = type(function.term.source).__name__
        self.tests = tests or Tests()
        self.rng = np.random.default_rng(seed)
        self.size = int(np.prod(function.shape))
        self.cheap = function.term.separable or self.size <= LARGE
        self.claims: list[Claim] = []
        self.bounds: list[Bound] = []
        self.excesses: list[tuple[float, Claim, float]] = []
        self.rounding = 0.0
        self.steepest = 0.0

    # --- what the function claims -------------------------------------------------------------------------------

    def claim(self, v: Vector, step: Step) -> Claim:
        """Call the prox, and test its claim at all points so far."""
        p, value = self._prox(v, step)
        if not np.isfinite(value):
            raise ProbeError(
                f"value of {self.name} is {value} at the p = {short(p)} that prox returned for v = {short(v)} and "
                f"step = {short(step)}: p has to be in the domain of f. If rounding put it outside, let value accept "
                "points that are within 1e-9 of the domain"
            )
        return self._record(v, step, p, value)

    def far_claim(self, v: Vector, step: Step) -> None:
        """Do the same for a very large v; if rounding puts p outside of the domain, nothing is tested."""
        p, value = self._prox(v, step)
        if np.isfinite(value):
            self._record(v, step, p, value)

    def _prox(self, v: Vector, step: Step) -> tuple[Vector, float]:
        raw = self.f.raw_prox(v, step)
        p = raw.astype(np.float64).ravel()
        if not np.all(np.isfinite(p)):
            raise ProbeError(
                f"prox of {self.name} returned {short(p)} for v = {short(v)} and step = {short(step)}: expected finite "
                "numbers, whatever v is"
            )
        self.rounding = max(self.rounding, rounding_of(raw.dtype))
        return p, self.f.value(p)

    def _record(self, v: Vector, step: Step, p: Vector, value: float) -> Claim:
        z = (v - p) / step
        hidden = abs(value) / _length(z) if np.any(z) else 0.0  # a bound on the size of data inside the prox
        rounded = _length(np.maximum(np.abs(v), np.abs(p)) / step) + hidden / float(np.min(step))
        sizes = _length(p), _length(z), rounded
        claim = Claim(v, step, p, value, z, sizes)
        self.steepest = max([self.steepest, sizes[1], *(self._steepness(claim, other) for other in self.claims)])
        place = _place(p, value, "the prox of another point")
        for other in self.claims:
            self._hold(claim, _place(other.p, other.value, "the prox of another point"), other.p - p)
            self._hold(other, place, p - other.p)
        for bound in self.bounds:
            self._hold_bound(bound, place, float(p @ bound.z))
        self.claims.append(claim)
        return claim

    @staticmethod
    def _steepness(one: Claim, other: Claim) -> float:
        return abs(one.value - other.value) / (_length(one.p - other.p) or np.inf)

    def conjugate(self, z: Vector, claim: Claim | None = None) -> Bound | None:
        """Evaluate the conjugate at z, and test it at all points so far; ``claim`` is given if z is its subgradient."""
        value = self._finite(self.f.conjugate().value, z)
        if value is None:
            return None  # an infinite conjugate gives no bound
        bound = Bound(z, value, _length(z))
        for known in self.claims:
            place = _place(known.p, known.value, "the prox of another point")
            self._hold_bound(bound, place, float(known.p @ z))
        if claim is not None:
            self._hold_equality(bound, claim)
        return bound

    @staticmethod
    def _finite(function: Callable[[Vector], float], point: Vector) -> float | None:
        """Return a value, or None if it is infinite or the user's formula fails outside its domain."""
        try:
            value = function(point)
        except (ArithmeticError, ValueError):
            return None
        return value if np.isfinite(value) else None

    # --- the inequalities ---------------------------------------------------------------------------------------

    def look(self, q: Vector, what: str) -> None:
        """Test all claims and bounds at a point."""
        value = self._value(q)
        if value is None:
            return
        place = _place(q, value, what)
        for claim in self.claims:
            self._hold(claim, place, q - claim.p)
        for bound in self.bounds:
            self._hold_bound(bound, place, float(q @ bound.z))

    def _value(self, q: Vector) -> float | None:
        value = self._finite(self.f.value, q)
        if value is None:
            self.f.constrained = True
        return value

    def _allowed(self, accuracy: float) -> float:
        return max(accuracy, MARGIN * self.rounding)

    def _hold(self, claim: Claim, q: Place, way: Vector) -> None:
        """Test a claim at q = p + way."""
        self._hold_rise(claim, q, float(claim.z @ way), _length(way))

    def _hold_rise(self, claim: Claim, q: Place, rise: float, distance: float) -> None:
        """Test f(q) >= f(p) + <z, q - p>, given the inner product and ||q - p||."""
        length, slope, slope_error = claim.sizes
        size = abs(q.value) + abs(claim.value) + slope_error * distance + slope * (q.length + length)
        if self.rounding > ACCURACY:  # f may be steep at the rounded p
            size += self.steepest * (q.length + length)
        violation = _relative(claim.value + rise - q.value - (NEAR * slope if self.f.constrained else 0.0), size)
        self.tests.record("prox: f(q) >= f(p) + <(v - p) / step, q - p>", violation)
        if violation > self._allowed(ACCURACY):
            raise ProbeError(
                f"prox and value of {self.name} do not belong together. For {claim.short()}, z = (v - p) / step has to "
                f"be a subgradient: f(q) >= f(p) + <z, q - p> for every q. At q = {q.words()}, f(q) = {q.value:.9g} "
                f"and the right side is {claim.value + rise:.9g} (f(p) = {claim.value:.9g}); rounding explains "
                f"{self._allowed(ACCURACY) * size:.1e}. Either f is not convex, or prox is not argmin f(x) + "
                "||x - v||^2 / (2 step): look for a wrong factor, a forgotten step or a shift. A constraint needs a "
                "value of inf where it does not hold"
            )

    def _hold_bound(self, bound: Bound, q: Place, product: float) -> None:
        """Test f(q) + f*(z) >= <q, z>, given the inner product."""
        size = abs(q.value) + abs(bound.value) + q.length * bound.length
        near = NEAR_CONJUGATE * q.length + (NEAR * bound.length if self.f.constrained else 0.0)
        violation = _relative(product - q.value - bound.value - near, size)
        self.tests.record("conjugate: f(q) + f*(z) >= <q, z>", violation)
        if violation > self._allowed(CONJUGATE_ACCURACY):
            raise ProbeError(
                f"conjugate and value of {self.name} do not belong together: f(q) + f*(z) >= <q, z> has to hold for "
                f"all q and z. At q = {q.words()} and z = {short(bound.z)}, f(q) = {q.value:.9g}, f*(z) = "
                f"{bound.value:.9g} and <q, z> = {product:.9g}. The conjugate is sup_q <q, z> - f(q), and "
                "infinite outside its domain"
            )

    def _hold_equality(self, bound: Bound, claim: Claim) -> None:
        """Test f*(z) = <p, z> - f(p) at a subgradient z at p, if z is known to some digits."""
        if claim.sizes[1] <= 1e4 * self.rounding * claim.sizes[2]:
            return
        expected = float(claim.p @ claim.z) - claim.value
        size = abs(claim.value) + abs(bound.value) + claim.sizes[0] * claim.sizes[1]
        violation = _relative(bound.value - expected, size)
        self.tests.record("conjugate: f(p) + f*(z) = <p, z> at z = (v - p) / step", violation)
        self.excesses.append((violation, claim, bound.value))

    def useful(self) -> None:
        """Raise if the conjugate was too large at every subgradient: the bound would never reach the objective.

        At a single subgradient it may be too large by rounding, if f* is steep there.
        """
        if len(self.excesses) < 2 or min(excess for excess, _, _ in self.excesses) <= USELESS:
            return
        _, claim, value = self.excesses[0]
        raise ProbeError(
            f"conjugate of {self.name} is too large. For {claim.short()} and z = (v - p) / step = {short(claim.z)} it "
            f"has to be <p, z> - f(p) = {float(claim.p @ claim.z) - claim.value:.9g}, but f*(z) = {value:.9g}"
        )

    # --- points that find what others miss ------------------------------------------------------------------------

    def tuned(self, centre: Vector, unit: float, ratio: float) -> Claim:
        """Return the claim at a random v around a centre, with a step that moves v by a good part of its distance."""
        v = centre + unit * self.rng.standard_normal(self.size)
        spread = self.rng.uniform(0.5, 2.0, self.size) if self.f.term.separable else 1.0
        step = unit * ratio
        for _ in range(TRIES):
            claim = self.claim(v, step * spread)
            moved = _length(claim.p - v) / (unit * np.sqrt(self.size))
            if 0.03 <= moved <= 0.9:
                break
            step *= 1e3 if moved == 0 else 1e-3 if moved > 0.9 else 0.3 / max(moved, 1e-6)
        return claim

    def neighbour(self, claim: Claim, distance: float) -> None:
        """Test the claim at a v close to that of another claim."""
        self.claim(claim.v + distance * self.rng.standard_normal(self.size), claim.step)

    def single_coordinates(self, claim: Claim, coordinates: Indices, unit: float) -> None:
        """Test a claim, and all bounds, at p with one coordinate moved, towards v and away from it."""
        q, products = claim.p.copy(), [float(claim.p @ bound.z) for bound in self.bounds]
        for i in coordinates:
            way = claim.v[i] - claim.p[i]
            for step in (way, 1e-3 * way, -1e-3 * way) if way else (0.1 * unit, -0.1 * unit):
                q[i] = claim.p[i] + step
                value = self._value(q)
                if value is not None:
                    place = _moved(claim, value, i, step)
                    self._hold_rise(claim, place, float(claim.z[i] * step), abs(step))
                    for bound, product in zip(self.bounds, products, strict=True):
                        self._hold_bound(bound, place, product + float(bound.z[i] * step))
            q[i] = claim.p[i]

    def conjugates(self, claim: Claim, coordinates: Indices) -> None:
        """Test the conjugate at z, between 0 and z, beyond z, and beyond z in single coordinates."""
        if self.f.given_conjugate is None:
            return
        for bound in (self.conjugate(claim.z, claim), *(self.conjugate(t * claim.z) for t in (0.0, 0.5, 2.0, 10.0))):
            if bound is not None:
                self.bounds.append(bound)
        z, q = 0.5 * claim.z, claim.p.copy()
        for i in coordinates:
            z[i], q[i] = 10.0 * claim.z[i], claim.p[i] + claim.v[i]
            bound, value = self.conjugate(z), self._value(q)
            if bound is not None and value is not None:
                self._hold_bound(bound, _moved(claim, value, i, claim.v[i]), float(q @ z))
            z[i], q[i] = 0.5 * claim.z[i], claim.p[i]

    def separable(self, one: Claim, other: Claim) -> None:
        """Test that a separable function is a sum over coordinates: two points exchange some coordinates."""
        mine = self.rng.random(self.size) < 0.5
        first, second = np.where(mine, one.p, other.p), np.where(mine, other.p, one.p)
        values = [self._finite(self.f.value, q) for q in (first, second)]
        total, sizes = one.value + other.value, abs(one.value) + abs(other.value)
        found = np.inf if None in values else sum(value for value in values if value is not None)
        violation = _relative(abs(found - total), sizes) if found < np.inf else np.inf
        self.tests.record("separable: f(a_S, b_T) + f(b_S, a_T) = f(a) + f(b)", violation)
        if violation > self._allowed(ACCURACY):
            raise ProbeError(
                f"{self.name} says separable = True, but is not a sum over coordinates: f(a) + f(b) = {total:.9g} for "
                f"a = {short(one.p)} and b = {short(other.p)}, and {found:.9g} after they have exchanged some of their "
                "coordinates. Leave separable out"
            )

    def coordinates(self, most: int, first: Vector | None = None) -> Indices:
        """Return the coordinates to move: all if they are few; otherwise half with the largest ``first``, half random.

        For an expensive function they are fewer than ``most``.
        """
        if self.size <= max(most, COORDINATES):
            return np.arange(self.size)
        most = most if self.cheap else FEW
        chosen = self.rng.choice(self.size, most, replace=False)
        if first is not None:
            chosen[: most // 2] = np.argpartition(first, -(most // 2))[-(most // 2) :]
        return np.unique(chosen)


def probe_all(*functions: Convex) -> None:
    """Test the user's functions inside others at random points."""
    for function in functions:
        for own, _, _ in user_functions(function):
            probe(own)


def probe(
    function: UserFunction,
    tests: Tests | None = None,
    units: Sequence[float] = UNITS,
    most: int = SOME,
    seed: int = 0,
) -> None:
    """Test a function at random points, the same each time; raise ``ProbeError`` if it fails.

    Parameters
    ----------
    function : the function.
    tests : the record of the tests.
    units : sizes of the points. Single coordinates are moved at the first one.
    most : number of single coordinates that are moved.
    seed : seed of the points.
    """
    probe = Probe(sampled(function)[0], tests, seed)
    with np.errstate(all="ignore"):
        origin = np.zeros(probe.size)
        centre = probe.claim(origin, 1.0)
        size = float(np.abs(centre.p).max())
        places = [(origin, unit) for unit in (units if probe.size < MEDIUM else units[:1])]
        if size > 10 * max(units) or 0 < size < 0.1 * min(units):
            places.append((centre.p, size))
        ratio = 1.0
        for place, unit in places:
            claim = probe.tuned(place, unit, ratio)
            ratio = float(np.median(claim.step)) / unit
            mirrored = probe.claim(2.0 * place - claim.v, claim.step)  # v reflected at the centre
            probe.neighbour(claim, CLOSE * unit)
            probe.neighbour(mirrored, CLOSE * unit)
            some = probe.coordinates(most) if unit == units[0] or place is not origin else np.empty(0, dtype=np.int64)
            probe.single_coordinates(claim, some, unit)
            probe.conjugates(claim, some)
            probe.look(claim.v, "v itself")
            probe.look(0.5 * (claim.p + centre.p), "half way to another point")
            probe.look(origin, "0")
            probe.bounds.clear()
        if function.term.separable:
            probe.separable(centre, claim)
        probe.useful()


def probe_at(function: UserFunction, x: Vector, z: Vector, rows: int, tests: Tests | None = None) -> None:
    """Test a function as a certificate uses it: at x, and with the slope z that should be a subgradient there."""
    if not max(np.abs(x).max(), np.abs(z).max()) < FAR:
        return  # the run diverged: such a point is not tested
    function, (x, z) = sampled(function, x, z)
    probe = Probe(function, tests)
    with np.errstate(all="ignore"):
        step = function.step_near(z, x)
        claim = probe.claim(x + step * z, step)
        unit = max(float(np.abs(claim.p).max()), float(np.abs(claim.v).max())) or 1.0
        probe.neighbour(claim, CLOSE * unit)
        for factor in (1e-2, 1e2, 1e4) if probe.cheap else (1e2,):
            probe.far_claim(x + factor * step * z, factor * step)
        bound = None if function.given_conjugate is None else probe.conjugate(z)
        if bound is not None:
            probe.bounds.append(bound)
        most = SOME + rows // 64 if function.term.separable else SOME
        probe.single_coordinates(claim, probe.coordinates(most, np.abs(claim.z)), unit)
        for q, what in ((x, "the x of the certificate"), (2.0 * x, "twice the x of the certificate"), (0.0 * x, "0")):
            probe.look(q, what)


def sampled(function: UserFunction, *vectors: Vector) -> tuple[UserFunction, Sequence[Vector]]:
    """Return a compiled function, which is the same for each coordinate, restricted to some coordinates."""
    size = int(np.prod(function.shape))
    if not function.term.fully_compiled or size <= COMPILED_SAMPLE:
        return function, vectors
    some = np.sort(np.random.default_rng(0).choice(size, COMPILED_SAMPLE, replace=False))
    return UserFunction(function.term, (COMPILED_SAMPLE,)), [vector[some] for vector in vectors]


def _place(q: Vector, value: float, what: str) -> Place:
    return Place(value, _length(q), lambda: f"{short(q)}, {what}")


def _moved(claim: Claim, value: float, i: int, step: float) -> Place:
    return Place(value, claim.sizes[0] + abs(step), lambda: f"p with {step:.6g} added to coordinate {i}")


def short(value: object) -> str:
    """Return a number or the first entries of an array, in a few digits."""
    array = np.asarray(value)
    return f"{float(array):.6g}" if array.ndim == 0 else np.array2string(array, precision=6, threshold=8, edgeitems=3)


def _length(vector: Vector) -> float:
    return float(np.linalg.norm(vector))


def _relative(violation: float, size: float) -> float:
    return max(violation, 0.0) / size if size > 0 and np.isfinite(size) else 0.0
