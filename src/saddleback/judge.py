"""The memory of a run: the best pair of points seen, in the problem as the user wrote it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .certificate import DualSide, PrimalSide, best_pair, dual_side, pair, primal_side
from .functions._base import Vector
from .methods import Candidates
from .problem import Model
from .reductions import Reduction
from .result import Certificate, Status
from .unsolvable import Unsolvable

SETTLING = (1e-2, 1e-3, 1e-4, 1e-5)
"""Lengths of the step that settles x, relative to the sizes of x and of the slopes, in the order in which to try."""


class Judge:
    """Measures what a method offers and keeps the best x and the best y.

    Attributes
    ----------
    primal, dual, certificate : the best pair so far and its certificate.
    passes : work of the judgements; one product with A or A' is half a pass.
    """

    primal: PrimalSide
    dual: DualSide
    certificate: Certificate

    def __init__(self, model: Model, reduction: Reduction) -> None:
        self.model = model
        self.reduction = reduction
        self.passes = reduction.passes
        self._looked = self._confirmed = False
        self._rays: list[tuple[Vector, Vector]] = []
        self.unsolvable = Unsolvable(model)

    def look_at(self, candidates: Candidates) -> None:
        """Measure the candidates, and keep the pair with the smallest error among them and the best so far."""
        primals, duals = ([self.primal], [self.dual]) if self._looked else ([], [])
        self._looked, self._confirmed = True, False
        points = []
        for x, u in candidates.primal:
            u = self._product(self.reduction.model, x) if u is None else u
            points.append((self.reduction.restore_x(x, u), self.reduction.restore_u(u)))
        primals += [primal_side(self.model, x, u) for x, u in points]
        for y, z in candidates.dual:
            z = None if z is None else self.reduction.restore_z(z, y)
            duals.append(dual_side(self.model, self.reduction.restore_y(y), *points[0], z))
            self.passes += 0.5 if z is None else 0.0
        self.certificate, self.primal, self.dual = best_pair(self.model, primals, duals)
        self._rays = [self.reduction.restore_ray(dx, dy) for dx, dy in candidates.rays]

    def confirm(self) -> Certificate:
        """Return the certificate that anyone gets for the best pair: ``certify`` of these two points alone."""
        if self._confirmed:
            return self.certificate
        self._confirmed = True
        u = self._product(self.model, self.primal.x)
        self.passes += 0.5
        self.primal = primal_side(self.model, self.primal.x, u)
        # y stays as it was judged: it is what is returned, and certify must give the same for it
        self.dual = replace(dual_side(self.model, self.dual.y, self.primal.x, u), y=self.dual.y)
        self.certificate = pair(self.model, self.primal, self.dual)
        return self.certificate

    def settle(self, tol: float) -> None:
        """Put x where a kink or a bound holds it, as far as the certificate allows.

        An interior point ends next to them. A short step of the proximal map, prox(x + t z), goes to those that hold
        and moves nothing else by more than the error.
        """
        if not (np.any(self.primal.x) and np.any(self.dual.z)):
            return
        for length in SETTLING:
            step = length * float(np.abs(self.primal.x).max() / np.abs(self.dual.z).max())
            x = self.model.f.prox(self.primal.x + step * self.dual.z, step)
            primal = primal_side(self.model, x, self._product(self.model, x))
            certificate = pair(self.model, primal, self.dual)
            if certificate.error <= max(tol, self.certificate.error):
                self.primal, self.certificate, self._confirmed = primal, certificate, False
                return

    def _product(self, model: Model, x: Vector) -> Vector:
        self.passes += 0.5 * np.count_nonzero(x) / x.size
        return model.A.matvec(x)

    def ray_status(self, x: Vector, y: Vector, passes: float) -> Status | None:
        """Return INFEASIBLE or UNBOUNDED where that is proved, by rays of the method or by the way to its point."""
        if self.model.surely_solvable or self.reduction.model.surely_solvable:
            return None
        reduction, before = self.reduction, self.unsolvable.passes
        rays, self._rays = self._rays, []
        point = reduction.restore_x(x, self._product(reduction.model, x))
        found = self.unsolvable.status(point, reduction.restore_y(y), rays, passes)
        self.passes += self.unsolvable.passes - before
        return found
