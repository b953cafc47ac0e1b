"""The competing methods, compared iterate by iterate with the formulas of their papers."""

from __future__ import annotations

import numpy as np
import pytest
from catalogue import LOSSES, PENALTIES, SIZE, B
from scipy.optimize import minimize

import saddleback as sb
from saddleback.engine.registry import make
from saddleback.functions.traits import curvature
from saddleback.methods import Start
from saddleback.methods.osga import _farthest
from saddleback.steps.sampling import KNice
from saddleback.steps.strengths import round_up_strengths


def start(model, K=None, seed=0):
    return Start(np.zeros(model.A.shape[1]), np.zeros(model.A.shape[0]), K, seed)


def soft(v, t):
    return np.sign(v) * np.maximum(np.abs(v) - t, 0.0)


def svt(v, t):
    left, values, right = np.linalg.svd(v, full_matrices=False)
    return (left * np.maximum(values - t, 0.0)) @ right


def lasso(rng, m=8, n=6, alpha=0.3):
    A, b = rng.standard_normal((m, n)), rng.standard_normal(m)
    return A, b, sb.Problem(sb.L1(alpha), A, sb.Squared(b)).model


ALPHAS = (0.4, 0.9)


def robust_pca(rng):
    matrix = rng.standard_normal((4, 5))
    penalties = [sb.SquaredL2(1.0), sb.L1(ALPHAS[0]), sb.Nuclear(ALPHAS[1], matrix.shape)]
    return matrix, sb.Problem(penalties, [sb.Identity()] * 3, sb.Equality(matrix)).model


def parts(x, matrix):
    return [part.reshape(matrix.shape) for part in np.split(x, 3)]


def proxes(rho):
    """Return the proxes of the three terms with strength rho."""
    return [lambda v: v * rho / (1 + rho), lambda v: soft(v, ALPHAS[0] / rho), lambda v: svt(v, ALPHAS[1] / rho)]


# --- PDHG ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0, 1, 2])
@pytest.mark.parametrize("loss", ["Squared", "Hinge", "Interval", "Norm2"])
def test_diagonal_pdhg_is_the_block_method_with_all_blocks(alpha, loss, rng):
    """The strengths are those of Pock and Chambolle, and PDHG is one dual step ahead."""
    A = rng.standard_normal((SIZE, 9))
    model = sb.Problem(sb.L1(0.3), A, LOSSES[loss]).model
    h, sigma = (np.abs(A) ** (2 - alpha)).sum(axis=0), (np.abs(A) ** alpha).sum(axis=1)
    sigma = round_up_strengths(model.g, sigma)
    theirs = make("pdhg-diagonal", {"alpha": alpha})
    ours = make("sp-bcd", {"step": (h, sigma), "restarts": False, "working_set": False}).for_model(model)
    state = theirs.init(model, start(model))
    ahead = Start(np.zeros(9), model.g_star.prox(np.zeros(SIZE), 1 / sigma), 9, 0)
    block_state = ours.init(model, ahead)
    for _ in range(20):
        state, block_state = theirs.advance(state, 1.0), ours.advance(block_state, 1.0)
        assert np.allclose(state.x, block_state.x, atol=1e-11)


def test_primal_weight_scales_both_strengths(rng):
    _, _, model = lasso(rng)
    plain, weighted = (make("pdhg", {"primal_weight": w}).init(model, start(model)).strengths for w in (1.0, 4.0))
    assert np.allclose(weighted.primal, 4 * plain.primal)
    assert np.allclose(weighted.dual, plain.dual / 4)


# --- forward and backward -----------------------------------------------------------------------------------------


def test_fista_without_momentum_is_ista(rng):
    _, _, model = lasso(rng)
    methods = make("ista", {}), make("fista", {"momentum": False})
    first, second = (method.advance(method.init(model, start(model)), 30.0) for method in methods)
    assert first.x.tobytes() == second.x.tobytes()


def test_fista_by_its_formulas(rng):
    A, b, model = lasso(rng)
    L = np.linalg.norm(A, 2) ** 2
    method = make("fista", {"step": 1 / L})
    state = method.init(model, start(model))
    x, y, t = np.zeros(6), np.zeros(6), 1.0
    for _ in range(15):
        state = method.advance(state, 1.0)
        following, t_next = soft(y - A.T @ (A @ y - b) / L, 0.3 / L), (1 + np.sqrt(1 + 4 * t * t)) / 2
        x, y, t = following, following + (t - 1) / t_next * (following - x), t_next
        assert np.allclose(state.x, x, atol=1e-12)
        assert np.allclose(state.u, A @ x, atol=1e-11)


