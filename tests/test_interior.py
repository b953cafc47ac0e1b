"""The interior point: atoms satisfy their equations, and the linear system agrees with dense algebra."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from catalogue import LOSSES, PENALTIES, SIZE, B, Z, has_normal_form
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from scipy import sparse
from scipy.linalg import lapack
from scipy.optimize import brentq

import saddleback as sb
from saddleback import _native
from saddleback.common.arrays import Blocks
from saddleback.functions.normal_form import NormalForm
from saddleback.functions.piecewise import PiecewiseQuadratic
from saddleback.methods.contract import Start
from saddleback.methods.interior import SingularSystem, factored, started
from saddleback.methods.interior.atoms import (
    FAR,
    FAR_CHANGE,
    LACKING,
    NEAR,
    NEAR_CHANGE,
    Bound,
    Cones,
    Entropy,
    Kink,
    Norm,
    Quadratic,
    fastest_change,
    longest_step,
)
from saddleback.methods.interior.barrier import Guess, Stiffness, barrier_at, normalised
from saddleback.methods.interior.system import MOST_LOOSE, ByColumns, ByRows, Whole
from saddleback.methods.interior_point import InteriorPoint, matrix_bytes
from saddleback.operators import Stacked, as_operator

EVERY = np.arange(SIZE)
START = np.array([0, 2])  # groups of two and of four
WEIGHT = np.array([0.8, 1.7])
CONES = Cones(START, np.array([0, 0, 1, 1, 1, 1]))
seeds = st.integers(0, 10_000)


def placed(atom):
    """Return the slope and the diagonal of D of an atom of all coordinates."""
    slope, stiffness = np.zeros(SIZE), np.zeros(SIZE)
    atom.move(0.0, 0.0, slope, stiffness)
    return slope, stiffness


def aimed(atom, mu, corrected=False):
    """Aim an atom, and return e."""
    right = np.zeros(SIZE)
    atom.aim(mu, corrected, right)
    return -right


def followed(atom, dv, stiffness, offset):
    """Let an atom follow dv as the only one of a function, and return the change of its slope."""
    change = dense(Stiffness(stiffness, atom if isinstance(atom, Norm) else None)) @ dv + offset
    atom.follow(dv, rest := change.copy())
    assert np.allclose(rest, 0.0, atol=1e-9 * (1 + np.abs(change).max()))
    return change


# --- atoms on the central path, where the slope is a function of v and mu alone ------------------------------------


def bound_slope(v, mu, side=1):
    return -side * mu / (side * (v - (-5.0 * side)))


def bound_at(v, mu, side=1):
    near = side * (v + 5.0 * side)
    return Bound(EVERY, side, near, mu / near)


LEFT, RIGHT = np.linspace(-2, -0.1, SIZE), np.linspace(0.3, 1.1, SIZE)


def kink_slope(v, mu):
    """Return the k with v = mu / (right - k) - mu / (k - left)."""
    return np.array(
        [
            brentq(lambda k, a=a, c=c, p=p: mu / (c - k) - mu / (k - a) - p, a + 1e-13, c - 1e-13, xtol=1e-15)
            for a, c, p in zip(LEFT, RIGHT, v, strict=True)
        ]
    )


def kink_at(v, mu):
    k = kink_slope(v, mu)
    return Kink(EVERY, LEFT, RIGHT, mu / (RIGHT - k), mu / (k - LEFT), k)


def norm_height(v, mu):
    return mu / (2 * WEIGHT) + np.sqrt((mu / (2 * WEIGHT)) ** 2 + CONES.sums(v * v))


def norm_slope(v, mu):
    """Return the k for which mu times the inverse of (t, v), in the algebra of the cone, is (w, -k)."""
    return (WEIGHT / norm_height(v, mu))[CONES.group] * v


def norm_at(v, mu):
    return Norm(EVERY, START, WEIGHT, norm_height(v, mu), v, norm_slope(v, mu))


CENTRAL = {
    "lower bound": (bound_at, bound_slope),
    "upper bound": (lambda v, mu: bound_at(v, mu, -1), lambda v, mu: bound_slope(v, mu, -1)),
    "kink": (kink_at, kink_slope),
    "norm": (norm_at, norm_slope),
}


@pytest.mark.parametrize("name", CENTRAL)
@examples(15)
@given(seed=seeds, mu=st.floats(0.05, 2.0))
def test_on_the_central_path_the_step_is_the_derivative(name, seed, mu):
    """D and e are the derivatives, in v and in mu, of the slope that the complementarity equations define."""
    at, slope = CENTRAL[name]
    rng = np.random.default_rng(seed)
    v, dv, dmu, step = rng.uniform(-2, 2, SIZE), rng.standard_normal(SIZE), rng.uniform(-0.5, 0.5) * mu, 1e-5
    atom = at(v, mu)
    own, stiffness = placed(atom)
    assert np.allclose(own, slope(v, mu))
    assert atom.total == pytest.approx(atom.degree * mu)
    change = followed(atom, dv, stiffness, aimed(atom, mu + dmu))
    derivative = (slope(v + step * dv, mu + step * dmu) - slope(v - step * dv, mu - step * dmu)) / (2 * step)
    assert np.allclose(change, derivative, atol=1e-6 * (1 + np.abs(derivative).max()))


# --- atoms off the central path, where they solve the linearised equations ------------------------------------------


def off_centre(name, rng):
    if name == "norm":
        k = norm_slope(rng.standard_normal(SIZE), rng.uniform(0.1, 2))
        v = rng.standard_normal(SIZE)
        return Norm(EVERY, START, WEIGHT, np.sqrt(CONES.sums(v * v)) * rng.uniform(1.01, 3, 2), v, k)
    if name == "kink":
        k = LEFT + rng.uniform(0.05, 0.95, SIZE) * (RIGHT - LEFT)
        return Kink(EVERY, LEFT, RIGHT, rng.uniform(0.1, 3, SIZE), rng.uniform(0.1, 3, SIZE), k)
    return Bound(EVERY, 1 if "lower" in name else -1, rng.uniform(0.1, 3, SIZE), rng.uniform(0.1, 3, SIZE))


@pytest.mark.parametrize("name", ["lower bound", "upper bound", "kink"])
@pytest.mark.parametrize("corrected", [False, True])
def test_pairs_solve_their_linearised_equations(name, corrected, rng):
    atom, dv, mu = off_centre(name, rng), rng.standard_normal(SIZE), 0.3
    _, stiffness = placed(atom)
    followed(atom, rng.standard_normal(SIZE), stiffness, aimed(atom, 0.0))
    second = [pair[NEAR_CHANGE] * pair[FAR_CHANGE] for pair in atom.pairs()]
    followed(atom, dv, stiffness, aimed(atom, mu, corrected))
    for pair, before in zip(atom.pairs(), second, strict=True):
        lacking = mu - pair[NEAR] * pair[FAR] - corrected * before
        assert np.allclose(pair[NEAR] * pair[FAR_CHANGE] + pair[FAR] * pair[NEAR_CHANGE], lacking)
    if name == "kink":
        assert np.allclose(atom.up[NEAR_CHANGE] - atom.down[NEAR_CHANGE], dv)
        assert np.allclose(atom.up[FAR_CHANGE], -atom.down[FAR_CHANGE])
    else:
        assert np.allclose(atom.pair[NEAR_CHANGE], dv if "lower" in name else -dv)


def test_atoms_of_some_coordinates_leave_the_others_alone(rng):
    """An atom on a list of coordinates does to them what one of all coordinates does to a shorter vector."""
    at = np.array([4, 1, 5])
    near, far, dv = rng.uniform(0.1, 3, 3), rng.uniform(0.1, 3, 3), rng.standard_normal(SIZE)
    left, right, k = -np.ones(3), np.ones(3), rng.uniform(-0.5, 0.5, 3)
    for make in (
        lambda own: Bound(own, 1, near, far),
        lambda own: Kink(own, left, right, near, far, k),
        lambda own: Kink(own, left, right, near, far, k, absorbs=False),
    ):
        results = []
        for own, size in ((at, SIZE), (None, 3)):
            atom = make(own)
            vectors = [np.zeros(size) for _ in range(4)]
            slope, stiffness, offset, rest = vectors
            atom.move(0.0, 0.0, slope, stiffness)
            atom.aim(0.2, False, offset)
            rest += 0.1
            atom.follow(dv if size == SIZE else dv[at], rest)
            atom.recentre(0.2, 0.9, 0.8, offset)
            results.append((atom, vectors))
        (listed, wide), (whole, narrow) = results
        for each, expected, untouched in zip(wide, narrow, (0, 0, 0, 0.1), strict=True):
            np.testing.assert_array_equal(each[at], expected)
            assert np.all(np.delete(each, at) == untouched)
        assert listed.ahead == whole.ahead
        assert listed.total == whole.total
        np.testing.assert_array_equal(listed.pairs(), whole.pairs())


def test_pairs_have_the_same_bits_with_any_number_of_threads(rng):
    size = 300_000
    near, far, dv = rng.uniform(0.1, 3, size), rng.uniform(0.1, 0.9, size), rng.standard_normal(size)
    results = []
    for threads in (1, 2):
        before = _native.set_threads(threads)
        try:
            for atom in (Bound(None, -1, near, far), Kink(None, -np.ones(size), np.ones(size), near, near, far)):
                slope, stiffness, offset, rest = (np.zeros(size) for _ in range(4))
                atom.aim(0.2, False, offset)
                atom.follow(dv, rest)
                atom.move(1e-3, 1e-3, slope, stiffness)
                results.append((slope, stiffness, offset, rest, np.array([atom.total, *atom.ahead])))
        finally:
            _native.set_threads(before)
    for one, two in zip(results[:2], results[2:], strict=True):
        for first, second in zip(one, two, strict=True):
            np.testing.assert_array_equal(first, second)


def test_bad_arguments_of_the_native_atoms_are_rejected():
    pairs, three, list_ = np.ones((5, 3)), np.ones(3), np.array([0, 1, 3])
    for call in (
        lambda: _native.aim_bounds(np.ones((4, 3)), None, 1.0, 0.1, False, three),
        lambda: _native.aim_bounds(pairs, None, 1.0, 0.1, False, np.ones(4)),
        lambda: _native.aim_bounds(pairs, list_, 1.0, 0.1, False, three),
        lambda: _native.recentre_bounds(pairs, list_[:2], 1.0, 0.1, 1.0, 1.0, three),
        lambda: _native.follow_bounds(pairs, None, 1.0, three, np.ones(4)),
        lambda: _native.move_bounds(pairs, None, 1.0, 1.0, 1.0, three, np.ones(4)),
        lambda: _native.aim_kinks(pairs, np.ones((5, 2)), None, 0.1, False, three),
        lambda: _native.follow_kinks(pairs, np.ones((5, 2)), None, three, True, three),
        lambda: _native.move_kinks(pairs, pairs, None, np.ones(2), three, 1.0, 1.0, three, three),
        lambda: _native.absolute_dot(three, np.ones(4)),
    ):
        with pytest.raises(ValueError, match=r"must|does not exist"):
            call()


def arrow(head, tail):
    """Return the matrix of the product with (head, tail) in the algebra of a cone."""
    matrix = head * np.eye(tail.size + 1)
    matrix[0, 1:] = matrix[1:, 0] = tail
    return matrix


@pytest.mark.parametrize("corrected", [False, True])
def test_norms_solve_their_linearised_equations(corrected, rng):
    """With W the Nesterov-Todd scaling and l = W^-1 near = W far: l o (W^-1 dnear + W dfar) = mu e - l o l."""
    atom, dv, mu = off_centre("norm", rng), rng.standard_normal(SIZE), 0.3
    _, stiffness = placed(atom)
    followed(atom, rng.standard_normal(SIZE), stiffness, aimed(atom, 0.0))
    changes = [(atom.dt.copy(), atom.dv.copy(), atom.dk.copy())]
    followed(atom, dv, stiffness, aimed(atom, mu, corrected))
    changes.append((atom.dt, atom.dv, atom.dk))
    for g, members in enumerate((slice(0, 2), slice(2, 6))):
        size = members.stop - members.start
        W = np.zeros((size + 1, size + 1))
        for column in range(size + 1):
            head, tail = np.zeros(2), np.zeros(SIZE)
            if column == 0:
                head[g] = 1.0
            else:
                tail[members.start + column - 1] = 1.0
            top, rest = atom._scaled(head, tail)
            W[:, column] = [top[g], *rest[members]]
            top, rest = atom._scaled(top, rest, inverse=True)
            assert np.allclose([top[g], *rest[members]], np.eye(size + 1)[column])
        near = np.array([atom.t[g], *atom.v[members]])
        far = np.array([atom.weight[g], *-atom.k[members]])
        scaled = W @ far
        assert np.allclose(W, W.T)
        assert np.all(np.linalg.eigvalsh(W) > 0)
        assert np.allclose(np.linalg.solve(W, near), scaled)
        lacking = mu * np.eye(size + 1)[0] - arrow(scaled[0], scaled[1:]) @ scaled
        steps = []
        for dt, moved, dk in changes:
            d_near = np.linalg.solve(W, np.array([dt[g], *moved[members]]))
            steps.append((d_near, W @ np.array([0.0, *-dk[members]])))
        if corrected:
            d_near, d_far = steps[0]
            lacking -= arrow(d_near[0], d_near[1:]) @ d_far
        assert np.allclose(arrow(scaled[0], scaled[1:]) @ sum(steps[1]), lacking)


@pytest.mark.parametrize("name", ["lower bound", "upper bound", "kink", "norm"])
@examples(30)
@given(seed=seeds)
def test_the_longest_steps_end_at_the_edge(name, seed):
    rng = np.random.default_rng(seed)
    atom = off_centre(name, rng)
    _, stiffness = placed(atom)
    followed(atom, 3 * rng.standard_normal(SIZE), stiffness, aimed(atom, 0.2))

    def inside(near_step, far_step):
        if name == "norm":
            t, v, k = atom.t + near_step * atom.dt, atom.v + near_step * atom.dv, atom.k + far_step * atom.dk
            return bool(np.all(t > np.sqrt(CONES.sums(v * v))) and np.all(np.sqrt(CONES.sums(k * k)) < WEIGHT))
        return all(
            bool(np.all(p[NEAR] + near_step * p[NEAR_CHANGE] > 0) and np.all(p[FAR] + far_step * p[FAR_CHANGE] > 0))
            for p in atom.pairs()
        )

    near, far = atom.longest()
    assert inside(0.999 * near, 0.999 * far)
    assert near == 1.0 or not inside(1.001 * near, 0.0)
    assert far == 1.0 or not inside(0.0, 1.001 * far)
    expected = atom.product(0.9 * near, 0.9 * far)
    atom.move(0.9 * near, 0.9 * far, np.zeros(SIZE), np.zeros(SIZE))
    assert atom.total == pytest.approx(expected, rel=1e-9)


def test_the_longest_step_of_a_vector():
    assert longest_step(fastest_change(np.array([1.0, 2.0]), np.array([-4.0, -1.0]))) == 0.25
    for change in (-0.5, 3.0):
        assert longest_step(fastest_change(np.array([1.0]), np.array([change]))) == 1.0


def test_the_entropy_is_the_conjugate_of_the_logistic_loss(rng):
    weight, share, e = rng.uniform(0.5, 2, SIZE), rng.uniform(0.1, 0.9, SIZE), 1e-5
    loss = sb.Logistic(Z, weight)
    v = -Z * weight * share
    atom = Entropy(EVERY, v, Z, weight)
    numeric = [(loss.conjugate(v + e * d) - loss.conjugate(v - e * d)) / (2 * e) for d in np.eye(SIZE)]
    assert np.allclose(atom.slope(), numeric, atol=1e-6)
    above, below = (Entropy(EVERY, v + s * e, Z, weight).slope() for s in (1, -1))
    assert np.allclose(atom.stiffness(), (above - below) / (2 * e), rtol=1e-5)
    atom.follow(-Z * weight, np.zeros(SIZE))
    assert atom.longest()[0] == pytest.approx((1 - share).min())


def test_the_quadratic_atom_is_its_derivative(rng):
    v, c, q, dv = (rng.standard_normal(SIZE) for _ in range(4))
    atom = Quadratic(EVERY, v, c, np.abs(q))
    before, stiffness = placed(atom)
    change = followed(atom, dv, stiffness, aimed(atom, 0.1))
    atom.move(0.5, 0.1, after := np.zeros(SIZE), np.zeros(SIZE))
    assert np.allclose(after - before, 0.5 * change)


def test_a_central_pair_keeps_its_target_products(rng):
    """Products that a step leaves between CENTRAL mu and mu / CENTRAL are not changed by the recentring."""
    atom = bound_at(rng.uniform(-2, 2, SIZE), 0.5)
    aimed(atom, 0.5)
    atom.follow(np.zeros(SIZE), np.zeros(SIZE))
    before = atom.pair[LACKING].copy()
    for mu, more in ((0.5, 0.0), (50.0, 0.1 * 50.0 - 0.5)):  # for the larger mu all products of 0.5 are too small
        atom.recentre(mu, 1.0, 1.0, offset := np.zeros(SIZE))
        assert np.allclose(atom.pair[LACKING] - before, more)
        assert np.allclose(-offset, -atom.pair[LACKING] / atom.pair[NEAR])


# --- functions as sums of atoms ---------------------------------------------------------------------------------------

COMPILED = {
    name: function
    for name, function in (
        *((name, term.bind((SIZE,))) for name, term in PENALTIES.items()),
        *((name, term.bind((SIZE,)).conjugate()) for name, term in LOSSES.items()),
    )
    if function.normal_form() is not None and "Logistic" not in name
}


@pytest.mark.parametrize("name", COMPILED)
@examples(25)
@given(seed=seeds)
def test_normalised_functions_are_the_same(name, seed):
    """A penalty, or the conjugate of a loss, is the sum of its atoms."""
    function = COMPILED[name]
    blocks = function.blocks()
    slopes, weight, norm = normalised(function.normal_form(), blocks)
    assert np.all(np.isfinite(slopes.left) & np.isfinite(slopes.right))
    assert np.all((slopes.left == slopes.right) | ((slopes.lower < 0) & (slopes.upper > 0)))
    rng = np.random.default_rng(seed)
    v = rng.standard_normal(SIZE) * (rng.random(SIZE) < 0.7)
    for point in (v, function.domain.project(v)):
        value = PiecewiseQuadratic(*slopes).value(point)
        if norm is not None:
            order, start = norm
            value += weight @ np.sqrt(np.add.reduceat(point[order] ** 2, start))
        assert value == pytest.approx(function.value(point), abs=1e-12)


@pytest.mark.parametrize("name", COMPILED)
@examples(25)
@given(seed=seeds, mu=st.sampled_from([1.0, 1e-3, 1e-9]))
def test_barriers_start_inside(name, seed, mu):
    function = COMPILED[name]
    blocks = function.blocks()
    rng = np.random.default_rng(seed)
    guess = Guess(rng.standard_normal(SIZE), rng.standard_normal(SIZE), mu, rng.uniform(0.1, 1, SIZE))
    barrier = barrier_at(function.normal_form(), blocks, guess)
    for pair in barrier.pairs:
        assert np.all(pair[NEAR] > 0)
        assert np.all(pair[FAR] > 0)
    if barrier.norm is not None:
        norm = barrier.norm
        assert np.all(norm.cones.room(norm.t, norm.v) > 0)
        assert np.all(norm.cones.room(norm.weight, norm.k) > 0)
        assert np.array_equal(norm.v, barrier.v[norm.at])
    for kink in (atom for atom in barrier.atoms if isinstance(atom, Kink)):
        assert np.allclose(kink.up[NEAR] - kink.down[NEAR], barrier.v[kink.own])
        assert np.allclose(kink.right - kink.up[FAR], kink.left + kink.down[FAR])
    assert np.allclose(barrier.v, function.domain.project(barrier.v), atol=1e-14)
    assert barrier.product() > 0 or barrier.degree == 0


@pytest.mark.parametrize("name", COMPILED)
def test_a_step_of_a_barrier_adds_up(name, rng):
    """The slopes of the atoms change by the given sum, and the products as predicted."""
    function = COMPILED[name]
    blocks = function.blocks()
    guess = Guess(rng.standard_normal(SIZE), rng.standard_normal(SIZE), 0.1, np.ones(SIZE))
    barrier = barrier_at(function.normal_form(), blocks, guess)
    free = np.isfinite(barrier.stiffness().diagonal)
    offset = -barrier.aim(0.05, False, np.zeros(SIZE))
    dv = np.where(free, 0.1 * rng.standard_normal(SIZE), 0.0)
    change = barrier.stiffness().product(dv) + np.where(free, offset, 0.0)
    barrier.follow(dv, change.copy())
    before, v = barrier.slope, barrier.v.copy()
    near, far = (0.5 * step for step in barrier.longest())
    far = near if barrier.curved else far
    expected = barrier.product(near, far)
    barrier.move(near, far)
    assert np.allclose(barrier.v, v + near * dv)
    assert np.allclose((barrier.slope - before)[free], far * change[free], atol=1e-10)
    assert barrier.product() == pytest.approx(expected, rel=1e-9)


def test_slopes_of_kinks_and_norms_absorb_rounding(rng):
    for function in (COMPILED["SparseGroup"], COMPILED["L1"], COMPILED["GroupL2"]):
        guess = Guess(rng.standard_normal(SIZE), rng.standard_normal(SIZE), 0.1, np.ones(SIZE))
        barrier = barrier_at(function.normal_form(), function.blocks(), guess)
        barrier.aim(0.05, False, np.zeros(SIZE))
        dv, wanted = rng.standard_normal(SIZE), rng.standard_normal(SIZE)
        barrier.follow(dv, wanted.copy())
        before, step = barrier.slope, 1e-3
        barrier.move(step, step)
        assert np.allclose(barrier.slope - before, step * wanted)


# --- the matrices D -------------------------------------------------------------------------------------------------


def dense(stiffness):
    return np.column_stack([stiffness.product(column) for column in np.eye(stiffness.diagonal.size)])


def random_stiffness(rng, fixed=False, zero=False):
    """Return a random D with a diagonal and two norms; outside the norms some entries are fixed or have D = 0."""
    norm = off_centre("norm", rng)
    at = rng.permutation(SIZE + 3)[:SIZE]
    norm.at = at
    rest = np.setdiff1d(np.arange(SIZE + 3), at)
    diagonal = 10.0 ** rng.uniform(-3, 3, SIZE + 3)
    diagonal[at] += norm.eta[norm.cones.group] ** -2
    if fixed:
        diagonal[rest[0]] = np.inf
    if zero:
        diagonal[rest[1]] = 0.0
    return Stiffness(diagonal, norm)


@examples(20)
@given(seed=seeds)
def test_stiffness_in_its_three_forms(seed):
    stiffness = random_stiffness(np.random.default_rng(seed), fixed=True)
    free = np.flatnonzero(np.isfinite(stiffness.diagonal))
    matrix = np.zeros((free.size, free.size))
    stiffness.add_to(matrix)
    expected = dense(stiffness)[np.ix_(free, free)]
    assert np.allclose(np.tril(matrix), np.tril(expected))
    assert np.all(np.linalg.eigvalsh(expected) > 0)
    inverse = stiffness.inverse()
    product = np.column_stack([inverse.product(column) for column in np.eye(SIZE + 3)])
    assert np.allclose(product[np.ix_(free, free)] @ expected, np.eye(free.size), atol=1e-9)
    assert not np.any(product[~np.isfinite(stiffness.diagonal)])
    directions = inverse.directions()
    assert np.allclose(np.diag(inverse.diagonal) + (directions * inverse.scale) @ directions.T.toarray(), product)


def exact_solution(matrix, right):
    """Return the solution by Gaussian elimination in rational numbers."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for i in range(size):
        for j in range(size):
            if j != i:
                factor = rows[j][i] / rows[i][i]
                rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i], strict=True)]
    return [float(rows[i][size] / rows[i][i]) for i in range(size)]


