"""Saddleback: large, non-smooth, separable convex optimisation with a certificate on every result."""

from importlib.metadata import version as _version

from .certificates.rays import RayCertificate, certify_ray
from .check import Report, check
from .common.checks import ProbeError
from .engine.certify import certify
from .engine.info import Info
from .engine.registry import methods
from .engine.solve import solve
from .functions import (
    L1,
    SLOPE,
    Absolute,
    Box,
    CVaR,
    ElasticNet,
    EpsilonInsensitive,
    Equality,
    Gini,
    GroupL2,
    GroupLInf,
    Hinge,
    Huber,
    Interval,
    Isotonic,
    L1Ball,
    Linear,
    LInf,
    Logistic,
    NonNegative,
    Norm2,
    Nuclear,
    OrderedSum,
    Pinball,
    Poisson,
    Simplex,
    SparseGroup,
    Squared,
    SquaredHinge,
    SquaredL2,
    TopK,
    TotalVariation1D,
    Wilcoxon,
    Zero,
)
from .interop import from_cvxpy
from .io.column_files import ColumnFile
from .io.problem_files import read_problem
from .linear_constraint import LinearConstraint
from .operators import Differences, Identity, Repeat, Streamed
from .paths.alpha_max import alpha_max
from .paths.many import solve_many
from .paths.path import path
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
    "SLOPE",
    "Absolute",
    "ArrayRows",
    "Box",
    "CVaR",
    "Certificate",
    "ColumnFile",
    "Differences",
    "ElasticNet",
    "EpsilonInsensitive",
    "Equality",
    "Gini",
    "GroupL2",
    "GroupLInf",
    "Hinge",
    "History",
    "Huber",
    "Identity",
    "Info",
    "Interval",
    "Isotonic",
    "L1Ball",
    "LInf",
    "Linear",
    "LinearConstraint",
    "Logistic",
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
    "SparseGroup",
    "Squared",
    "SquaredHinge",
    "SquaredL2",
    "Status",
    "StoredRows",
    "Streamed",
    "TallProblem",
    "TopK",
    "TotalVariation1D",
    "Wilcoxon",
    "Zero",
    "alpha_max",
    "certify",
    "certify_ray",
    "check",
    "from_cvxpy",
    "methods",
    "open_device",
    "path",
    "read_problem",
    "solve",
    "solve_many",
]
