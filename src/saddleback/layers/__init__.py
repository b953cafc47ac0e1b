"""What wraps a method, and is one itself."""

from .finish import Finish
from .restarts import Restarted
from .working_set import WorkingSet

__all__ = ["Finish", "Restarted", "WorkingSet"]
