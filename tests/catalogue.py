"""One function of every kind in the catalogue, on six coordinates, for tests that apply to all of them."""

from __future__ import annotations

import numpy as np

import saddleback as sb
from saddleback.functions import Term

SIZE = 6
B = np.array([0.9, -1.3, 0.2, 2.1, -0.4, 0.0])
Z = np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0])
C = np.array([0.0, 2.0, 1.0, 5.0, 3.5, 0.0])
W = np.array([1.0, 0.5, 2.0, 0.0, 3.0, 1.5])
Q = np.array([0.1, 0.5, 0.9, 0.3, 0.75, 0.2])
SCATTERED = [[0, 3], [1, 2, 5], [4]]

PENALTIES: dict[str, Term] = {
    "Zero": sb.Zero(),
    "L1": sb.L1(0.3),
    "L1 weighted": sb.L1(0.3, W),
    "SquaredL2": sb.SquaredL2(2.0),
    "ElasticNet": sb.ElasticNet(0.5, 0.3),
    "ElasticNet ridge": sb.ElasticNet(0.5, 0.0),
    "ElasticNet weighted": sb.ElasticNet(0.5, 0.3, W),
    "GroupL2": sb.GroupL2(0.5, 3),
    "GroupL2 scattered": sb.GroupL2(0.7, SCATTERED, [1.0, 0.0, 2.0]),
    "SparseGroup": sb.SparseGroup(0.5, [2, 4], 0.4),
    "GroupElasticNet": sb.GroupElasticNet(0.7, SCATTERED, 0.4, [1.0, 0.0, 2.0]),
    "GroupElasticNet ridge": sb.GroupElasticNet(0.7, 2, 0.0),
    "ByColumns": sb.ByColumns([(sb.GroupL2(0.4, 2), [4, 1]), (sb.L1(0.3), [5, 0]), (sb.Zero(), [2, 3])]),
    "ByColumns of pieces": sb.ByColumns([(sb.ElasticNet(0.4, 0.3), [4, 1, 2]), (sb.L1(0.3, [1, 0, 2]), [5, 0, 3])]),
    "ByColumns of groups": sb.ByColumns(
        [(sb.GroupL2(0.4, 2), [4, 1]), (sb.SparseGroup(0.3, [3, 1], 0.5), [5, 0, 3, 2])]
    ),
    "ByColumns of others": sb.ByColumns(
        [(sb.SLOPE([2.0, 1.0], 0.3), [5, 0]), (sb.TotalVariation1D(0.4), [3, 2, 4]), (sb.Box(-0.2, 0.5), [1])]
    ),
    "ByColumns + Box": sb.ByColumns([(sb.L1(0.3), [4, 1]), (sb.SquaredL2(0.4), [5, 0, 3, 2])]) + sb.Box(-1.0, B + 1.5),
    "ByColumns + NonNegative + Linear": sb.ByColumns([(sb.GroupL2(0.4, 2), [4, 1]), (sb.L1(0.3), [5, 0, 3, 2])])
    + sb.NonNegative()
    + sb.Linear(0.1 * B),
    "Nuclear": sb.Nuclear(0.3, (2, 3)),
    "LInf": sb.LInf(0.8),
    "GroupLInf": sb.GroupLInf(0.8, 3),
    "GroupLInf scattered": sb.GroupLInf(0.7, SCATTERED, [1.0, 0.0, 2.0]),
    "SLOPE": sb.SLOPE([2.0, 1.5, 1.5, 0.7, 0.2, 0.0], 0.6),
    "Simplex": sb.Simplex(1.5),
    "L1Ball": sb.L1Ball(1.2),
    "Isotonic": sb.Isotonic(),
    "TotalVariation1D": sb.TotalVariation1D(0.6),
    "Box": sb.Box(-0.2, 0.5),
    "Box half": sb.Box(np.array([-np.inf, 0, -1, -np.inf, 0.5, 0]), np.array([0, np.inf, 1, np.inf, 0.5, np.inf])),
    "NonNegative": sb.NonNegative(),
    "Linear": sb.Linear(B),
    "Linear + Box": sb.Linear(B) + sb.Box(-1.0, 2.0),
    "L1 + Linear": sb.L1(1.0) + sb.Linear(0.4 * B),
    "L1 + NonNegative": sb.L1(0.2) + sb.NonNegative(),
    "ElasticNet + Box": sb.ElasticNet(0.5, 0.6) + sb.Box(-1, np.inf),
    "GroupL2 + NonNegative + Linear": sb.GroupL2(0.4, 2) + sb.NonNegative() + sb.Linear(0.1 * B),
    "SparseGroup + NonNegative": sb.SparseGroup(0.4, 2, 0.5) + sb.NonNegative(),
    "L1 + SquaredL2 + Box": sb.L1(0.3, W) + sb.SquaredL2(1.5) + sb.Box(-1.0, 3.0) + sb.Box(-2.0, B + 1.5),
    "GroupL2 + L1": sb.GroupL2(0.4, SCATTERED) + sb.L1(0.2, W) + sb.L1(0.1),
    "GroupL2 + SquaredL2": sb.GroupL2(0.7, SCATTERED, [1.0, 0.0, 2.0]) + sb.SquaredL2(0.4),
    "GroupL2 + ElasticNet": sb.GroupL2(0.4, SCATTERED) + sb.ElasticNet(0.5, 0.3),
    "GroupL2 + weighted ElasticNet": sb.GroupL2(0.4, [2, 1, 3], [1.0, 0.0, 2.0])
    + sb.ElasticNet(0.5, 0.3, [0.5, 1.5, 0.0, 1.0, 0.2, 3.0]),
    "SparseGroup + SquaredL2": sb.SparseGroup(0.5, [2, 4], 0.4) + sb.SquaredL2(2.0) + sb.NonNegative(),
    "Nuclear + Linear": sb.Nuclear(0.3, (2, 3)) + sb.Linear(0.1 * B),
    "GroupLInf + Linear": sb.GroupLInf(0.8, [2, 4]) + sb.Linear(0.1 * B),
    "SLOPE + Linear": sb.SLOPE([2.0, 1.5, 1.5, 0.7, 0.2, 0.1]) + sb.Linear(0.1 * B),
    "Simplex + Linear": sb.Simplex() + sb.Linear(B),
    "Isotonic + Linear": sb.Isotonic() + sb.Linear(B - B.mean()),
    "TotalVariation1D + Linear": sb.TotalVariation1D(0.6) + sb.Linear(0.1 * B),
    "TotalVariation1D + L1": sb.TotalVariation1D(0.6) + sb.L1(0.3),
    "TotalVariation1D + L1 + NonNegative": sb.L1(0.3)
    + sb.NonNegative()
    + sb.TotalVariation1D(0.6)
    + sb.Linear(0.1 * B),
}

