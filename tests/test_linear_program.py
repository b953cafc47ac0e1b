"""Linear programs: recognised, solved by our methods and by HiGHS, and proved to have no solution if there is none."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
import time
import warnings

import exact_simplex
import numpy as np
import pytest
from catalogue import LOSSES, PENALTIES, SIZE
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from scipy import sparse
from scipy.optimize import linprog

import saddleback as sb
from saddleback.engine import infeasibility as unsolvable
from saddleback.engine.clock import Clock
from saddleback.io.problem_files import read_problem
from saddleback.linear_programs import highs as simplex
from saddleback.linear_programs.program import as_linear_program, is_vertex
from saddleback.methods import Highs
from saddleback.places.mpi.communicator import SERIAL

NETLIB = {
    "afiro": -464.75314286,
    "adlittle": 225494.96316,
    "sc50a": -64.575077059,
    "sc50b": -70.0,
    "sc105": -52.202061212,
    "blend": -30.812149846,
    "kb2": -1749.9001299,
    "share2b": -415.73224074,
    "stocfor1": -41131.976219,
    "recipe": -266.616,
    "brandy": 1518.5098965,
    "israel": -896644.82186,
}
HARD = {"kb2", "share2b"}
"""Programs that r2hpdhg alone does not solve to 1e-4 in 10,000 passes."""


def program(cost, lower, upper, A, row_lower, row_upper):
    return sb.Problem(sb.Linear(cost) + sb.Box(lower, upper), A, sb.Interval(row_lower, row_upper))


def solvable(seed, m=15, n=25):
    """Return a program that is constructed from a feasible pair of points, so that it has a solution."""
    rng = np.random.default_rng(seed)
    A = sparse.random(m, n, 0.4, "csc", rng=rng, data_rvs=rng.standard_normal)
    x, y = rng.standard_normal(n).round(1), rng.standard_normal(m)
    kind = rng.integers(0, 4, n)  # free, bounded below, bounded above, bounded on both sides
    lower = np.where(kind % 2 == 1, np.minimum(x, 0), -np.inf)
    upper = np.where(kind >= 2, np.maximum(x, 0) + 0.5, np.inf)
    u, rows = A @ x, rng.integers(0, 3, m)  # equal, bounded above, bounded on both sides
    row_lower = np.where(rows == 0, u, np.where(rows == 2, u - 1, -np.inf))
    row_upper = np.where(rows == 0, u, u + rng.random(m))
    slack = np.where(kind == 0, 0.0, np.where(kind == 1, 1.0, np.where(kind == 2, -1.0, 0.3)) * rng.random(n))
    return program(slack - A.T @ np.where(rows == 1, np.abs(y), y), lower, upper, A, row_lower, row_upper)


def optimum(problem):
    """Return the status and optimum of HiGHS by scipy, which shares no code with ours."""
    p = as_linear_program(problem.model)
    A = sparse.csr_matrix(problem.A)
    low, high = np.isfinite(p.row_lower), np.isfinite(p.row_upper)
    return linprog(
        p.cost,
        sparse.vstack([A[high], -A[low]]),
        np.concatenate([p.row_upper[high], -p.row_lower[low]]),
        bounds=np.column_stack([p.lower, p.upper]),
    )


# --- recognised by the functions ------------------------------------------------------------------------------------


def is_linear_on_a_box(term, rng):
    """Return whether a function is a sum over coordinates, and its value at a midpoint is the mean of the values."""
    f = term.bind((SIZE,))
    pairs = [(f.domain.project(x), f.domain.project(z)) for x, z in 3 * rng.standard_normal((20, 2, SIZE))]
    halfway = all(np.isclose(f.value((x + z) / 2), (f.value(x) + f.value(z)) / 2) for x, z in pairs)
    return len(f.blocks()) == SIZE and halfway


@pytest.mark.parametrize("penalty", [name for name in PENALTIES if name != "Nuclear + Linear"])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_linear_program_is_recognised(penalty, loss, rng):
    model = sb.Problem(PENALTIES[penalty], rng.standard_normal((SIZE, SIZE)), LOSSES[loss]).model
    expected = is_linear_on_a_box(PENALTIES[penalty], rng) and is_linear_on_a_box(LOSSES[loss], rng)
    assert (as_linear_program(model) is not None) is expected
    assert (Highs().missing(model) is None) is expected


def test_its_parts_are_those_that_were_given():
    cost, lower, upper = np.array([1.0, -2, 0]), np.array([0.0, -np.inf, 1]), np.array([np.inf, 3.0, 1])
    row_lower, row_upper = np.array([-np.inf, 2.0, -np.inf]), np.array([4.0, 2.0, np.inf])
    p = as_linear_program(program(cost, lower, upper, np.eye(3), row_lower, row_upper).model)
    for name, given_part in (
        ("cost", cost),
        ("lower", lower),
        ("upper", upper),
        ("row_lower", row_lower),
        ("row_upper", row_upper),
    ):
        assert np.array_equal(getattr(p, name), given_part), name


def test_auto_chooses_highs_unless_options_need_another_method():
    problem = solvable(0)
    assert sb.solve(problem, max_passes=20).method == "highs"
    assert sb.solve(problem, max_passes=20, blocks_per_iteration=3).method == "sp-bcd"
    assert sb.solve(problem, max_passes=20, restarts=False).method == "sp-bcd"
    assert sb.solve(problem, max_passes=20, finish=False).method == "r2hpdhg"
    other = sb.Problem(sb.L1(0.1), np.eye(3), sb.Equality(np.ones(3)))
    assert sb.solve(other, max_passes=20).method == "sp-bcd"


# --- solved -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "highs"])
@pytest.mark.parametrize("seed", range(8))
def test_random_programs_agree_with_highs(seed, method):
    if method == "highs":
        pytest.importorskip("highspy")
    problem = solvable(seed)
    result = sb.solve(problem, method, tol=1e-7, max_passes=50_000)
    verdict = optimum(problem)
    assert verdict.status == 0
    assert result.status is sb.Status.OPTIMAL, result.message
    assert result.certificate.primal_value == pytest.approx(verdict.fun, rel=1e-6, abs=1e-6)
    assert sb.certify(problem, result.x, result.y) == result.certificate


numbers = st.integers(-3, 3).map(float)


@given(st.data(), st.integers(1, 4), st.integers(1, 4))
@examples(60, derandomize=True)
def test_degenerate_programs_agree_with_highs(data, m, n):
    """Small integers: empty rows and columns, equal rows, fixed columns, ties, no solution, and single entries."""
    pytest.importorskip("highspy")
    vector = st.lists(numbers, min_size=n, max_size=n).map(np.array)
    A = np.array(data.draw(st.lists(st.lists(numbers, min_size=n, max_size=n), min_size=m, max_size=m)))
    cost, lower = data.draw(vector), data.draw(vector)
    width = data.draw(st.lists(st.sampled_from([0.0, 1.0, np.inf]), min_size=n, max_size=n))
    rhs = np.array(data.draw(st.lists(numbers, min_size=m, max_size=m)))
    equal = np.array(data.draw(st.lists(st.booleans(), min_size=m, max_size=m)))
    problem = program(cost, lower, lower + np.array(width), A, np.where(equal, rhs, -np.inf), rhs)
    verdict = optimum(problem)
    expected = {0: sb.Status.OPTIMAL, 2: sb.Status.INFEASIBLE, 3: sb.Status.UNBOUNDED}[verdict.status]
    for method in ("auto", "highs"):
        result = sb.solve(problem, method)
        assert result.status is expected, (method, result.message)
        if expected is sb.Status.OPTIMAL:
            assert result.certificate.primal_value == pytest.approx(verdict.fun, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("name", NETLIB)
def test_netlib_by_first_order_alone(data, name):
    """Ten of the twelve reach a relative 1e-4 in residuals and gap within the default 10,000 passes."""
    pytest.importorskip("highspy")
    loaded = read_problem(data / "netlib" / f"{name}.mps.gz")
    result = sb.solve(loaded, tol=1e-4, finish=False)
    c = result.certificate
    assert result.status in (sb.Status.OPTIMAL, sb.Status.MAX_PASSES)
    if name not in HARD:
        assert max(c.relative_gap, c.primal_infeasibility, c.dual_infeasibility) <= 1e-4, result.message
        assert loaded.objective(c.primal_value) == pytest.approx(NETLIB[name], rel=1e-3)


@pytest.mark.parametrize("name", NETLIB)
def test_netlib_by_the_default(data, name):
    """HiGHS solves all twelve to a certified 1e-8, each at a vertex."""
    pytest.importorskip("highspy")
    loaded = read_problem(data / "netlib" / f"{name}.mps.gz")
    result = sb.solve(loaded, tol=1e-8)
    assert result.status is sb.Status.OPTIMAL, result.message
    assert result.method == "highs"
    assert result.is_vertex
    assert loaded.objective(result.certificate.primal_value) == pytest.approx(NETLIB[name], rel=1e-7)


@pytest.mark.parametrize("name", NETLIB)
def test_netlib_by_our_own_methods(data, name):
    """r2hpdhg followed by the finish solves all twelve to a certified 1e-8, in a few hundred passes."""
    pytest.importorskip("highspy")
    loaded = read_problem(data / "netlib" / f"{name}.mps.gz")
    result = sb.solve(loaded, "r2hpdhg", tol=1e-8)
    assert result.status is sb.Status.OPTIMAL, result.message
    assert loaded.objective(result.certificate.primal_value) == pytest.approx(NETLIB[name], rel=1e-7)


@pytest.mark.parametrize("method", ["auto", "sp-bcd"])
def test_large_bounds_are_bounds(method):
    """Only inf is infinite: 2e20 is a bound on x, and -3e20 <= 1e21 x means that x is at least -0.3."""
    problem = program([-1.0], [0.0], [1e22], np.ones((1, 1)), [0.0], [2e20])
    assert sb.solve(problem, method).objective == pytest.approx(-2e20, rel=1e-5)
    scaled = program([1.0], [-np.inf], [np.inf], np.array([[1e21]]), [-3e20], [1e22])
    assert sb.solve(scaled, method).objective == pytest.approx(-0.3, rel=1e-5)


# --- prices -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_prices_are_those_of_highs(seed):
    """For random programs with a unique solution, shadow prices and reduced costs equal those of HiGHS."""
    rng = np.random.default_rng(seed)
    A, x = rng.standard_normal((4, 7)), rng.random(7)
    cost = rng.random(7) + A.T @ rng.standard_normal(4)
    answer = linprog(cost, A_eq=A, b_eq=A @ x)
    result = sb.solve(sb.Problem(sb.Linear(cost) + sb.NonNegative(), A, sb.Equality(A @ x)), tol=1e-9)
    assert result.shadow_prices == pytest.approx(answer.eqlin.marginals, abs=1e-5)
    assert result.reduced_costs == pytest.approx(answer.lower.marginals, abs=1e-5)


def test_a_point_is_a_vertex_if_active_constraints_determine_it(rng):
    """min 0 on the square [0, 2]^2 with x1 + x2 <= 3: corners are vertices, edges and the interior are not."""
    problem = program(np.zeros(2), np.zeros(2), [2.0, 2.0], np.ones((1, 2)), [-np.inf], [3.0])
    linear = as_linear_program(problem.model)
    for point, expected in (((2, 1), True), ((0, 2), True), ((1, 2), True), ((2, 0.5), False), ((1.5, 1.5), False)):
        assert is_vertex(problem.model, linear, np.array(point, dtype=float)) is expected, point


def test_an_infeasible_point_is_not_a_vertex():
    """Two bounds and the row are active at each point, but one bound or the row is violated."""
    problem = program(np.zeros(2), np.zeros(2), [2.0, 2.0], np.ones((1, 2)), [-np.inf], [3.0])
    linear = as_linear_program(problem.model)
    for point in ((2.0, 2.0), (0.0, 3.0), (3.0, 0.0)):
        assert is_vertex(problem.model, linear, np.array(point)) is False, point


@given(st.integers(0, 10**6))
@examples(40, derandomize=True)
def test_a_point_is_a_vertex_if_its_active_rows_have_full_rank(seed):
    """Feasible points of random programs with small integers, compared with numpy's rank of all active constraints."""
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 7, 2)
    A, x = rng.integers(-1, 2, (m, n)).astype(float), rng.integers(0, 3, n).astype(float)
    slack = rng.integers(0, 2, m).astype(float)
    problem = program(np.zeros(n), np.zeros(n), np.full(n, 2.0), A, np.full(m, -np.inf), A @ x + slack)
    active = np.vstack([A[slack == 0], np.eye(n)[(x == 0) | (x == 2)]])
    expected = active.size > 0 and np.linalg.matrix_rank(active) == n
    assert is_vertex(problem.model, as_linear_program(problem.model), x) is bool(expected)


