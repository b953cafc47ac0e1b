"""The user's own functions, tested where a certificate uses them."""

from __future__ import annotations

from ..functions.probes import probe_at
from ..functions.user import user_functions
from ..model.model import Model
from .certificate import DualSide, PrimalSide


def probe_certificate(model: Model, primal: PrimalSide, dual: DualSide, scale: float = 1.0) -> None:
    """Raise ``ProbeError`` where a function of the user's own breaks an identity that a certificate rests on.

    The bound was taken at ``scale`` times the y of ``dual``: other than 1 if y is kept as it was before it was scaled.
    The operator has tested its products itself, as they were made: see ``operators/linear_operator.py``.
    """
    rows = model.A.shape[0]
    for own, where, linear in user_functions(model.f):
        probe_at(own, primal.x[where], dual.z[where] - linear, rows)
    for own, where, linear in user_functions(model.g):
        probe_at(own, primal.u[where], scale * dual.y[where] - linear, rows)
