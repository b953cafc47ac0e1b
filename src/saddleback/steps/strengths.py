r"""Strengths: the inverses of the step lengths.

A strength is one over a step, h per column and sigma per row. The block method converges if they satisfy the expected
separable overapproximation (ESO) for a uniform sample S of K of the J blocks, with :math:`\rho = J/K`:

.. math::

    E\Big\|\sum_{j \in S} \Sigma^{-1/2} A_j H_j^{-1/2} z_j\Big\|^2 \le \frac{1}{\rho^2} \sum_j \|z_j\|^2
    \quad\text{for all } z.

Rules, with :math:`\beta = (K-1)/(J-1)`, column weights c, row weights w, :math:`\tilde A = W^{-1/2} A C^{-1/2}`:

``norm``
    :math:`\kappa = \rho\,[(1-\beta) \max_j \|\tilde A_j\|^2 + \beta \|\tilde A\|^2]`, :math:`h = \sqrt\kappa\, c`,
    :math:`\sigma = \sqrt\kappa\, w`. For a loss with a Lipschitz gradient, and rows of similar size, w is one over its
    curvature and c the diagonal of A'W^{-1}A, as in coordinate descent. Otherwise both are l1 norms, of the
    equilibrated matrix if units differ. This is the default.
``l1``
    :math:`h_d = \sum_k |A_{kd}|`, :math:`\sigma_k = \rho\,[(1-\beta) \max_j B_{kj} + \beta \sum_j B_{kj}]` with
    :math:`B_{kj}` the sum of :math:`|A_{kd}|` over block j. No norms are needed.

    If several processes each draw from their blocks, two blocks of different processes are drawn together more often
    (``steps/sampling.py``), and the second beta of both rules is replaced by K/J.

``pure``
    For PURE-CD (``methods/pure_cd.py``), which needs another condition. With :math:`w_k` the number of blocks that are
    not 0 in row k, :math:`\pi_k = 1 - \binom{J-w_k}{K} / \binom{J}{K}` the probability that one of them is drawn and
    :math:`\theta_k = \rho\, \pi_k`, for any :math:`\sigma > 0`

    .. math::

        h_d \ge \sum_k \theta_k (1 + (w_k - 1) \beta)\, |A_{kd}|\, B_{k,j(d)} / \sigma_k.

    Alacaoglu, Fercoq and Cevher (2020) for K = 1; docs/theory/methods.md has the proof for any K.

A primal weight omega, as h omega and sigma / omega, preserves the inequality of each rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import singledispatch
from math import frexp
from typing import Any

import numpy as np

from ..common.arrays import Indices, Vector
from ..common.checks import number, shown
from ..common.rebuildable import stored
from ..functions.by_columns import Rearranged
from ..functions.calculus import BlockSum
from ..functions.contract import Convex
from ..functions.traits import curvature as curvature_of
from ..functions.traits import is_smooth, subgradient_scale
from ..model.model import Model
from ..operators import Operator
from .sampling import Strata

SLACK = 1.01
"""Factor on kappa: the proof allows equality, but rounding may violate it."""

LANCZOS_STEPS = 30
LANCZOS_SMALL = 20
"""Up to this many columns all steps are taken, and the norm is exact."""

LANCZOS_SURE = 4
"""Steps before a small residual is trusted: the first Ritz values may settle below the largest eigenvalue."""

LANCZOS_TOLERANCE = 0.1
"""Residual, relative to the Ritz value, at which to stop. It is added to the Ritz value; an estimate that is a tenth
too large shortens the steps by only a few percent."""

LANCZOS_MARGIN = 1.02
RUIZ_ROUNDS = 8
RUIZ_SPREAD = 10.0
"""Largest entries of columns, or of rows, within this factor of each other need no scaling."""

LONG_ROW = 300.0
"""Length, relative to the median, above which a single row determines the steps of descent."""

WEIGHT_RANGE = 1e5
"""Largest factor by which restarts may change the primal weight: on a problem without a solution x or y diverges, and
the weight would follow."""

EXPLOSION = 1e3
"""If a residual has grown by this factor since a restart, the strengths are too small: the norm was underestimated."""

EXCHANGE = 2.0
"""Entries per row of A that a process reads before it exchanges its changes with others."""

GRAM_LIMIT = 64
"""Largest number of columns of a block whose norm is computed from its Gram matrix."""


@stored
@dataclass(frozen=True)
class Strengths:
    """Primal and dual strengths, and the passes that it took to choose them."""

    primal: Vector
    dual: Vector
    passes: float = 0.0

    def scaled(self, factor: float) -> Strengths:
        """Return the primal and dual strengths times a factor, which shortens all steps."""
        return Strengths(self.primal * factor, self.dual * factor, self.passes)

    def weighted(self, omega: float) -> Strengths:
        """Return the strengths under a primal weight."""
        return Strengths(self.primal * omega, self.dual / omega, self.passes)


@dataclass(frozen=True)
class Weights:
    """Column and row weights c and w, all positive, and the passes that it took to find them.

    ``squares`` are the column sums of A^2 / w, if known; ``descent`` says that the weights are those of coordinate
    descent on a smooth loss, with y its gradient.
    """

    columns: Vector
    rows: Vector
    squares: Vector | None
    passes: float
    descent: bool = False


@dataclass(frozen=True)
class Norms:
    """The scaled operator: its weights, and the squared norms of At and of its largest block."""

    weights: Weights
    largest_block: float
    whole: float
    passes: float

    def kappa(self, strata: Strata, drawn: int) -> float:
        """Return the product of h and sigma, relative to that of the weights, that K drawn blocks need."""
        within, any_two = strata.together(drawn)
        kappa = SLACK / strata.share(drawn) * ((1 - within) * self.largest_block + any_two * self.whole)
        return kappa if kappa > 0 else 1.0


def automatic_draw(model: Model, norms: Norms) -> int:
    r"""Return K* = 1 + (J - 1) max_j ||At_j||^2 / ||At||^2, up to which a larger K costs nearly nothing in kappa.

    At least as many blocks are drawn as cost the same as starting an iteration.

    If f alone is unbounded below, the problem may have no solution. Then all blocks are drawn: the direction of the
    iterates leads to the proof, and random draws would add noise to it.
    """
    J = model.strata.size
    if norms.whole == 0 or not model.f_star.domain.has_zero():
        return J
    K = 1 + (J - 1) * norms.largest_block / norms.whole
    if len(model.strata.members) > 1:  # every iteration ends with an exchange of m numbers
        K = max(K, EXCHANGE * model.A.shape[0] * len(model.blocks) / max(model.A.traits.stored, 1))
    K = max(K, model.A.traits.launch_cost * J // max(model.A.traits.stored, 1))
    return int(np.clip(K, 1, J))


def norm_strengths(model: Model, norms: Norms, drawn: int) -> Strengths:
    """Return the ``norm`` rule for K drawn blocks, with the primal weight that the units of the data suggest."""
    kappa = norms.kappa(model.strata, drawn)
    weights = norms.weights
    plain = Strengths(np.sqrt(kappa) * weights.columns, np.sqrt(kappa) * weights.rows, norms.passes)
    if weights.descent:
        return plain.weighted(1.0 / np.sqrt(kappa))  # y follows x: h is that of coordinate descent, h = c
    return plain.weighted(data_weight(model, plain, model.strata.share(drawn)))


def measure_norms(model: Model, even: float = RUIZ_SPREAD) -> Norms:
    """Return the norms of the ``norm`` rule, after scaling until the largest entries are within the factor ``even``."""
    weights = base_weights(model, even)
    columns, rows = weights.columns, weights.rows
    if weights.squares is not None and len(model.blocks) == columns.size:
        largest, block_passes = float(np.max(weights.squares / columns)), 0.0
    else:
        largest, block_passes = _largest_block_norm(model, columns, rows)
    passes = weights.passes + block_passes
    if len(model.blocks) == 1:
        return Norms(weights, largest, largest, passes)
    whole, whole_passes = operator_norm(
        lambda z: model.A.matvec(z / np.sqrt(columns)) / np.sqrt(rows),
        lambda z: model.A.rmatvec(z / np.sqrt(rows)) / np.sqrt(columns),
        columns.size,
    )
    # a norm is at least that of each block
    return Norms(weights, largest, max(whole, largest), passes + whole_passes)


def base_weights(model: Model, even: float = RUIZ_SPREAD) -> Weights:
    """Return the weights of the ``norm`` rule.

    A smooth loss needs no dual steps, only columns of equal length, if its rows are of similar size. If they are not,
    the condition number of A'W^{-1}A is about the square of their ratio. The large rows are then nearly constraints,
    which dual steps treat better than coordinate descent, and the weights are those of a non-smooth loss.
    """
    m, n = model.A.shape
    curvature = curvature_of(model.g)
    if not model.A.traits.entries_known:
        rows = np.ones(m) if curvature is None else 1.0 / positive(curvature)
        return Weights(np.ones(n), round_up_strengths(model.g, rows), None, 0.0, curvature is not None)
    passes = 0.0
    if curvature is not None:
        passes = 1.0
        rows = 1.0 / positive(curvature)
        lengths = positive(row_lengths(model))
        if lengths.max() <= RUIZ_SPREAD * lengths.min():
            squares = model.A.sums(2, weights=(None, 1.0 / rows))[0]
            return Weights(round_up_strengths(model.f, positive(squares)), rows, squares, passes, descent=True)
    scale, cost = equilibrate(model.A, even)
    columns, rows = model.A.sums(1) if scale is None else model.A.sums(1, weights=scale)
    if scale is not None:
        columns, rows = columns / scale[0], rows / scale[1]
    rows = round_up_strengths(model.g, positive(rows))
    squares = model.A.sums(2, weights=(None, 1.0 / rows))[0]
    return Weights(round_up_strengths(model.f, positive(columns)), rows, squares, passes + cost + 1.0)


def row_lengths(model: Model) -> Vector:
    """Return the length of each row of A in the metric of the curvature of a smooth loss."""
    curvature = curvature_of(model.g)
    assert curvature is not None
    return np.sqrt(model.A.sums(2)[1] * curvature)


def has_long_rows(model: Model) -> bool:
    """Return whether some rows are so long, for a smooth loss, that they act like constraints."""
    if "has_long_rows" not in model.of_data:
        lengths = row_lengths(model)
        usual = float(np.median(lengths[lengths > 0])) if np.any(lengths) else 1.0
        model.of_data["has_long_rows"] = bool(lengths.max() > LONG_ROW * usual)
    return bool(model.of_data["has_long_rows"])


def equilibrate(A: Operator, even: float = RUIZ_SPREAD) -> tuple[tuple[Vector, Vector] | None, float]:
    r"""Return column and row scales that bring the largest entries of all columns and rows towards 1, and the passes.

    If columns or rows are in different units, l1 weights favour the large ones: a column with entries of 1e6 dominates
    the strengths of all rows. Therefore the weights are those of the scaled matrix T|A|S, after some rounds of Ruiz
    (2001), :math:`c = |A|'t / s`, :math:`w = |A|s / t`. None if the largest entries are already within the factor
    ``even`` of each other.
    """
    columns, rows = np.ones(A.shape[1]), np.ones(A.shape[0])
    for rounds in range(RUIZ_ROUNDS):
        of_columns, of_rows = (positive(largest) for largest in A.sums(np.inf, weights=(columns, rows)))
        spread = max(of_columns.max() / of_columns.min(), of_rows.max() / of_rows.min())
        if spread <= even:
            return (None if rounds == 0 else (columns, rows)), 0.5 * (rounds + 1)
        columns, rows = columns / np.sqrt(of_columns), rows / np.sqrt(of_rows)
    return (columns, rows), 0.5 * RUIZ_ROUNDS


def positive(weights: Vector) -> Vector:
    """Return weights with the smallest positive one in place of zeros: an empty column or row may have any weight."""
    return np.where(
        weights > 0, weights, np.min(weights, where=weights > 0, initial=np.inf) if np.any(weights > 0) else 1.0
    )


def _largest_block_norm(model: Model, columns: Vector, rows: Vector) -> tuple[float, float]:
    """Return max_j ||At_j||^2 and the passes it took."""
    blocks = model.blocks
    largest, passes = 0.0, 0.0
    for own, (A, places) in zip(blocks, _blocks_in_memory(model), strict=True):
        norm, cost = _block_norm(A, places, columns[own], rows)
        largest = max(largest, norm)
        passes += cost * own.size / columns.size
    return largest, passes


def _blocks_in_memory(model: Model) -> Iterator[tuple[Operator, Indices]]:
    """Yield, for each block, an operator that has its columns in memory, and their indices there."""
    if model.A.traits.panels is None:
        yield from ((model.A, own) for own in model.blocks)
    else:
        yield from ((A, np.arange(A.shape[1])) for A in model.A.loaded(list(model.blocks)))


def _block_norm(A: Operator, own: Indices, columns: Vector, rows: Vector) -> tuple[float, float]:
    if own.size <= GRAM_LIMIT and 8.0 * rows.size * own.size <= A.traits.budget:
        scaled = A.entries(own) / np.sqrt(columns) / np.sqrt(rows)[:, None]
        return float(np.linalg.eigvalsh(scaled.T @ scaled)[-1]), 1.0
    return operator_norm(
        lambda z: A.matvec(z / np.sqrt(columns), own) / np.sqrt(rows),
        lambda z: A.rmatvec(z / np.sqrt(rows), own) / np.sqrt(columns),
        own.size,
    )


def operator_norm(matvec: Any, rmatvec: Any, size: int) -> tuple[float, float]:
    """Return an estimate of ||M||^2 with a margin, by Lanczos on M'M, and the passes it took.

    The largest Ritz value approaches the squared norm from below. Its residual bounds the distance to the nearest
    eigenvalue, and is added to it, with a margin. After as many steps as columns it is exact. M is divided by a number
    near ||M||, so that ||M||^4 does not overflow; it is a power of 2, which causes no rounding.
    """
    start = np.random.default_rng(0).standard_normal(size)
    before, vector = np.zeros(size), start / np.linalg.norm(start)
    diagonal: list[float] = []
    beside: list[float] = []
    top, residual, unit = 0.0, 0.0, 0.0
    for _ in range(min(LANCZOS_STEPS, size)):
        image = matvec(vector)
        unit = unit or 2.0 ** frexp(float(np.linalg.norm(image)))[1]
        following = rmatvec(image / unit) / unit
        diagonal.append(float(following @ vector))
        following = following - diagonal[-1] * vector - (beside[-1] if beside else 0.0) * before
        length = float(np.linalg.norm(following))
        values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
        top, residual = float(values[-1]), length * abs(float(vectors[-1, -1]))
        sure = len(diagonal) >= LANCZOS_SURE and size > LANCZOS_SMALL
        settled = sure and residual <= LANCZOS_TOLERANCE * top
        if settled or length <= 1e-12 * top:
            break
        before, vector = vector, following / length
        beside.append(length)
    exact = len(diagonal) == size or residual <= 1e-12 * top
    norm = max(top if exact else LANCZOS_MARGIN * (top + residual), 0.0)
    return norm * unit * unit, float(len(diagonal))


def uniform_strengths(model: Model) -> Strengths:
    """Return h = sigma = ||A||, the rule of Chambolle and Pock (2011)."""
    m, n = model.A.shape
    if (known := model.A.traits.norm) is None:
        square, passes = operator_norm(model.A.matvec, model.A.rmatvec, n)
    else:
        square, passes = known**2, 0.0
    strength = float(np.sqrt(SLACK * square)) or 1.0
    return Strengths(np.full(n, strength), np.full(m, strength), passes)


def diagonal_strengths(model: Model, alpha: int) -> Strengths:
    r"""Return :math:`h_d = \sum_k |A_{kd}|^{2-\alpha}`, :math:`\sigma_k = \sum_d |A_{kd}|^\alpha`.

    The rule of Pock and Chambolle (2011).
    """
    columns, rows = model.A.sums(2 - alpha)[0], model.A.sums(alpha)[1]
    return Strengths(round_up_strengths(model.f, positive(columns)), round_up_strengths(model.g, positive(rows)), 1.0)


def l1_strengths(model: Model, drawn: int) -> Strengths:
    """Return the ``l1`` rule for K drawn blocks, which is valid without a norm estimate."""
    within, any_two = model.strata.together(drawn)
    columns, rows = model.A.sums(1)
    largest = _largest_block_row_sums(model)
    dual = SLACK / model.strata.share(drawn) * ((1 - within) * largest + any_two * rows)
    return Strengths(round_up_strengths(model.f, positive(columns)), round_up_strengths(model.g, positive(dual)), 1.0)


def pure_strengths(model: Model, drawn: int) -> tuple[Strengths, Vector]:
    """Return the ``pure`` rule for K drawn blocks, and theta.

    sigma_k is theta_k (1 + (w_k - 1) beta) times the row weight of the ``norm`` rule, so that for a loss with a
    Lipschitz gradient h is that of coordinate descent. For other losses the primal weight balances h and sigma.
    """
    J = len(model.blocks)
    beta = (drawn - 1) / (J - 1) if J > 1 else 1.0
    count = np.maximum(blocks_in_rows(model), 1)
    theta = J / drawn * coverage(count, drawn, J)
    together = theta * (1 + (count - 1) * beta)
    weights = base_weights(model)
    dual = round_up_strengths(model.g, together * weights.rows)
    primal = SLACK * _products_in_blocks(model, together / dual)
    plain = Strengths(round_up_strengths(model.f, positive(primal)), dual, weights.passes + 1.0)
    if weights.descent:
        return plain, theta
    return plain.weighted(data_weight(model, replace(plain, dual=dual / theta), 1.0)), theta


def coverage(count: Indices, drawn: int, n_blocks: int) -> Vector:
    """Return the probability that K of J blocks drawn at random hold one of ``count`` given ones.

    That is 1 - C(J - w, K) / C(J, K) = 1 - prod_{i < w} (1 - K / (J - i)).
    """
    with np.errstate(divide="ignore"):
        misses = np.log1p(-np.minimum(drawn / (n_blocks - np.arange(count.max())), 1.0))
    hits: Vector = -np.expm1(np.concatenate([[0.0], np.cumsum(misses)]))
    return hits[count]


def blocks_in_rows(model: Model) -> Indices:
    """Return the number of blocks that are not 0 in each row."""
    blocks = model.blocks
    if len(blocks) == blocks.order.size:
        return model.A.sums(0)[1].astype(np.int64)
    count = np.zeros(model.A.shape[0], dtype=np.int64)
    for own in blocks:
        count += model.A.sums(1, own)[1] > 0
    return count


def _products_in_blocks(model: Model, rows: Vector) -> Vector:
    """Return sum_k rows_k |A_kd| B_{k, j(d)} for every column d."""
    A, blocks = model.A, model.blocks
    if len(blocks) == blocks.order.size:
        return A.sums(2, weights=(None, rows))[0]
    result = np.empty(A.shape[1])
    for own in blocks:
        weighted = rows * A.sums(1, own)[1]
        if own.size <= GRAM_LIMIT:
            result[own] = weighted @ np.abs(A.entries(own))
        else:
            result[own] = A.sums(1, weights=(None, weighted))[0][own]
    return result


def _largest_block_row_sums(model: Model) -> Vector:
    """Return max_j B_kj for every row k."""
    blocks = model.blocks
    if len(blocks) == blocks.order.size:
        return model.A.sums(np.inf, weights=(np.ones(blocks.order.size), np.ones(model.A.shape[0])))[1]
    largest = np.zeros(model.A.shape[0])
    for own in blocks:
        np.maximum(largest, model.A.sums(1, own)[1], out=largest)
    return largest


def block_squares(model: Model) -> tuple[Vector, float]:
    """Return ||A_j||^2, the same for all columns of a block, and the passes that it took."""
    m, n = model.A.shape
    squares, passes = np.empty(n), 0.0
    for own, (A, places) in zip(model.blocks, _blocks_in_memory(model), strict=True):
        squares[own], cost = _block_norm(A, places, np.ones(own.size), np.ones(m))
        passes += cost * own.size / n
    return positive(squares), passes


def remark_strengths(model: Model, drawn: int) -> Strengths:
    """Return the strengths of the paper's Remark: h_j = ||A_j||, sigma = J/K max_j ||A_j||. Valid for K = 1 only."""
    squares, passes = block_squares(model)
    primal = np.sqrt(squares)
    return Strengths(primal, np.full(model.A.shape[0], len(model.blocks) / drawn * primal.max()), passes)