def test_the_test_for_a_vertex_is_skipped_if_it_takes_long():
    """A block of 1,200 active rows and 900 columns between their bounds has a factorisation with much fill-in."""
    A = sparse.random(1200, 900, 0.01, "csc", rng=np.random.default_rng(0))
    x = np.ones(900)
    problem = program(np.zeros(900), np.zeros(900), np.full(900, 2.0), A, A @ x, A @ x)
    assert is_vertex(problem.model, as_linear_program(problem.model), x) is None


def test_prices_are_those_of_a_solution():
    result = sb.solve(solvable(0), "r2hpdhg", max_passes=3, finish=False)
    assert result.status is sb.Status.MAX_PASSES
    assert (result.shadow_prices, result.reduced_costs, result.is_vertex) == (None, None, None)
    assert result.to_dict()["shadow_prices"] is None


def test_other_problems_have_no_prices(rng):
    result = sb.solve(sb.Problem(sb.L1(0.1), rng.standard_normal((4, 3)), sb.Squared(np.ones(4))))
    assert (result.shadow_prices, result.reduced_costs, result.is_vertex) == (None, None, None)


# --- HiGHS as a method ------------------------------------------------------------------------------------------------


def test_highs_accepts_only_linear_programs(rng):
    pytest.importorskip("highspy")
    problem = sb.Problem(sb.L1(0.1), rng.standard_normal((4, 3)), sb.Squared(np.ones(4)))
    with pytest.raises(TypeError, match=r"not a linear program.*method='sp-bcd'"):
        sb.solve(problem, "highs")


