"""ISTA, the proximal gradient method: forward-backward steps of constant length."""

from __future__ import annotations

from dataclasses import dataclass

from ._forward_backward import ProximalGradient


@dataclass(frozen=True)
class ISTA(ProximalGradient):
    """Proximal gradient steps.

    Parameters
    ----------
    step : float, optional
        Step length; by default one over the Lipschitz constant of the gradient.
    smoothing : float, default 0.0
        mu, which adds mu/2 ||y||^2 to the conjugate of the loss and so makes the loss smooth.
    """

    name = "ista"