def explicit_strengths(
    model: Model, step: Any, rules: tuple[str, str], kept: tuple[tuple[int, int], Indices, Indices] | None
) -> Strengths:
    """Check and return the strengths of the user, ``step=(primal_strength, dual_strength)``.

    Arrays hold one value per column or row of the user's problem; ``kept`` says which of these are in the model. If a
    prox has no closed form for different strengths, the largest is used for all.
    """
    if not isinstance(step, tuple) or len(step) != 2:
        first, second = rules
        raise ValueError(
            f"step={shown(step)} is not known: expected {first!r}, {second!r} or a pair "
            "(primal_strength, dual_strength)"
        )
    (m, n), rows, columns = kept or (model.A.shape, np.arange(model.A.shape[0]), np.arange(model.A.shape[1]))
    sides = []
    for name, given, size, still in (("primal", step[0], n, columns), ("dual", step[1], m, rows)):
        array = np.asarray(number(f"step: {name}_strength", given) if isinstance(given, int) else given)
        if array.dtype.kind not in "iuf":
            raise ValueError(f"step: {name}_strength={shown(given)}: expected a positive number or {size} of them")
        if array.shape not in ((), (size,)):
            raise ValueError(f"step: {name}_strength has shape {array.shape}: expected a number or {size} of them")
        if not (np.all(np.isfinite(array)) and np.all(array > 0)):
            raise ValueError(f"step: {name}_strength must be finite and positive everywhere")
        sides.append(np.broadcast_to(array.astype(np.float64), (size,))[still])
    return Strengths(round_up_strengths(model.f, sides[0]), round_up_strengths(model.g, sides[1]))


