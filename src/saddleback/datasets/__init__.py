"""Data for examples, tests and experiments: generators, where the same seed gives the same arrays, and a loader."""

from .lasso import LassoData, make_lasso
from .memset import load_memset
from .robust_pca import RobustPCAData, make_robust_pca
from .splice import GroupHingeData, interactions, make_group_hinge

__all__ = [
    "GroupHingeData",
    "LassoData",
    "RobustPCAData",
    "interactions",
    "load_memset",
    "make_group_hinge",
    "make_lasso",
    "make_robust_pca",
]
