"""Models behind the interface of scikit-learn: parameters become a problem, its result the fitted attributes."""

from .classification import SparseClassifier, SparseLogisticRegression, SparseSVC
from .cross_validation import AlphaGridWarning as AlphaGridWarning
from .displays import CVDisplay, PathDisplay
from .fused import FusedLasso
from .joint_quantiles import JointQuantileRegressor
from .model_selection import (
    ElasticNetCV,
    GroupLassoCV,
    LassoCV,
    MultiTaskLassoCV,
    QuantileRegressorCV,
    SparseClassifierCV,
    SparseLogisticRegressionCV,
    SparseRegressorCV,
)
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
from .stability import StabilitySelection
from .total_variation import TotalVariationDenoiser

__all__ = [
    "CVDisplay",
    "ElasticNet",
    "ElasticNetCV",
    "FusedLasso",
    "GroupLasso",
    "GroupLassoCV",
    "JointQuantileRegressor",
    "Lasso",
    "LassoCV",
    "MultiTaskLasso",
    "MultiTaskLassoCV",
    "Path",
    "PathDisplay",
    "QuantileRegressor",
    "QuantileRegressorCV",
    "RobustPCA",
    "SparseClassifier",
    "SparseClassifierCV",
    "SparseGroupLasso",
    "SparseLogisticRegression",
    "SparseLogisticRegressionCV",
    "SparseRegressor",
    "SparseRegressorCV",
    "SparseSVC",
    "StabilitySelection",
    "TotalVariationDenoiser",
    "TrendFilter",
]
