"""The user's own functions, tested where a certificate uses them."""

from __future__ import annotations

from .certificate import DualSide, PrimalSide
from .functions.probes import probe_at
from .problem import Model


def probe_certificate(model: Model, primal: PrimalSide, dual: DualSide) -> None:
    """Raise ``ProbeError`` where a function of the user's own breaks an identity that a certificate rests on.

    The operator has tested its products itself, as they were made: see ``operators/abstract.py``.
    """
    rows = model.A.shape[0]
    for own, where, linear in model.f.user_functions():
        probe_at(own, primal.x[where], dual.z[where] - linear, rows)
    for own, where, linear in model.g.user_functions():
        probe_at(own, primal.u[where], dual.scale * dual.y[where] - linear, rows)