def test_the_default_step_is_one_over_the_lipschitz_constant(rng):
    A = rng.standard_normal((SIZE, 9))
    model = sb.Problem(sb.L1(0.3), A, LOSSES["Squared weighted"]).model
    weight = np.sqrt(curvature(model.g))
    state = make("ista", {}).init(model, start(model))
    assert 1 / state.step == pytest.approx(np.linalg.norm(weight[:, None] * A, 2) ** 2, rel=1e-9)
    smoothed = make("ista", {"smoothing": 0.5}).init(model, start(model))
    weight = weight / np.sqrt(1 + 0.5 * weight**2)
    assert 1 / smoothed.step == pytest.approx(np.linalg.norm(weight[:, None] * A, 2) ** 2, rel=1e-9)


@pytest.mark.parametrize("loss", [name for name in LOSSES if not name.startswith(("Equality", "Interval"))])
def test_smoothing_gives_the_gradient_of_the_smoothed_loss(loss, rng):
    """The smoothed loss is max_y <u, y> - g*(y) - mu / 2 ||y||^2; its gradient is checked by finite differences."""
    model = sb.Problem(sb.L1(0.3), np.eye(SIZE), LOSSES[loss]).model
    mu, method = 0.3, make("fista", {"smoothing": 0.3})

    def value(u):
        y = method.slope(model, u)
        return u @ y - model.g_star.value(model.g_star.domain.project(y)) - mu / 2 * y @ y

    u = rng.standard_normal(SIZE)
    steps = 1e-6 * np.eye(SIZE)
    slopes = [(value(u + d) - value(u - d)) / 2e-6 for d in steps]
    assert np.allclose(slopes, method.slope(model, u), atol=1e-6)


def test_fobos_by_its_formulas(rng):
    A = rng.standard_normal((SIZE, 9))
    model = sb.Problem(sb.L1(0.3), A, sb.Absolute(B)).model
    method = make("fobos", {"step": 0.2})
    state = method.init(model, start(model))
    x = np.zeros(9)
    for t in range(1, 12):
        state = method.advance(state, 1.0)
        step = 0.2 / np.sqrt(t)
        x = soft(x - step * A.T @ np.sign(A @ x - B), 0.3 * step)
        assert np.allclose(state.x, x, atol=1e-12)


# --- SPDC ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", [1, 3])
@pytest.mark.parametrize("extra", [0.0, 0.2])
def test_spdc_by_its_authors_formulas(K, extra, rng):
    """The paper's units: (1/n) sum phi_i(a_i'x) + f(x) with phi_i = n g_i, and dual variables that are n times ours."""
    n, d, lam = 5, 4, 0.7
    A, b = rng.standard_normal((n, d)), rng.standard_normal(n)
    model = sb.Problem(sb.ElasticNet(lam / 0.6, 0.4), A, sb.Squared(b)).model
    slope, weight = lam / 0.6 * 0.4, lam
    method = make("spdc", {"rows_per_iteration": K, "primal_regularisation": extra, "dual_regularisation": extra})
    x, y = rng.standard_normal(d), rng.standard_normal(n)
    state = method.advance(method.init(model, Start(x, y, None, 4)), K / n)
    rows = KNice(n, K, 4).draw(1)[0]
    lam = lam + extra
    gamma = (1 + extra) / n
    R = np.sqrt((A**2).sum(axis=1).max())
    tau, sigma = np.sqrt(K * gamma / (n * lam)) / (2 * R), np.sqrt(n * lam / (K * gamma)) / (2 * R)
    theta = 1 - 1 / (n / K + R * np.sqrt(n / (K * lam * gamma)))
    theirs = n * y
    after = theirs.copy()
    for i in rows:
        # phi_i*(beta) = n (b beta/n + (1 + extra) (beta/n)^2 / 2)
        after[i] = (theirs[i] / sigma + A[i] @ x - b[i]) / (1 / sigma + (1 + extra) / n)
    direction = A.T @ theirs / n + A[rows].T @ (after - theirs)[rows] / K
    moved = soft(x - tau * direction, tau * slope) / (1 + tau * (weight + extra))
    assert np.allclose(state.y, after / n, atol=1e-12)
    assert np.allclose(state.x, moved, atol=1e-12)
    assert np.allclose(state.ahead, moved + theta * (moved - x), atol=1e-12)
    assert np.allclose(state.pull, A.T @ after / n, atol=1e-12)


