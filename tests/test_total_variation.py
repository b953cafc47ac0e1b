"""The total variation of a vector: its prox by optimality conditions, and solved problems."""

from __future__ import annotations

from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from optional import optional
from profiles import examples
from scipy import sparse
from scipy.optimize import minimize_scalar

import saddleback as sb
from saddleback import _native
from saddleback.functions.total_variation import denoise_line
from saddleback.paths.alpha_max import threshold

cp = optional("cvxpy")

SIZES = st.integers(1, 30)
COARSE = st.integers(-6, 6).map(lambda k: k / 2)


@st.composite
def lines(draw):
    """Return v, with ties, weights that may be one number, and alpha."""
    n = draw(SIZES)
    v = draw(arrays(float, n, elements=st.one_of(COARSE, st.floats(-5, 5))))
    weight = draw(st.one_of(arrays(float, 1, elements=st.just(1.0)), arrays(float, n, elements=st.floats(0.1, 9))))
    return v, weight, draw(st.one_of(st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.floats(0, 10)))


def assert_optimal(x, v, weight, alpha):
    """The cumulated residual is in [-alpha, alpha], at an end of it where x jumps, and 0 after the last entry."""
    flow = np.cumsum(weight * (x - v))
    tolerance = 1e-10 * (1 + alpha + np.abs(v).max()) * (1 + np.max(weight))
    assert abs(flow[-1]) <= tolerance
    assert np.all(np.abs(flow) <= alpha + tolerance)
    jump = np.diff(x)
    assert np.all(np.abs(flow[:-1] - alpha)[jump > 0] <= tolerance)
    assert np.all(np.abs(flow[:-1] + alpha)[jump < 0] <= tolerance)


@given(line=lines())
@examples(300)
def test_the_prox_is_optimal_and_as_specified(line):
    x = _native.denoise_line(*line)
    assert_optimal(x, *line)
    assert np.array_equal(x, denoise_line(*line))


@pytest.mark.parametrize("weighted", [False, True])
def test_long_lines(weighted, rng):
    v = np.repeat(rng.standard_normal(50), 200) + rng.standard_normal(10_000)
    weight = rng.uniform(0.5, 2.0, v.size) if weighted else np.ones(1)
    for alpha in (1e-3, 1.0, 30.0, 1e6):
        assert_optimal(_native.denoise_line(v, weight, alpha), v, weight, alpha)


def test_weights_of_very_different_sizes(rng):
    weight = 10.0 ** rng.uniform(-15, 15, 200)
    x = _native.denoise_line(rng.standard_normal(200), weight, 1.0)
    assert np.all(np.isfinite(x))


@pytest.mark.slow
def test_the_time_is_linear():
    """Lines on which methods that go back over the data take a quadratic time: a ramp, and a slow oscillation."""
    for make in (lambda n: np.arange(n) / n, lambda n: np.sin(40 * np.arange(n) / n) * np.arange(n)):
        times = []
        for n in (200_000, 1_600_000):
            v = make(n)
            start = process_time()
            _native.denoise_line(v, np.ones(1), 1e3)
            times.append(process_time() - start)
        assert times[1] < 30 * times[0]


def test_no_jumps_beyond_the_largest_alpha(rng):
    v = rng.standard_normal(40)
    alpha = np.max(np.abs(np.cumsum(v - v.mean())))
    assert np.allclose(sb.TotalVariation1D(1.001 * alpha).prox(v, 1.0), v.mean())
    assert np.ptp(sb.TotalVariation1D(0.999 * alpha).prox(v, 1.0)) > 0


@given(
    z=arrays(float, 6, elements=COARSE), alpha=st.sampled_from([0.5, 1.0, 2.0]), beta=st.sampled_from([0.0, 0.5, 1.0])
)
@examples(100)
def test_the_conjugate_is_an_indicator(z, alpha, beta):
    """z is in the set if and only if <x, z> <= f(x) for the x where that is most violated on the unit box."""
    f = sb.TotalVariation1D(alpha) + sb.L1(beta) if beta else sb.TotalVariation1D(alpha)
    x = cp.Variable(6)
    excess = cp.Problem(
        cp.Maximize(z @ x - alpha * cp.norm1(cp.diff(x)) - beta * cp.norm1(x)), [cp.norm_inf(x) <= 1]
    ).solve(solver=cp.CLARABEL)
    assert (f.conjugate(z) == 0) == (excess < 1e-6)


A = np.random.default_rng(3).standard_normal((100, 40))
X = np.repeat([0.0, 2.0, -1.0, 0.5], 10)
NOISE = 0.5 * np.random.default_rng(4).standard_normal(100)