@pytest.mark.parametrize("close", [1e-2, 1e-6, 1e-10, 1e-14])
@pytest.mark.parametrize("extra", [0.0, 1e-6, 1e4])
def test_the_inverse_keeps_its_digits_at_the_edge_of_a_cone(close, extra, rng):
    v = np.array([1.0, -2.0, 0.5])
    norm = np.linalg.norm(v)
    atom = Norm(np.arange(3), np.array([0]), np.array([1.0]), np.array([norm * (1 + close)]), v, (1 - close) * v / norm)
    e, q = Fraction(float(atom.eta[0])) ** -2, [Fraction(float(entry)) for entry in atom.q]
    along = 2 * e / (1 + 2 * sum(entry * entry for entry in q))
    right = rng.standard_normal(3)
    matrix = [[(i == j) * (e + Fraction(extra)) - along * q[i] * q[j] for j in range(3)] for i in range(3)]
    exact = exact_solution(matrix, [Fraction(float(entry)) for entry in right])
    found = Stiffness(np.full(3, float(e)) + extra, atom).inverse().product(right)
    assert np.allclose(found, exact, rtol=1e-10 if extra == 0 else 1e-6, atol=0)


# --- the linear system ------------------------------------------------------------------------------------------------

MATRICES = {
    "dense": lambda A: as_operator(A, "A").ordered("columns"),
    "csc": lambda A: as_operator(sparse.csc_matrix(A), "A").ordered("columns"),
    "csr": lambda A: as_operator(sparse.csr_matrix(A), "A").ordered("columns"),
    "stacked": lambda A: Stacked(
        [as_operator(np.asfortranarray(A[:, :4]), "A"), as_operator(sparse.csc_matrix(A[:, 4:]), "A")]
    ),
}