def test_highs_is_the_one_that_scipy_ships(monkeypatch):
    monkeypatch.setitem(sys.modules, "highspy", None)
    assert sb.solve(solvable(0), "highs").status is sb.Status.OPTIMAL


def test_every_operator_reaches_highs(rng):
    pytest.importorskip("highspy")
    A, x = rng.standard_normal((4, 6)), rng.random(6)
    cost = rng.random(6)
    values = []
    for source in (A, A.astype(np.float32).astype(float), sparse.csr_matrix(A), sparse.linalg.aslinearoperator(A)):
        problem = sb.Problem(sb.Linear(cost) + sb.NonNegative(), source, sb.Equality(A @ x))
        if as_linear_program(problem.model) is None:
            continue  # a LinearOperator is one block, so that its functions are not split into coordinates
        values.append(sb.solve(problem, "highs", tol=1e-9).certificate.primal_value)
    parts = sb.Problem(
        [sb.Linear(cost[:2]) + sb.NonNegative(), sb.Linear(cost[2:]) + sb.NonNegative()],
        [A[:, :2], sparse.csc_matrix(A[:, 2:])],
        sb.Equality(A @ x),
    )
    values.append(sb.solve(parts, "highs", tol=1e-9).certificate.primal_value)
    assert len(values) >= 4
    assert np.allclose(values, values[0], rtol=1e-5)


