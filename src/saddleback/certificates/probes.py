"""Tests of user-defined functions at the points of a certificate."""

from __future__ import annotations

from ..functions.probes import probe_at
from ..functions.user import user_functions
from ..model.model import Model
from .certificate import DualSide, PrimalSide


def probe_certificate(model: Model, primal: PrimalSide, dual: DualSide, scale: float = 1.0) -> None:
    """Raise ``ProbeError`` if a user-defined function violates an identity on which the certificate depends.

    The bound was computed at ``scale`` times the y of ``dual``; the scale is not 1 if ``dual`` holds y before scaling.
    A ``LinearOperator`` tests its products when they are computed: see ``operators/linear_operator.py``.
    """
    rows = model.A.shape[0]
    for own, where, linear in user_functions(model.f):
        probe_at(own, primal.x[where], dual.z[where] - linear, rows)
    for own, where, linear in user_functions(model.g):
        probe_at(own, primal.u[where], scale * dual.y[where] - linear, rows)
