"""The methods, one file each."""

from ._base import Candidates, Method, Start, State
from .pdhg import PDHG
from .published import PublishedSPBCD
from .spbcd import SPBCD

__all__ = ["PDHG", "SPBCD", "Candidates", "Method", "PublishedSPBCD", "Start", "State"]
