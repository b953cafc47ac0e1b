"""What a solve returns: a status with a sentence, a certificate, a history, and the point itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .common import pictures
from .common.cached import cached_property
from .common.cards import BAD, FAIR, GOOD, Curve, card
from .common.checks import shown
from .common.pictures import new_axes
from .common.rebuildable import stored

Series = NDArray[np.float64]

ROUNDING = 1e-12
"""Relative difference of two values of an objective that rounding explains."""


class Status(Enum):
    """How a solve ended; the value is the sentence that explains it.

    Under every status x and y are the best pair of points seen, in the sense of the certificate, and the certificate is
    theirs. Under ``INFEASIBLE`` and ``UNBOUNDED`` there is no solution that they could be close to.
    """

    OPTIMAL = "The certificate is within the tolerance."
    MAX_PASSES = "The pass limit was reached."
    TIME_LIMIT = "The time limit was reached."
    DIVERGED = "The iterates grow without bound: this method does not converge on this problem."
    INFEASIBLE = "No point satisfies the constraints: a dual direction proves it."
    UNBOUNDED = "The objective decreases without bound: a primal direction proves it."
    INTERRUPTED = "The run was stopped from outside, by a callback or the keyboard."
    ROUNDING_LIMIT = "The gap is as small as rounding in float64 lets it be proved."

    @property
    def solved(self) -> bool:
        """Whether the point is as good as the tolerance asks, or as float64 allows."""
        return self in (Status.OPTIMAL, Status.ROUNDING_LIMIT)


ROUGH = 2.0**-10
"""Relative gap above which a point counts as unsolved, unless the objective itself is all rounding."""

FEASIBLE = 2.0**-40
"""Violation, relative to its terms, that may be due to rounding."""

COLOURS = {
    Status.OPTIMAL: GOOD,
    Status.ROUNDING_LIMIT: GOOD,
    Status.DIVERGED: BAD,
    Status.INFEASIBLE: BAD,
    Status.UNBOUNDED: BAD,
}
"""The colours of the statuses in a notebook; the others are limits and interrupts."""


def counted(passes: float) -> str:
    """Return a number of passes for a message: 9,981 or 12.5, never 1e+04."""
    return f"{passes:,.0f}" if passes >= 100 else f"{passes:.4g}"


@stored
@dataclass(frozen=True)
class Certificate:
    """How far a pair (x, y) can be from a solution.

    Attributes
    ----------
    primal_value : float
        P, the objective at x, without indicators of constraints.
    dual_value : float
        D, rounded downwards: a lower bound on the optimum if ``proved``. -inf if y gives no bound.
    gap : float
        An upper bound on the sum of the excesses of all rows and columns, and of all violations times their variables:
        P - D up to rounding.
    relative_gap : float
        gap / max(|P|, |D|, F). The floor F matters only if the optimum is nearly 0.
    primal_infeasibility : float
        The largest violation of a row by Ax, relative to |b_i| + sum_j |a_ij x_j|, the terms of that row.
    dual_infeasibility : float
        The largest violation of a column by -A'y, relative to |c_j| + sum_i |a_ij y_i|, the terms of that column.
    perturbation : float
        The part of the relative gap that is due to violations: their products with the dual variables and with x.
    proved : bool
        Whether ``dual_value`` <= optimum is a theorem in floating point.
    attained : bool
        Whether optimum <= ``primal_value`` is one: x satisfies every constraint exactly.
    floor : float
        F: the rise of the loss if its data change by 2^-36 of their size, or 2^-20 of the terms of the objectives.
    rounding : float
        The relative gap that rounding explains; a gap that is not larger cannot be made smaller in float64.
    forgiven : bool
        Whether -A'y is 0 on the columns without a penalty only up to the rounding of y: the bound would be a theorem if
        it were exactly 0, which could not be proved.
    """

    primal_value: float
    dual_value: float
    gap: float
    relative_gap: float
    primal_infeasibility: float
    dual_infeasibility: float
    perturbation: float = 0.0
    proved: bool = False
    attained: bool = False
    floor: float = 0.0
    rounding: float = 0.0
    forgiven: bool = False

    @cached_property
    def error(self) -> float:
        """The largest of all: ``OPTIMAL`` means that it is at most ``tol``."""
        errors = (self.relative_gap, self.primal_infeasibility, self.dual_infeasibility, self.perturbation)
        return np.inf if math.isnan(sum(errors)) else max(errors)  # NaN if data overflow: then nothing is known

    def within(self, tol: float) -> bool:
        """Return whether the pair is optimal to a tolerance."""
        return self.error <= tol and not self.forgiven

    def limited(self, tol: float) -> bool:
        """Return whether rounding is all that keeps the pair from a tolerance.

        A large gap counts only if the objective itself is all rounding. Violations are relative to their own terms, and
        hence hardly affected by rounding.
        """
        rounding = self.rounding if self.rounding >= 1 else min(self.rounding, ROUGH)
        gap, violation = (self.relative_gap, self.perturbation), (self.primal_infeasibility, self.dual_infeasibility)
        return max(gap) <= max(tol, rounding) and max(violation) <= max(tol, FEASIBLE)

    def status(self, tol: float) -> Status | None:
        """Return how a run to a tolerance ends with this pair; None if the pair is not good enough."""
        if self.within(tol):
            return Status.OPTIMAL
        return Status.ROUNDING_LIMIT if self.limited(tol) else None

    def agrees_with(self, other: Certificate) -> bool:
        """Return whether values and error are the same up to rounding."""
        pairs = (self.primal_value, other.primal_value), (self.dual_value, other.dual_value)
        return all(math.isclose(*pair, rel_tol=ROUNDING) for pair in pairs) and math.isclose(
            self.error, other.error, rel_tol=ROUNDING, abs_tol=ROUNDING
        )

    def to_dict(self) -> dict[str, float]:
        """Return the figures by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def facts(self) -> dict[str, str]:
        """Return the figures as text, under names for readers; violations only if there are any."""
        violations = {
            "primal infeasibility": self.primal_infeasibility,
            "dual infeasibility": self.dual_infeasibility,
            "perturbation": self.perturbation,
        }
        return {
            "objective": f"{self.primal_value:.10g}",
            "lower bound" if self.proved else "dual value": f"{self.dual_value:.10g}",
            "relative gap": f"{self.relative_gap:.2e}",
        } | {name: f"{value:.2e}" for name, value in violations.items() if value != 0}

    def _repr_html_(self) -> str:
        return card("Certificate", self.facts())


