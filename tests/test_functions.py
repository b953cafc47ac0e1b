"""Identities of the catalogue: each holds for every function, penalty or loss."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from catalogue import FUNCTIONS, LOSSES, OPEN, ORDERED, PENALTIES, SIZE, B, W, Z
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from profiles import examples
from scipy.optimize import minimize_scalar

import saddleback as sb
from saddleback import _native
from saddleback.common.arrays import Blocks
from saddleback.functions.calculus import BlockSum
from saddleback.functions.group import shrink_norms
from saddleback.functions.linf import project_on_l1_balls
from saddleback.functions.penalties import Piece, Sum
from saddleback.functions.traits import SumOverRows, curvature, curvature_at, is_smooth, moved, subdifferential
from saddleback.methods.spdc import strong_convexity
from saddleback.steps.strengths import round_up_strengths

vectors = arrays(float, SIZE, elements=st.floats(-5, 5))
coarse = arrays(float, SIZE, elements=st.integers(-500, 500).map(lambda k: k / 100))
strengths = arrays(float, SIZE, elements=st.floats(0.05, 20))
every_function = pytest.mark.parametrize("name", FUNCTIONS)


def bound(name):
    return FUNCTIONS[name].bind((SIZE,))


def admissible_step(function, strength):
    return 1.0 / round_up_strengths(function, strength)


@every_function
@examples(60)
@given(v=vectors, h=strengths)
def test_prox_gives_a_subgradient_pair(name, v, h):
    """Fenchel-Young with equality: f(p) + f*(g) = <p, g> for p = prox(v), g = (v - p) / step."""
    f = bound(name)
    step = admissible_step(f, h)
    p = f.prox(v, step)
    g = (v - p) / step
    assert f.value(p) + f.conjugate().value(f.conjugate().domain.project(g)) == pytest.approx(
        p @ g, abs=1e-8 * (1 + abs(p) @ abs(g))
    )
    assert np.allclose(g, f.conjugate().domain.project(g), atol=1e-9 * (1 + np.abs(g).max()))


@every_function
@examples(30)
@given(v=vectors, h=strengths)
def test_moreau(name, v, h):
    f = bound(name)
    step = admissible_step(f, h)
    assert np.allclose(f.prox(v, step) + step * f.conjugate().prox(v / step, 1 / step), v, atol=1e-8)


@every_function
@examples(30)
@given(v=vectors, h=strengths, d=vectors)
def test_prox_is_a_minimum(name, v, h, d):
    f = bound(name)
    step = admissible_step(f, h)

    def objective(x):
        return f.value(x) + 0.5 * np.sum((x - v) ** 2 / step)

    p = f.prox(v, step)
    assert np.isfinite(objective(p))
    for size in (1e-4, 1e-2, 1.0):
        assert objective(f.domain.project(p + size * d)) >= objective(p) - 1e-9 * (1 + abs(objective(p)))


@every_function
@examples(30)
@given(x=vectors, y=vectors)
def test_fenchel_young(name, x, y):
    f = bound(name)
    f_star = f.conjugate()
    x, y = f.domain.project(x), f_star.domain.project(y)
    assert f.value(x) + f_star.value(y) >= x @ y - 1e-9 * (1 + abs(x @ y))


@every_function
@examples(30)
@given(y=coarse)
def test_scaling_is_the_largest(name, y):
    f_star = bound(name).conjugate()
    t = f_star.domain.largest_multiple(10 * y)
    assert f_star.domain.has_zero() == np.isfinite(f_star.value(np.zeros(SIZE)))
    if np.isnan(t):
        assert not f_star.domain.has_zero()
        return
    assert 0 <= t <= 1
    assert f_star.value(t * (10 * y)) < np.inf
    if t < 0.99:
        assert f_star.value(10 * y * (1.001 * t + 1e-6)) == np.inf


@every_function
@examples(10)
@given(v=vectors, y=coarse)
def test_scaling_of_a_sum_stays_inside_every_part(name, v, y):
    """A set that does not contain 0 may contain a point but no smaller multiple of it."""
    parts = [bound(name).conjugate(), sb.GroupL2(0.5, 3).bind((SIZE,)).conjugate()]
    f_star = BlockSum(parts, [SIZE, SIZE], [True, True])
    point = np.concatenate([parts[0].domain.project(v), y])
    t = f_star.domain.largest_multiple(point)
    assert not f_star.domain.has_zero() if np.isnan(t) else f_star.value(t * point) < np.inf


@every_function
@examples(30)
@given(v=vectors)
def test_projections_are_idempotent_and_inside(name, v):
    f = bound(name)
    for side in (f, f.conjugate()):
        inside = side.domain.project(v)
        assert np.allclose(side.domain.project(inside), inside, atol=1e-12)
        if name not in OPEN:
            assert side.value(inside) < np.inf
        assert side.value(inside) == pytest.approx(side.finite_value(2 * inside, 0.5), rel=1e-9, abs=1e-12)


@every_function
@examples(30)
@given(v=vectors, d=vectors)
def test_recession_is_the_growth(name, v, d):
    """f(x + t d) / t tends to the recession value for directions inside the cone, for f and for its conjugate."""
    f = bound(name)
    for side in (f, f.conjugate()):
        ray = side.recession(d)
        inside = d - ray.violation
        x, far = side.prox(v, 1.0) if name in OPEN else side.domain.project(v), 1e7
        growth = (side.value(x + far * inside) - side.value(x)) / far
        assert growth == pytest.approx(side.recession(inside).value, abs=1e-4 * (1 + abs(growth)))
        assert np.allclose(side.recession(inside).violation, 0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_blocks_are_a_sum(name, rng):
    """The prox on some blocks is the prox of everything, restricted to them."""
    f = bound(name)
    v, step = rng.standard_normal(SIZE), admissible_step(f, rng.uniform(0.5, 2, SIZE))
    blocks = f.blocks()
    drawn = rng.permutation(len(blocks))[: max(1, len(blocks) // 2)]
    columns = blocks.columns(drawn)
    for side in (f, f.conjugate()):
        found = side.prox(v[columns], step[columns], drawn)
        assert np.allclose(found, side.prox(v, step)[columns], atol=1e-12)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if is_smooth(bound(name))])
def test_gradient_of_smooth_functions(name, rng):
    f = bound(name)
    x, e = rng.standard_normal(SIZE), 1e-6
    numeric = [(f.value(x + e * d) - f.value(x - e * d)) / (2 * e) for d in np.eye(SIZE)]
    assert np.allclose(f.subgradient(x), numeric, atol=1e-5)
    assert np.all(np.abs(f.subgradient(x) - f.subgradient(x + e)) <= e * curvature(f) * (1 + 1e-6) + 1e-15)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if bound(name).domain.everything])
def test_subgradients_and_strong_convexity(name, rng):
    """f(z) >= f(x) + <s, z - x> + mu / 2 ||z - x||^2, also from points on the kinks."""
    f = bound(name)
    mu = strong_convexity(f)
    for x in (rng.standard_normal(SIZE), np.zeros(SIZE), np.where(np.arange(SIZE) % 2, 0.0, 1.0)):
        s = f.subgradient(x)
        for z in 2 * rng.standard_normal((20, SIZE)):
            assert f.value(z) >= f.value(x) + s @ (z - x) + mu / 2 * np.sum((z - x) ** 2) - 1e-10


def test_strong_convexity_is_the_quadratic_term():
    assert strong_convexity(bound("SquaredL2")) == 2.0
    assert strong_convexity(bound("ElasticNet")) == pytest.approx(0.5 * 0.7)
    assert strong_convexity(bound("L1")) == strong_convexity(bound("GroupL2")) == 0.0


@every_function
def test_a_function_that_is_infinite_somewhere_says_so(name):
    f = bound(name)
    corners = 20.0 * np.array(list(product([-1, 1], repeat=SIZE)))
    assert f.domain.everything == all(np.isfinite(f.value(x)) for x in corners)


SCALAR_LOSSES = {
    "Squared": lambda u, i: (u - B[i]) ** 2 / 2,
    "Absolute": lambda u, i: 2.0 * W[i] * abs(u - B[i]),
    "Pinball": lambda u, i: W[i] * (0.3 * (B[i] - u) if B[i] >= u else -0.7 * (B[i] - u)),
    "Huber": lambda u, i: 3 * W[i] * ((u - B[i]) ** 2 / 2 if abs(u - B[i]) <= 0.4 else 0.4 * (abs(u - B[i]) - 0.2)),
    "EpsilonInsensitive": lambda u, i: W[i] * max(0, abs(u - B[i]) - 0.2),
    "Hinge": lambda u, i: 0.7 * W[i] * max(0, 1 - Z[i] * u),
    "SquaredHinge": lambda u, i: W[i] * max(0, 1 - Z[i] * u) ** 2 / 2,
    "Logistic": lambda u, i: 1.5 * W[i] * np.log(1 + np.exp(-Z[i] * u)),
}


@pytest.mark.parametrize("name", SCALAR_LOSSES)
def test_losses_by_their_formula(name, rng):
    """Value and prox agree with the formula of the documentation and with a scalar minimiser."""
    formula, loss = SCALAR_LOSSES[name], LOSSES[name]
    u, step = rng.standard_normal(SIZE) * 2, rng.uniform(0.3, 3, SIZE)
    assert loss.value(u) == pytest.approx(sum(formula(u[i], i) for i in range(SIZE)))
    found = loss.prox(u, step)
    for i in range(SIZE):
        best = minimize_scalar(lambda t, i=i: formula(t, i) + (t - u[i]) ** 2 / (2 * step[i]), (-3, 3), tol=1e-12)
        assert found[i] == pytest.approx(best.x, abs=1e-5)


def test_norm2_by_its_formula(rng):
    u = rng.standard_normal(SIZE)
    assert LOSSES["Norm2 weighted"].value(u) == pytest.approx(2 * np.sqrt(W @ (u - B) ** 2))


def test_penalties_by_their_formula(rng):
    x = rng.standard_normal(SIZE)
    n = np.linalg.norm
    assert PENALTIES["L1 weighted"].value(x) == pytest.approx(0.3 * W @ abs(x))
    assert PENALTIES["SquaredL2"].value(x) == pytest.approx(x @ x)
    assert PENALTIES["ElasticNet"].value(x) == pytest.approx(0.5 * (0.3 * abs(x).sum() + 0.35 * x @ x))
    assert PENALTIES["GroupL2"].value(x) == pytest.approx(0.5 * np.sqrt(3) * (n(x[:3]) + n(x[3:])))
    assert PENALTIES["GroupL2 scattered"].value(x) == pytest.approx(0.7 * (n(x[[0, 3]]) + 2 * n(x[[4]])))
    expected = 0.5 * (0.4 * abs(x).sum() + 0.6 * (np.sqrt(2) * n(x[:2]) + 2 * n(x[2:])))
    assert PENALTIES["SparseGroup"].value(x) == pytest.approx(expected)
    assert PENALTIES["Nuclear"].value(x) == pytest.approx(0.3 * np.linalg.norm(x.reshape(2, 3), "nuc"))
    assert PENALTIES["Linear"].value(x) == pytest.approx(B @ x)
    assert PENALTIES["Box"].value(np.full(SIZE, 0.6)) == np.inf
    assert PENALTIES["NonNegative"].value(-np.ones(SIZE)) == np.inf


def test_exact_zeros_and_exact_targets():
    """A prox whose exact result is 0 or b returns exactly that."""
    v = np.linspace(-0.2, 0.25, SIZE)
    assert np.all(sb.L1(1.0).prox(v, 0.3) == 0)
    assert np.all(sb.GroupL2(1.0, 3).prox(v, 0.3) == 0)
    assert np.all(sb.Equality(B).prox(v, 0.7) == B)
    assert np.all(sb.Absolute(B).prox(B + 0.1, 0.3) == B)


@examples(100)
@given(b=vectors, h=arrays(float, SIZE, elements=st.floats(1e-6, 1e6)), w=st.floats(1e-3, 10))
def test_secular_equation(b, h, w):
    """Optimality of the group prox under any diagonal: w x / ||x|| + h x = b, or ||b|| <= w at 0."""
    x = shrink_norms(b, h, np.array([w]), np.array([0]))
    norm = np.linalg.norm(x)
    if np.linalg.norm(b) <= w:
        assert norm == 0
    elif norm > 0:
        assert np.allclose(w * x / norm + h * x, b, atol=1e-9 * (1 + np.abs(b).max()))


def test_group_prox_with_constant_strength_is_the_closed_form(rng):
    v = rng.standard_normal(SIZE)
    found = sb.GroupL2(1.0, SIZE, [1.0]).prox(v, 0.5)
    assert np.allclose(found, v * max(0, 1 - 0.5 / np.linalg.norm(v)))


@pytest.mark.parametrize("make", [sb.Squared, sb.Absolute, sb.Hinge, sb.Logistic, sb.SquaredHinge, sb.Norm2])
def test_integer_weights_are_repeated_rows(make, rng):
    counts = np.array([1, 3, 0, 2, 1, 4])
    u = rng.standard_normal(SIZE)
    repeated = make(np.repeat(Z, counts)).value(np.repeat(u, counts))
    assert make(Z, sample_weight=counts).value(u) == pytest.approx(repeated)


def test_matrix_arguments_keep_their_shape(rng):
    b = rng.standard_normal((3, 2))
    loss = sb.Huber(b, 0.5)
    assert loss.prox(np.zeros((3, 2)), 1.0).shape == (3, 2)
    rows = sb.GroupL2(0.5, 1)
    v = rng.standard_normal((3, 2))
    shorten = np.maximum(0, 1 - 0.5 / np.linalg.norm(v, axis=1, keepdims=True))
    assert np.allclose(rows.prox(v, 1.0), shorten * v)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (sb.GroupL2(1.0, 2), sb.Box(0, 1)),
        (sb.GroupL2(1.0, 2), sb.Nuclear(1.0, (2, 3))),
        (sb.Nuclear(1.0, (2, 3)), sb.NonNegative()),
        (sb.L1(1.0), sb.Absolute([1.0])),
    ],
)
def test_unsupported_sums_are_rejected(first, second):
    with pytest.raises(TypeError, match="cannot be added"):
        first + second
    with pytest.raises(TypeError, match="cannot be added"):
        second + first


def test_a_group_has_squares_in_all_of_its_columns_or_in_none():
    term = sb.GroupL2(1.0, 2) + sb.ElasticNet(1.0, 0.5, [0.0, 0.0, 1.0, 0.0])
    with pytest.raises(ValueError, match="0 for some columns of group 1, and greater for others"):
        term.bind((4,))


def test_the_message_lists_what_can_be_added():
    with pytest.raises(
        TypeError, match=r"Box cannot be added to GroupL2: expected L1, Linear, NonNegative, SquaredL2 or ElasticNet, "
    ):
        sb.GroupL2(1.0, 2) + sb.Box(0, 1)
    with pytest.raises(TypeError, match="NonNegative cannot be added to Nuclear: expected Linear, the only"):
        sb.Nuclear(1.0, (2, 3)) + sb.NonNegative()


ADDABLE = {
    "L1": sb.L1(0.3),
    "L1 weighted": sb.L1(0.7, [1.0, 0.0, 2.0, 0.5]),
    "SquaredL2": sb.SquaredL2(0.9),
    "ElasticNet": sb.ElasticNet(0.5, 0.3),
    "Linear": sb.Linear([0.4, -0.2, 0.0, 1.0]),
    "Box": sb.Box(-1.5, [0.5, 2.0, 1.0, np.inf]),
    "NonNegative": sb.NonNegative(),
    "Zero": sb.Zero(),
}
POINTS = arrays(np.float64, 4, elements=st.floats(-3, 3))


@pytest.mark.parametrize("first", ADDABLE)
@pytest.mark.parametrize("second", ADDABLE)
@given(v=POINTS, step=st.floats(0.1, 10))
@examples(10)
def test_sums_over_coordinates_are_sums(first, second, v, step):
    """The value is the sum of the parts, and a step away from the prox in any coordinate increases the objective."""
    f, g = ADDABLE[first], ADDABLE[second]
    total = f + g
    assert np.isclose(total.value(v), f.value(v) + g.value(v))

    def objective(x):
        return f.value(x) + g.value(x) + 0.5 * np.sum((x - v) ** 2) / step

    best = total.prox(v, step)
    moves = [best + s * e for e in np.eye(4) for s in (-1e-3, 1e-3)]
    assert objective(best) <= min(map(objective, moves)) + 1e-12


@pytest.mark.parametrize("first", [name for name, term in PENALTIES.items() if not isinstance(term, Piece | Sum)])
@pytest.mark.parametrize("second", [name for name, term in PENALTIES.items() if isinstance(term, Piece)])
def test_a_sum_with_a_penalty_that_couples_coordinates_is_correct_or_rejected(first, second, rng):
    f, g = PENALTIES[first], PENALTIES[second]
    if g.kind not in f.accepts | {"nothing"}:
        with pytest.raises(TypeError, match="cannot be added"):
            f + g
        return
    total = f + g
    if g.kind == "squares" and not isinstance(f, sb.GroupElasticNet):  # one weight is 0, in a group with others
        with pytest.raises(ValueError, match="0 for some columns of group"):
            total.bind((SIZE,))
        return
    for x in (*rng.uniform(-1, 1, (5, SIZE)), *rng.uniform(0, 1, (5, SIZE))):
        assert np.isclose(total.value(x), f.value(x) + g.value(x))


@pytest.mark.parametrize("term", [sb.L1(0.3), sb.ElasticNet(0.5, 0.3), sb.GroupL2(0.5, 3), sb.SparseGroup(0.5, 2, 0.4)])
def test_the_finite_value_next_to_a_sign_constraint_ignores_only_the_constraint(term, rng):
    """Iterates may be slightly negative. Their value includes all finite slopes, for any split of the function."""
    f, g = (penalty.bind((SIZE,)) for penalty in (term + sb.Linear(B), sb.NonNegative() + sb.Linear(B) + term))
    blocks = np.array([1, 0])
    pairs = [(f, g), (f.restrict_blocks(blocks), g.restrict_blocks(blocks)), (f.hstack(f), g.hstack(g))]
    for bare, constrained in [*pairs, (f, moved(g, np.copy))]:
        x = rng.standard_normal(bare.blocks().order.size)
        assert constrained.finite_value(x) == pytest.approx(bare.finite_value(x))
        assert not constrained.domain.everything


def test_the_elastic_net_is_the_sum_of_its_parts(rng):
    v = rng.standard_normal(5)
    total = sb.L1(0.6) + sb.SquaredL2(0.4)
    net = sb.ElasticNet(1.0, 0.6)
    assert np.allclose(total.prox(v, 0.7), net.prox(v, 0.7))
    assert np.allclose(total.with_alpha(3.0).prox(v, 0.7), net.with_alpha(3.0).prox(v, 0.7))  # the same proportions
    A, loss = rng.standard_normal((8, 5)), sb.Absolute(rng.standard_normal(8))
    assert np.isclose(sb.alpha_max(total, A, loss), sb.alpha_max(net, A, loss))


def test_the_sparse_group_penalty_is_the_sum_of_its_parts(rng):
    v = rng.standard_normal(6)
    total, whole = sb.GroupL2(0.6, 2) + sb.L1(0.4), sb.SparseGroup(1.0, 2, 0.4)
    assert np.allclose(total.prox(v, 0.7), whole.prox(v, 0.7))
    A, b = rng.standard_normal((8, 6)), rng.standard_normal(8)
    assert np.isclose(sb.alpha_max(total, A, sb.Squared(b)), sb.alpha_max(whole, A, sb.Squared(b)))


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if "Nuclear" not in name])
def test_multiples(name, rng):
    """The prox of a multiple is the prox with a multiple of the step."""
    term, v = FUNCTIONS[name], rng.standard_normal(SIZE)
    inside = term.prox(v, 1.0)
    for double in (2 * term, term * 2.0, np.float64(2.0) * term, term / 0.5):
        assert np.allclose(double.prox(v, 0.3), term.prox(v, 0.6))
        assert np.isclose(double.value(inside), 2 * term.value(inside))


@pytest.mark.parametrize("term", [sb.L1(1.0), sb.Zero(), sb.Box(0, 1), sb.Squared([1.0]), sb.Equality([1.0])])
def test_negative_multiples_are_rejected(term):
    with pytest.raises(ValueError, match=rf"-2 \* {type(term).__name__}: expected"):
        -2 * term


def test_linear_terms_may_be_subtracted(rng):
    v, c = rng.standard_normal((2, 4))
    assert np.allclose(
        (sb.SquaredL2(1.0) - sb.Linear(c)).prox(v, 0.5), (sb.SquaredL2(1.0) + sb.Linear(-c)).prox(v, 0.5)
    )


def test_sums_of_lists_and_signs(rng):
    v, c = rng.standard_normal((2, 4))
    assert np.allclose(sum([sb.L1(0.5), sb.L1(0.25)]).prox(v, 1.0), sb.L1(0.75).prox(v, 1.0))
    assert np.allclose((-sb.Linear(c)).prox(v, 1.0), v + c)
    with pytest.raises(ValueError, match=r"-1 \* L1"):
        -sb.L1(1.0)
    with pytest.raises(TypeError, match="Squared and Absolute cannot be added: give lists of losses"):
        sb.Squared(v) + sb.Absolute(v)


def test_disjoint_boxes_are_rejected():
    with pytest.raises(ValueError, match="leave nothing at index 0"):
        (sb.Box(0.0, 1.0) + sb.Box(2.0, 3.0)).bind((2,))


def test_a_sum_with_another_type_is_rejected():
    with pytest.raises(TypeError, match="value"):
        sb.L1(1.0) + 3


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: sb.L1(-1.0), "alpha"),
        (lambda: sb.L1(np.nan), "alpha"),
        (lambda: sb.L1([1.0, 2.0]), "single number"),
        (lambda: sb.L1(1.0, [-1.0, 1.0]), "weights"),
        (lambda: sb.ElasticNet(1.0, 1.5), "l1_ratio"),
        (lambda: sb.Box(1.0, 0.0), "lower exceeds upper"),
        (lambda: sb.Box(np.nan, 0.0), "NaN"),
        (lambda: sb.Interval(np.inf, np.inf), "inf"),
        (lambda: sb.Interval([0, 0], [1, 1, 1]), "expected the same"),
        (lambda: sb.Linear([1.0, np.inf]), "c has the value inf"),
        (lambda: sb.Squared([1.0, np.nan]), "b has the value nan"),
        (lambda: sb.Squared([]), "b is empty"),
        (lambda: sb.Squared([1.0], scale=-1), "scale"),
        (lambda: sb.Squared([1.0], sample_weight=[-1.0]), "sample_weight"),
        (lambda: sb.Pinball([1.0], 1.5), "quantile"),
        (lambda: sb.Huber([1.0], -1), "delta"),
        (lambda: sb.Hinge([0, 1, 1]), "two classes -1 and \\+1"),
        (lambda: sb.Logistic([1, 2, 3]), "labels has the values 1, 2, 3"),
        (lambda: sb.Nuclear(1.0, (0, 2)), "shape"),
        (lambda: sb.GroupL2(1.0, 4).bind((6,)), "does not divide"),
        (lambda: sb.GroupL2(1.0, np.array(4)).bind((6,)), "does not divide"),
        (lambda: sb.GroupL2(1.0, [2, 3]).bind((6,)), "sum to 5"),
        (lambda: sb.GroupL2(1.0, [0, 0, 1]).bind((3,)), "for one label per column"),
        (lambda: sb.GroupL2(1.0, ["a", "a", "b"]).bind((3,)), "for one label per column"),
        (lambda: sb.GroupL2(1.0, [["a"], ["b", "c" * 80]]).bind((3,)), r"c\.\.\.: expected"),
        (lambda: sb.GroupL2(1.0, [[0, 1], [1, 2]]).bind((3,)), "partition"),
        (lambda: sb.GroupL2(1.0, [[0, 1], []]).bind((2,)), "non-empty"),
        (lambda: sb.GroupL2(1.0, 3, [1.0]).bind((6,)), "weights has shape"),
    ],
)
def test_bad_parameters(make, match):
    with pytest.raises(ValueError, match=match):
        make()


@pytest.mark.parametrize("bad", [np.array([1j]), np.array(["a"], dtype=object)])
def test_dtypes_that_are_not_real(bad):
    with pytest.raises(TypeError, match="b has dtype"):
        sb.Squared(bad)


@every_function
@examples(30)
@given(x=coarse)
def test_subdifferential_has_the_slopes_to_both_sides(name, x):
    """The ends of the interval are the left and the right derivative, infinite at a bound."""
    f = bound(name)
    x = f.domain.project(x)
    low, high = subdifferential(f, x, np.zeros(SIZE))
    if not np.isfinite(f.value(x)):
        return
    step = 1e-6
    near_low, near_high = subdifferential(f, x, np.full(SIZE, 2 * step))
    clear = (near_low == low) & (near_high == high)  # a difference quotient is wrong if a kink is nearer than its step
    if name in ORDERED:  # only equal residuals count as tied: others may differ by rounding
        distance = np.abs(np.subtract.outer(x - B, x - B))
        clear &= ~np.any((distance > 0) & (distance <= 2 * step), axis=1)
    for d in np.flatnonzero(clear & ~np.isnan(low)):
        for end, direction in ((high[d], step), (-low[d], -step)):
            there = x.copy()
            there[d] += direction
            rise = (f.value(there) - f.value(x)) / step
            if np.isinf(end) or np.isinf(rise):
                assert end == rise
            else:
                assert rise == pytest.approx(end, rel=1e-4 if name in OPEN else 1e-5, abs=1e-4)


@pytest.mark.parametrize("name", [name for name in LOSSES if is_smooth(bound(name)) or "Norm2" in name])
@examples(30)
@given(x=vectors)
def test_curvature_is_the_slope_of_the_gradient(name, x):
    """Equality holds per row away from kinks of the gradient; for losses that are not separable it is a bound."""
    f = bound(name)
    step = 1e-5
    before, after = curvature_at(f, x - step), curvature_at(f, x + step)
    for d in np.flatnonzero(np.isclose(before, after, rtol=1e-3)):
        move = step * (np.arange(SIZE) == d)
        slope = (f.subgradient(x + move)[d] - f.subgradient(x - move)[d]) / (2 * step)
        if len(f.blocks()) < SIZE:
            assert slope <= curvature_at(f, x)[d] * (1 + 1e-3)
        else:
            assert slope == pytest.approx(curvature_at(f, x)[d], rel=1e-2, abs=1e-6)


SUMS_OVER_ROWS = [name for name in FUNCTIONS if isinstance(bound(name), SumOverRows)]


@pytest.mark.parametrize("name", SUMS_OVER_ROWS)
@examples(30)
@given(x=vectors, counts=arrays(float, SIZE, elements=st.floats(0.1, 10)))
def test_a_row_with_a_weight_counts_that_many_times(name, x, counts):
    f = bound(name)
    several = f.with_row_weights(counts)
    inside = f.domain.project(x)
    alone = [f.restrict(np.array([d])).value(inside[[d]]) for d in range(SIZE)]
    assert several.value(inside) == pytest.approx(counts @ alone, rel=1e-9, abs=1e-12)
    weight, signature = f.row_weights(), f.row_signature()
    assert signature.shape[0] == SIZE
    assert np.all(weight > 0)
    assert np.array_equal(f.with_row_weights(np.ones(SIZE)).row_signature(), signature)


@pytest.mark.parametrize("name", SUMS_OVER_ROWS)
@examples(30)
@given(x=vectors, seed=st.integers(0, 1000))
def test_rows_of_one_signature_differ_by_their_weights(name, x, seed):
    """If two rows have the same signature, one function is the other times the ratio of the weights."""
    f = bound(name)
    counts = 2.0 ** np.random.default_rng(seed).integers(-3, 4, SIZE)  # exact numbers, so that equal rows stay equal
    several = f.with_row_weights(counts)
    same = np.all(several.row_signature() == f.row_signature(), axis=1)
    assert np.all(same)
    ratio, inside = several.row_weights() / f.row_weights(), f.domain.project(x)
    for d in np.flatnonzero(same):
        one, other = (part.restrict(np.array([d])).value(inside[[d]]) for part in (f, several))
        assert other == pytest.approx(ratio[d] * one, rel=1e-9, abs=1e-12)


def project_on_l1_ball(x, radius):
    return project_on_l1_balls(x, np.array([radius]), Blocks.single(x.size))


@pytest.mark.parametrize("roundings", range(4))
def test_projection_on_the_l1_ball_ends_next_to_the_ball(roundings, rng):
    """Next to the ball, rounding alone decides which entries are above the threshold: it must not alternate."""
    for trial in range(2000):
        x = rng.standard_normal(5) * (rng.random(5) < 0.6)
        x[trial % 5] = 1e-17 * rng.standard_normal()
        radius = float(np.sum(np.abs(x))) * (1 - roundings * 2**-52)
        projected = project_on_l1_ball(x, radius)
        assert np.allclose(projected, x, rtol=0, atol=1e-14)
        assert np.sum(np.abs(projected)) <= radius * (1 + 1e-14)


def test_projection_on_the_l1_ball_is_that_by_sorting(rng):
    for _ in range(200):
        x, radius = rng.standard_normal(7), float(rng.random() * 3)
        ordered = np.sort(np.abs(x))[::-1]
        thresholds = (np.cumsum(ordered) - radius) / np.arange(1, 8)
        threshold = max(float(thresholds[ordered > thresholds][-1]), 0.0)
        expected = np.sign(x) * np.maximum(np.abs(x) - threshold, 0.0)
        assert np.allclose(project_on_l1_ball(x, radius), expected, atol=1e-14)


@pytest.mark.parametrize("contiguous", [True, False])
@pytest.mark.parametrize("one_radius", [True, False])
def test_the_compiled_projection_on_balls_is_the_formula(contiguous, one_radius, rng):
    sizes = rng.integers(1, 5, 30_000)
    start = np.concatenate([[0], np.cumsum(sizes)])
    n = int(start[-1])
    order = None if contiguous else rng.permutation(n)
    v, radius = rng.standard_normal(n), np.array([1.1]) if one_radius else rng.uniform(0, 2, sizes.size)
    own = np.arange(n) if order is None else order
    norms = np.sqrt(np.add.reduceat(v[own] ** 2, start[:-1]))
    expected = np.empty(n)
    expected[own] = v[own] * np.repeat(np.minimum(1.0, radius / norms), sizes)
    results = []
    for threads in (1, 2):
        before = _native.set_threads(threads)
        try:
            results.append(_native.project_on_balls(v, order, start, radius))
        finally:
            _native.set_threads(before)
    np.testing.assert_allclose(results[0], expected, rtol=1e-14)
    np.testing.assert_array_equal(*results)


def test_bad_arguments_of_the_projection_on_balls_are_rejected():
    three, start = np.ones(3), np.array([0, 1, 3])
    for arguments in (
        (three, None, np.array([0, 2, 1, 3]), three),
        (three, None, np.array([0, 2]), three[:1]),
        (three, None, np.zeros(0, np.int64), three[:1]),
        (three, np.array([0, 1]), start, three[:1]),
        (three, np.array([0, 1, 3]), start, three[:1]),
        (three, None, start, three),
    ):
        with pytest.raises(ValueError, match=r"must|does not exist"):
            _native.project_on_balls(*arguments)
