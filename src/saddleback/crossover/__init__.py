"""Sparse answers: from any solution to one on a face of lowest dimension."""

from .crossing import Crossing, Solution, Work, applies, crossings
from .rounding import proximal_step

__all__ = ["Crossing", "Solution", "Work", "applies", "crossings", "proximal_step"]
