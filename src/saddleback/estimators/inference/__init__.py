"""Inference for linear models: summaries, standard errors, the bootstrap and the quantile process."""

from .asymptotic import QuantileInference
from .process import QuantileProcess
from .resampling import Bootstrap
from .summary import Summary

__all__ = ["Bootstrap", "QuantileInference", "QuantileProcess", "Summary"]
