"""Layers: methods that wrap another method and speed it up."""

from .constraints import Constraints
from .fallback import Fallback
from .finish import Finish
from .restarts import Restarted
from .working_set import WorkingSet

__all__ = ["Constraints", "Fallback", "Finish", "Restarted", "WorkingSet"]