def test_spdc_needs_no_regularisation_if_both_terms_are_strongly_convex(rng):
    A = rng.standard_normal((20, 8))
    problem = sb.Problem(sb.ElasticNet(0.5, 0.4), A, sb.Squared(rng.standard_normal(20)))
    result = sb.solve(problem, method="spdc", tol=1e-9)
    assert result.status is sb.Status.OPTIMAL
    assert result.settings["primal_regularisation"] == result.settings["dual_regularisation"] == 0


def test_the_bias_of_spdc_shrinks_with_its_regularisation(rng):
    A, b, _ = lasso(rng, 20, 5)
    problem = sb.Problem(sb.L1(0.5), A, sb.Absolute(b))
    optimum = sb.solve(problem, tol=1e-9).certificate.primal_value
    errors = []
    for size in (1.0, 1e-2):
        options = {"primal_regularisation": size, "dual_regularisation": size, "rows_per_iteration": 4}
        result = sb.solve(problem, method="spdc", tol=1e-6, max_passes=1500, **options)
        errors.append(result.certificate.primal_value - optimum)
    assert 0 < errors[1] < 0.1 * errors[0]


# --- ADMM and related methods -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(5, 9), (9, 5)])
def test_admm_on_the_lasso_by_boyd(shape, rng):
    """Section 6.4 with z first: z = soft(x + u, alpha / rho), x = (A'A + rho I)^-1 (A'b + rho (z - u)), u += x - z."""
    A, b, model = lasso(rng, *shape)
    rho = 0.7
    method = make("admm", {"rho": rho})
    state = method.init(model, start(model))
    inverse = np.linalg.inv(A.T @ A + rho * np.eye(shape[1]))
    x, u = np.zeros(shape[1]), np.zeros(shape[1])
    for _ in range(15):
        state = method.advance(state, 1.0)
        z = soft(x + u, 0.3 / rho)
        x = inverse @ (A.T @ b + rho * (z - u))
        u = u + x - z
        assert np.allclose(state.x, z, atol=1e-12)
        assert np.allclose(state.z, x, atol=1e-12)
        assert np.allclose(state.y, A @ x - b, atol=1e-11)
        assert np.allclose(state.pull, A.T @ state.y, atol=1e-11)


@pytest.mark.parametrize("shape", [(SIZE, 9), (SIZE, 4)])
@pytest.mark.parametrize("loss", ["Hinge", "Logistic", "Interval", "Norm2", "Equality"])
def test_admm_with_a_copy_of_the_loss_is_graph_projection(shape, loss, rng):
    """The prox of both terms, then the projection of (x, u) on u = Ax in the metric of the two strengths."""
    A = rng.standard_normal(shape)
    model = sb.Problem(sb.L1(0.3), A, LOSSES[loss]).model
    method = make("admm", {"rho": 0.7})
    state = method.init(model, start(model))
    rho, own = state.rho, state.loss_rho
    stacked = np.hstack([A, -np.eye(SIZE)])
    D = np.concatenate([np.full(shape[1], rho), np.full(SIZE, own)])
    w, dual = np.zeros(D.size), np.zeros(D.size)
    for _ in range(10):
        state = method.advance(state, 1.0)
        v = w - dual
        halves = model.f.prox(v[: shape[1]], 1 / rho), model.g.prox(v[shape[1] :], 1 / own)
        v = np.concatenate(halves) + dual
        w = v - (stacked / D).T @ np.linalg.solve((stacked / D) @ stacked.T, stacked @ v)
        dual = v - w
        assert np.allclose(state.x, halves[0], atol=1e-11)
        assert np.allclose(np.concatenate([state.z, state.image]), w, atol=1e-10)


def test_admm_on_robust_pca_by_parikh_and_boyd(rng):
    """Exchange form: X_j = prox(X_j - mean(X) + B/3 - U), U += mean(X) - B/3."""
    matrix, model = robust_pca(rng)
    rho = 0.8
    method = make("admm", {"rho": rho})
    state = method.init(model, start(model))
    assert state.normal.is_diagonal
    state = method.advance(state, 1.0)
    X, U = [prox(np.zeros_like(matrix)) for prox in proxes(rho)], np.zeros_like(matrix)
    for _ in range(12):
        U = U + sum(X) / 3 - matrix / 3
        off = sum(X) / 3 - matrix / 3 + U
        X = [prox(part - off) for prox, part in zip(proxes(rho), X, strict=True)]
        state = method.advance(state, 1.0)
        assert np.allclose(parts(state.x, matrix), X, atol=1e-11)
        assert np.allclose(sum(parts(state.z, matrix)), matrix, atol=1e-11)


