"""The best pair of points of a run so far, and its certificate in the problem as the user wrote it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np

from ..certificates.candidates import Candidates, evaluate
from ..certificates.certificate import Gap, certified, without_dust
from ..certificates.probes import probe_certificate
from ..certificates.sides import FAR, DualSide, PrimalSide, dual_side, pair, primal_side, trivial_side
from ..common.arrays import Vector
from ..common.rebuildable import stored
from ..crossover import Crossing, Solution, Work, applies, crossings, proximal_step
from ..crossover import without_dust as without_dust_at_kinks
from ..functions.calculus import parts_of
from ..functions.points import DensePoint, Point
from ..functions.traits import rise_within, subgradient_scale, zero_slack
from ..model.model import Model
from ..operators.deferred_points import image
from ..operators.linear_operator import probe_passes
from ..reductions import Reduction, Unchanged, Units
from ..result import Certificate, Status
from .clock import Clock
from .infeasibility import Found, InfeasibilityDetector

SETTLING = (1e-2, 1e-3, 1e-4, 1e-5)
"""Lengths of the step that settles x, relative to the sizes of x and of the slopes, in the order in which they are
tried: the first finds all kinks, the shorter ones only the clearest."""

ROUNDED = 2.0**-46
"""Change of u, relative to u and b, that may be due to rounding."""

WITHIN = 0.9
"""Share of the tolerance that the objective may use up in a crossover."""

DRIFT = 1e-6
"""Rounding errors that a method may accumulate when it updates u = Ax step by step instead of by a product with A."""

BELIEVABLE = 2.0
"""Factor by which the error of a pair may exceed the error that its file states: the bound that y proves depends on the
x next to which it was computed, which need not be the best x."""


@stored
class Incumbent:
    """Evaluates the candidates of a method and keeps the best x and the best y.

    Candidates are compared in the reduced problem. The pair that is returned is certified in the user's problem.

    Attributes
    ----------
    certificate : certificate of the best pair so far.
    passes : work of the certificates; one product with A or A' is half a pass.
    proof : a proof that there is no solution; None until one is found.
    """

    model: Model
    reduction: Reduction
    passes: float
    certificate: Certificate
    detector: InfeasibilityDetector
    proof: Found | None
    _best: tuple[PrimalSide, DualSide] | None
    _confirmed: Gap | None
    _point: tuple[Point, Point] | None
    _computed: bool
    _rays: list[tuple[Vector, Vector]]
    _others: list[Vector]

    def __init__(self, model: Model, reduction: Reduction) -> None:
        self.model = model
        self.reduction = reduction
        self.passes = reduction.passes + probe_passes(model.A)
        self._best = self._confirmed = self._point = self.proof = None
        self._computed = False
        self._rays, self._others = [], []
        self.detector = InfeasibilityDetector(model)

    def update(self, candidates: Candidates) -> None:
        """Evaluate the candidates; keep the pair with the smallest error among them and the best pair so far."""
        self.forget()
        model = self.reduction.model
        primals, duals = (self._zero(), []) if self._best is None else ([self._best[0]], [self._best[1]])
        image = partial(self._image, model)
        self.certificate, primal, dual = evaluate(model, candidates, image, primals, duals, trivial=True)
        self._best = primal, dual
        self.passes += 0.5 * sum(z is None for _, z in candidates.dual)
        x, u = candidates.primal[0]
        computed = u is None and all(z is None for _, z in candidates.dual) and not len(model.unpenalised_sums)
        earlier = x is not primal.x or any(dual is side for side in duals)
        known = self.reduction.model is self.model and not model.only_estimated
        self._computed = known and computed and not earlier
        self._rays = [self.reduction.restore_ray(dx, dy) for dx, dy in candidates.rays]
        self._others = [x for x, _ in candidates.primal[1:]] if self._rays else []

    @property
    def may_be_rounding(self) -> bool:
        """Whether the gap is small enough to be the rounding of Ax - b."""
        assert self._best is not None
        model, (primal, _) = self.reduction.model, self._best
        gap = abs(self.certificate.gap)
        if not gap <= primal.rise:
            return False
        terms = np.maximum(np.abs(primal.u), subgradient_scale(model.g_star))
        return gap <= rise_within(model.g, ROUNDED * terms)

    def _zero(self) -> list[PrimalSide]:
        """Return x = 0 if it is a solution, such as without targets: iterates need not reach it exactly."""
        model = self.reduction.model
        of_loss, least = model.loss_at_zero
        if of_loss > least or model.trivial_bound == -np.inf or model.objective_at_zero > model.trivial_bound:
            return []
        zero = trivial_side(model)
        return [primal_side(model, zero.slope, zero.point)]  # 0 in the shapes of x and u

    def point(self) -> tuple[Point, Point]:
        """Return the best x and y as a point of the user's problem."""
        return self._point or self.point_of_now()()

    def point_of_now(self) -> Callable[[], tuple[Point, Point]]:
        """Return a function that computes the best x and y so far in the user's problem."""
        assert self._best is not None
        reduction, (primal, dual) = self.reduction, self._best
        return lambda: (reduction.restore_x(DensePoint(primal.x), lambda: primal.u), reduction.restore_y(dual.point))

    def restored(self, x: Vector, y: Vector) -> tuple[Point, Point]:
        """Return any x and y of the problem that is solved as points of the user's problem."""
        return self._restored_x(x), self.reduction.restore_y(DensePoint(y))

    def _restored_x(self, x: Vector) -> Point:
        # several reductions may need the product, but most need none
        return self.reduction.restore_x(
            DensePoint(x), cache(lambda: image(self.reduction.model.A, DensePoint(x)).vector())
        )

    def confirm(self) -> Certificate:
        """Return the certificate that ``certify`` computes from the best pair alone."""
        if self._confirmed is None:
            x, y = self.point_of_now()()
            self._confirm(x, y, self._products() if self._computed else None)
        return self.certificate

    def _products(self) -> tuple[Vector, Vector]:
        assert self._best is not None
        primal, dual = self._best
        return primal.u, dual.z

    @property
    def gap(self) -> Gap:
        """The certificate of the confirmed pair, with the points for which it is proved."""
        assert self._confirmed is not None
        return self._confirmed

    def _confirm(self, x: Point, y: Point, products: tuple[Vector, Vector] | None = None) -> None:
        """Let a pair be the confirmed one, with x in the domain of f."""
        if not self.model.f.domain.everything:
            given = x.vector()
            inside = self.model.f.domain.project(given)
            if inside is not given:
                x, products = DensePoint(inside), None
        self._certify(x, y, products)
        assert self._confirmed is not None
        if self.certificate.primal_infeasibility > 0 and not self.model.only_estimated:
            for every_row in (True, False):
                cleaned = without_dust(self.model, self._confirmed, every_row)
                if not np.array_equal(cleaned, self._confirmed.x) and self._replace_x(cleaned, self.certificate.error):
                    break

    def _certify(self, x: Point, y: Point, products: tuple[Vector, Vector] | None = None, sized: bool = False) -> None:
        self._confirmed = self._gap(x, y, products, sized)
        self._point = x, self._confirmed.returned(y)
        self.certificate = self._confirmed.certificate

    def _gap(self, x: Point, y: Point, products: tuple[Vector, Vector] | None = None, sized: bool = False) -> Gap:
        work = 0.5 + self._share(self.model, x)
        gap = certified(self.model, x, y, products, sized)
        self.passes += work * ((products is None) + (gap.returned(y) is not y))
        return gap

    def in_units_of(self, model: Model, units: Units) -> Incumbent:
        """Return the incumbent of the user's problem, given the units in which it was solved."""
        other = Incumbent(model, Unchanged(model))
        other._certify(*units.restored(*self.point()), sized=True)
        return other

    def keep_confirmed(self) -> None:
        """Drop all points but the confirmed pair: the run has ended."""
        assert self._confirmed is not None
        self._best, self._rays, self._others = None, [], []

    def probe(self) -> None:
        """Test the user's functions at the confirmed pair; raise ``ProbeError`` if one of them is wrong."""
        assert self._confirmed is not None
        probe_certificate(self.model, self._confirmed)

    def check(self, model: Model, reduction: Reduction) -> None:
        """Raise unless this incumbent, read from a file, belongs to the problem and its stated error is true.

        A pair that is worse than stated would never be replaced, and the run would never end with a certificate.
        """
        if not (self.model is self.detector.model is model and self.reduction is reduction):
            raise ValueError("its certificates belong to another problem")
        self.detector.check()
        self.forget()
        if self._best is None:
            return
        model, (primal, dual) = reduction.model, self._best
        u = image(model.A, primal.point)
        at = primal_side(model, primal.point, u)
        if not at.value <= primal.value + DRIFT * max(1.0, abs(primal.value)):
            raise ValueError(f"the best point has an objective of {at.value:.6g}, and not of {primal.value:.6g}")
        said = pair(model, primal, dual).error
        found = pair(model, at, dual_side(model, dual.y, primal.point, u)).error
        if not found <= BELIEVABLE * said + DRIFT:
            raise ValueError(f"the best point has an error of {found:.1e}, and not of {said:.1e}")

    def forget(self) -> None:
        """Drop the confirmed pair: the run continues, and the method may overwrite x."""
        self._confirmed = self._point = None

    def settle(self, tol: float, lengths: Sequence[float] = SETTLING) -> bool:
        """Move x onto its active kinks and bounds, if a step of one of these lengths keeps the tolerance.

        An interior point ends next to them. A short proximal step, prox(x + t z), moves the coordinates at active kinks
        and bounds onto them, and the others by no more than the error. Returns whether such a step was found.
        """
        error = self.confirm().error
        assert self._confirmed is not None
        before, z = self._confirmed.x, self._confirmed.slope.high
        if self.model.f.domain.everything and zero_slack(self.model.f, z) is None:
            return True  # there are no kinks and bounds
        for length in lengths:
            x = proximal_step(self.model, before, z, length)
            if x is before or self._replace_x(x, max(tol, error)):
                return True
        return False

    def cross_over(self, tol: float, work: Work) -> Crossing:
        """Move x to a vertex of the set of solutions near it, if the tolerance is kept.

        ``work`` is that of the run so far, of which the crossover may take a share.
        """
        error = self.confirm().error
        if not applies(self.model):
            return Crossing()
        limit = max(tol, error)
        assert self._confirmed is not None
        before = self._confirmed.x
        if (x := without_dust_at_kinks(self.model, before)) is not before:
            self._replace_x(x, limit)
        at, certificate = self._confirmed, self.certificate
        values = max(abs(certificate.primal_value), abs(certificate.dual_value))
        room = max(WITHIN * limit * values - certificate.gap, 0.0)
        try:
            for crossing in crossings(self.model, Solution(at.x, at.image.high, at.y, at.slope.high), room, work):
                if crossing.x is None or self._replace_x(crossing.x, error if crossing.better else limit):
                    return crossing
        except MemoryError:  # the solution is there, and not to be lost for want of a nicer one
            return Crossing(said="no crossover: it would take more memory than there is")
        return Crossing(said="no crossover: the vertex that was found would not keep the tolerance")

    def _replace_x(self, vector: Vector, limit: float) -> bool:
        """Let another x take the place of the confirmed one, if its error is within a limit; return whether it is.

        Relative gaps of points that are far from an optimum are all about 1: then the gap itself must not grow.
        """
        assert self._point is not None
        x, y = DensePoint(self.model.f.domain.project(vector)), self._point[1]
        gap = self._gap(x, y)
        error = gap.certificate.error
        if not error <= limit or (error > FAR and gap.certificate.gap > self.certificate.gap):
            return False
        self._confirmed, self._point, self.certificate = gap, (x, gap.returned(y)), gap.certificate
        return True

    def _image(self, model: Model, x: Point) -> Point:
        self.passes += self._share(model, x)
        return image(model.A, x)

    @staticmethod
    def _share(model: Model, x: Point) -> float:
        """Return the passes of a product with x, whose zeros are not read."""
        parts = [x.segment(own) for _, own in parts_of(model.f)]  # a vector of all may take as much memory as the data
        return 0.5 * sum(map(np.count_nonzero, parts)) / sum(part.size for part in parts)

    def search_for_proof(self, x: Vector, y: Vector, passes: float, tol: float, clock: Clock) -> Status | None:
        """Return INFEASIBLE or UNBOUNDED if a ray of the method, or the direction of its iterates, leads to a proof."""
        if self.model.rays_prove_nothing or self.reduction.model.rays_prove_nothing:
            return None
        reduction, before = self.reduction, self.detector.passes
        rays, self._rays = self._rays, []
        points = [self._restored_x(point).vector() for point in (x, *self._others)]
        self.passes += 0.5 * len(points) * reduction.eliminates
        found = self.detector.found(points, reduction.restore_y(DensePoint(y)).vector(), rays, passes, tol, clock)
        self.passes += self.detector.passes - before
        self.proof = found
        return None if found is None else found.status
