"""The finish: certified to 1e-8 where block passes are slow, and block passes continue if it fails."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from optional import optional
from oracle import LOSSES, PENALTIES, has_no_minimiser, loss_of, penalty_of, random_case
from scipy import sparse

import saddleback as sb
from saddleback.layers.finish import finish_columns, finish_passes, passes_left
from saddleback.methods import interior_point
from saddleback.methods.interior import SingularSystem

cp = optional("cvxpy")

TOL = 1e-8


def has_finish(penalty, loss):
    return interior_point.InteriorPoint().missing(random_case(penalty, loss, 0).problem.model) is None


HERE = [name for name in PENALTIES if has_finish(name, "Absolute")]
ROWS = [name for name in LOSSES if has_finish("L1", name)]


def test_most_of_the_catalogue_has_a_finish():
    assert len(HERE) >= 14
    assert len(ROWS) >= 10


def went_back(result):
    return [note for note in result.history.notes if note.startswith("back to ")]


# --- known saddle points --------------------------------------------------------------------------------------------


def known_saddle(rng, m=40, n=12, scale=1.0):
    """Return a weighted L1 + absolute problem that is constructed from its solution (x, y), and that pair."""
    A = scale * rng.standard_normal((m, n))
    active = rng.choice(n, 4, replace=False)
    y = np.sign(rng.standard_normal(m))
    y[rng.choice(m, active.size, replace=False)] = rng.uniform(-0.9, 0.9, active.size)  # for a unique solution
    pull = A.T @ y
    x = np.zeros(n)
    x[active] = -np.sign(pull[active]) * rng.uniform(0.5, 2, active.size)
    weights = np.abs(pull) + np.where(x == 0, rng.uniform(0.1, 1, n) * scale, 0.0)
    b = A @ x - np.where(np.abs(y) == 1, y * rng.uniform(0.2, 1, m), 0.0)
    return sb.Problem(sb.L1(1.0, weights), A, sb.Absolute(b)), x, y


@pytest.mark.parametrize("seed", range(6))
def test_known_saddle_points(seed):
    problem, x, y = known_saddle(np.random.default_rng(seed))
    value = sb.certify(problem, x, y)
    assert value.error < 1e-12
    result = sb.solve(problem, method="finish", tol=1e-9)
    assert result.status is sb.Status.OPTIMAL
    assert result.method == "finish"
    assert result.certificate.primal_value == pytest.approx(value.primal_value, rel=1e-9)
    assert np.allclose(result.x, x, atol=1e-6)
    assert np.allclose(result.y, y, atol=1e-5)


def test_a_start_at_the_solution_is_kept(rng):
    problem, x, y = known_saddle(rng)
    result = sb.solve(problem, method="finish", tol=TOL, x0=x, y0=y)
    assert result.status is sb.Status.OPTIMAL
    assert np.allclose(result.x, x, atol=1e-6)


def test_a_close_start_saves_steps(rng):
    problem, x, y = known_saddle(rng, m=200, n=40)
    cold = sb.solve(problem, method="finish", tol=TOL)
    warm = sb.solve(problem, method="finish", tol=TOL, x0=x + 1e-4 * rng.standard_normal(40), y0=0.9999 * y)
    assert warm.status is cold.status is sb.Status.OPTIMAL
    assert warm.settings["finish_steps"] < cold.settings["finish_steps"]


# --- the catalogue against Clarabel ---------------------------------------------------------------------------------


def check_against_clarabel(case, penalty, result):
    if has_no_minimiser(case.problem, penalty):
        if result.certificate.dual_infeasibility == 0:
            assert result.certificate.dual_value <= case.optimum() + 1e-7
        return
    assert result.status.solved, result.message
    certificate = sb.certify(case.problem, result.x, result.y)
    assert certificate.error <= TOL or certificate.limited(TOL)
    optimum = case.optimum()
    scale = max(abs(optimum), 1e-6 * case.problem.model.value_at_zero)
    assert abs(certificate.primal_value - optimum) <= 1e-6 * scale + 1e-8


@pytest.mark.parametrize("loss", ROWS)
@pytest.mark.parametrize("penalty", HERE)
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_every_loss_and_penalty_at_once(penalty, loss):
    case = random_case(penalty, loss, 5000 + 17 * PENALTIES.index(penalty) + LOSSES.index(loss))
    check_against_clarabel(case, penalty, sb.solve(case.problem, method="finish", tol=TOL, max_passes=3000))


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_every_loss_and_penalty_with_default_options(penalty, loss):
    """200 to 2000 rows, 1e-8."""
    rng = np.random.default_rng(31 * PENALTIES.index(penalty) + LOSSES.index(loss))
    m, n = int(rng.choice([200, 600, 2000])), 20
    A = rng.standard_normal((m, n))
    b = A @ (rng.standard_normal(n) * (rng.random(n) < 0.4)) + rng.standard_t(3, m)
    f = penalty_of(penalty, n, rng)
    problem = sb.Problem(f, A, loss_of(loss, b, A @ rng.uniform(0.0, 0.2, n), rng))
    result = sb.solve(problem, tol=TOL)
    assert result.status is sb.Status.OPTIMAL, result.message
    pytest.importorskip("cvxpy")
    oracle = problem.to_cvxpy()
    oracle.solve(solver=cp.CLARABEL)  # Clarabel's default tolerances: with smaller ones it fails on some problems
    scale = max(abs(oracle.value), 1e-6 * problem.model.value_at_zero)
    assert abs(result.certificate.primal_value - oracle.value) <= 1e-6 * scale + 1e-8


def quantile(rng, m=300, n=30):
    A = rng.standard_normal((m, n))
    b = A[:, :5].sum(axis=1) + rng.standard_t(3, m)
    return sb.Problem([sb.L1(0.02), sb.Zero()], [A, np.ones(m)], sb.Pinball(b, 0.9, scale=1 / m))


def test_block_passes_switch_to_the_finish_and_say_so(rng):
    result = sb.solve(quantile(rng), method="sp-bcd", tol=TOL)
    assert result.status is sb.Status.OPTIMAL
    assert result.method == "sp-bcd + finish"
    assert "passes of sp-bcd + finish" in result.message
    assert "sp-bcd + finish" in repr(result)
    assert result.history.finish_begins in result.history.passes
    assert len(result.history.notes) == 1
    assert result.history.notes[0].startswith("finish at pass ")
    assert result.history.notes[0].endswith(" columns, 300 rows")
    assert result.to_dict()["history"]["notes"] == result.history.notes
    assert result.settings["finish_steps"] > 0


def test_a_small_problem_with_a_close_start_switches_at_once(rng):
    """If the start is the solution, there is neither a pass nor a finish."""
    problem = quantile(rng)
    first = sb.solve(problem, method="sp-bcd", tol=TOL)
    nearby = sb.solve(problem.with_alpha(0.015), tol=TOL, x0=first)
    assert nearby.status is sb.Status.OPTIMAL
    assert nearby.history.notes[0].startswith("finish at pass ")
    assert float(nearby.history.notes[0].split()[3].strip(":")) <= 1
    assert nearby.passes < first.passes
    again = sb.solve(problem, tol=2 * TOL, x0=first)
    assert "finish_steps" not in again.settings
    assert again.history.notes == []


def test_the_finish_can_be_switched_off(rng):
    result = sb.solve(quantile(rng), tol=1e-3, finish=False)
    assert result.status is sb.Status.OPTIMAL
    assert result.history.notes == []
    assert "finish_steps" not in result.settings


def test_finish_true_is_the_method_of_that_name(rng):
    problem = quantile(rng)
    one, other = sb.solve(problem, method="finish", tol=TOL), sb.solve(problem, method="sp-bcd", finish=True, tol=TOL)
    assert np.array_equal(one.x[0], other.x[0])
    assert one.method == other.method == "finish"


@pytest.mark.parametrize("make", [np.ascontiguousarray, np.asfortranarray, sparse.csr_matrix, sparse.csc_matrix])
def test_any_storage_of_the_matrix(make, rng):
    A = rng.standard_normal((40, 60)) * (rng.random((40, 60)) < 0.3)
    b = rng.standard_normal(40)
    result = sb.solve(sb.Problem(sb.L1(0.3), make(A), sb.Absolute(b)), method="finish", tol=TOL)
    assert result.status is sb.Status.OPTIMAL
    expected = sb.solve(sb.Problem(sb.L1(0.3), A, sb.Absolute(b)), method="finish", tol=TOL)
    assert result.certificate.primal_value == pytest.approx(expected.certificate.primal_value, rel=1e-7)


def test_it_begins_with_the_columns_that_matter(rng):
    """It starts with 100 of 2000 columns, before the first pass."""
    A = rng.standard_normal((60, 2000))
    b = A[:, :4].sum(axis=1) + 0.1 * rng.standard_normal(60)
    result = sb.solve(sb.Problem(sb.L1(4.0), A, sb.Absolute(b)), method="finish", tol=TOL)
    assert result.status is sb.Status.OPTIMAL
    assert result.history.notes[0] == "finish at pass 0: 100 columns, 60 rows"


# --- edges ----------------------------------------------------------------------------------------------------------


def solved_at_once(problem):
    """Return the result of the interior point, after a check that no block passes were needed."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = sb.solve(problem, method="finish", tol=TOL)
    assert result.status is sb.Status.OPTIMAL, result.message
    assert not went_back(result)
    return result