def test_pdhg_without_extrapolation_is_the_admm_script_of_the_paper(rng):
    """off = mean(X) - B/3 + U, X_j = prox(X_j - off), U = off, with ||A||^2 = 3 enlarged by one percent."""
    matrix, model = robust_pca(rng)
    rho = 0.8
    norm = float(make("pdhg", {}).init(model, start(model)).strengths.primal[0])
    assert norm**2 == pytest.approx(3, rel=0.02)
    method = make("pdhg", {"extrapolation": 0.0, "primal_weight": rho / norm})
    state = method.init(model, start(model))
    X, U = [np.zeros_like(matrix) for _ in range(3)], np.zeros_like(matrix)
    for _ in range(12):
        state = method.advance(state, 1.0)
        U = U + (sum(X) - matrix) / norm**2
        X = [prox(part - U) for prox, part in zip(proxes(rho), X, strict=True)]
        assert np.allclose(parts(state.x, matrix), X, atol=1e-11)


def test_gauss_seidel_admm_on_robust_pca_by_its_formulas(rng):
    matrix, model = robust_pca(rng)
    rho = 0.8
    method = make("gs-admm", {"rho": rho, "dual_step": 0.9})
    state = method.init(model, start(model))
    X, Y = [np.zeros_like(matrix) for _ in range(3)], np.zeros_like(matrix)
    for _ in range(12):
        state = method.advance(state, 1.0)
        for j, prox in enumerate(proxes(rho)):
            X[j] = prox(matrix - sum(X[i] for i in range(3) if i != j) - Y / rho)
        Y = Y + 0.9 * rho * (sum(X) - matrix)
        assert np.allclose(parts(state.x, matrix), X, atol=1e-11)
        assert np.allclose(state.y, Y.ravel(), atol=1e-11)


@pytest.mark.parametrize("K", [1, 2, 3])
def test_pdmm_on_robust_pca_by_its_authors_script(K, rng):
    """Blocks from X_j - (Yhat / rho + residual), scaled duals, tau = K / (K (6 - K)), 1 - nu = 1 / K."""
    matrix, model = robust_pca(rng)
    rho = 0.8
    method = make("pdmm", {"rho": rho})
    state = method.init(model, start(model, K, seed=2))
    X, U = [np.zeros_like(matrix) for _ in range(3)], np.zeros_like(matrix)
    seen = -matrix
    draws = KNice(3, K, 2)
    for _ in range(12):
        state = method.advance(state, K / 3)
        for j in draws.draw(1)[0]:
            X[j] = proxes(rho)[j](X[j] - seen)
        residual = sum(X) - matrix
        U = U + residual * K / (K * (6 - K))
        seen = U + residual / K
        assert np.allclose(parts(state.x, matrix), X, atol=1e-11)
        assert np.allclose(state.y, rho * U.ravel(), atol=1e-11)


def test_with_one_block_pdmm_and_gauss_seidel_are_the_method_of_multipliers(rng):
    b = rng.standard_normal(7)
    model = sb.Problem([sb.L1(0.3)], [sb.Identity(2.0)], sb.Equality(b)).model
    first, second = make("pdmm", {"rho": 0.6}), make("gs-admm", {"rho": 0.6})
    ours, theirs = first.init(model, start(model)), second.init(model, start(model))
    y = np.zeros(7)
    for _ in range(8):
        ours, theirs = first.advance(ours, 1.0), second.advance(theirs, 1.0)
        x = soft((b - y / 0.6) / 2, 0.3 / (0.6 * 4))
        y = y + 0.6 * (2 * x - b)
        assert np.allclose(ours.x, x, atol=1e-12)
        assert np.allclose(theirs.x, x, atol=1e-12)
        assert np.allclose(ours.y, y, atol=1e-12)
        assert np.allclose(theirs.y, y, atol=1e-12)


def test_gauss_seidel_admm_with_a_separate_block_for_the_loss(rng):
    """Each x_j is updated in turn, then u = Ax, for any loss; the multiplier is a slope of the loss at u."""
    A = rng.standard_normal((SIZE, 4))
    model = sb.Problem(sb.L1(0.3), A, LOSSES["Hinge"]).model
    rho = 0.5
    method = make("gs-admm", {"rho": rho})
    state = method.init(model, start(model))
    x, u, y = np.zeros(4), np.zeros(SIZE), np.zeros(SIZE)
    for _ in range(10):
        state = method.advance(state, 1.0)
        for j in range(4):
            rest = A @ x - A[:, j] * x[j] - u + y / rho
            square = A[:, j] @ A[:, j]
            x[j] = soft(-(A[:, j] @ rest) / square, 0.3 / (rho * square))
        u = model.g.prox(A @ x + y / rho, 1 / rho)
        y = y + rho * (A @ x - u)
        assert np.allclose(state.x, x, atol=1e-11)
        assert np.allclose(state.y, y, atol=1e-11)
        assert np.allclose(state.image, A @ x, atol=1e-11)
        assert model.g.value(u) + model.g_star.value(model.g_star.domain.project(y)) == pytest.approx(u @ y, abs=1e-9)


