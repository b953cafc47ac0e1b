"""Layers: methods that wrap another method and speed it up."""

from .fallback import Fallback
from .finish import Finish
from .restarts import Restarted
from .working_set import WorkingSet

__all__ = ["Fallback", "Finish", "Restarted", "WorkingSet"]
