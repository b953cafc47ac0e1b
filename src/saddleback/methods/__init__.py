"""The methods, one file each."""

from ._base import Candidates, Kept, Method, Start, State, diverged, drawn_blocks
from .descent import Descent
from .highs import Highs
from .interior_point import InteriorPoint
from .pdhg import PDHG
from .published import PublishedSPBCD
from .pure_cd import PureCD
from .r2hpdhg import R2HPDHG
from .spbcd import SPBCD

__all__ = [
    "PDHG",
    "R2HPDHG",
    "SPBCD",
    "Candidates",
    "Descent",
    "Highs",
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
