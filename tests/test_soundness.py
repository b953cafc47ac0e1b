"""Pairs of points and problems on which certificates have been wrong: each is judged rightly, or says what is wrong.

Most of them have columns or rows of very different units, where a norm over all of them forgives what belongs to one.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import exact_simplex
import numpy as np
import pytest
from exact_functions import SIXTY_DIGITS, exact, exactly
from known_optima import known
from scipy import sparse
from scipy.special import expit

import saddleback as sb

ALMOST = 1e-12
"""What a value may miss relatively, where only the sum of the test itself is rounded."""


def assert_wrong_by(certificate: sb.Certificate, objective: float, optimum: float) -> None:
    """Assert that a certificate knows the objective and the optimum of a point that is no optimum."""
    assert certificate.primal_value == pytest.approx(objective, rel=1e-9)
    assert certificate.dual_value <= optimum * (1 + ALMOST)
    assert certificate.error >= 0.9 * (objective - optimum) / max(abs(objective), abs(optimum))


def exact_objective(problem: sb.Problem, x: np.ndarray) -> Fraction:
    """Return the objective at x, in rational arithmetic and 60 digits."""
    A = [[Fraction(float(a)) for a in row] for row in problem.A]
    u = [sum((a * Fraction(float(v)) for a, v in zip(row, x, strict=True)), Fraction(0)) for row in A]
    g, f = exact(problem.model.g), exact(problem.model.f)
    assert g is not None
    assert f is not None
    with localcontext(SIXTY_DIGITS):
        image = [Decimal(v.numerator) / Decimal(v.denominator) for v in u]
        return Fraction(g.value(image)) + Fraction(f.value(exactly(x)))


# --- columns and rows of different units ------------------------------------------------------------------------------


def diagonal() -> sb.Problem:
    """Return three fits side by side, of which the second is in units of 1e-14 of the others."""
    A, b = np.diag([1e7, 1e-7, 1e7]), np.array([1.0, 1.0, 2.0])
    return sb.Problem(sb.L1(1.0, weights=[0.0, 0.0, 1e7]), A, sb.Squared(b))


@pytest.mark.parametrize(("second", "objective"), [(0.0, 2.0), (1e7, 1.5)])
def test_a_slope_is_not_forgiven_by_those_of_other_columns(second: float, objective: float) -> None:
    problem, x = diagonal(), np.array([1e-7, second, 1e-7])
    certificate = sb.certify(problem, x, problem.A @ x - problem.loss.b)
    assert_wrong_by(certificate, objective, 1.5)
    assert certificate.within(1e-6) is (objective == 1.5)
    assert sb.solve(problem).objective == pytest.approx(1.5)


def assert_fits_in_units(seed: int, loss: str, units: list[int] | None) -> bool:
    """Assert that no fit in other units is OPTIMAL at another value; return whether it is OPTIMAL.

    Two of three columns have no penalty. ``units`` are exponents of the columns, by default random ones up to 40.
    """
    rng = np.random.default_rng(seed)
    A, b = np.round(rng.standard_normal((8, 3)) * 64) / 64, np.round(rng.standard_normal(8) * 64) / 16
    alpha = np.array([0.0, 0.0, rng.choice([0.25, 0.5, 1.0])])
    columns = np.ldexp(1.0, rng.integers(-40, 41, 3) if units is None else np.array(units))
    fitted = {"squared": sb.Squared, "pinball": sb.Pinball, "expectile": sb.Expectile, "huber": sb.Huber}[loss]
    g = fitted(b) if loss == "squared" else fitted(b, 0.25)
    best = sb.solve(sb.Problem(sb.L1(1.0, weights=alpha), A, g), tol=1e-9, max_passes=20_000)
    assert best.certificate.error <= 1e-8
    result = sb.solve(sb.Problem(sb.L1(1.0, weights=alpha * columns), A * columns, g), max_passes=1000)
    if result.certificate.proved:
        assert result.certificate.dual_value <= best.objective
    if result.status is sb.Status.OPTIMAL:
        assert result.objective <= best.certificate.dual_value + 1.1e-6 * abs(best.objective) + 1e-12
    return result.status is sb.Status.OPTIMAL


@pytest.mark.parametrize("loss", ["squared", "pinball", "expectile", "huber"])
def test_no_fit_with_free_columns_in_any_units_is_wrong(loss: str) -> None:
    assert sum(assert_fits_in_units(seed, loss, None) for seed in range(12)) >= 5


@pytest.mark.slow
def test_no_expectile_fit_of_326_is_wrong() -> None:
    """Units of about 1e6, 1e-7 and 1e8, in which ten of 326 fits were wrong."""
    for seed in range(326):
        assert_fits_in_units(seed, "expectile", [20, -23, 27])


@pytest.mark.slow
def test_no_fit_of_537_is_wrong() -> None:
    losses = ["squared", "pinball", "expectile", "huber"]
    assert sum(assert_fits_in_units(seed, losses[seed % 4], None) for seed in range(537)) >= 400


def test_33_free_columns_are_balanced_like_one() -> None:
    """The first column is far from its optimum of 1, which the others do not forgive."""
    A, b = np.diag(np.append(2.0**-30, np.full(33, 2.0**10))), np.append(2.0**-30, np.full(33, 2.0**10))
    x = np.append(0.5, np.ones(33))
    problem = sb.Problem(sb.Zero(), A, sb.Squared(b))
    bounds = sb.bounds(problem, x, A @ x - b)
    assert np.all(bounds.lower <= 1.0)
    assert np.all(bounds.upper >= 1.0)
    assert bounds.fitted.lower[0] <= b[0] <= bounds.fitted.upper[0]
    certificate = sb.certify(problem, x, A @ x - b)
    assert certificate.dual_value <= 0.0 < certificate.primal_value <= certificate.gap


def test_a_floor_is_no_product_of_norms() -> None:
    c = np.array([1e9, 1e-9])
    problem = sb.Problem(sb.Linear(c), np.eye(2), sb.Interval([1e-9, 1e9], np.inf))
    assert_wrong_by(sb.certify(problem, [1e-7, 1e9], -c), 101.0, 2.0)
    assert sb.certify(problem, [1e-9, 1e9], -c).error <= 1e-12
    result = sb.solve(problem)
    assert result.status is sb.Status.OPTIMAL
    assert result.objective == pytest.approx(2.0)


@pytest.mark.parametrize("offset", [0.0, 2.0**20, 2.0**30, 2.0**39])
def test_an_offset_does_not_lift_the_bound_above_the_optimum(offset: float) -> None:
    """With an intercept, targets that are 1e12 too large have the same optimum."""
    rng = np.random.default_rng(0)
    A = np.column_stack([np.ones(200), np.round(rng.standard_normal((200, 2)) * 64) / 64])
    b = np.round((A @ [0.0, 1.0, 2.0] + rng.standard_normal(200)) * 64) / 64
    penalty = sb.L1(1.0, weights=[0.0, 1.0, 1.0])
    best = sb.solve(sb.Problem(penalty, A, sb.Squared(b)), tol=1e-12)
    assert best.certificate.error <= 1e-11
    problem = sb.Problem(penalty, A, sb.Squared(b + offset))
    result = sb.solve(problem, tol=1e-6)
    certificate = result.certificate
    assert certificate.proved
    assert certificate.attained
    assert certificate.dual_value <= best.certificate.primal_value
    assert best.certificate.dual_value <= certificate.primal_value
    assert exact_objective(problem, result.x) <= Fraction(certificate.primal_value)
    assert result.status.solved
    assert certificate.primal_value == pytest.approx(best.objective, rel=1e-5)


# --- a floor that nothing can blow up, and violations that are more than rounding -------------------------------------


def test_the_radius_of_a_balanced_point_hides_no_gap() -> None:
    """Two free columns that are nearly equal leave rounding in y, which is worth much at a bound of 1e12."""
    rng, m = np.random.default_rng(3), 40
    d = rng.integers(-8, 9, m).astype(float)
    y = 10 * rng.standard_normal(m)
    basis = np.column_stack([np.ones(m), d])
    y -= basis @ np.linalg.lstsq(basis, y, rcond=None)[0]
    A, x = np.column_stack([np.ones(m), np.ones(m) + d * 2.0**-36, np.ones(m)]), np.array([1.0, 0.0, 0.0])
    penalty = sb.Linear([0.0, 0.0, -1e-9]) + sb.Box([-np.inf, -np.inf, 0.0], [np.inf, np.inf, 1e12])
    problem = sb.Problem(penalty, A, sb.Squared(A @ x - y))
    better = np.array([1.0 - 1e12, 0.0, 1e12])
    assert_wrong_by(sb.certify(problem, x, y), y @ y / 2, sb.certify(problem, better, y).primal_value)
    for passes in (200, 2000):
        result = sb.solve(problem, max_passes=passes)
        assert not result.status.solved
        assert result.objective <= problem.loss.b @ problem.loss.b / 2  # no worse than x = 0


def test_a_slope_is_forgiven_by_the_rounding_of_its_own_product_alone() -> None:
    rng, m = np.random.default_rng(0), 1000
    d = np.where(np.arange(m) % 2 == 0, 1.0, -1.0)
    A = np.column_stack([np.ones(m), np.ones(m) + d * 2.0**-45])
    b = 10 * d + np.round(rng.standard_normal(m) * 64) / 640
    basis = np.column_stack([np.ones(m), d])
    rest = b - basis @ np.linalg.lstsq(basis, b, rcond=None)[0]
    problem, x = sb.Problem(sb.Zero(), A, sb.Squared(b)), np.array([b.mean(), 0.0])
    certificate = sb.certify(problem, x, A @ x - b)
    assert_wrong_by(certificate, np.sum((b - b.mean()) ** 2) / 2, rest @ rest / 2)
    assert not certificate.limited(1e-6)
    result = sb.solve(problem, max_passes=200)
    assert not result.status.solved or result.objective == pytest.approx(rest @ rest / 2, rel=1e-5)


@pytest.mark.parametrize("length", [2.0**38, 2.0**42, 2.0**46])
def test_a_long_point_along_equal_columns_hides_no_gap(length: float) -> None:
    rng, m = np.random.default_rng(0), 20
    b = np.sort(np.round(rng.standard_normal(m) * 64) / 64)
    median = b[m // 2 - 1]
    y = np.sign(median - b)
    y[m // 2 - 1] = -y.sum()
    problem = sb.Problem(sb.Zero(), np.ones((m, 2)), sb.Pinball(b, 0.5, scale=2.0))
    sum_of_both = np.round((median + 0.3) * 64) / 64
    certificate = sb.certify(problem, [length, sum_of_both - length], y)
    assert_wrong_by(certificate, np.abs(sum_of_both - b).sum(), np.abs(median - b).sum())
    assert not certificate.limited(1e-6)


@pytest.mark.parametrize("off", [0.0, 2.0**-30, 2.0**-10])
def test_intervals_of_columns_that_are_not_orthogonal(off: float) -> None:
    """An inverse that is verified column by column says nothing about single entries of a residual."""
    e = 0.125
    A = np.linalg.cholesky(np.array([[1.0, e], [e, 1.0]])).T
    problem = sb.Problem(sb.SquaredL2(0.0) + sb.L1(0.0), A, sb.Squared(A @ [1.0, 1.0]))
    x = np.array([1.0, 1.0 + off])
    bounds = sb.bounds(problem, x, A @ x - problem.loss.b)
    assert np.all(bounds.lower <= 1.0)
    assert np.all(bounds.upper >= 1.0)


def test_products_that_underflow_prove_nothing() -> None:
    """The optimum is 0, and A'y is 0 only because the product underflows."""
    problem = sb.Problem(sb.Zero(), np.array([[2.0**-200]]), sb.Pinball([2.0**250], 0.5))
    certificate = sb.certify(problem, [0.0], [-(2.0**-880)])
    assert not certificate.proved or certificate.dual_value <= 0
    assert certificate.error >= 0.9


