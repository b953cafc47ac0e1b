"""The message of a run; at a limit, why it is slow and what to do, using only what the run has measured.

The error of the best pair falls geometrically once restarts have found their pace, so the last half of a run predicts
how much is left. The other sentences name what slows a run down: a primal weight that has not settled or has reached
its bound, columns and rows of very different lengths, layers that were switched off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..certificates.certificate import Gap
from ..common.arrays import Vector
from ..common.rounded import Rounded
from ..functions.contract import Domain
from ..methods import Report
from ..operators import Operator
from ..problem import Problem
from ..result import Certificate, History, Status
from ..steps.strengths import WEIGHT_RANGE

FEWEST = 4
"""Certificates that the last half of a run needs for an estimate of the rate."""

STANDING = 0.9
"""An error that has not fallen to this share over the last half of a run counts as standing still."""

FAR = 1e7
"""Passes beyond which an extrapolation is reported only as "over" this number."""

UNSETTLED = 2.0
"""A primal weight that has changed by this factor over the last half of a run counts as still moving."""

UNEVEN = 1e3
"""The message mentions lengths of columns, or of rows, that differ by more than this factor."""

MARGIN = 1.5
"""Ratio of the advised additional work to the extrapolated work."""


ADVICE = {
    Status.INFEASIBLE: "Check the bounds and targets of the constraints.",
    Status.UNBOUNDED: "Add a penalty or bounds on x, or check the sign of the linear term.",
    Status.INTERRUPTED: "Pass x0=result to continue from here.",
}


def message(
    status: Status, certificate: Certificate, tol: float, work: str, method: str, proof: str | None = None
) -> str:
    """Return what happened after some work, how accurate the result is, and advice for the status and the method.

    If there is no solution, the sentences on the proof replace the figures of the certificate.
    """
    found = _figures(certificate, tol) if proof is None else proof
    advice = ADVICE.get(status)
    if status is Status.DIVERGED:
        advice = (
            "Check x0, y0 and your own functions for values that are not finite."
            if method in ("sp-bcd", "pure-cd", "r2hpdhg")
            else "Use method='sp-bcd', whose step sizes are proved to converge."
        )
    after = f"After {work}: {found}"
    return " ".join(part for part in (status.value, after, advice) if part)


def _figures(certificate: Certificate, tol: float) -> str:
    figures = [
        f"relative gap {certificate.relative_gap:.1e}",
        f"primal infeasibility {certificate.primal_infeasibility:.1e}",
        f"dual infeasibility {certificate.dual_infeasibility:.1e}",
    ]
    if certificate.perturbation > 0:
        figures.append(f"perturbation of the problem that explains them {certificate.perturbation:.1e}")
    return f"{', '.join(figures)} ({f'tolerance {tol:.1e}' if tol > 0 else 'no tolerance was set'})."


def proofs(certificate: Certificate) -> str:
    """Return a sentence on which values of a linear program are proofs; an empty one if both are."""
    below = "the lower bound is proved" if certificate.proved else "the lower bound holds up to the violations of y"
    above = "x is proved to be feasible" if certificate.attained else "x is feasible up to its violations"
    if certificate.proved and certificate.attained:
        return ""
    return f" Of the two values, {below}, and {above}, which may be rounding."


def culprit(problem: Problem, gap: Gap, tol: float) -> str:
    """Return a sentence on the row or column whose violation is above the tolerance; an empty one if there is none.

    If the violations are large only where they are multiplied by their variables, it is that with the largest product.
    """
    certificate, model = gap.certificate, problem.model
    primal, dual, moved = certificate.primal_infeasibility, certificate.dual_infeasibility, certificate.perturbation
    if max(primal, dual, moved) <= tol:
        return ""
    rows, of_rows = _violations(gap.image, model.g.domain)
    columns, of_columns = _violations(gap.slope, model.f_star.domain)
    by_row, by_column = rows, columns
    if max(primal, dual) <= tol:
        by_row, by_column = of_rows * np.abs(gap.y), of_columns * np.abs(gap.x)
    i, j = int(np.argmax(by_row)), int(np.argmax(by_column))
    if max(by_row[i], by_column[j]) == 0:
        return ""
    if by_row[i] >= by_column[j]:
        return f" The constraint on row {problem.row_name(i)} is violated by {rows[i]:.1e} of its terms."
    return f" The dual constraint of variable {problem.column_name(j)} is violated by {columns[j]:.1e} of its terms."


def _violations(product: Rounded, domain: Domain) -> tuple[Vector, Vector]:
    """Return the distances of the entries of a product from a set, relative to their terms, and as they are."""
    inside = domain.project(product.high)
    distance = np.abs(product.high - inside)
    size = product.size + np.abs(inside)
    return np.divide(distance, size, out=np.zeros_like(distance), where=distance > 0), distance


@dataclass(frozen=True)
class Pace:
    """How the error fell over the last half of a run: the length of that half, and the passes per halving."""

    passes: float
    halving: float

    def left(self, error: float, tol: float) -> float:
        """Return the passes to the tolerance at this rate; infinite if the error stands still or ``tol`` is 0."""
        return max(1.0, self.halving * float(np.log2(error / tol))) if tol > 0 else np.inf


def pace(history: History) -> Pace | None:
    """Return the rate over the last half of the passes, by least squares on log error; None if the run is too short."""
    passes, error = history.passes, history.error
    late = passes >= 0.5 * passes[-1]
    if late.sum() < FEWEST or not np.all(np.isfinite(error[late]) & (error[late] > 0)):
        return None
    looked, logs = passes[late], np.log2(error[late])
    length = float(looked[-1] - looked[0])
    centred = looked - looked.mean()
    slope = float(centred @ logs / (centred @ centred))
    standing = logs[0] - logs[-1] < -np.log2(STANDING) or slope >= 0
    return Pace(length, np.inf if standing else -1.0 / slope)


def spread(A: Operator) -> tuple[float, float] | None:
    """Return the ratio of the longest to the shortest nonzero column of A, and of the longest to the shortest row."""
    if not A.traits.entries_known:
        return None
    columns, rows = (_quotient(np.sqrt(sums)) for sums in A.sums(2))
    return columns, rows


def _quotient(lengths: Vector) -> float:
    lengths = lengths[lengths > 0]
    return float(lengths.max() / lengths.min()) if lengths.size else 1.0


def diagnose(
    status: Status,
    certificate: Certificate,
    tol: float,
    history: History,
    weights: Sequence[tuple[float, float]],
    report: Report,
    by_hand: bool,
    apart: tuple[float, float] | None,
) -> str:
    """Return sentences on a run that ended at a limit.

    Parameters
    ----------
    status : the limit that was reached.
    certificate, tol : the final certificate, and the tolerance.
    history : the certificates of the run.
    weights : passes and primal weight at each certificate; empty for a method without a primal weight.
    report : what the method has chosen and counted.
    by_hand : whether the user chose K.
    apart : the result of ``spread`` for A.
    """
    rate = pace(history)
    facts = [_rate(rate, certificate, tol), *_weight(rate, history, weights)]
    if rate is not None:  # a run that has hardly begun was not slow
        facts += _choices(report, by_hand)
    facts += _lengths(apart)
    facts.append(_advice(status, rate, certificate, tol, history))
    return " ".join(filter(None, facts))


def _rate(rate: Pace | None, certificate: Certificate, tol: float) -> str:
    if certificate.error == 0:
        return "The certified error is 0."
    if rate is None:
        return "The run was too short to estimate a rate."
    if np.isinf(rate.halving):
        return f"{_largest(certificate)} has not fallen over the last {rate.passes:.0f} passes."
    said = f"{_largest(certificate)} halves every {_round(rate.halving):,.6g} passes"
    left = rate.left(certificate.error, tol)
    if np.isinf(left):
        return said + "."
    return f"{said}: {_about(left)} more to the tolerance at this rate."


def _largest(certificate: Certificate) -> str:
    figures = {
        "The relative gap": certificate.relative_gap,
        "The primal infeasibility": certificate.primal_infeasibility,
        "The dual infeasibility": certificate.dual_infeasibility,
        "The perturbation that explains the infeasibilities": certificate.perturbation,
    }
    return max(figures, key=lambda name: figures[name])


def _about(passes: float) -> str:
    return f"over {FAR:.0e}" if passes > FAR else f"about {_round(passes):,.0f}"


def _round(value: float) -> float:
    """Return a number rounded up to two digits."""
    unit = 10.0 ** (np.floor(np.log10(value)) - 1)
    return float(np.ceil(round(value / unit, 6)) * unit)


def _weight(rate: Pace | None, history: History, weights: Sequence[tuple[float, float]]) -> list[str]:
    if not weights:
        return []
    weight = weights[-1][1]
    if not 1.0 / WEIGHT_RANGE < weight < WEIGHT_RANGE:
        return [
            f"The primal weight is at its bound, {weight:.0e}: the units of x and y are too far apart, scale b or A."
        ]
    late = [value for passes, value in weights if passes >= 0.5 * history.passes[-1]] or [weight]
    moved = max(late) / min(late)
    if rate is None or moved < UNSETTLED:
        return []
    return [f"The primal weight still moves, by a factor of {moved:.2g} over these passes: the rate may change."]


def _choices(report: Report, by_hand: bool) -> list[str]:
    """Return sentences on choices that may slow the run down."""
    facts = []
    if by_hand and report.blocks_per_iteration is not None:
        drawn, blocks = report.blocks_per_iteration, report.n_blocks
        facts.append(f"blocks_per_iteration={drawn} of {blocks} was set: 'auto' chooses it from the norms of A.")
    if not report.adapts:
        facts.append("The method does not adapt its step sizes: method='auto' with its layers does.")
    if report.newton_steps == 0 and not report.finish_steps:
        facts.append("No Newton step was taken: too many coordinates become 0 or nonzero, or the step did not help.")
    return facts


def _lengths(apart: tuple[float, float] | None) -> list[str]:
    if apart is None or max(apart) < UNEVEN:
        return []
    columns, rows = apart
    return [
        f"The columns of A differ in length by a factor of {columns:.0e} and the rows by {rows:.0e}: "
        "bring them closer if you can."
    ]


def _advice(status: Status, rate: Pace | None, certificate: Certificate, tol: float, history: History) -> str:
    if tol == 0:  # the run was meant to reach its limit
        return ""
    timed = status is Status.TIME_LIMIT
    name, done = ("time_limit", history.seconds[-1]) if timed else ("max_passes", history.passes[-1])
    if rate is None:
        return f"Raise {name}, or tol if this accuracy is enough."
    left = rate.left(certificate.error, tol)
    if left > FAR:
        return f"A higher {name} may not help: raise tol if this accuracy is enough, or try another method."
    enough = done * (1.0 + MARGIN * left / history.passes[-1])
    return f"Raise {name} to about {_round(enough):,.6g}, with a margin, or tol if this accuracy is enough."
