"""What f and g may be."""

from .contract import Convex
from .isotonic import Isotonic
from .linf import GroupLInf, L1Ball, LInf
from .losses import (
    Absolute,
    EpsilonInsensitive,
    Equality,
    Hinge,
    Huber,
    Interval,
    Logistic,
    Loss,
    Norm2,
    Pinball,
    Squared,
    SquaredHinge,
)
from .ordered import CVaR, Gini, OrderedSum, Simplex, TopK, Wilcoxon
from .penalties import L1, Box, ElasticNet, GroupL2, Linear, NonNegative, Nuclear, SparseGroup, SquaredL2, Zero
from .poisson import Poisson
from .slope import SLOPE
from .terms import Term
from .total_variation import TotalVariation1D
from .user import as_term

__all__ = [
    "L1",
    "SLOPE",
    "Absolute",
    "Box",
    "CVaR",
    "Convex",
    "ElasticNet",
    "EpsilonInsensitive",
    "Equality",
    "Gini",
    "GroupL2",
    "GroupLInf",
    "Hinge",
    "Huber",
    "Interval",
    "Isotonic",
    "L1Ball",
    "LInf",
    "Linear",
    "Logistic",
    "Loss",
    "NonNegative",
    "Norm2",
    "Nuclear",
    "OrderedSum",
    "Pinball",
    "Poisson",
    "Simplex",
    "SparseGroup",
    "Squared",
    "SquaredHinge",
    "SquaredL2",
    "Term",
    "TopK",
    "TotalVariation1D",
    "Wilcoxon",
    "Zero",
    "as_term",
]