def test_an_optimum_of_zero_is_recognised_next_to_a_bound_that_rounds() -> None:
    """The columns prove 0 up to the rounding of y, and no term of the objective says what that is relative to."""
    problem = sb.Problem(
        sb.Linear([-1.1, 1.0]) + sb.NonNegative(), [[-0.7, 0.6], [1.6, -0.7]], sb.Interval([0.0, -1.0], [0.7, 0.0])
    )
    result = sb.solve(problem, max_passes=200)
    assert result.status.solved
    assert result.x.tolist() == [0.0, 0.0]


# --- the same in other units ------------------------------------------------------------------------------------------


def figures(certificate: sb.Certificate) -> dict[str, float]:
    """Return what has no unit."""
    values = ("primal_value", "dual_value", "gap", "floor")
    return {name: value for name, value in certificate.to_dict().items() if name not in values}


@pytest.mark.parametrize("power", [-40, -1, 1, 40])
def test_a_length_just_above_a_power_of_two_has_no_special_unit(power: int) -> None:
    A, y = np.array([[1.0 + 2.0**-52, 1.0], [0.0, 1.0]]), np.array([0.5, -0.25])
    unit = np.array([2.0**power, 1.0])
    here, there = (
        sb.certify(sb.Problem(sb.L1(1.0, weights=[0.0, w[1]]), A * w, sb.Squared([1.0, 2.0])), [0.0, 0.5] / w, y)
        for w in (np.ones(2), unit)
    )
    assert figures(here) == pytest.approx(figures(there), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("power", [-60, -40, 0, 40])
def test_a_small_linear_term_beside_a_group_is_no_0(power: int) -> None:
    """Without a weight the group is free, and the objective falls along its linear term."""
    unit = 2.0**power
    penalty = sb.GroupL2(1.0, [2], [0.0]) + sb.Linear([unit, unit])
    problem = sb.Problem(penalty, np.zeros((1, 2)), sb.Absolute([1.0]))
    assert not sb.certify(problem, np.zeros(2), np.zeros(1)).proved
    assert sb.certify(problem, np.zeros(2), np.zeros(1)).dual_infeasibility == 1.0
    assert sb.solve(problem).status is sb.Status.UNBOUNDED


@pytest.mark.parametrize("power", [-40, -2, 2, 40])
def test_an_even_power_in_the_objective_changes_no_bit(power: int) -> None:
    rng, s = np.random.default_rng(5), 2.0**power
    A = np.column_stack([np.ones(12), rng.standard_normal((12, 2))])
    weight, b, x = rng.uniform(0.1, 5.0, 12), 10 * rng.standard_normal(12), rng.standard_normal(3)
    y = weight * (A @ x - b) + 1e-3 * rng.standard_normal(12)
    here, there = (
        sb.certify(sb.Problem(sb.L1(t, weights=[0.0, 0.0, 0.5]), A, sb.Squared(b, weight * t)), x, y * t)
        for t in (1.0, s)
    )
    assert figures(here) == figures(there)
    assert here.primal_value * s == there.primal_value
    assert here.dual_value * s == there.dual_value


def test_rows_that_tie_in_their_units_have_one_verdict() -> None:
    """A mean of exponents that is rounded ties here, and would fall to one side or the other."""
    rng, n = np.random.default_rng(0), 10_000
    A = np.ones((2, n))
    A[1, :5363] = 2.0
    cost, bound = rng.integers(1, 9, n).astype(float), A @ np.append(np.ones(5), np.zeros(n - 5))
    found = []
    for _ in range(3):
        columns, rows = rng.integers(-40, 41, n), rng.integers(-40, 41, 2)
        entries = sparse.csc_array(np.ldexp(A, rows[:, None] + columns))
        penalty = sb.Linear(np.ldexp(cost, columns)) + sb.NonNegative()
        result = sb.solve(sb.Problem(penalty, entries, sb.Interval(np.ldexp(bound, rows), np.inf)), "highs")
        found.append(np.ldexp(result.x, columns))
        assert result.status is sb.Status.OPTIMAL
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


@pytest.mark.parametrize("seed", range(3))
def test_known_optima_have_the_same_verdict_in_other_units(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = known(rng, free=2)
    twin = case.in_units(np.ldexp(1.0, rng.integers(-40, 41, case.b.size)), np.ones(case.penalty.size), 1.0)
    here, there = (sb.certify(each.problem, each.optima[0], each.y) for each in (case, twin))
    assert figures(here) == pytest.approx(figures(there), rel=1e-9, abs=1e-12)
    assert here.error <= 1e-9


# --- groups, logarithms, constraints ----------------------------------------------------------------------------------


def test_a_group_outside_of_its_ball_counts_if_no_factor_of_y_can_help() -> None:
    """The cost of another column keeps y from being scaled."""
    penalties = [sb.GroupL2(1.0, [2], [1.0]), sb.Linear([-1.0]) + sb.NonNegative()]
    losses = [sb.Squared([10.0, 10.0]), sb.Interval([-np.inf], [1.0])]
    problem = sb.Problem(penalties, [[np.eye(2), None], [None, np.eye(1)]], losses)
    certificate = sb.certify(problem, [np.zeros(2), np.ones(1)], [np.array([-10.0, -10.0]), np.ones(1)])
    optimum = np.sqrt(200.0) - 1.5
    assert certificate.error >= 0.8
    assert not certificate.proved or certificate.dual_value <= optimum
    result = sb.solve(problem)
    assert result.status is sb.Status.OPTIMAL
    assert result.objective == pytest.approx(optimum, rel=1e-5)


@pytest.mark.parametrize("scale", [0.5, 8.0, 60.0, 800.0])
def test_logarithms_are_bounded_on_both_sides(scale: float) -> None:
    """Objective and dual value against 60 digits, for margins of all sizes."""
    rng, labels = np.random.default_rng(1), np.array([1.0, -1.0, 1.0, 1.0])
    A = np.round(rng.standard_normal((4, 2)) * 64) / 64
    problem = sb.Problem(sb.L1(2.0**-10), A, sb.Logistic(labels))
    for _ in range(10):
        x = np.round(scale * rng.standard_normal(2) * 64) / 64
        y = -labels * expit(-labels * (A @ x))
        certificate = sb.certify(problem, x, y)
        value = exact_objective(problem, x)
        assert certificate.attained
        assert value <= Fraction(certificate.primal_value)
        assert Fraction(certificate.primal_value) <= value * (1 + Fraction(1, 10**9))
        assert certificate.dual_value <= certificate.primal_value


@pytest.mark.parametrize("passes", [1, 5, 20, 50])
def test_the_bound_of_an_image_that_is_not_done_is_a_bound(passes: int) -> None:
    """Inpainting: every pixel is free, and half of them are seen."""
    rng, size = np.random.default_rng(0), 16
    image = np.zeros((size, size))
    image[4:12, 4:12] = 1.0
    image += 0.1 * rng.standard_normal((size, size))
    seen = sparse.eye_array(size * size).tocsr()[rng.random(size * size) < 0.5]
    losses = [sb.Squared(seen @ image.ravel()), sb.GroupL2(0.1, 2)]
    problem = sb.Problem(sb.Zero(), [seen, sb.Differences(shape=(size, size))], losses)
    best = sb.solve(problem, tol=1e-5)
    assert best.status is sb.Status.OPTIMAL
    result = sb.solve(problem, max_passes=passes)
    certificate = result.certificate
    assert certificate.dual_value <= best.objective
    assert certificate.proved
    assert certificate.relative_gap >= (result.objective - best.objective) / result.objective
    start = sb.certify(problem, np.zeros(size * size))
    assert result.objective <= start.primal_value  # no worse than where it began


@pytest.mark.parametrize("entry", [0.0, 1e-16, 1e-8])
@pytest.mark.parametrize("loss", [sb.Absolute, sb.Squared])
def test_a_row_of_rounding_size_is_nothing_else_than_a_row_of_zeros(loss: type, entry: float) -> None:
    rng = np.random.default_rng(0)
    A = np.vstack([rng.standard_normal((300, 40)), np.zeros(40)])
    b = np.append(A[:300] @ np.append(np.ones(5), np.zeros(35)) + 0.1 * rng.standard_normal(300), 0.05)
    expected = sb.solve(sb.Problem(sb.L1(0.5), A, loss(b)), tol=1e-8).objective
    A[300, 3] = entry
    result = sb.solve(sb.Problem(sb.L1(0.5), A, loss(b)), max_passes=1000)
    assert result.status is sb.Status.OPTIMAL
    assert result.objective == pytest.approx(expected, rel=2e-6)


@pytest.mark.parametrize("variation", [False, True])
def test_counts_behind_a_blur_are_certified(variation: bool) -> None:
    rng, size = np.random.default_rng(0), 12
    image = np.ones((size, size))
    image[3:9, 3:9] = 6.0
    blur = sparse.diags_array(
        [np.full(size - 1, 0.25), np.full(size, 0.5), np.full(size - 1, 0.25)], offsets=[-1, 0, 1]
    )
    K = sparse.csr_array(sparse.kron(blur, blur))
    loss = sb.KullbackLeibler(rng.poisson(20.0 * (K @ image.ravel())).astype(float))
    problem = sb.Problem(sb.NonNegative(), K, loss)
    if variation:
        terms = [loss, sb.GroupL2(0.1, 2)]
        problem = sb.Problem(sb.NonNegative(), [K, sb.Differences(shape=(size, size))], terms)
    result = sb.solve(problem)
    assert result.status is sb.Status.OPTIMAL
    assert result.certificate.proved


# --- programs ---------------------------------------------------------------------------------------------------------


def test_a_row_that_is_missed_by_all_of_itself_is_no_small_violation() -> None:
    """The first row is in units of 2^-58 of the second: its violation would vanish in a norm."""
    A, b = np.diag([2.0**-30, 2.0**28]), np.array([2.0**-28, 2.0**28])
    problem = sb.Problem(sb.Linear([1.0, 1.0]) + sb.NonNegative(), A, sb.Equality(b))
    assert sb.certify(problem, [0.0, 1.0], [0.0, 0.0]).primal_infeasibility == 1.0
    result = sb.solve(problem)
    assert result.status is sb.Status.OPTIMAL
    assert result.x.tolist() == [4.0, 1.0]


@pytest.mark.parametrize("seed", range(20))
def test_a_proof_of_a_program_is_one_in_rational_arithmetic(seed: int) -> None:
    """The values of HiGHS's answer, and of points next to it, on both sides of the exact optimum."""
    rng = np.random.default_rng(seed)
    m, n = 4, 6
    A, x = rng.standard_normal((m, n)), np.maximum(np.round(3 * rng.standard_normal(n)), 0.0)
    cost, low = A.T @ rng.standard_normal(m) + rng.uniform(0, 1, n), A @ x - rng.uniform(0, 1, m)
    high = np.where(rng.random(m) < 0.5, low, low + 1.0)
    status, optimum = exact_simplex.verdict(cost, np.zeros(n), np.full(n, np.inf), A, low, high)
    problem = sb.Problem(sb.Linear(cost) + sb.NonNegative(), A, sb.Interval(low, high))
    result = sb.solve(problem, "highs")
    if result.status is not sb.Status.OPTIMAL:
        assert result.status.name == status
        return
    for size in (0.0, 1e-12, 1e-6):
        near = result.x * (1 + size * rng.standard_normal(n)), result.y * (1 + size * rng.standard_normal(m))
        certificate = sb.certify(problem, *near)
        if certificate.proved:
            assert Fraction(certificate.dual_value) <= optimum
        if certificate.attained:
            assert optimum <= Fraction(certificate.primal_value)
