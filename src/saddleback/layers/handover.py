"""From one method to another: the best pair of points of the first is the start of the second."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from ..certificates.candidates import evaluate
from ..methods.contract import Method, Start, State
from ..model.model import Model


class Handover(NamedTuple):
    """Where the next method starts, the error there, and the passes that it took to compute it."""

    start: Start
    error: float
    passes: float


def best_of(method: Method[Any], state: State, model: Model, start: Start) -> Handover:
    """Return the best pair that a method offers as a start, with the other fields of a given start."""
    offer = method.candidates(state)
    certificate, primal, dual = evaluate(model, offer)
    found = replace(start, x=primal.x.copy(), y=dual.y.copy(), u=None)
    return Handover(found, certificate.error, 0.5 * (len(offer.primal) + len(offer.dual)))