def test_a_limit_ends_highs_with_its_current_point():
    pytest.importorskip("highspy")
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((300, 600)), rng.random(600)
    problem = sb.Problem(sb.Linear(rng.random(600)) + sb.NonNegative(), A, sb.Equality(A @ x))
    limited = sb.solve(problem, "highs", time_limit=0.02)
    assert limited.status is sb.Status.TIME_LIMIT
    assert limited.seconds < 5.0
    assert np.all(np.isfinite(limited.x))
    stopped = sb.solve(problem, "highs", tol=0, callback=lambda info: True)
    assert stopped.status is sb.Status.INTERRUPTED


def test_r2hpdhg_continues_from_the_point_of_highs():
    """No certificate reaches tol=0: after HiGHS the passes are those of r2hpdhg, and the result gets no worse."""
    pytest.importorskip("highspy")
    result = sb.solve(solvable(1), "highs", tol=0, max_passes=200, finish=False)
    assert result.status is sb.Status.MAX_PASSES
    assert result.method == "highs + r2hpdhg"
    assert sb.solve(solvable(1), "highs", tol=0, max_passes=200, layers=False).method == "highs + r2hpdhg"
    assert result.certificate.error < 1e-9


def hard(m, entries, infeasible=False):
    """Return a random sparse program, the worst case of a simplex method; the last row may contradict the others."""
    rng = np.random.default_rng(0)
    A = sparse.random(m, 2 * m, entries / m / (2 * m), "csc", rng=rng)
    x = np.where(rng.random(2 * m) < 0.5, rng.random(2 * m) + 0.5, 0.0)
    cost = A.T @ rng.standard_normal(m) + np.where(x > 0, 0.0, rng.random(2 * m))
    b = A @ x
    if infeasible:
        A, b = sparse.vstack([A, sparse.csr_matrix(cost)], format="csc"), np.append(b, cost @ x - 100.0)
        cost = rng.standard_normal(2 * m)
    return sb.Problem(sb.Linear(cost) + sb.NonNegative(), A, sb.Equality(b))


def test_no_thread_of_highs_outlives_a_solve(monkeypatch):
    """At the time limit the solve waits for HiGHS, which may be a little late, so that no thread remains."""
    before, real = threading.active_count(), simplex.run

    def late(*args):
        answer = real(*args)
        time.sleep(0.2)
        return answer

    monkeypatch.setattr(simplex, "run", late)
    result = sb.solve(hard(900, 11_000), "highs", time_limit=0.3)
    assert result.status is sb.Status.TIME_LIMIT
    assert threading.active_count() == before