@pytest.mark.parametrize("form", [ByColumns, ByRows, Whole])
@pytest.mark.parametrize("matrix", MATRICES)
@examples(8)
@given(seed=seeds, m=st.integers(1, 14), fixed=st.booleans())
def test_every_form_gives_the_direction_of_the_dense_system(form, matrix, seed, m, fixed):
    rng = np.random.default_rng(seed)
    n = SIZE + 3
    A = rng.standard_normal((m, n)) * (rng.random((m, n)) < 0.7)
    f = random_stiffness(rng, fixed, zero=form is not Whole and m > 3 * n)
    g = Stiffness(10.0 ** rng.uniform(-2, 2, m), None)
    if fixed and m > 1:
        g.diagonal[0] = np.inf
    columns, rows = (np.flatnonzero(np.isfinite(side.diagonal)) for side in (f, g))
    own = A[np.ix_(rows, columns)]
    D = dense(f)[np.ix_(columns, columns)]
    r, s = rng.standard_normal(n), rng.standard_normal(m)
    whole = np.block([[D, own.T], [-own, np.diag(g.diagonal[rows])]])
    expected = np.linalg.solve(whole, np.concatenate([r[columns], s[rows]]))
    found = form(MATRICES[matrix](A), f, g).refined(r, s)
    assert np.allclose(np.concatenate([found.dx[columns], found.dy[rows]]), expected, rtol=1e-7, atol=1e-9)
    assert np.count_nonzero(found.dx) <= columns.size
    assert np.count_nonzero(found.dy) <= rows.size
    assert np.allclose(found.u, A @ found.dx)
    assert np.allclose(found.z, A.T @ found.dy)


