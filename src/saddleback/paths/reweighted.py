r"""Penalties that are not convex, by a sequence of certified convex problems.

Let :math:`F(x) = p(x) + g(Ax)` with a penalty p that is not convex, and :math:`m_v \ge p` a convex majoriser with
:math:`m_v(v) = p(v)`. A round maps v to :math:`T(v)`, a minimiser of :math:`m_v(x) + g(Ax)`. Then

.. math::

    F(T(v)) \le m_v(T(v)) + g(A T(v)) \le m_v(v) + g(Av) = F(v).

A fixed point x of T minimises the convex majoriser at x. So it is a stationary point of F, as the certificate of that
convex problem shows. It need not be a global minimum, and nothing here proves how far it is from one.

The rounds alone converge linearly. If the loss is smooth, a local search (``local_search.py``) lowers F between them,
so that the rounds are left to confirm its result, or to find a way down that it does not see. Otherwise they are
accelerated as in Anderson (1965): v is a combination of the last results, with weights that make the combination of the
steps :math:`T(v_i) - v_i` as short as possible. If F rises, the round is repeated from the best x so far.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..common.arrays import Vector
from ..common.checks import SQUARABLE, integer
from ..engine.certify import certify
from ..engine.diagnosis import message
from ..engine.interrupts import Interrupts
from ..engine.options import Options
from ..engine.session import Session
from ..functions import Term, as_term
from ..functions.points import DensePoint
from ..places.torch import open_device
from ..problem import Problem
from ..result import Certificate, Result, Status, counted
from .local_search import LocalSearch, search_for

MEMORY = 5
"""Number of earlier rounds in an extrapolation."""

LEAST_LENGTH = 1e-10
"""Differences of steps that are shorter than this, relative to the longest, are left out of an extrapolation."""

LEAST_PASSES = 1e-6
"""Limits of a round if the others have used up the work or the time: it ends at its first certificate."""

UNSOLVABLE = (Status.DIVERGED, Status.INFEASIBLE, Status.UNBOUNDED)
"""How a round ends if its convex problem has no solution."""


def reweighted(penalty: Any, A: Any, loss: Any, max_rounds: int = 100, **options: Any) -> Result:
    r"""Minimise an objective with a penalty that is not convex, by convex problems until x no longer changes.

    Each round minimises a convex majoriser of the objective: the penalty is replaced by a weighted L1 or group norm,
    with weights from the x before (the local linear approximation of Zou and Li, 2008). The objective never rises from
    round to round.

    The certificate is that of the last convex problem. If the status is ``OPTIMAL``, x minimises the convex majoriser
    at x itself, up to ``tol``, and is a stationary point of the objective. That x is a global minimum is not proved:
    other starts x0 may lead to lower values.

    Parameters
    ----------
    penalty, A, loss : object
        As in ``Problem``, with one or more of the penalties ``MCP``, ``SCAD`` and ``LogSum``, or ``Adaptive``.
    max_rounds : int, default 100
        Maximum number of convex problems.
    **options : dict
        Options of ``solve``. ``tol`` holds for each convex problem; ``max_passes`` and ``time_limit`` bound the sum
        over all of them and the searches between them. The first problem has the weights of ``x0``. By default that is
        x = 0, so that the problem is a Lasso or group Lasso; if the loss is smooth, it is the end of a search that
        starts with larger alphas, as a path does.

    Returns
    -------
    Result
        The last x with its certificate. ``passes`` and ``seconds`` are those of all rounds and of the searches, and
        ``history`` is that of the last round. ``result.objective`` is the value of the convex problem. The ``settings``
        have the objective with the penalty as given ("objective"), its value after each round ("objectives") and the
        number of "rounds".

    Examples
    --------
    >>> import numpy as np, saddleback as sb
    >>> result = sb.reweighted(sb.MCP(1.0, gamma=3.0), np.eye(3), sb.Squared([5.0, -0.5, 2.0]), tol=1e-10)
    >>> result.x.round(6).tolist(), round(result.settings["objective"], 6)
    ([5.0, 0.0, 1.5], 2.875)
    """
    given = penalty if isinstance(penalty, (list, tuple)) else [penalty]
    terms = [as_term(term, f"penalty[{j}]" if given is penalty else "penalty") for j, term in enumerate(given)]
    if all(term.convex for term in terms):
        raise ValueError(f"penalty={penalty!r} is convex: call sb.solve(sb.Problem(penalty, A, loss))")
    for name in ("checkpoint", "resume"):
        if options.get(name) is not None:
            raise TypeError(
                f"{name}: expected None, since a file holds a single convex problem; pass x0=result instead"
            )
    integer("max_rounds", max_rounds)
    x0, y0 = options.pop("x0", None), options.pop("y0", None)
    first = [term.majoriser() for term in terms]
    problem = Problem(first if given is penalty else first[0], A, loss).columnar()
    if options.get("device") is not None:
        problem = problem.placed(open_device(options["device"]))  # once for all rounds
    with Session(Options.of(options)) as session, Interrupts(session.team):
        return Rounds(problem, terms, session, max_rounds).run(x0, y0)


class Best(NamedTuple):
    """The flat x with the least objective so far."""

    x: Vector
    value: float


class Memory:
    """The last rounds, and the next point v that they suggest."""

    def __init__(self) -> None:
        self.points: list[Vector] = []
        self.images: list[Vector] = []

    def add(self, v: Vector, x: Vector) -> None:
        """Add a round that has led from v to x = T(v)."""
        self.points, self.images = [*self.points[-MEMORY:], v], [*self.images[-MEMORY:], x]

    def next(self) -> Vector:
        """Return the combination of the images for which that of the steps T(v) - v is shortest.

        An entry that would change its sign is set to 0.
        """
        *earlier, x = self.images
        if not earlier:
            return x
        *steps, step = (image - v for v, image in zip(self.points, self.images, strict=True))
        shares = np.linalg.lstsq(np.stack([step - own for own in steps], axis=1), step, rcond=LEAST_LENGTH)[0]
        ahead: Vector = x - np.stack([x - image for image in earlier], axis=1) @ shares
        ahead[ahead * x <= 0] = 0.0
        return ahead


@dataclass
class Rounds:
    """The rounds from a start to a result.

    Attributes
    ----------
    problem : Problem
        The problem with the majorisers at 0.
    terms : list of Term
        The penalties as given.
    session : Session
        Solves the convex problems.
    max_rounds : int
        Most of them.
    """

    problem: Problem
    terms: list[Term]
    session: Session
    max_rounds: int
    values: list[float] = field(default_factory=list)
    solved: float = 0.0
    memory: Memory = field(default_factory=Memory)
    search: LocalSearch | None = None

    def __post_init__(self) -> None:
        self.options = self.session.options
        self.last = min((term.rounds for term in self.terms if term.rounds is not None), default=None)
        if self.last is None and self.session.team.size == 1:
            self.search = search_for(self.problem, self.terms)

    @property
    def passes(self) -> float:
        """The work of all rounds and searches."""
        return self.solved + (0.0 if self.search is None else self.search.passes)

    def run(self, x0: Any, y0: Any) -> Result:
        """Return the result of the rounds from x0, or from x = 0."""
        start, v = x0, np.zeros(sum(map(prod, self.problem.x_shapes)))
        if x0 is not None:
            v = self._flat(x0.x if isinstance(x0, Result) else x0, "x0")
        elif self.search is not None:
            v = self.search.start(self._exhausted)
            start = self._shaped(v)
        last = None if self.last is None else self.last - (x0 is not None)  # a start is in the place of a solution
        tol, best = self.options.tol, Best(v, np.inf)
        for count in range(1, self.max_rounds + 1):
            convex = self._majorised(v)
            result = self._solved(convex, start, y0)
            x = self._flat(result.x)
            value = self._objective(result.certificate, x, v)
            if result.status in UNSOLVABLE or count == last:
                return self._told(result, value)
            rises = value > best.value
            if not result.status.solved or self.session.stopped:
                status = Status.INTERRUPTED if result.status.solved else result.status
                return self._ended(best.x if rises else x, result, status)
            better = best if rises else Best(x, value)
            if self._may_settle(v, x, best, result.certificate):
                same = np.array_equal(v, x)
                certificate = result.certificate if same else certify(convex, self._shaped(v), result.y)
                here = self._objective(certificate, v, v)
                if v is best.x:
                    here = min(here, best.value)  # the same, but for rounding
                ending = certificate.status(tol)
                if ending is not None and here <= best.value:
                    found = replace(result, x=self._shaped(v), certificate=certificate, status=ending)
                    return self._told(found, here)
                rises |= ending is not None
            best = better
            if rises:
                self.memory, v = Memory(), best.x
            else:
                v = self._next(v, x)
            self.values.append(best.value)
            start, y0 = replace(result, x=self._shaped(v)), None
        self.values.pop()
        return self._ended(best.x, result, Status.MAX_PASSES)

    def _exhausted(self) -> bool:
        """Return whether the time or the passes are used up."""
        return self.session.clock.expired() or self.passes >= self.options.max_passes

    def _next(self, v: Vector, x: Vector) -> Vector:
        """Return where the next round begins, after one that has led from v to x = T(v)."""
        if self.search is not None and self.search.fits:
            return self.search.lowered(x, self._exhausted)
        self.memory.add(v, x)
        return self.memory.next()

    def _may_settle(self, v: Vector, x: Vector, best: Best, certificate: Certificate) -> bool:
        """Return whether v may be a fixed point up to the tolerance, given x = T(v) and its certificate.

        The objective is flat near its minimum, so that sqrt(tol) is enough for x. With several minimisers x may be far
        from v, but then the objective has hardly fallen.
        """
        if np.linalg.norm(x - v) <= np.sqrt(self.options.tol) * np.linalg.norm(x):
            return True
        fall = best.value - self._objective(certificate, v, v)  # of the majoriser from v to x
        return v is best.x and fall <= self.options.tol * abs(certificate.primal_value)

    def _majorised(self, v: Vector) -> Problem:
        """Return the convex problem with the majorisers at v."""
        return self.problem.with_terms(
            [term.majoriser(own) for term, own in zip(self.terms, self._parts(v), strict=True)]
        )

    def _solved(self, convex: Problem, x0: Any, y0: Any) -> Result:
        """Return the solution of a convex problem, within what is left of the limits."""
        self.session.options = replace(
            self.options, max_passes=max(self.options.max_passes - self.passes, LEAST_PASSES)
        )
        result = self.session.solve(convex, x0, y0, trusted=self.search is not None)
        self.solved += result.passes
        return result

    def _objective(self, certificate: Certificate, x: Vector, v: Vector) -> float:
        """Return the objective with the penalties as given, from that of the convex problem with majorisers at v."""
        parts = zip(self.terms, self._parts(x), self._parts(v), strict=True)
        return certificate.primal_value + sum(term.below_majoriser(*points) for term, *points in parts)

    def _ended(self, x: Vector, result: Result, status: Status) -> Result:
        """Return the result at x if the rounds end before x has settled."""
        convex, shaped = self._majorised(x), self._shaped(x)
        certificate = certify(convex, shaped, result.y)
        ended = replace(result, x=shaped, certificate=certificate, status=status)
        return self._told(ended, self._objective(certificate, x, x))

    def _told(self, result: Result, value: float) -> Result:
        """Return a result with the settings and the message of all rounds."""
        values = [*self.values, value]
        work = f"{len(values)} rounds and {counted(self.passes)} passes of {result.method}"
        said = message(result.status, result.certificate, self.options.tol, work, result.method)
        if result.status is Status.MAX_PASSES and self.passes < self.options.max_passes:
            said = said.replace(Status.MAX_PASSES.value, f"x has not settled in {len(values)} rounds (max_rounds).")
        return replace(
            result,
            message=said if result.status in UNSOLVABLE else f"{said} {self._meaning(result.status)}",
            passes=self.passes,
            seconds=self.session.clock.seconds(),
            settings={**result.settings, "rounds": len(values), "objective": value, "objectives": values},
        )

    def _meaning(self, status: Status) -> str:
        """Return what the certificate proves, and what it does not prove."""
        if self.last is not None:
            return "This certifies the convex problem with the weights of the solution before it."
        figures = "These figures are those of the convex majoriser at x"
        if status.solved:
            figures += ", which x minimises: a stationary point"
        return f"{figures}. The penalty is not convex, and it is not proved that x is a global minimum."

    def _flat(self, x: Any, name: str = "x") -> Vector:
        return self.problem.flatten_x(x, name, SQUARABLE).vector()

    def _shaped(self, x: Vector) -> Any:
        return self.problem.shape_x(DensePoint(x))

    def _parts(self, x: Vector) -> list[Vector]:
        """Return the blocks of a flat x in their shapes."""
        shapes = self.problem.x_shapes
        ends = pairwise(accumulate(map(prod, shapes), initial=0))
        return [x[begin:end].reshape(shape) for (begin, end), shape in zip(ends, shapes, strict=True)]
