"""The parts of the interior-point method: atoms, barriers, the linear system and the start."""

from .barrier import Barrier
from .start import started
from .structure import Structure, hard_rows, structure_of
from .system import Direction, SingularSystem, System, factored, form_for

__all__ = [
    "Barrier",
    "Direction",
    "SingularSystem",
    "Structure",
    "System",
    "factored",
    "form_for",
    "hard_rows",
    "started",
    "structure_of",
]
