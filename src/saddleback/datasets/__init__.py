"""Generators of data for examples, tests and experiments: the same seed gives the same arrays."""

from .lasso import LassoData, make_lasso
from .robust_pca import RobustPCAData, make_robust_pca
from .splice import GroupHingeData, interactions, make_group_hinge

__all__ = [
    "GroupHingeData",
    "LassoData",
    "RobustPCAData",
    "interactions",
    "make_group_hinge",
    "make_lasso",
    "make_robust_pca",
]