@pytest.mark.parametrize("loss", [sb.Squared, sb.Absolute, sb.Huber, sb.Norm2])
@pytest.mark.parametrize("sum_with", ["nothing", "L1", "NonNegative", "Linear", "intercept"])
def test_regression(loss, sum_with):
    b = A @ X + NOISE
    x = cp.Variable(40)
    value = 0.5 * cp.norm1(cp.diff(x))
    f, matrix, constraints = sb.TotalVariation1D(0.5), A, []
    if sum_with == "L1":
        f, value = f + sb.L1(0.3), value + 0.3 * cp.norm1(x)
    if sum_with == "NonNegative":
        f, constraints = f + sb.NonNegative(), [x >= 0]
    if sum_with == "Linear":
        c = np.linspace(-1, 1, 40)
        f, value = f + sb.Linear(c), value + c @ x
    image = A @ x
    if sum_with == "intercept":
        c = cp.Variable(1)
        b, f, matrix, image = b + 3.0, [f, sb.Zero()], [A, np.ones((100, 1))], image + c
    losses = {sb.Squared: cp.sum_squares(image - b) / 2, sb.Absolute: cp.norm1(image - b),
              sb.Huber: cp.sum(cp.huber(image - b, 1.0)) / 2, sb.Norm2: cp.norm(image - b)}  # fmt: skip
    problem = sb.Problem(f, matrix, sb.Huber(b, 1.0) if loss is sb.Huber else loss(b))
    result = sb.solve(problem, tol=1e-6)
    assert result.status == sb.Status.OPTIMAL
    expected = cp.Problem(cp.Minimize(value + losses[loss]), constraints).solve(solver=cp.CLARABEL)
    assert result.certificate.primal_value == pytest.approx(expected, rel=2e-6)


@pytest.mark.parametrize("loss", [sb.Squared, sb.Absolute])
@pytest.mark.parametrize("A", [sb.Identity(), np.eye(40)], ids=["identity", "matrix"])
def test_denoising(A, loss, rng):
    b = X + 0.3 * rng.standard_normal(40)
    x = cp.Variable(40)
    distance = cp.sum_squares(x - b) / 2 if loss is sb.Squared else cp.norm1(x - b)
    result = sb.solve(sb.Problem(sb.TotalVariation1D(0.5), A, loss(b)), tol=1e-6)
    assert result.status == sb.Status.OPTIMAL
    expected = cp.Problem(cp.Minimize(0.5 * cp.norm1(cp.diff(x)) + distance)).solve(solver=cp.CLARABEL)
    assert result.certificate.primal_value == pytest.approx(expected, rel=2e-6)


def test_refusals():
    with pytest.raises(ValueError, match=r"function of a vector, but its variable has shape \(3, 2\)"):
        sb.Problem(sb.TotalVariation1D(1.0), np.eye(3), sb.Squared(np.ones((3, 2))))
    with pytest.raises(TypeError, match="L1 cannot be added to TotalVariation1D: expected L1 without weights, Linear"):
        sb.TotalVariation1D(1.0) + sb.L1(1.0, [1.0, 2.0])
    f, loss = sb.TotalVariation1D(1.0), sb.Squared(np.ones(100))
    with pytest.raises(ValueError, match="alpha_max cannot be computed for the sum of TotalVariation1D with L1"):
        sb.alpha_max(f + sb.L1(1.0), A, loss)
    with pytest.raises(TypeError, match="unpenalised names columns, but TotalVariation1D"):
        sb.alpha_max(f, A, loss, [0])


@pytest.mark.parametrize("form", ["alone", "Linear", "intercept", "identity", "several losses"])
@pytest.mark.parametrize("loss", [sb.Squared, sb.Absolute])
def test_alpha_max_is_the_least_with_a_constant_x(form, loss):
    """There, a constant x is proved to be optimal; for a smaller alpha another x is better."""
    f, b, ones = sb.TotalVariation1D(1.0), A @ X + NOISE, np.ones(100)
    penalty, matrix, losses = {
        "alone": lambda: (f, A, loss(b)),
        "Linear": lambda: (f + sb.Linear(np.linspace(-1, 1, 40)), A, loss(b)),
        "intercept": lambda: ([f, sb.Zero()], [A, ones], loss(b)),
        "identity": lambda: (f, sb.Identity(), loss(b)),
        "several losses": lambda: (f, [A[:60], A[60:]], [loss(b[:60]), sb.Huber(b[60:], 1.0)]),
    }[form]()
    problem = sb.Problem(penalty, matrix, losses)
    found = threshold(problem)
    assert sb.alpha_max(penalty, matrix, losses) == found.alpha
    assert np.ptp(found.x[: 100 if form == "identity" else 40]) == 0
    x = [found.x[:40], found.x[40:]] if form == "intercept" else found.x
    y = [found.y[:60], found.y[60:]] if form == "several losses" else found.y
    at = sb.certify(problem.with_alpha(found.alpha), x, y)
    assert at.error < 1e-8
    below = problem.with_alpha(0.9 * found.alpha).to_cvxpy().solve(solver=cp.CLARABEL)
    assert below < at.primal_value - 1e-5 * abs(at.primal_value)


