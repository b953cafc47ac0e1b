"""A structured primal-dual interior point: the last digits, where both terms have kinks."""

from .barrier import Barrier
from .start import started
from .system import Direction, SingularSystem, System, factored, form_for

__all__ = ["Barrier", "Direction", "SingularSystem", "System", "factored", "form_for", "started"]
