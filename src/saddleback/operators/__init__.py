"""What A may be: one contract over dense arrays, sparse matrices, identities and linear operators."""

from ..places.files.operator import Streamed
from ..places.mpi.operator import Sharded
from .above import Above
from .adjoint import Adjoint
from .contract import Operator
from .dense import Dense
from .differences import Differences
from .from_user import as_operator, watched
from .identity import Identity, ScaledIdentity
from .implicit import Implicit
from .linear_operator import Abstract
from .repeat import Repeat
from .sparse import Compressed, Transposed
from .stacked import Stacked
from .tasks import Tasks

__all__ = [
    "Above",
    "Abstract",
    "Adjoint",
    "Compressed",
    "Dense",
    "Differences",
    "Identity",
    "Implicit",
    "Operator",
    "Repeat",
    "ScaledIdentity",
    "Sharded",
    "Stacked",
    "Streamed",
    "Tasks",
    "Transposed",
    "as_operator",
    "watched",
]