LEFT_BEHIND = """
import time
import numpy as np
import saddleback as sb
from saddleback.linear_programs import highs as simplex
simplex.SMALL = 0
simplex.run = lambda *args: (time.sleep(0.5), print("ended"))
problem = sb.Problem(sb.Linear([1.0]) + sb.NonNegative(), np.ones((1, 1)), sb.Equality([1.0]))
assert simplex.Running(simplex.stated(problem.model), 1e-6, 0.5).answer(0.0) is None
"""


def test_an_interpreter_that_exits_waits_for_highs():
    """A daemon thread that returned from HiGHS during finalisation of the interpreter would abort the process."""
    ended = subprocess.run([sys.executable, "-c", LEFT_BEHIND], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "ended\n"), ended.stderr


def test_highs_has_a_time_limit_and_does_not_change_warning_filters(monkeypatch):
    """Warning filters belong to the process: a thread that changes them changes them for all threads."""
    filters, real, limits = warnings.filters, simplex.linprog, []

    def watched(*args, **options):
        assert warnings.filters is filters
        limits.append(options["options"]["time_limit"])
        return real(*args, **options)

    monkeypatch.setattr(simplex, "linprog", watched)
    assert sb.solve(solvable(0), "highs").status is sb.Status.OPTIMAL
    assert sb.solve(solvable(0), "highs", time_limit=100).status is sb.Status.OPTIMAL
    assert limits[0] == simplex.LONGEST
    assert 90 < limits[1] <= 100


# --- proofs that there is no solution ---------------------------------------------------------------------------------


def without_solution(problem, kind):
    """Return a variant of a program without a solution, and whether it is infeasible or unbounded."""
    p = as_linear_program(problem.model)
    A = sparse.csc_matrix(problem.A)
    bounded = np.isfinite(p.row_lower) | np.isfinite(p.row_upper)
    i, j = int(np.argmax(bounded)), int(np.argmax(abs(A).sum(axis=0)))
    if kind == "contradicted row":
        side = p.row_upper[i] if np.isfinite(p.row_upper[i]) else p.row_lower[i]
        away = (1 + abs(side)) * (1 if np.isfinite(p.row_upper[i]) else -1)
        row_lower = np.append(p.row_lower, side + away if away > 0 else -np.inf)
        row_upper = np.append(p.row_upper, np.inf if away > 0 else side + away)
        A = sparse.vstack([A, A[[i]]]).tocsc()
        return program(p.cost, p.lower, p.upper, A, row_lower, row_upper), sb.Status.INFEASIBLE
    lower = np.append(p.lower, np.zeros(2 if kind == "opposite columns" else 1))
    upper = np.append(p.upper, np.full(2 if kind == "opposite columns" else 1, np.inf))
    if kind == "opposite columns":
        A = sparse.hstack([A, A[:, [j]], -A[:, [j]]]).tocsc()
        cost = np.append(p.cost, [-1 - abs(p.cost[j]), 0.0])
    else:  # a column that no row bounds
        A = sparse.hstack([A, sparse.csc_matrix((A.shape[0], 1))]).tocsc()
        cost = np.append(p.cost, -1.0)
    return program(cost, lower, upper, A, p.row_lower, p.row_upper), sb.Status.UNBOUNDED


KINDS = ["contradicted row", "opposite columns", "unheld column"]


