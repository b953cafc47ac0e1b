"""What wraps a method, and is one itself."""

from .restarts import Restarted
from .working_set import WorkingSet

__all__ = ["Restarted", "WorkingSet"]
