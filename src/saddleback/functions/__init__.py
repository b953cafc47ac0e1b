"""What f and g may be."""

from .concave import MCP, SCAD, Adaptive, LogSum
from .contract import Convex
from .linf import LInf
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
from .multiclass import MulticlassHinge, Multinomial
from .penalties import L1, Box, ElasticNet, GroupL2, Linear, NonNegative, Nuclear, SparseGroup, SquaredL2, Zero
from .poisson import Poisson
from .terms import Term
from .total_variation import TotalVariation1D
from .user import as_term

__all__ = [
    "L1",
    "MCP",
    "SCAD",
    "Absolute",
    "Adaptive",
    "Box",
    "Convex",
    "ElasticNet",
    "EpsilonInsensitive",
    "Equality",
    "GroupL2",
    "Hinge",
    "Huber",
    "Interval",
    "LInf",
    "Linear",
    "LogSum",
    "Logistic",
    "Loss",
    "MulticlassHinge",
    "Multinomial",
    "NonNegative",
    "Norm2",
    "Nuclear",
    "Pinball",
    "Poisson",
    "SparseGroup",
    "Squared",
    "SquaredHinge",
    "SquaredL2",
    "Term",
    "TotalVariation1D",
    "Zero",
    "as_term",
]