def data_weight(model: Model, strengths: Strengths, share: float) -> float:
    r"""Return the primal weight that suits the units of the data; 1 if they give no hint.

    With p = K/J the share of the blocks that are drawn, the best is :math:`\omega = \sqrt p\, \|y\|_\sigma / \|x\|_h`
    with the distances of the start from a solution. They are guessed from the data: for y, the gradient of a smooth
    loss at 0, the bounds of its domain, or the size at which A'y balances the penalty; for x, the size at which Ax
    reaches the targets.
    """
    slope = model.g.subgradient(np.zeros(model.A.shape[0])) if is_smooth(model.g) else subgradient_scale(model.g)
    y = _norm(slope, strengths.dual) or _norm(subgradient_scale(model.f), 1.0 / strengths.primal)
    x = _norm(subgradient_scale(model.g_star), 1.0 / strengths.dual)
    if x == 0 or y == 0 or not np.isfinite(x + y):  # the squares of units beyond 1e154 may overflow
        return 1.0
    return float(y * np.sqrt(share) / x)


def typical_distance(model: Model) -> float:
    """Return the distance of a typical solution x from 0: the size at which orthogonal columns reach the targets.

    0 if that is not known.
    """
    if not model.A.traits.entries_known:
        return 0.0
    length = float(np.sqrt(np.mean(model.A.sums(2)[0])))
    return model.target_norm / length if length > 0 else 0.0


def _norm(vector: Vector | float, weight: Vector) -> float:
    return float(np.sqrt(np.sum(vector * weight * vector)))  # weights first: squares soon leave the range of float32


@singledispatch
def round_up_strengths(function: Convex, strength: Vector) -> Vector:
    """Return the smallest strengths, at least the given ones, under which the prox has a closed form."""
    return strength if function.diagonal_steps else np.full_like(strength, strength.max())


@round_up_strengths.register
def _(function: BlockSum, strength: Vector) -> Vector:
    return np.concatenate([round_up_strengths(part, strength[own]) for part, own in function.parts()])


@round_up_strengths.register
def _(function: Rearranged, strength: Vector) -> Vector:
    result = np.empty_like(strength)
    result[function.order] = round_up_strengths(function.base, strength[function.order])
    return result
