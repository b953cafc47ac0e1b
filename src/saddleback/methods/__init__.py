"""The methods, one file each."""

from ..certificates.candidates import Candidates
from .admm import ADMM
from .alternating import Alternating
from .checked import Checked
from .contract import Method, Start, State, diverged, drawn_blocks
from .descent import Descent
from .dual_fista import DualFISTA
from .fista import FISTA
from .fobos import FOBOS
from .gs_admm import GSADMM
from .highs import Highs
from .interior_point import InteriorPoint
from .ista import ISTA
from .multipliers import Multipliers
from .osga import OSGA
from .pdhg import PDHG
from .pdhg_diagonal import DiagonalPDHG
from .pdmm import PDMM
from .published import PublishedSPBCD
from .pure_cd import PureCD
from .r2hpdhg import R2HPDHG
from .report import Report
from .spbcd import SPBCD
from .spdc import SPDC

__all__ = [
    "ADMM",
    "FISTA",
    "FOBOS",
    "GSADMM",
    "ISTA",
    "OSGA",
    "PDHG",
    "PDMM",
    "R2HPDHG",
    "SPBCD",
    "SPDC",
    "Alternating",
    "Candidates",
    "Checked",
    "Descent",
    "DiagonalPDHG",
    "DualFISTA",
    "Highs",
    "InteriorPoint",
    "Method",
    "Multipliers",
    "PublishedSPBCD",
    "PureCD",
    "Report",
    "Start",
    "State",
    "diverged",
    "drawn_blocks",
]
