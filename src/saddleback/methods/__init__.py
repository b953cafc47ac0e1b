"""The methods, one file each."""

from ._base import Candidates, Kept, Method, Start, State, diverged, drawn_blocks
from .pdhg import PDHG
from .published import PublishedSPBCD
from .spbcd import SPBCD

__all__ = [
    "PDHG",
    "SPBCD",
    "Candidates",
    "Kept",
    "Method",
    "PublishedSPBCD",
    "Start",
    "State",
    "diverged",
    "drawn_blocks",
]
