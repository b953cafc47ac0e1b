"""FISTA, the accelerated proximal gradient method of Beck and Teboulle (2009).

If the loss has no Lipschitz gradient, ``smoothing`` replaces it by Nesterov's smooth approximation. The paper runs
FISTA on the hinge loss in this way. It divides the loss by the number of samples N, so that its epsilon is ``smoothing
= N epsilon`` here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..common.checks import one_of
from ._forward_backward import ProximalGradient


@dataclass(frozen=True)
class FISTA(ProximalGradient):
    """Proximal gradient steps with momentum.

    Parameters
    ----------
    step : float, optional
        Step length; by default one over the Lipschitz constant of the gradient.
    smoothing : float, default 0.0
        mu, which adds mu/2 ||y||^2 to the conjugate of the loss and so makes the loss smooth.
    momentum : bool, default True
        Whether to use momentum; without it the method is ISTA.
    """

    name = "fista"
    momentum: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("momentum", self.momentum, True, False)

    def following(self, momentum: float) -> float:
        return float(0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))) if self.momentum else 1.0