@pytest.mark.parametrize("method", ["auto", "highs", "sp-bcd"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_random_programs_without_a_solution(seed, kind, method):
    if method == "highs":
        pytest.importorskip("highspy")
    problem, status = without_solution(solvable(seed), kind)
    assert_proved(problem, sb.solve(problem, method), status)


def is_proof(problem, status, ray):
    """Return whether a ray is a proof by a few lines of numpy, in which 64 roundings per entry count as 0.

    Such a ray stands for an exact ray next to it: products that should be 0 are 0 up to 64 roundings.
    """
    p, A = as_linear_program(problem.model), problem.model.A.entries(compressed=True).toarray()
    image = -A.T @ ray if status is sb.Status.INFEASIBLE else A @ ray
    size = abs(A).T @ abs(ray) if status is sb.Status.INFEASIBLE else abs(A) @ abs(ray)
    image[abs(image) <= 2.0**-53 * (ray.size + 64) * size] = 0.0
    if status is sb.Status.UNBOUNDED:
        own = np.where(ray > 0, p.upper, np.where(ray < 0, -p.lower, np.inf)) == np.inf
        rows = np.where(image > 0, p.row_upper, np.where(image < 0, -p.row_lower, np.inf)) == np.inf
        return bool(np.all(own) and np.all(rows) and p.cost @ ray < 0)
    bound = np.where(image > 0, p.upper, np.where(image < 0, p.lower, 0.0))
    side = np.where(ray > 0, p.row_upper, np.where(ray < 0, p.row_lower, 0.0))
    return bool(bound @ image + side @ ray < 0)  # infinite or NaN if a necessary bound does not exist


def assert_proved(problem, result, status):
    assert result.status is status, result.message
    assert is_proof(problem, status, result.ray)
    assert sb.certify_ray(problem, result.ray).proves is status
    assert 1.0 <= np.abs(result.ray).max() < 2.0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "r2hpdhg"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NETLIB)
def test_netlib_without_a_solution(data, name, kind, method):
    pytest.importorskip("highspy")
    problem, status = without_solution(read_problem(data / "netlib" / f"{name}.mps.gz"), kind)
    assert_proved(problem, sb.solve(problem, method), status)


def test_a_ray_shows_which_rows_conflict():
    """2 x1 + x2 <= 10 and x1 + x2 >= 20 cannot hold together with x1 >= 0; x2 <= 5 is not part of the proof."""
    A = np.array([[2.0, 1.0], [1.0, 1.0], [0.0, 1.0]])
    problem = program([1.0, 2.0], [0.0, 0.0], [np.inf] * 2, A, [-np.inf, 20, -np.inf], [10, np.inf, 5])
    for method in ("auto", "r2hpdhg", "sp-bcd"):
        result = sb.solve(problem, method)
        assert result.status is sb.Status.INFEASIBLE
        assert result.ray == pytest.approx([1.0, -1.0, 0.0], abs=1e-12) or is_proof(problem, result.status, result.ray)
    result = sb.solve(problem)
    assert np.array_equal(result.ray, [1.0, -1.0, 0.0])
    assert "rows 0, 1 cannot hold together with the bounds on variable 0." in result.message
    again = pickle.loads(pickle.dumps(result))
    assert np.array_equal(again.ray, result.ray)
    assert result.to_dict()["ray"] == [1.0, -1.0, 0.0]
    assert result.shadow_prices is None
    assert sb.solve(solvable(0)).ray is None


def test_without_a_solution_the_summary_has_the_proof_and_no_gap():
    """The objective, gap and infeasibilities of a point mean nothing if there is no solution."""
    A = np.array([[2.0, 1.0], [1.0, 1.0], [0.0, 1.0]])
    conflict = program([1.0, 2.0], [0.0, 0.0], [np.inf] * 2, A, [-np.inf, 20, -np.inf], [10, np.inf, 5])
    falling = sb.Problem(
        [sb.Linear([-1.0]) + sb.NonNegative(), sb.NonNegative()], [np.ones((1, 1))] * 2, sb.Interval([0.0], [np.inf])
    )
    for problem, support, said in (
        (conflict, "2 of 3 rows", "rows 0, 1 cannot hold together"),
        (falling, "1 of 2 variables", "the objective falls along variable 0 of x[0]."),
    ):
        result = sb.solve(problem)
        margin = -sb.certify_ray(problem, result.ray).value
        assert repr(result).startswith(f"Result({result.status.name}, ray: {support}, passes=")
        assert said in result.message
        assert f"The ray proves it with a margin of {margin:.2g}, of which rounding takes at most " in result.message
        for shown in (repr(result), result.message):
            assert not any(word in shown for word in ("objective=", "gap", "infeasibility", "tolerance"))


def test_a_ray_has_the_shape_of_its_variable(rng):
    """The problem has blocks of x, and an empty row that 0 does not satisfy."""
    falling = sb.Problem(
        [sb.Linear([-1.0]) + sb.NonNegative(), sb.NonNegative()], [np.ones((1, 1))] * 2, sb.Interval([0.0], [np.inf])
    )
    result = sb.solve(falling)
    assert result.status is sb.Status.UNBOUNDED
    assert [block.tolist() for block in result.ray] == [[1.0], [0.0]]
    assert sb.certify_ray(falling, result.ray).proves is sb.Status.UNBOUNDED
    A = rng.standard_normal((3, 4))
    A[1] = 0.0
    empty = sb.Problem(sb.L1(1.0), A, sb.Equality([1.0, 2.0, 3.0]))
    result = sb.solve(empty)
    assert result.status is sb.Status.INFEASIBLE
    assert result.ray.tolist() == [0.0, -1.0, 0.0]
    assert sb.certify_ray(empty, result.ray).proves is sb.Status.INFEASIBLE
    with pytest.raises(ValueError, match=r"ray is neither a direction of y .* nor one of x"):
        sb.certify_ray(empty, np.ones(7))


NEARLY = np.array([[1.0, -1.0], [1.0, -(1 + 1e-6)]])


@pytest.mark.parametrize("method", ["auto", "r2hpdhg", "sp-bcd"])
@pytest.mark.parametrize(
    ("problem", "value"),
    [
        (lambda: program([0, -1.0], [0, 0], [np.inf] * 2, np.array([[1, 1e-6]]), [-np.inf], [1.0]), -1e6),
        (
            lambda: program([-1.0, 0], [0, 0], [np.inf] * 2, np.array([[1, -1e6], [0, 1]]), [-np.inf] * 2, [0, 1.0]),
            -1e6,
        ),
        (lambda: sb.Problem(sb.NonNegative(), NEARLY, sb.Equality([0.0, -1.0])), 0.0),
    ],
)
def test_far_solutions_are_solutions(problem, value, method):
    """Optima at 1e6 times the size of the data, and solutions of nearly parallel rows, are not excluded."""
    result = sb.solve(problem(), method)
    assert result.status is sb.Status.OPTIMAL
    assert result.objective == pytest.approx(value, rel=1e-5, abs=1e-9)


def test_a_solve_without_proof_ends_at_a_limit():
    """The problem is strictly convex and feasible, at 1e6, so that no ray can prove the contrary."""
    result = sb.solve(sb.Problem(sb.SquaredL2(1.0), NEARLY, sb.Equality([0.0, -1.0])), max_passes=2000)
    assert result.status in (sb.Status.MAX_PASSES, sb.Status.OPTIMAL)
    assert result.ray is None


@pytest.mark.parametrize("gap", [1e-6, 1e-10, 1e-14, 2.0**-52])
def test_exact_arithmetic_decides_if_rounding_cannot(gap):
    """x1 = x2 = (x1 + 1) / (1 + gap) has the solution 1 / gap: (-1, 1) is a ray up to 2^-52, but not exactly."""
    problem = sb.Problem(sb.NonNegative(), np.array([[1.0, -1.0], [1.0, -(1 + gap)]]), sb.Equality([0.0, -1.0]))
    assert sb.certify_ray(problem, [-1.0, 1.0]).proves is None
    parallel = sb.Problem(sb.NonNegative(), np.array([[1.0, -1.0], [1.0, -1.0]]), sb.Equality([0.0, -1.0]))
    assert sb.certify_ray(parallel, [-1.0, 1.0]).proves is sb.Status.INFEASIBLE


def test_certify_ray_returns_what_a_ray_proves():
    """x1 + x2 >= 3 with x <= 1: the direction -1 of y proves that no x is feasible, unless x2 has no upper bound."""
    held = program([1.0, 1.0], [-np.inf] * 2, [1.0, 1.0], np.ones((1, 2)), [3.0], [np.inf])
    proof = sb.certify_ray(held, [-1.0])
    assert proof.proves is sb.Status.INFEASIBLE
    assert proof.exact
    assert proof.value == -1.0
    assert sb.certify_ray(held, [1.0]).proves is None
    for slope in (1e-3, 1e-9, 1e-15):
        free = program([1.0, 1.0], [-np.inf] * 2, [1.0, np.inf], np.array([[1.0, slope]]), [3.0], [np.inf])
        assert sb.certify_ray(free, [-1.0]).proves is None


def test_no_ray_separates_a_feasible_point(rng):
    """All right-hand sides are 0, and x = 0 is within the bounds."""
    A = rng.standard_normal((4, 6))
    problem = program(-np.ones(6), np.zeros(6), np.full(6, np.inf), A, np.zeros(4), np.full(4, np.inf))
    for _ in range(50):
        assert sb.certify_ray(problem, rng.standard_normal(4)).proves is None


def test_bounds_alone_may_contradict_each_other():
    """1 <= x with x1 + x2 = 0 is infeasible, although b = 0."""
    problem = program([1.0, 1.0], [1.0, 1.0], [np.inf, np.inf], np.ones((1, 2)), [0.0], [0.0])
    assert sb.solve(problem).status is sb.Status.INFEASIBLE


def test_the_search_for_a_proof_keeps_the_time_limit(monkeypatch):
    """HiGHS gets the remaining time as its limit, and is not called when no time remains."""
    given = []

    def run(program, tol, seconds):
        given.append(seconds)
        time.sleep(seconds)
        return simplex.Answer("limit", None, None, 0, seconds)

    monkeypatch.setattr(unsolvable, "run", run)
    result = sb.solve(hard(100, 1000, infeasible=True), "r2hpdhg", time_limit=0.5, finish=False)
    assert result.status is sb.Status.TIME_LIMIT
    assert len(given) == 1
    assert given[0] < 0.5


def test_a_search_checks_the_clock():
    search = unsolvable.Search(unsolvable.constraints_alone(hard(100, 1000).model))
    begin = time.perf_counter()
    assert search.advance(1e9, Clock(0.2, SERIAL)) > 1.0
    assert time.perf_counter() - begin < 5.0


def test_a_ray_is_checked_for_the_present_matrix():
    """2 x = 1 and 2 x = 3 cannot both hold, but 2 x = 1 and 6 x = 3 can."""
    A = sparse.csc_matrix([[2.0], [2.0]])
    problem = sb.Problem(sb.NonNegative(), A, sb.Equality([1.0, 3.0]))
    problem.row_names = ("first", "second")
    assert sb.certify_ray(problem, [1.0, -1.0]).proves is sb.Status.INFEASIBLE
    A.data = np.array([2.0, 6.0])
    assert sb.certify_ray(problem, [1.0, -1.0]).proves is None
    assert problem.refreshed().row_names == ("first", "second")
    A.indices = np.array([0, 7], dtype=A.indices.dtype)
    with pytest.raises(ValueError, match="A was changed after the Problem was made"):
        sb.check(problem)


# --- verdicts in exact arithmetic -------------------------------------------------------------------------------------


def hostile(seed):
    """Return a small program with integers, entries from 1e-7 to 1e7, big-M, nearly parallel rows, or bad scaling."""
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 7, 2)
    kind = rng.integers(0, 5)
    A, b, c = rng.standard_normal((m, n)), rng.standard_normal(m), rng.standard_normal(n)
    if kind in (0, 2):
        A, b, c = (rng.integers(-3, 4, size).astype(float) for size in ((m, n), m, n))
    if kind == 1:
        A, b, c = A * 10.0 ** rng.uniform(-7, 7, (m, n)), b * 10.0 ** rng.uniform(-3, 3, m), c.round(1)
    elif kind == 2:
        A[rng.random((m, n)) < 0.15] = 10.0 ** rng.integers(3, 8) * rng.choice([-1, 1])
    elif kind == 3:
        A, b, c = A.round(2), b.round(2), c.round(2)
        A[-1] = rng.choice([-1, 1]) * A[0] * (1 + 10.0 ** rng.uniform(-12, -2) * rng.standard_normal(n))
        b[-1] = b[0] * (1 + 10.0 ** rng.uniform(-12, 0))
    elif kind == 4:
        A *= 10.0 ** rng.uniform(-5, 5, (m, 1)) * 10.0 ** rng.uniform(-2, 2, (1, n))
    A[rng.random((m, n)) < 0.2] = 0.0
    rows, columns, width = rng.integers(0, 4, m), rng.integers(0, 4, n), np.abs(b).max() + 1
    row_lower = np.select([rows == 1, rows == 3], [-np.inf, b - width], b)
    row_upper = np.select([rows == 2, rows == 3], [np.inf, b + rng.random(m) * width], b)
    lower = np.where(columns % 3 == 0, -np.inf, rng.integers(-2, 1, n))
    upper = np.where(columns <= 1, np.inf, rng.integers(1, 4, n) * 10.0 ** rng.integers(0, 2, n))
    return c, lower, upper, A, row_lower, row_upper


def assert_not_refuted(seed):
    """Assert that rational arithmetic confirms "no solution"; an optimum may differ by its tolerance."""
    data = hostile(seed)
    result = sb.solve(program(*data), max_passes=1000)
    if result.ray is not None:
        assert result.status.name == exact_simplex.verdict(*data)[0], seed
        assert_proved(program(*data), result, result.status)
    return result.status


def test_no_verdict_is_refuted_by_exact_arithmetic():
    statuses = [assert_not_refuted(seed) for seed in range(40)]
    assert {sb.Status.OPTIMAL, sb.Status.INFEASIBLE, sb.Status.UNBOUNDED} <= set(statuses)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(40, 5000, 248))
def test_no_verdict_of_many_is_refuted_by_exact_arithmetic(first):
    statuses = [assert_not_refuted(seed) for seed in range(first, first + 248)]
    decided = [sb.Status.OPTIMAL, sb.Status.INFEASIBLE, sb.Status.UNBOUNDED]
    assert sum(status in decided for status in statuses) >= 0.97 * len(statuses)