def test_all_columns_fixed(rng):
    A, b = rng.standard_normal((6, 3)), rng.standard_normal(6)
    for matrix in (A, sparse.csc_matrix(A)):
        result = solved_at_once(sb.Problem(sb.Box(0.5, 0.5), matrix, sb.Absolute(b)))
        assert np.array_equal(result.x, [0.5, 0.5, 0.5])


def test_one_row_and_one_column_in_large_units():
    for loss in (sb.Equality([2e12]), sb.Interval([1e12], [2e12])):
        result = solved_at_once(sb.Problem(sb.SparseGroup(0.9, 1, 0.3), np.array([[1e7]]), loss))
        assert 1e12 * (1 - TOL) <= 1e7 * result.x[0] <= 2e12 * (1 + TOL)


def test_no_rows_with_weight(rng):
    problem = sb.Problem(sb.L1(1.0), rng.standard_normal((6, 3)), sb.Absolute(np.ones(6), sample_weight=np.zeros(6)))
    assert not np.any(sb.solve(problem, method="finish", tol=TOL).x)


@pytest.mark.parametrize("method", ["finish", "auto"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_matrix_without_entries(method, is_sparse):
    A = sparse.csc_matrix((4, 3)) if is_sparse else np.zeros((4, 3))
    for penalty in (sb.L1(1.0), sb.SparseGroup(1.0, 3, 0.5) + sb.NonNegative(), sb.Zero()):
        result = sb.solve(sb.Problem(penalty, A, sb.Absolute(np.ones(4))), method=method, tol=TOL)
        assert result.status is sb.Status.OPTIMAL
        assert result.certificate.primal_value == pytest.approx(4.0, rel=TOL)


@pytest.mark.parametrize("penalty", [sb.L1(1e9), sb.GroupL2(1e9, 2), sb.L1(1e9) + sb.NonNegative()])
def test_a_start_that_is_the_solution(penalty, rng):
    problem = sb.Problem(penalty, rng.standard_normal((9, 4)), sb.Absolute(rng.standard_normal(9)))
    result = sb.solve(problem, method="finish", tol=TOL)
    assert result.status is sb.Status.OPTIMAL
    assert not np.any(result.x)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(
    "penalty",
    [
        lambda s: sb.L1(s),
        lambda s: sb.GroupL2(s, 2),
        lambda s: sb.SquaredL2(s),
        lambda s: sb.ElasticNet(s, 0.4) + sb.Box(-10.0, 10.0),
        lambda s: sb.L1(s) + sb.Linear(0.1 * s * np.ones(8)),
    ],
)
def test_constraints_under_penalties_of_any_size(penalty, scale, rng):
    """The complementarity products start in the units of the penalty, although there is no linear term."""
    A = rng.standard_normal((4, 8))
    x = rng.uniform(-1, 1, 8)
    result = solved_at_once(sb.Problem(penalty(scale), A, sb.Interval(A @ x - 0.1, A @ x)))
    unit = solved_at_once(sb.Problem(penalty(1.0), A, sb.Interval(A @ x - 0.1, A @ x)))
    assert result.certificate.primal_value == pytest.approx(scale * unit.certificate.primal_value, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_constraints_alone(scale, rng):
    """Any point between the bounds is a solution, and y = 0 proves it, in any units."""
    A = scale * rng.standard_normal((40, 12))
    u = A @ rng.uniform(0, 1, 12)
    problem = sb.Problem(sb.NonNegative(), A, sb.Interval(u - 0.1 * scale, u + 0.1 * scale))
    assert solved_at_once(problem).certificate.gap == 0.0


# --- failures -------------------------------------------------------------------------------------------------------


def test_too_little_memory_ends_with_block_passes(rng):
    result = sb.solve(quantile(rng), method="finish", tol=1e-3, finish_memory=100.0)
    assert result.status is sb.Status.OPTIMAL
    assert "finish_memory allows" in went_back(result)[0]


@pytest.mark.parametrize("method", ["finish", "sp-bcd"])
@pytest.mark.parametrize("after", [0, 5])
def test_a_singular_system_ends_with_block_passes(method, after, rng, monkeypatch):
    """The factorisation fails at the first step, or later."""
    calls, original = [], interior_point.factored

    def failing(*arguments):
        calls.append(1)
        if len(calls) > after:
            raise SingularSystem
        return original(*arguments)

    monkeypatch.setattr(interior_point, "factored", failing)
    result = sb.solve(quantile(rng), method=method, tol=1e-5)
    assert result.status is sb.Status.OPTIMAL
    assert calls
    assert "its linear system is singular" in went_back(result)[0]
    assert sb.certify(quantile(np.random.default_rng(0)), result.x, result.y).error <= 1e-5


@pytest.mark.parametrize("method", ["finish", "sp-bcd"])
def test_directions_without_progress_end_with_block_passes(method, rng, monkeypatch):
    monkeypatch.setattr(interior_point, "TO_THE_EDGE", 1e-9)
    result = sb.solve(quantile(rng), method=method, tol=1e-5)
    assert result.status is sb.Status.OPTIMAL
    assert "no progress" in went_back(result)[0]


@pytest.mark.parametrize("method", ["finish", "auto"])
@pytest.mark.parametrize("loss", [sb.Absolute, sb.Squared, lambda b: sb.Hinge(np.where(b > 0, 1.0, -1.0))])
def test_linearly_dependent_columns(method, loss, rng):
    A = rng.standard_normal((50, 3)) @ rng.standard_normal((3, 20))
    b = rng.standard_normal(50)
    result = sb.solve(sb.Problem(sb.Zero(), A, loss(b)), method=method, tol=1e-6)
    assert result.status.solved, result.message
    assert result.certificate.error <= 1e-6


@pytest.mark.parametrize("method", ["finish", "auto"])
def test_columns_in_units_that_differ_by_1e8(method, rng):
    A = rng.standard_normal((80, 10)) * np.where(np.arange(10) % 2, 1e8, 1.0)
    problem = sb.Problem(sb.L1(0.1), A, sb.Absolute(rng.standard_normal(80)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = sb.solve(problem, method=method, tol=TOL)
    certificate = sb.certify(problem, result.x, result.y)
    assert certificate.error == pytest.approx(result.certificate.error, rel=1e-6, abs=1e-15)
    assert result.status is sb.Status.OPTIMAL, result.message


@pytest.mark.parametrize("method", ["finish", "auto"])
def test_problems_without_solution_keep_their_status(method):
    A = np.array([[1.0, 1.0], [1.0, 1.0]])
    infeasible = sb.Problem(sb.Linear([1.0, 1.0]) + sb.NonNegative(), A, sb.Equality([1.0, 2.0]))
    assert sb.solve(infeasible, method=method).status is sb.Status.INFEASIBLE
    unbounded = sb.Problem(sb.Linear([-1.0, 0.0]) + sb.NonNegative(), A[:1] * [1, -1], sb.Interval([0.0], [1.0]))
    assert sb.solve(unbounded, method=method).status is sb.Status.UNBOUNDED
    row = sb.Problem(sb.L1(1.0), np.array([[0.0, 0.0], [1.0, 1.0]]), sb.Equality([1.0, 2.0]))
    assert sb.solve(row, method=method).status is sb.Status.INFEASIBLE


def test_a_program_that_is_neither_feasible_nor_bounded_is_infeasible():
    """x_1 + x_2 = -1 has no solution in x >= 0. The unbounded x_3 must not hide that."""
    A = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0]])
    problem = sb.Problem(sb.Linear([1.0, 1.0, -1.0, 0.5]) + sb.NonNegative(), A, sb.Equality([-1.0, 0.0]))
    for method in ("auto", "finish"):
        assert sb.solve(problem, method=method, tol=TOL).status is sb.Status.INFEASIBLE


# --- options and predictions ----------------------------------------------------------------------------------------


def test_options_are_validated(rng):
    problem = quantile(rng, 20, 3)
    for bad in (0, -1.0, np.nan):
        with pytest.raises(ValueError, match="finish_memory"):
            sb.solve(problem, finish_memory=bad)
    with pytest.raises(ValueError, match="finish='yes'"):
        sb.solve(problem, finish="yes")
    with pytest.raises(TypeError, match="did you mean 'finish_memory'"):
        sb.solve(problem, finish_memry=1e9)
    with pytest.raises(TypeError, match="method='finish' cannot treat this problem: its penalty"):
        sb.solve(sb.Problem(sb.Nuclear(1.0, (2, 2)), np.eye(4), sb.Squared(np.ones(4))), method="finish")
    assert "finish" in sb.methods()


def test_problems_without_a_finish_are_solved_by_block_passes():
    problem = sb.Problem(sb.Nuclear(0.1, (2, 2)), np.eye(4), sb.Absolute(np.ones(4)))
    result = sb.solve(problem, max_passes=20_000)
    assert result.status is sb.Status.OPTIMAL
    assert result.history.notes == []


def test_the_passes_left_of_a_geometric_decay():
    errors = [(float(k), 10.0 ** (-k / 10)) for k in range(1, 41)]
    assert passes_left(errors, 1e-8) == pytest.approx(40.0)
    assert passes_left([(10.0, 0.1), (20.0, 0.1)], 1e-8) == np.inf
    assert passes_left([(10.0, np.inf), (20.0, 0.1)], 1e-8) == np.inf
    assert passes_left([(10.0, 0.1)], 1e-8) == np.inf
    assert np.isfinite(passes_left(errors, 0.0))


def test_the_cost_of_a_finish_grows_with_the_columns(rng):
    def cost(n, active):
        problem = sb.Problem(sb.L1(1.0), rng.standard_normal((50, n)), sb.Absolute(np.ones(50)))
        return finish_passes(problem.model, finish_columns(problem.model, (np.arange(n) < active).astype(float)))

    assert cost(3000, 20) < cost(3000, 2000)


def test_the_same_bits_at_any_number_of_threads(rng):
    problem = quantile(rng, 400, 50)
    one, two = (sb.solve(problem, method="finish", tol=TOL, threads=threads) for threads in (1, 2))
    assert np.array_equal(one.x[0], two.x[0])
    assert np.array_equal(one.y, two.y)


def test_columns_without_a_penalty_are_not_settled(rng):
    """No kink holds them, and a step along the rounding error of z would be arbitrary."""
    A, b = rng.standard_normal((200, 70)), rng.standard_normal(200)
    free = sb.solve(sb.Problem(sb.L1(0.0), A, sb.Absolute(b)), method="finish", tol=1e-6)
    assert free.status is sb.Status.OPTIMAL
    steps = free.settings["finish_steps"]
    known = sb.solve(
        sb.Problem(sb.L1(0.0), A, sb.Absolute(b)),
        method="finish",
        tol=1e-6,
        callback=lambda info: info.certificate.error <= 1e-6,
    )
    assert known.settings["finish_steps"] == steps


@pytest.mark.parametrize("loss", [sb.Absolute, lambda b: sb.Pinball(b, 0.3)])
def test_a_single_group_that_is_held_at_0_or_not(loss, rng):
    """At the end of a finish all entries of the group may count as fixed."""
    A = rng.standard_normal((50, 30))
    b = A[:, :5] @ rng.standard_normal(5) + 0.1 * rng.standard_normal(50)
    for alpha in (0.3, 3.0, 10.0):
        result = sb.solve(sb.Problem(sb.GroupL2(alpha, [30]), A, loss(b)), tol=1e-12, max_passes=300)
        assert result.certificate.error < 1e-7


def test_the_method_must_be_able_to_continue_after_a_failed_finish(rng):
    """The interior point accepts constraints, but descent, which would continue after a failure, does not."""
    problem = sb.Problem(sb.GroupL2(0.1, 2), rng.standard_normal((6, 8)), sb.Interval(-1.0, np.ones(6)))
    with pytest.raises(TypeError, match="cannot treat this problem: its loss has no Lipschitz gradient"):
        sb.solve(problem, method="descent", finish=True)


def test_the_last_certificate_of_the_history_is_that_of_the_result(rng):
    """The point is moved to its kinks after the last certificate, which changes the certificate."""
    A = rng.standard_normal((60, 120))
    problem = sb.Problem(sb.L1(2.0), A, sb.Absolute(A[:, :4].sum(axis=1) + 0.1 * rng.standard_t(2, 60)))
    result = sb.solve(problem, method="finish", tol=1e-6)
    assert "finish_steps" in result.settings
    assert result.history.relative_gap[-1] == result.relative_gap
    assert result.history.passes[-1] == pytest.approx(result.passes, abs=3.0)


def test_the_working_set_of_the_interior_point_has_few_columns_besides_those_that_matter(rng):
    """The iterates of an interior point have no zeros, so that all columns of a set look active."""
    A = rng.standard_normal((80, 4000))
    b = A[:, :5].sum(axis=1) + 0.1 * rng.standard_normal(80)
    problem = sb.Problem(sb.L1(0.1 * float(np.abs(A.T @ np.sign(b)).max())), A, sb.Absolute(b))
    result = sb.solve(problem, method="finish")
    assert result.status is sb.Status.OPTIMAL
    assert result.settings["working_set"] <= 10 * np.count_nonzero(result.x)
    assert result.settings["working_set"] < 0.25 * 4000


@pytest.mark.parametrize("method", ["auto", "finish"])
def test_factorisations_of_very_sparse_data_do_not_use_up_the_passes(method, rng):
    """A factorisation may take as long as hundreds of passes, but does not count as such."""
    A = sparse.random(1500, 1200, 0.001, "csc", random_state=rng)
    b = rng.standard_normal(1500)
    loss = sb.Absolute(b)
    problem = sb.Problem(sb.L1(0.02 * sb.alpha_max(sb.L1(1.0), A, loss)), A, loss)
    result = sb.solve(problem, method=method)
    assert result.status is sb.Status.OPTIMAL
    assert result.passes < 2000


def test_blocks_without_a_kink_at_0_count_as_active(rng):
    """With negative costs and bounds, or a linear term above alpha, 0 is not where a block rests."""
    A, b = rng.standard_normal((80, 1000)), rng.standard_normal(80)
    costs = 31.0 * rng.standard_normal(1000)
    for penalty in (sb.ElasticNet(31.0, 0.03) + sb.Linear(costs), sb.Linear(costs) + sb.Box(0.0, 1.0)):
        result = sb.solve(sb.Problem(penalty, A, sb.Absolute(b)), method="finish", tol=1e-7)
        assert result.status is sb.Status.OPTIMAL
        assert not any("no progress" in note for note in result.history.notes)