def test_the_form_follows_from_the_sizes_and_the_zeros(rng):
    def chosen(m, n, zero_f=False, zero_g=False):
        f, g = Stiffness(np.ones(n), None), Stiffness(np.ones(m), None)
        f.diagonal[0] *= not zero_f
        g.diagonal[0] *= not zero_g
        return type(factored(as_operator(rng.standard_normal((m, n)), "A"), f, g))

    assert chosen(9, 4) is ByColumns
    assert chosen(4, 9) is ByRows
    assert chosen(4, 9, zero_f=True) is ByRows
    assert chosen(9, 4, zero_g=True) is Whole
    assert chosen(4, 9, zero_f=True, zero_g=True) is Whole
    loose = Stiffness(np.where(np.arange(60) < MOST_LOOSE + 1, 0.0, 1.0), None)
    assert (
        type(factored(as_operator(rng.standard_normal((30, 60)), "A"), loose, Stiffness(np.ones(30), None)))
        is ByColumns
    )


@pytest.mark.parametrize("is_sparse", [False, True])
def test_wide_data_with_an_intercept_take_a_matrix_of_the_size_of_the_rows(is_sparse, rng):
    """Also if a free column occurs twice, so that only the sum of its two coefficients is determined."""
    A, b = rng.standard_normal((40, 900)), rng.standard_normal(40)
    ones = np.ones((40, 2))
    parts = [sparse.csc_array(A) if is_sparse else A, ones]
    problem = sb.Problem([sb.SquaredL2(1.0), sb.Zero()], parts, sb.Absolute(b))
    assert matrix_bytes(problem.model) == 16.0 * 40**2
    result = sb.solve(problem, method="finish", tol=1e-9)
    assert result.status is sb.Status.OPTIMAL
    assert result.settings["finish_steps"] < 30
    single = sb.Problem([sb.SquaredL2(1.0), sb.Zero()], [A, ones[:, :1]], sb.Absolute(b))
    other = sb.solve(single, method="sp-bcd", finish=False, tol=1e-7, max_passes=100_000)
    assert result.objective == pytest.approx(other.objective, rel=1e-6)


