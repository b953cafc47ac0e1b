"""Linear models with the face of scikit-learn: parameters become a problem, its result the fitted attributes."""

from .classification import SparseClassifier, SparseSVC
from .regression import (
    ElasticNet,
    GroupLasso,
    Lasso,
    MultiTaskLasso,
    QuantileRegressor,
    SparseGroupLasso,
    SparseRegressor,
)

__all__ = [
    "ElasticNet",
    "GroupLasso",
    "Lasso",
    "MultiTaskLasso",
    "QuantileRegressor",
    "SparseClassifier",
    "SparseGroupLasso",
    "SparseRegressor",
    "SparseSVC",
]
