"""What f and g may be."""

from .by_columns import ByColumns
from .concave import MCP, SCAD, Adaptive, LogSum
from .contract import Convex
from .expectile import Expectile
from .isotonic import Isotonic
from .kullback_leibler import KullbackLeibler
from .linf import GroupLInf, L1Ball, LInf
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
from .ordered import CVaR, Gini, OrderedSum, Simplex, TopK, Wilcoxon
from .penalties import (
    L1,
    Box,
    ElasticNet,
    GroupElasticNet,
    GroupL2,
    Linear,
    NonNegative,
    Nuclear,
    SparseGroup,
    SquaredL2,
    Zero,
)
from .slope import SLOPE
from .terms import Term
from .total_variation import TotalVariation1D
from .tweedie import Gamma, Poisson, Tweedie
from .user import as_term

__all__ = [
    "L1",
    "MCP",
    "SCAD",
    "SLOPE",
    "Absolute",
    "Adaptive",
    "Box",
    "ByColumns",
    "CVaR",
    "Convex",
    "ElasticNet",
    "EpsilonInsensitive",
    "Equality",
    "Expectile",
    "Gamma",
    "Gini",
    "GroupElasticNet",
    "GroupL2",
    "GroupLInf",
    "Hinge",
    "Huber",
    "HuberisedHinge",
    "Interval",
    "Isotonic",
    "KullbackLeibler",
    "L1Ball",
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
    "OrderedSum",
    "Pinball",
    "Poisson",
    "Simplex",
    "SmoothedPinball",
    "SparseGroup",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "SquaredL2",
    "Term",
    "TopK",
    "TotalVariation1D",
    "Tweedie",
    "Wilcoxon",
    "Zero",
    "as_term",
]
