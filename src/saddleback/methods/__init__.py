"""The methods, one file each."""

from ._base import Candidates, Kept, Method, Start, State, diverged, drawn_blocks
from .descent import Descent
from .interior_point import InteriorPoint
from .pdhg import PDHG
from .published import PublishedSPBCD
from .pure_cd import PureCD
from .spbcd import SPBCD

__all__ = [
    "PDHG",
    "SPBCD",
    "Candidates",
    "Descent",
    "InteriorPoint",
    "Kept",
    "Method",
    "PublishedSPBCD",
    "PureCD",
    "Start",
    "State",
    "diverged",
    "drawn_blocks",
]
