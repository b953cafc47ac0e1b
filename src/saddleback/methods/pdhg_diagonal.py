r"""PDHG with one strength per column and per row.

:math:`h_d = \omega \sum_k |A_{kd}|^{2-\alpha}` and :math:`\sigma_k = \sum_d |A_{kd}|^\alpha / \omega`, from Pock and
Chambolle, *Diagonal preconditioning for first order primal-dual algorithms in convex optimization* (2011). No norm is
needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..common.checks import number
from ..model.model import Model
from ..steps.strengths import Strengths, diagonal_strengths
from .pdhg import PrimalDual


@dataclass(frozen=True)
class DiagonalPDHG(PrimalDual):
    """All blocks, with one strength per column and row.

    Parameters
    ----------
    primal_weight : float, default 1.0
        Factor of the primal strengths, and divisor of the dual ones.
    extrapolation : float, default 1.0
        theta, from 0 to 1; the convergence proof needs 1.
    alpha : {0, 1, 2}, default 1
        Exponent of the entries of A in the strengths of the rows; 2 - alpha in those of the columns.
    """

    name = "pdhg-diagonal"
    alpha: Literal[0, 1, 2] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if number("alpha", self.alpha) not in (0, 1, 2):
            raise ValueError(f"alpha={self.alpha!r}: expected 0, 1 or 2")

    def missing(self, model: Model) -> str | None:
        return None if model.A.traits.entries_known else "A is a LinearOperator, whose entries are not known"

    def strengths(self, model: Model) -> Strengths:
        return diagonal_strengths(model, self.alpha)