@pytest.mark.parametrize("form", [ByColumns, ByRows, Whole])
def test_equal_rows_and_columns_still_have_a_direction(form, rng):
    """A singular matrix is shifted, and iterative refinement corrects for the shift."""
    A = rng.standard_normal((6, 1)) @ np.ones((1, 8))
    f, g = Stiffness(np.full(8, 1e-14), None), Stiffness(np.full(6, 1e-14), None)
    found = form(as_operator(A, "A"), f, g).refined(A.T @ np.ones(6), A @ np.ones(8))
    assert np.all(np.isfinite(found.dx))
    assert np.all(np.isfinite(found.dy))


def test_a_system_that_is_not_finite_counts_as_singular():
    system = ByColumns(as_operator(np.eye(2), "A"), Stiffness(np.ones(2), None), Stiffness(np.ones(2), None))
    with pytest.raises(SingularSystem):
        system.refined(np.array([np.nan, 1.0]), np.ones(2))
    with pytest.raises(SingularSystem):
        ByColumns(as_operator(np.eye(2), "A"), Stiffness(np.ones(2), None), Stiffness(np.array([np.nan, 1.0]), None))


# --- the start and the steps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [name for name in LOSSES if has_normal_form(name)])
@pytest.mark.parametrize("penalty", [name for name in PENALTIES if has_normal_form(name)])
def test_every_start_is_inside(penalty, loss, rng):
    model = sb.Problem(PENALTIES[penalty], rng.standard_normal((SIZE, SIZE)), LOSSES[loss]).model
    x, y = np.zeros(SIZE), np.zeros(SIZE)
    for barrier in started(model, x, y, model.A.matvec(x), -model.A.rmatvec(y)):
        for pair in barrier.pairs:
            assert np.all(pair[NEAR] > 0)
            assert np.all(pair[FAR] > 0)
        assert np.all(np.isfinite(barrier.v))
        assert np.all(np.isfinite(barrier.slope))


