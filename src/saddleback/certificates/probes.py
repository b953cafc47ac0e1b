"""Tests of user-defined functions at the points of a certificate."""

from __future__ import annotations

from ..functions.probes import probe_at
from ..functions.user import user_functions
from ..model.model import Model
from .certificate import Gap


def probe_certificate(model: Model, gap: Gap) -> None:
    """Raise ``ProbeError`` if a user-defined function violates an identity on which the certificate depends.

    A ``LinearOperator`` tests its products when they are computed: see ``operators/linear_operator.py``.
    """
    rows = model.A.shape[0]
    for own, where, linear in user_functions(model.f):
        probe_at(own, gap.x[where], gap.slope.high[where] - linear, rows)
    for own, where, linear in user_functions(model.g):
        probe_at(own, gap.image.high[where], gap.y[where] - linear, rows)