# --- OSGA ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [-2.0, 0.0, 1.5])
def test_the_subproblem_of_osga_is_a_maximum(gamma, rng):
    h, centre, offset = rng.standard_normal(3), rng.standard_normal(3), 0.7

    def negative(z):
        return (gamma + h @ z) / (offset + 0.5 * np.sum((z - centre) ** 2))

    u, eta = _farthest(gamma, h, centre, offset)
    assert eta == pytest.approx(-negative(u), abs=1e-12)
    found = min(minimize(negative, centre + rng.standard_normal(3), tol=1e-12).fun for _ in range(5))
    assert eta == pytest.approx(-found, rel=1e-7)


@pytest.mark.parametrize("penalty", ["L1 weighted", "GroupL2", "SparseGroup", "Nuclear", "ElasticNet"])
def test_osga_keeps_a_minorant_and_its_error_bound(penalty, rng):
    A, b = rng.standard_normal((9, SIZE)), rng.standard_normal(9)
    problem = sb.Problem(PENALTIES[penalty], A, sb.Absolute(b))
    model = problem.model
    method = make("osga", {})
    state = method.init(model, start(model))
    best = problem.flatten_x(sb.solve(problem, tol=1e-9, max_passes=50_000).x).vector()

    def psi(x):
        return model.f.value(x) + model.g.value(A @ x)

    for _ in range(25):
        state = method.advance(state, 5.0)
        minorant = state.minorant
        for z in (*rng.standard_normal((5, SIZE)), best, state.x):
            assert minorant.gamma + minorant.h @ z <= psi(z) + 1e-10
        assert state.value == pytest.approx(psi(state.x))
        assert state.value - psi(best) <= minorant.eta * (state.offset + 0.5 * np.sum(best**2)) + 1e-9
        assert np.isfinite(model.g_star.value(state.y))


# --- options ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"method": "admm", "rho": -1.0}, ValueError, r"rho=-1\.0: expected a finite number above 0"),
        ({"method": "pdmm", "rho": "big"}, TypeError, "rho='big': expected a number"),
        ({"method": "gs-admm", "dual_step": 0}, ValueError, "dual_step=0"),
        ({"method": "pdhg", "primal_weight": np.inf}, ValueError, "primal_weight=inf"),
        ({"method": "pdhg", "extrapolation": 2.0}, ValueError, r"extrapolation=2\.0: expected a number from 0 to 1"),
        ({"method": "pdhg-diagonal", "alpha": 3}, ValueError, "alpha=3: expected 0, 1 or 2"),
        ({"method": "ista", "step": 0.0}, ValueError, r"step=0\.0"),
        ({"method": "fista", "smoothing": -1}, ValueError, "smoothing=-1"),
        ({"method": "fobos", "smoothing": 1.0}, TypeError, "not an option"),
        ({"method": "osga", "offset": -1}, ValueError, "offset=-1"),
        ({"method": "spdc", "rows_per_iteration": 0}, ValueError, "rows_per_iteration=0"),
        ({"method": "spdc", "primal_regularisation": 0}, ValueError, "the penalty is not strongly convex"),
    ],
)
def test_bad_options(options, error, match, rng):
    A, b, _ = lasso(rng)
    with pytest.raises(error, match=match):
        sb.solve(sb.Problem(sb.L1(0.1), A, sb.Squared(b)), **options)


@pytest.mark.parametrize(
    ("method", "problem", "match"),
    [
        ("fista", sb.Problem(sb.L1(0.1), np.eye(3), sb.Absolute(np.ones(3))), "no Lipschitz gradient; smoothing=mu"),
        ("fobos", sb.Problem(sb.L1(0.1), np.eye(3), sb.Equality(np.ones(3))), "its loss is infinite outside a set"),
        ("osga", sb.Problem(sb.NonNegative(), np.eye(3), sb.Absolute(np.ones(3))), "its penalty is infinite outside"),
        ("spdc", sb.Problem(sb.L1(0.1), np.eye(3), sb.Norm2(np.ones(3))), "not a sum over the rows"),
    ],
)
def test_a_rejected_problem_gets_a_message_that_names_the_reason(method, problem, match):
    with pytest.raises(TypeError, match=match):
        sb.solve(problem, method=method)
