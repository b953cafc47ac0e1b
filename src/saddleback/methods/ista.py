"""ISTA, the proximal gradient method: forward-backward steps of constant length."""

from __future__ import annotations

from dataclasses import dataclass

from ._forward_backward import ProximalGradient


@dataclass(frozen=True)
class ISTA(ProximalGradient):
    """``step`` and ``smoothing`` as in ``ProximalGradient``."""

    name = "ista"
