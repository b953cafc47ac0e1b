"""What wraps a method, and is one itself."""

from .restarts import Restarted

__all__ = ["Restarted"]
