"""What f and g may be."""

from .concave import MCP, SCAD, Adaptive, LogSum
from .contract import Convex
from .expectile import Expectile
from .kullback_leibler import KullbackLeibler
from .linf import LInf
from .losses import (
    Absolute,
    EpsilonInsensitive,
    Equality,
    Hinge,
    Huber,
    HuberisedHinge,
    Interval,
    Logistic,
    Loss,
    Norm2,
    Pinball,
    SmoothedPinball,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from .multiclass import MulticlassHinge, Multinomial
from .penalties import L1, Box, ElasticNet, GroupL2, Linear, NonNegative, Nuclear, SparseGroup, SquaredL2, Zero
from .terms import Term
from .total_variation import TotalVariation1D
from .tweedie import Gamma, Poisson, Tweedie
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
    "Expectile",
    "Gamma",
    "GroupL2",
    "Hinge",
    "Huber",
    "HuberisedHinge",
    "Interval",
    "KullbackLeibler",
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
    "SmoothedPinball",
    "SparseGroup",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "SquaredL2",
    "Term",
    "TotalVariation1D",
    "Tweedie",
    "Zero",
    "as_term",
]