def test_a_path_begins_with_a_constant():
    results = list(sb.path(sb.TotalVariation1D(1.0), A, sb.Squared(A @ X + NOISE), n_alphas=3))
    assert np.ptp(results[0].x) < 1e-6
    assert all(result.status == sb.Status.OPTIMAL for result in results)


@pytest.mark.parametrize("loss", ["Absolute", "Hinge", "Equality"])
@pytest.mark.parametrize("form", ["alone", "L1", "intercept", "several losses", "identity"])
def test_under_a_loss_with_kinks_the_differences_are_rows(form, loss):
    """The problem is solved as one of several losses; points and certificates are those of the problem as written."""
    m = 20 if loss == "Equality" else 40
    own, b = A[:m], A[:m] @ X
    g = {"Absolute": sb.Absolute(b + NOISE[:m]), "Hinge": sb.Hinge(np.sign(b)), "Equality": sb.Equality(b)}[loss]
    f = sb.TotalVariation1D(0.5)
    problem = {
        "alone": lambda: sb.Problem(f, own, g),
        "L1": lambda: sb.Problem(f + sb.L1(0.2), own, g),
        "intercept": lambda: sb.Problem([f, sb.Zero()], [own, np.ones(m)], g),
        "several losses": lambda: sb.Problem(f, [own, np.ones((1, 40))], [g, sb.Interval(-9.0, 16.0)]),
        "identity": lambda: sb.Problem([f, sb.L1(1.0)], [sb.Identity(), A[:m]], g),
    }[form]()
    unfolded, plain = sb.solve(problem, tol=1e-7), sb.solve(problem, tol=1e-4, eliminate=False)
    assert unfolded.status == plain.status == sb.Status.OPTIMAL
    assert unfolded.objective == pytest.approx(plain.objective, rel=1e-3)
    assert unfolded.objective == pytest.approx(problem.to_cvxpy().solve(solver=cp.CLARABEL), rel=1e-6)
    assert sb.certify(problem, unfolded.x, unfolded.y).error <= 1e-6
    assert sb.solve(problem, x0=unfolded, tol=1e-6).passes < unfolded.passes


def test_no_solution_is_proved_with_differences_as_rows():
    """x >= 0 and a negative sum contradict each other."""
    result = sb.solve(sb.Problem(sb.TotalVariation1D(1.0) + sb.NonNegative(), np.ones((1, 6)), sb.Equality([-1.0])))
    assert result.status == sb.Status.INFEASIBLE


def test_a_run_with_differences_as_rows_is_resumed(tmp_path):
    problem = sb.Problem(sb.TotalVariation1D(0.5), A, sb.Absolute(A @ X + NOISE))
    whole = sb.solve(problem, tol=1e-8)
    sb.solve(problem, tol=1e-8, max_passes=30, checkpoint=tmp_path / "run")
    assert np.array_equal(sb.solve(problem, tol=1e-8, resume=tmp_path / "run").x, whole.x)


def test_a_matrix_in_a_file_keeps_the_total_variation_as_its_penalty(tmp_path):
    """Its rows would be read again for each block; the loss has kinks, as in the tests above."""
    b = A @ X + NOISE
    np.save(tmp_path / "A.npy", np.asfortranarray(A))
    streamed = sb.Streamed(np.load(tmp_path / "A.npy", mmap_mode="r"))
    one, other = (sb.Problem(sb.TotalVariation1D(5.0), matrix, sb.Absolute(b)) for matrix in (streamed, A))
    assert sb.solve(one, tol=1e-4).objective == pytest.approx(sb.solve(other).objective, rel=2e-4)


def test_the_bound_of_a_graph_with_a_hub_is_a_theorem(rng):
    """A star whose hub has 5,000 neighbours: each leaf with data costs a Huber function of its distance to the hub."""
    leaves, alpha = 5_000, 0.1
    seen = np.append(0, rng.choice(np.arange(1, leaves + 1), 30, replace=False))
    b = rng.standard_normal(seen.size)
    data = sparse.csr_array((np.ones(seen.size), (np.arange(seen.size), seen)), shape=(seen.size, leaves + 1))
    edges = np.column_stack([np.zeros(leaves, dtype=int), np.arange(1, leaves + 1)])
    problem = sb.Problem(sb.Zero(), [data, sb.Differences(edges=edges)], [sb.Squared(b), sb.L1(alpha)])
    result = sb.solve(problem, tol=1e-6)
    assert result.status is sb.Status.OPTIMAL
    assert result.certificate.proved

    def cost(hub: float) -> float:
        far = np.abs(b[1:] - hub)
        return 0.5 * (hub - b[0]) ** 2 + np.sum(np.where(far <= alpha, far**2 / 2, alpha * (far - alpha / 2)))

    best = minimize_scalar(cost, bounds=(b.min(), b.max()), options={"xatol": 1e-12}).fun
    assert best * (1 - 1e-6) <= result.certificate.dual_value <= best * (1 + 1e-15)