def test_the_method_by_itself_converges_from_zero(rng):
    A, b = rng.standard_normal((30, 8)), rng.standard_normal(30)
    problem = sb.Problem(sb.L1(1.0), A, sb.Absolute(b))
    method = InteriorPoint()
    state = method.init(problem.model, Start(np.zeros(8), np.zeros(30)))
    for _ in range(30):
        state = method.advance(state, 1.0)
    assert sb.certify(problem, state.x, state.y).error < 1e-9
    candidates = method.candidates(state)
    assert np.allclose(candidates.primal[0][1], A @ candidates.primal[0][0])
    assert np.allclose(candidates.dual[0][1], -A.T @ candidates.dual[0][0])
    assert state.report().finish_steps <= 30
    assert state.passes > 30


def test_memory_is_bounded_before_anything_is_factored(rng):
    model = sb.Problem(sb.L1(1.0), rng.standard_normal((30, 8)), sb.Absolute(np.ones(30))).model
    small = InteriorPoint(memory=matrix_bytes(model) - 1).init(model, Start(np.zeros(8), np.zeros(30)))
    assert small.ended
    assert "finish_memory" in small.ended
    assert not InteriorPoint(memory=matrix_bytes(model)).init(model, Start(np.zeros(8), np.zeros(30))).ended


