"""Saddleback: large, non-smooth, separable convex optimisation with a certificate on every result."""

from importlib.metadata import version as _version

from .alpha_max import alpha_max
from .certifying import certify
from .check import Report, check
from .column_files import ColumnFile
from .files import read_problem
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
    Logistic,
    NonNegative,
    Norm2,
    Nuclear,
    Pinball,
    SparseGroup,
    Squared,
    SquaredHinge,
    SquaredL2,
    Zero,
)
from .functions.checks import ProbeError
from .operators import Identity, Streamed
from .path import path
from .problem import Problem
from .rays import RayCertificate, certify_ray
from .registry import methods
from .result import Certificate, History, Result, Status
from .solve import Info, solve

__version__ = _version("saddleback")

__all__ = [
    "L1",
    "Absolute",
    "Box",
    "Certificate",
    "ColumnFile",
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
    "Linear",
    "Logistic",
    "NonNegative",
    "Norm2",
    "Nuclear",
    "Pinball",
    "ProbeError",
    "Problem",
    "RayCertificate",
    "Report",
    "Result",
    "SparseGroup",
    "Squared",
    "SquaredHinge",
    "SquaredL2",
    "Status",
    "Streamed",
    "Zero",
    "alpha_max",
    "certify",
    "certify_ray",
    "check",
    "methods",
    "path",
    "read_problem",
    "solve",
]
