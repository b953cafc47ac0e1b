"""What A may be: one contract over dense arrays, sparse matrices, identities and linear operators."""

from ._base import Operator
from .abstract import Abstract
from .compressed import Compressed, Transposed
from .dense import Dense
from .entry import as_operator, watched
from .identity import Identity, ScaledIdentity
from .sharded import Sharded
from .stacked import Stacked
from .streamed import Streamed
from .tasks import Tasks

__all__ = [
    "Abstract",
    "Compressed",
    "Dense",
    "Identity",
    "Operator",
    "ScaledIdentity",
    "Sharded",
    "Stacked",
    "Streamed",
    "Tasks",
    "Transposed",
    "as_operator",
    "watched",
]
