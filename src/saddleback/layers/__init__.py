"""Layers: methods that wrap another method and speed it up."""

from .finish import Finish
from .restarts import Restarted
from .working_set import WorkingSet

__all__ = ["Finish", "Restarted", "WorkingSet"]
