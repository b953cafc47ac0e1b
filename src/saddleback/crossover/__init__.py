"""Sparse answers: from any solution to one on a face of lowest dimension."""

from .crossing import Crossing, Solution, Work, applies, crossings
from .rounding import proximal_step, without_dust

__all__ = ["Crossing", "Solution", "Work", "applies", "crossings", "proximal_step", "without_dust"]
