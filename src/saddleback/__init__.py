"""Saddleback: large, non-smooth, separable convex optimisation with a certificate on every result."""

from importlib.metadata import version as _version

from .certificates.bounds import Bounds, bounds
from .certificates.rays import RayCertificate, certify_ray
from .check import Report, check
from .common.checks import ProbeError
from .engine.certify import certify
from .engine.info import Info
from .engine.registry import methods
from .engine.solve import solve
from .functions import (
    L1,
    MCP,
    SCAD,
    SLOPE,
    Absolute,
    Adaptive,
    Box,
    ByColumns,
    CVaR,
    ElasticNet,
    EpsilonInsensitive,
    Equality,
    Expectile,
    Gamma,
    Gini,
    GroupElasticNet,
    GroupL2,
    GroupLInf,
    Hinge,
    Huber,
    HuberisedHinge,
    Interval,
    Isotonic,
    KullbackLeibler,
    L1Ball,
    Linear,
    LInf,
    Logistic,
    LogSum,
    MulticlassHinge,
    Multinomial,
    NonNegative,
    Norm2,
    Nuclear,
    OrderedSum,
    Pinball,
    Poisson,
    Simplex,
    SmoothedPinball,
    SparseGroup,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
    SquaredL2,
    TopK,
    TotalVariation1D,
    Tweedie,
    Wilcoxon,
    Zero,
)
from .interop import from_cvxpy
from .io.column_files import ColumnFile
from .io.problem_files import read_problem
from .judging import Judgement, judge
from .linear_constraint import LinearConstraint
from .operators import Differences, Identity, Repeat, Streamed
from .paths.alpha_max import alpha_max
from .paths.many import solve_many
from .paths.path import path
from .paths.reweighted import reweighted
from .places.torch import open_device
from .problem import Problem
from .result import Certificate, History, Result, Status
from .tall.problem import TallProblem
from .tall.row_files import RowFiles
from .tall.rows import ArrayRows, Rows
from .tall.stored_rows import StoredRows

__version__ = _version("saddleback")

__all__ = [
    "L1",
    "MCP",
    "SCAD",
    "SLOPE",
    "Absolute",
    "Adaptive",
    "ArrayRows",
    "Bounds",
    "Box",
    "ByColumns",
    "CVaR",
    "Certificate",
    "ColumnFile",
    "Differences",
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
    "History",
    "Huber",
    "HuberisedHinge",
    "Identity",
    "Info",
    "Interval",
    "Isotonic",
    "Judgement",
    "KullbackLeibler",
    "L1Ball",
    "LInf",
    "Linear",
    "LinearConstraint",
    "LogSum",
    "Logistic",
    "MulticlassHinge",
    "Multinomial",
    "NonNegative",
    "Norm2",
    "Nuclear",
    "OrderedSum",
    "Pinball",
    "Poisson",
    "ProbeError",
    "Problem",
    "RayCertificate",
    "Repeat",
    "Report",
    "Result",
    "RowFiles",
    "Rows",
    "Simplex",
    "SmoothedPinball",
    "SparseGroup",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "SquaredL2",
    "Status",
    "StoredRows",
    "Streamed",
    "TallProblem",
    "TopK",
    "TotalVariation1D",
    "Tweedie",
    "Wilcoxon",
    "Zero",
    "alpha_max",
    "bounds",
    "certify",
    "certify_ray",
    "check",
    "from_cvxpy",
    "judge",
    "methods",
    "open_device",
    "path",
    "read_problem",
    "reweighted",
    "solve",
    "solve_many",
]