LOSSES: dict[str, Term] = {
    "Squared": sb.Squared(B),
    "Squared weighted": sb.Squared(B, W, 0.5),
    "Absolute": sb.Absolute(B, W, 2.0),
    "Pinball": sb.Pinball(B, 0.3, W),
    "Pinball edge": sb.Pinball(B, 1.0),
    "Pinball per row": sb.Pinball(B, Q, W),
    "SmoothedPinball": sb.SmoothedPinball(B, 0.3, 0.5, W, 2.0),
    "SmoothedPinball per row": sb.SmoothedPinball(B, Q, W, Q + 0.1),
    "Huber": sb.Huber(B, 0.4, W, 3.0),
    "Huber per row": sb.Huber(B, W, Q),
    "EpsilonInsensitive": sb.EpsilonInsensitive(B, 0.2, W),
    "EpsilonInsensitive per row": sb.EpsilonInsensitive(B, Q, W),
    "SquaredEpsilonInsensitive": sb.SquaredEpsilonInsensitive(B, 0.2, W),
    "Expectile": sb.Expectile(B, 0.8, W, 2.0),
    "Expectile per row": sb.Expectile(B, Q),
    "Hinge": sb.Hinge(Z, W, 0.7),
    "SquaredHinge": sb.SquaredHinge(Z, W),
    "HuberisedHinge": sb.HuberisedHinge(Z, 0.7, W, 0.5),
    "HuberisedHinge per row": sb.HuberisedHinge(Z, W),
    "Logistic": sb.Logistic(Z, W, 1.5),
    "Poisson": sb.Poisson(C, W, 1.5),
    "Multinomial": sb.Multinomial([0, 2], sample_weight=[0.5, 2.0], scale=1.5),
    "Multinomial counts": sb.Multinomial([[3.0, 0.0], [1.5, 2.0], [0.0, 0.0]]),
    "MulticlassHinge": sb.MulticlassHinge([1, 2], sample_weight=[0.5, 2.0], scale=0.7),
    "MulticlassHinge weightless": sb.MulticlassHinge([0, 1, 0], sample_weight=[1.0, 0.0, 3.0]),
    "Gamma": sb.Gamma(C + 0.3, W, 1.5),
    "Tweedie": sb.Tweedie(C, 1.4, W, 1.5),
    "Tweedie near gamma": sb.Tweedie(C, 1.9),
    "KullbackLeibler": sb.KullbackLeibler(C, W, 1.5),
    "Norm2": sb.Norm2(B),
    "Norm2 weighted": sb.Norm2(B, W, 2.0),
    "TopK": sb.TopK(B, 2, 1.5),
    "CVaR": sb.CVaR(B, 0.4),
    "OrderedSum": sb.OrderedSum(B, [-1.0, -1.0, 0.5, 0.5, 2.0, 2.5], 0.7),
    "Wilcoxon": sb.Wilcoxon(B, 2.0),
    "Gini": sb.Gini(B, 3.0),
    "Equality": sb.Equality(B),
    "Interval": sb.Interval(B - 0.1, B + 0.2),
    "Interval mixed": sb.Interval(np.where(B > 0, -np.inf, B), np.where(B > 1, np.inf, B + 0.5)),
}

FUNCTIONS = PENALTIES | LOSSES

OPEN = {"KullbackLeibler"}
"""Functions that are infinite at the ends of their domain."""


def has_normal_form(name: str) -> bool:
    """Return whether a penalty or the conjugate of a loss has a normal form, as compiled kernels need it."""
    function = FUNCTIONS[name].bind((SIZE,))
    return (function.conjugate() if name in LOSSES else function).normal_form() is not None


ORDERED = {"TopK", "CVaR", "OrderedSum", "Wilcoxon", "Gini"}
"""Losses of the sorted residuals with the targets B."""
