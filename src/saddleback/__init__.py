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
    Absolute,
    Box,
    ElasticNet,
    EpsilonInsensitive,
    Equality,
    GroupL2,
    Hinge,
    Huber,
    Interval,
    Linear,
    LInf,
    Logistic,
    NonNegative,
    Norm2,
    Nuclear,
    Pinball,
    Poisson,
    SparseGroup,
    Squared,
    SquaredHinge,
    SquaredL2,
    TotalVariation1D,
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
    "Absolute",
    "ArrayRows",
    "Bounds",
    "Box",
    "Certificate",
    "ColumnFile",
    "Differences",
    "ElasticNet",
    "EpsilonInsensitive",
    "Equality",
    "GroupL2",
    "Hinge",
    "History",
    "Huber",
    "Identity",
    "Info",
    "Interval",
    "Judgement",
    "LInf",
    "Linear",
    "LinearConstraint",
    "Logistic",
    "NonNegative",
    "Norm2",
    "Nuclear",
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
    "SparseGroup",
    "Squared",
    "SquaredHinge",
    "SquaredL2",
    "Status",
    "StoredRows",
    "Streamed",
    "TallProblem",
    "TotalVariation1D",
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
    "solve",
    "solve_many",
]
