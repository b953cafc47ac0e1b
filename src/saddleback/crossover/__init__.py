"""Sparse answers: from any solution to one on a face of lowest dimension."""

from .crossing import Crossing, Solution, Work, crossings
from .rounding import proximal_step

__all__ = ["Crossing", "Solution", "Work", "crossings", "proximal_step"]