@pytest.mark.parametrize(
    ("problem", "lacking"),
    [
        (lambda: sb.Problem(sb.Nuclear(1.0, (2, 3)), np.eye(6), sb.Squared(B)), "penalty"),
        (lambda: sb.Problem(sb.L1(1.0), np.eye(6), sb.Norm2(B)), "loss"),
        (lambda: sb.Problem(sb.L1(1.0), np.eye(3), sb.Squared(np.ones((3, 2)))), "one task"),
        (lambda: sb.Problem([sb.L1(1.0)], [sb.Identity()], sb.Absolute(B)), "matrix"),
    ],
)
def test_what_is_missing_is_named(problem, lacking):
    assert lacking in InteriorPoint().missing(problem().model)


def test_rows_without_weight_have_no_variable():
    """Rows without weight have a dual variable that is fixed at 0."""
    compiled = sb.Hinge(Z, np.array([1.0, 0, 1, 0, 2, 1])).bind((SIZE,)).conjugate().normal_form()
    assert isinstance(compiled, NormalForm)
    barrier = barrier_at(compiled, Blocks.scalars(SIZE), Guess(np.ones(SIZE), np.ones(SIZE), 0.1, np.ones(SIZE)))
    assert np.array_equal(barrier.fixed, [1, 3])
    assert not np.any(barrier.v[[1, 3]])
    assert np.all(np.isinf(barrier.stiffness().diagonal[[1, 3]]))


def test_the_whole_matrix_is_factored_in_blocks(monkeypatch):
    """With less workspace LAPACK uses its unblocked code, which is several times slower."""
    seen, factor = [], lapack.dsytrf

    def noting(matrix, **options):
        seen.append(options["lwork"] / matrix.shape[0])
        return factor(matrix, **options)

    monkeypatch.setattr(lapack, "dsytrf", noting)
    A = np.random.default_rng(0).standard_normal((20, 30))
    problem = sb.Problem(sb.L1(1.0, weights=np.arange(30.0) % 3), A, sb.Equality(A @ np.ones(30)))
    assert sb.solve(problem, method="finish").status is sb.Status.OPTIMAL
    assert seen
    assert min(seen) >= 16