class Share(NamedTuple):
    """The share of one term in the objective and in the gap.

    ``function`` is the name of the term, ``value`` its value at the solution, and ``gap`` its part of the gap, at least
    0. The parts add up to the gap of the certificate. ``violation`` is the largest violation of a row of the term,
    relative to the terms of that row, as in ``Certificate.primal_infeasibility``.
    """

    function: str
    value: float
    gap: float
    violation: float


@stored
@dataclass
class History:
    """The certificates of a run in order, each series an array.

    ``notes`` are sentences on decisions during the run, and ``finish_begins`` is the work at the first certificate
    after an interior point took over from the method; None if it did not.
    """

    rows: list[tuple[float, float, Certificate]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    finish_begins: float | None = None

    def add(self, passes: float, seconds: float, certificate: Certificate) -> None:
        """Append a certificate and the work and time it took to get there."""
        self.rows.append((passes, seconds, certificate))

    def end(self, passes: float, seconds: float, certificate: Certificate) -> None:
        """Make the certificate of the result the last entry.

        It replaces the entry before if both differ only by rounding, as when processes sum Ax in different orders.
        """
        before = self.rows[-1]
        if before[2] is certificate:
            return
        if before[2].agrees_with(certificate):
            self.rows[-1] = (*before[:2], certificate)
        else:
            self.add(passes, seconds, certificate)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def passes(self) -> Series:
        """Work so far, in passes over the columns."""
        return np.array([passes for passes, _, _ in self.rows])

    @property
    def seconds(self) -> Series:
        """Time so far."""
        return np.array([seconds for _, seconds, _ in self.rows])

    def _series(self, name: str) -> Series:
        return np.array([getattr(certificate, name) for _, _, certificate in self.rows])

    @property
    def primal_value(self) -> Series:
        """P of the best pair so far."""
        return self._series("primal_value")

    @property
    def dual_value(self) -> Series:
        """D of the best pair so far."""
        return self._series("dual_value")

    @property
    def relative_gap(self) -> Series:
        """Relative gap of the best pair so far."""
        return self._series("relative_gap")

    @property
    def primal_infeasibility(self) -> Series:
        """Primal infeasibility of the best pair so far."""
        return self._series("primal_infeasibility")

    @property
    def dual_infeasibility(self) -> Series:
        """Dual infeasibility of the best pair so far."""
        return self._series("dual_infeasibility")

    @property
    def error(self) -> Series:
        """The largest of all errors of the best pair so far."""
        return self._series("error")

    def to_dict(self) -> dict[str, Any]:
        """Return every series by name, as lists, and the notes."""
        names = (
            "passes",
            "seconds",
            "primal_value",
            "dual_value",
            "relative_gap",
            "primal_infeasibility",
            "dual_infeasibility",
            "error",
        )
        series = {name: getattr(self, name).tolist() for name in names}
        return series | {"notes": list(self.notes), "finish_begins": self.finish_begins}


@dataclass(frozen=True)
class Result:
    """A solution, or how far it is from one.

    Attributes
    ----------
    x, y : ndarray or list of ndarray
        Primal and dual point, in the shapes of the problem: a list with one array per penalty or per loss if these are
        lists.
    status : Status
        How the solve ended.
    message : str
        What happened, how accurate the point is, and what to do.
    certificate : Certificate
        The certificate of (x, y); ``certify(problem, x, y)`` reproduces it.
    passes : float
        Work in visits of all columns, including certificates and norm estimates.
    seconds : float
        Wall time.
    history : History
        The certificates of the run in order.
    method : str
        The method, and those that took over from it: " + finish" stands for an interior point, "multipliers + sp-bcd"
        for block passes after too many Newton steps, and "highs + r2hpdhg" for r2hpdhg from the answer of HiGHS.
    settings : dict
        What was chosen automatically: blocks per iteration, rule of the strengths, backend and others.
    shadow_prices : ndarray or None
        For a linear program, in the shape of y: the derivative of the optimal objective with respect to the right-hand
        side of each row, in the sign of HiGHS and of textbooks for a minimisation. It is -y. None for other problems,
        and unless the status is ``OPTIMAL``.
    reduced_costs : ndarray, list of ndarray or None
        For a linear program, in the shape of x: c + A'y, what one unit more of a variable at its bound would add to the
        objective. None if ``shadow_prices`` is None.
    is_vertex : bool or None
        Whether x is a vertex of the feasible set of a linear program, so that the active bounds and rows determine it:
        among the columns of the rows that hold with equality, those of variables strictly between their bounds are
        linearly independent. Bounds count as active, and as satisfied, up to 1e-9 of their size; a point that violates
        one by more is no vertex. None if it was not tested: for other problems, a status other than ``OPTIMAL``, a
        matrix in files, on a device or on several processes, or if the test would cost more than a small part of a
        solve.
    ray : ndarray, list of ndarray or None
        The proof that there is no solution, which ``certify_ray(problem, ray)`` checks; None if there is one. Under
        ``INFEASIBLE`` it is a direction e in the shape of y with sigma_dom f(-A'e) + sigma_dom g(e) < 0: a weight per
        row, such that the weighted sum of the rows is a contradiction. Under ``UNBOUNDED`` it is a direction in the
        shape of x along which the objective falls without bound. Entries that do not matter are 0, the largest is 1 in
        absolute value.
    terms : dict of Share
        For a problem with a list of losses, the share of each term in the objective and in the gap, under its name:
        ``result.terms["loss[1]"].value``. Empty for other problems.
    problem : Problem or None
        The problem that was solved, for ``bounds``. It is left out of copies in files and of ``to_dict``, and None in
        the result of an estimator, of a ``TallProblem``, of several processes, and of problems that were solved
        together.
    """

    x: Any
    y: Any
    status: Status
    message: str
    certificate: Certificate
    passes: float
    seconds: float
    history: History
    method: str
    settings: Mapping[str, Any]
    shadow_prices: Any = None
    reduced_costs: Any = None
    is_vertex: bool | None = None
    ray: Any = None
    terms: Mapping[str, Share] = field(default_factory=dict)
    problem: Any = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"problem": None}

    def bounds(self) -> Any:
        """Return an interval per coefficient, group, fitted value and residual that contains every optimum.

        It takes the product A'y and a factorisation of the size of the support. The coefficients are enclosed at once,
        the others when they are read. The bounds of a result of ``reweighted`` are about its last convex problem.

        Returns
        -------
        Bounds
            The intervals, and for each coefficient whether it is in every solution, in none, or undecided.
        """
        if self.problem is None:
            raise ValueError(
                "bounds() needs the problem, which this result does not have: use sb.bounds(problem, x, y), and for an "
                "estimator sb.judge(model, X, y).bounds()"
            )
        from .certificates.bounds import bounds

        return bounds(self.problem, self.x, self.y)

    @property
    def objective(self) -> float:
        """P, the objective at x."""
        return self.certificate.primal_value

    @property
    def relative_gap(self) -> float:
        """Relative gap of the certificate."""
        return self.certificate.relative_gap

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for JSON."""
        return {
            "status": self.status.name,
            "message": self.message,
            "method": self.method,
            "settings": dict(self.settings),
            "certificate": self.certificate.to_dict(),
            "passes": self.passes,
            "seconds": self.seconds,
            "x": _listed(self.x),
            "y": _listed(self.y),
            "shadow_prices": _listed(self.shadow_prices),
            "reduced_costs": _listed(self.reduced_costs),
            "is_vertex": self.is_vertex,
            "ray": _listed(self.ray),
            "terms": {name: share._asdict() for name, share in self.terms.items()},
            "history": self.history.to_dict(),
        }

    def __repr__(self) -> str:
        c = self.certificate
        found = f"objective={c.primal_value:.10g}, relative_gap={c.relative_gap:.2e}"
        return (
            f"Result({self.status.name}, {found if self.ray is None else f'ray: {ray_support(self)}'}, "
            f"passes={counted(self.passes)}, seconds={self.seconds:.3g}, method={self.method!r})"
        )

    def _repr_html_(self) -> str:
        history, proof = self.history, {} if self.ray is None else {"ray": ray_support(self)}
        found = proof or self.certificate.facts() | {"not 0 in x": _support(self.x)}
        label = f"certified error, down to {self.certificate.error:.1e}, over {counted(self.passes)} passes"
        return card(
            "Result",
            found | {"passes": counted(self.passes), "seconds": f"{self.seconds:.3g}", "method": self.method},
            (self.status.name, COLOURS.get(self.status, FAIR)),
            Curve(history.passes, history.error, label, log=True),
            self.message,
        )

    def plot(self, ax: Any = None, label: str | None = None) -> Any:
        """Draw the certified error against passes and against seconds, and for several losses the value of each term.

        The error is the largest figure of the certificate: the gap alone means little while a point is infeasible. A
        dotted line marks where an interior point took over from the method. The bars of the terms add up to the
        objective.

        Parameters
        ----------
        ax : matplotlib axes or sequence of matplotlib axes, optional
            One to draw against passes, two to draw against passes and seconds, three for the terms as well; new ones by
            default: three for a problem with a list of losses, otherwise two.
        label : str, optional
            Name in the legend, the method by default.

        Returns
        -------
        matplotlib axes
            The given axes, or the new ones.
        """
        most = 3 if self.terms else 2
        if ax is None:
            ax = new_axes(most)
            ax[1].sharey(ax[0])
        drawn = [ax] if hasattr(ax, "semilogy") else list(ax)
        if not 1 <= len(drawn) <= most or not all(hasattr(axis, "semilogy") for axis in drawn):
            raise ValueError(f"ax={shown(ax)}: expected one matplotlib axis, or up to {most} of them")
        history = self.history
        error = np.maximum(history.error, 1e-16)
        finishing = history.passes >= (np.inf if history.finish_begins is None else history.finish_begins)
        works = (history.passes, "work (passes over the columns)"), (history.seconds, "time (seconds)")
        for axis, (series, name) in zip(drawn, works, strict=False):
            (line,) = axis.semilogy(series, error, marker=".", label=self.method if label is None else label)
            if np.any(finishing):
                begun = series[finishing][0]
                axis.axvline(begun, linestyle=":", color=line.get_color(), label="an interior point takes over")
            pictures.label(axis, name, "certified error" if axis is drawn[0] else "")
        drawn[0].legend(fontsize="small")
        if len(drawn) == 3:
            names = [f"{name}: {share.function}" for name, share in self.terms.items()]
            drawn[2].barh(names, [share.value for share in self.terms.values()])
            drawn[2].invert_yaxis()
            pictures.label(drawn[2], "value at the solution; the bars add up to the objective", "")
        return ax


def _listed(values: Any) -> Any:
    """Return an array, or a list of them, as lists of numbers; None stays None."""
    if values is None:
        return None
    return [block.tolist() for block in values] if isinstance(values, list) else values.tolist()


def ray_support(result: Result) -> str:
    """Return how many rows or variables the ray of a result is about, as in "2 of 30 rows"."""
    return f"{_support(result.ray)} {'rows' if result.status is Status.INFEASIBLE else 'variables'}"


def _support(values: Any) -> str:
    """Return how many entries of an array, or of a list of them, are not 0, as in "2 of 30"."""
    blocks = values if isinstance(values, list) else [values]
    return f"{sum(int((block != 0).sum()) for block in blocks)} of {sum(math.prod(block.shape) for block in blocks)}"
