"""Models behind the interface of scikit-learn: parameters become a problem, its result the fitted attributes."""

from .classification import SparseClassifier, SparseSVC
from .fused import FusedLasso
from .joint_quantiles import JointQuantileRegressor
from .model_selection import AlphaGridWarning as AlphaGridWarning
from .model_selection import GroupLassoCV, LassoCV, QuantileRegressorCV, SparseClassifierCV, SparseRegressorCV
from .path import Path
from .regression import (
    ElasticNet,
    GroupLasso,
    Lasso,
    MultiTaskLasso,
    QuantileRegressor,
    SparseGroupLasso,
    SparseRegressor,
)
from .robust_pca import RobustPCA
from .signals import TrendFilter
from .total_variation import TotalVariationDenoiser

__all__ = [
    "ElasticNet",
    "FusedLasso",
    "GroupLasso",
    "GroupLassoCV",
    "JointQuantileRegressor",
    "Lasso",
    "LassoCV",
    "MultiTaskLasso",
    "Path",
    "QuantileRegressor",
    "QuantileRegressorCV",
    "RobustPCA",
    "SparseClassifier",
    "SparseClassifierCV",
    "SparseGroupLasso",
    "SparseRegressor",
    "SparseRegressorCV",
    "SparseSVC",
    "TotalVariationDenoiser",
    "TrendFilter",
]
