r"""Tests of a function of the user's own: whether its value, its prox and its conjugate belong together.

All of them are one inequality. The point :math:`p = \mathrm{prox}(v, s)` *claims* that :math:`z = (v - p) / s` is a
subgradient of f at p, which means

.. math:: f(q) \ge f(p) + \langle z, q - p \rangle \quad \text{for every } q,

and a conjugate claims :math:`f(q) \ge \langle q, z \rangle - f^*(z)`. A dual bound rests on such a claim and on nothing
else: if it holds at a solution q, the bound is true. Both sides are known from values, so a claim is tested at points q
of every kind. Three of them find what others miss:

- the prox of a v' close to v. Where the prox moves, the two claims enclose :math:`f(p') - f(p)` up to
  :math:`\langle z' - z, p' - p \rangle`, so that an error in a single coordinate shows among many that are right;
- v itself, and p with a single coordinate moved, for constraints that only one of ``prox`` and ``value`` knows;
- the prox with a long step, which runs away if z is outside the domain of the conjugate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ._base import Function, Indices, Step, Vector
from .checks import ProbeError, rounding_of
from .custom import UserFunction

ACCURACY = 1e-10
"""What an inequality may miss by, relative to the sizes of its terms."""

CONJUGATE_ACCURACY = 1e-8
"""The same for the conjugate, whose domain often ends at a tolerance of its own."""

MARGIN = 1e3
"""Roundings that it may miss by, if that is more, as in float32."""

NEAR = 2e-9
"""How far outside the domain of f a point may be at which ``value`` is still finite."""

NEAR_CONJUGATE = 1e-11
"""How far outside the domain of f* a point may be at which ``conjugate`` is still finite."""

USELESS = 1e-3
"""Relative excess from which on a conjugate is refused as too large. That makes a bound weak, but never wrong."""

UNITS = (1.0, 0.03, 30.0)
"""Sizes of the random points."""

LARGE = 20_000
"""Coordinates of a function that is not separable from which on a prox may be as expensive as a pass: fewer points."""

COORDINATES = 32
"""Most coordinates that are moved one by one when a problem is made."""

FEW = 4
"""As many, of such an expensive function."""

TRIES = 4
"""How often the step of a random point is adapted."""

FAR = 1e100
"""Points as large as that overflow in most formulas."""

COMPILED_SAMPLE = 256
"""Coordinates on which a compiled function, which is the same for each of them, is tested."""


class Claim(NamedTuple):
    """p = prox(v, step) with its value, and z = (v - p) / step, which ought to be a subgradient of f at p."""

    v: Vector
    step: Step
    p: Vector
    value: float
    z: Vector
    sizes: tuple[float, float, float]
    """||p||, ||z||, and the size of which the rounding of z is a multiple."""

    def short(self) -> str:
        """Return it in words."""
        return f"p = prox(v, step) = {short(self.p)} for v = {short(self.v)} and step = {short(self.step)}"


class Bound(NamedTuple):
    """f(q) >= <q, z> - value for every q: what a conjugate value at z means."""

    z: Vector
    value: float


@dataclass
class Tested:
    """How often an inequality was tested, and its worst violation relative to the sizes of its terms."""

    times: int = 0
    worst: float = 0.0


@dataclass
class Tests:
    """All that was tested so far, by the name of the identity."""

    of: dict[str, Tested] = field(default_factory=dict)

    def record(self, identity: str, violation: float) -> None:
        """Add a test, with the relative violation that was found."""
        tested = self.of.setdefault(identity, Tested())
        tested.times += 1
        tested.worst = max(tested.worst, violation)


class Probe:
    """Tests one function; raises ``ProbeError`` at the first claim that does not hold.

    Parameters
    ----------
    function : what to test.
    tests : where to count.
    seed : of the random points.
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
        """Call the prox, and hold what it claims against all points so far."""
        given = v.copy()
        raw = self.f.raw_prox(given, step)
        if not np.array_equal(given, v):
            raise ProbeError(f"prox of {self.name} changed the v that it was given: it has to return a new array")
        p = raw.astype(np.float64).ravel()
        if not np.all(np.isfinite(p)):
            raise ProbeError(
                f"prox of {self.name} returned {short(p)} for v = {short(v)} and step = {short(step)}: expected finite "
                "numbers, whatever v is"
            )
        self.rounding = max(self.rounding, rounding_of(raw.dtype))
        value = self.f.value(p)
        if not np.isfinite(value):
            raise ProbeError(
                f"value of {self.name} is {value} at the p = {short(p)} that prox returned for v = {short(v)} and "
                f"step = {short(step)}: p has to be in the domain of f. If rounding put it outside, let value accept "
                "points that are within 1e-9 of the domain"
            )
        z = (v - p) / step
        hidden = abs(value) / _length(z) if np.any(z) else 0.0  # as large as data inside the prox may be
        rounded = _length(np.maximum(np.abs(v), np.abs(p)) / step) + hidden / float(np.min(step))
        sizes = _length(p), _length(z), rounded
        claim = Claim(v, step, p, value, z, sizes)
        self.steepest = max([self.steepest, sizes[1], *(self._steepness(claim, other) for other in self.claims)])
        for other in self.claims:
            self._hold(claim, other.p, other.value, "the prox of another point")
            self._hold(other, p, value, "the prox of another point")
        for bound in self.bounds:
            self._hold_bound(bound, p, value)
        self.claims.append(claim)
        return claim

    @staticmethod
    def _steepness(one: Claim, other: Claim) -> float:
        return abs(one.value - other.value) / (_length(one.p - other.p) or np.inf)

    def conjugate(self, z: Vector, claim: Claim | None = None) -> None:
        """Ask for the conjugate at z, and hold it against all points so far; ``claim`` if z is its subgradient."""
        value = self._finite(self.f.conjugate, z)
        if value is None:
            return  # a bound of minus infinity claims nothing
        bound = Bound(z, value)
        for known in self.claims:
            self._hold_bound(bound, known.p, known.value)
        self.bounds.append(bound)
        if claim is not None:
            self._hold_equality(bound, claim)

    @staticmethod
    def _finite(function: Callable[[Vector], float], point: Vector) -> float | None:
        """Return a value, or None where it is infinite, or the user's formula breaks down outside its domain."""
        try:
            value = function(point)
        except (ArithmeticError, ValueError):
            return None
        return value if np.isfinite(value) else None

    # --- the inequalities ---------------------------------------------------------------------------------------

    def look(self, q: Vector, what: str, claims: Iterable[Claim] | None = None) -> None:
        """Hold claims, all of them by default, against the value at a point."""
        value = self._finite(self.f.value, q)
        if value is None:
            self.f.constrained = True
            return
        for claim in self.claims if claims is None else claims:
            self._hold(claim, q, value, what)
        for bound in self.bounds:
            self._hold_bound(bound, q, value)

    def _allowed(self, accuracy: float) -> float:
        return max(accuracy, MARGIN * self.rounding)

    def _hold(self, claim: Claim, q: Vector, value: float, what: str) -> None:
        """Test f(q) >= f(p) + <z, q - p>."""
        step = q - claim.p
        rise = float(claim.z @ step)
        length, slope, slope_error = claim.sizes
        size = abs(value) + abs(claim.value) + slope_error * _length(step) + slope * (_length(q) + length)
        if self.rounding > ACCURACY:  # at p as it was rounded f may be steep
            size += self.steepest * (_length(q) + length)
        violation = _relative(claim.value + rise - value - (NEAR * slope if self.f.constrained else 0.0), size)
        self.tests.record("prox: f(q) >= f(p) + <(v - p) / step, q - p>", violation)
        if violation > self._allowed(ACCURACY):
            raise ProbeError(
                f"prox and value of {self.name} do not belong together. For {claim.short()}, z = (v - p) / step has to "
                f"be a subgradient: f(q) >= f(p) + <z, q - p> for every q. At q = {short(q)}, {what}, f(q) = "
                f"{value:.9g} and the right side is {claim.value + rise:.9g} (f(p) = {claim.value:.9g}); rounding "
                f"explains {self._allowed(ACCURACY) * size:.1e}. Either f is not convex, or prox is not argmin f(x) + "
                "||x - v||^2 / (2 step): look for a wrong factor, a forgotten step or a shift. A constraint needs a "
                "value of inf where it does not hold"
            )

    def _hold_bound(self, bound: Bound, q: Vector, value: float) -> None:
        """Test f(q) + f*(z) >= <q, z>."""
        product = float(q @ bound.z)
        size = abs(value) + abs(bound.value) + _length(q) * _length(bound.z)
        near = NEAR_CONJUGATE * _length(q) + (NEAR * _length(bound.z) if self.f.constrained else 0.0)
        violation = _relative(product - value - bound.value - near, size)
        self.tests.record("conjugate: f(q) + f*(z) >= <q, z>", violation)
        if violation > self._allowed(CONJUGATE_ACCURACY):
            raise ProbeError(
                f"conjugate and value of {self.name} do not belong together: f(q) + f*(z) >= <q, z> has to hold for "
                f"all q and z. At q = {short(q)} and z = {short(bound.z)}, f(q) = {value:.9g}, f*(z) = "
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
        """Raise if the conjugate was too large at every subgradient: the bound would never meet the objective.

        At a single one it may be, by rounding, where f* is steep.
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
        """Claim at a random v around a centre, with a step that moves it by a good part of its distance from there."""
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
        """Claim once more at a v close by."""
        self.claim(claim.v + distance * self.rng.standard_normal(self.size), claim.step)

    def single_coordinates(self, claim: Claim, coordinates: Indices, unit: float) -> None:
        """Hold a claim against p with one coordinate moved: towards v and away from it."""
        q = claim.p.copy()
        for i in coordinates:
            way = claim.v[i] - claim.p[i]
            for step in (way, 1e-3 * way, -1e-3 * way) if way else (0.1 * unit, -0.1 * unit):
                q[i] = claim.p[i] + step
                self.look(q, f"p with coordinate {i} moved", [claim])
            q[i] = claim.p[i]

    def conjugates(self, claim: Claim, coordinates: Indices) -> None:
        """Hold the conjugate against values: at z, between 0 and z, beyond it, and beyond it in single coordinates."""
        if not self.f.has_conjugate:
            return
        self.conjugate(claim.z, claim)
        for factor in (0.0, 0.5, 1.0 - 1e-9, 2.0, 10.0):
            self.conjugate(factor * claim.z)
        for i in coordinates:
            z, q = 0.5 * claim.z, claim.p.copy()
            z[i] = 10.0 * claim.z[i]
            q[i] += claim.v[i]
            self.conjugate(z)
            self.look(q, f"p with coordinate {i} moved", [])
        self.bounds.clear()

    def separable(self, one: Claim, other: Claim) -> None:
        """Test that a function which says so is a sum over coordinates: two points exchange some of theirs."""
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

    def some_coordinates(self, most: int, first: Vector | None = None) -> Indices:
        """Return coordinates: all, or half of them those where ``first`` is largest and the others at random."""
        if self.size <= most:
            return np.arange(self.size)
        chosen = self.rng.choice(self.size, most, replace=False)
        if first is not None:
            chosen[: most // 2] = np.argpartition(first, -(most // 2))[-(most // 2) :]
        return np.unique(chosen)


def probe_all(*functions: Function) -> None:
    """Test the user's own functions inside others at random points."""
    for function in functions:
        for own, _, _ in function.user_functions():
            probe(own)


def probe(
    function: UserFunction,
    tests: Tests | None = None,
    units: Sequence[float] = UNITS,
    most: int = COORDINATES,
    seed: int = 0,
) -> None:
    """Test a function at random points, the same each time; raise ``ProbeError`` where it fails.

    Parameters
    ----------
    function : what to test.
    tests : where to count.
    units : sizes of the points. Single coordinates are moved at the first one.
    most : how many of them.
    seed : of the points.
    """
    probe = Probe(sampled(function)[0], tests, seed)
    with np.errstate(all="ignore"):
        origin = np.zeros(probe.size)
        centre = probe.claim(origin, 1.0)
        size = float(np.abs(centre.p).max())
        places = [(origin, unit) for unit in (units if probe.cheap else units[:1])]
        if size > 10 * max(units) or 0 < size < 0.1 * min(units):
            places.append((centre.p, size))
        ratio = 1.0
        for place, unit in places:
            claim = probe.tuned(place, unit, ratio)
            ratio = float(np.median(claim.step)) / unit
            probe.neighbour(claim, 1e-4 * unit)
            some = probe.some_coordinates(0 if unit in units[1:] else most if probe.cheap else FEW)
            probe.single_coordinates(claim, some, unit)
            probe.conjugates(claim, some)
            probe.look(claim.v, "v itself")
            probe.look(0.5 * (claim.p + centre.p), "half way to another point")
            probe.look(origin, "0")
        if function.term.separable:
            probe.separable(centre, claim)
        probe.useful()


def probe_at(function: UserFunction, x: Vector, z: Vector, rows: int, tests: Tests | None = None) -> None:
    """Test a function where a certificate uses it: at x, and with the slope z that ought to be a subgradient there."""
    if not max(np.abs(x).max(), np.abs(z).max()) < FAR:
        return  # a run that diverged: nothing is said of such a point
    function, (x, z) = sampled(function, x, z)
    probe = Probe(function, tests)
    with np.errstate(all="ignore"):
        step = function.step_near(z, x)
        claim = probe.claim(x + step * z, step)
        unit = max(float(np.abs(claim.p).max()), float(np.abs(claim.v).max())) or 1.0
        probe.neighbour(claim, 1e-4 * unit)
        for factor in (1e-2, 1e2, 1e4) if probe.cheap else (1e2,):
            probe.claim(x + factor * step * z, factor * step)
        if function.has_conjugate:
            probe.conjugate(z)
        most = COORDINATES + rows // 16 if function.term.separable else COORDINATES if probe.cheap else FEW
        probe.single_coordinates(claim, probe.some_coordinates(most, np.abs(claim.z)), unit)
        for q, what in ((x, "the x of the certificate"), (2.0 * x, "twice the x of the certificate"), (0.0 * x, "0")):
            probe.look(q, what)


def sampled(function: UserFunction, *vectors: Vector) -> tuple[UserFunction, Sequence[Vector]]:
    """Return a function that is compiled, and so the same for each coordinate, on some coordinates alone."""
    size = int(np.prod(function.shape))
    if not function.term.fully_compiled or size <= COMPILED_SAMPLE:
        return function, vectors
    some = np.sort(np.random.default_rng(0).choice(size, COMPILED_SAMPLE, replace=False))
    return UserFunction(function.term, (COMPILED_SAMPLE,)), [vector[some] for vector in vectors]


def short(value: object) -> str:
    """Return a number or an array in a few digits, and a few entries."""
    array = np.asarray(value)
    return f"{float(array):.6g}" if array.ndim == 0 else np.array2string(array, precision=6, threshold=8, edgeitems=3)


def _length(vector: Vector) -> float:
    return float(np.linalg.norm(vector))


def _relative(violation: float, size: float) -> float:
    return max(violation, 0.0) / size if size > 0 and np.isfinite(size) else 0.0
