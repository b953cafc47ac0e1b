"""Every method: it reaches the optimum or says why it cannot treat the problem, and its passes count its work."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optional import optional
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

import saddleback as sb
from saddleback.engine.registry import LAYERS, METHODS, make
from saddleback.methods import Start
from saddleback.operators import Dense

cp = optional("cvxpy")

M, N = 12, 8
RNG = np.random.default_rng(7)
A = RNG.standard_normal((M, N)) * (RNG.random((M, N)) < 0.8)
WIDE = RNG.standard_normal((5, 9))
B = A @ np.where(np.arange(N) % 3 == 0, 1.0, 0.0) + 0.3 * RNG.standard_normal(M)
W = np.arange(1.0, 6.0)
Z = np.where(B > 0, 1.0, -1.0)
GROUPS = [3, 3, 2]
MATRIX = np.outer([1.0, 2.0, -1.0, 0.5], [1.0, -1.0, 2.0]) + np.diag([0.0, 3.0, 0.0, 0.0])[:, :3]
LABELS = np.arange(M) % 3
TARGETS = np.column_stack([B, B[::-1]])


CASES: dict[str, Callable[[], sb.Problem]] = {
    "lasso": lambda: sb.Problem(sb.L1(0.5), A, sb.Squared(B)),
    "sparse lasso": lambda: sb.Problem(sb.L1(0.5), sparse.csr_matrix(A), sb.Squared(B)),
    "operator lasso": lambda: sb.Problem(sb.L1(0.5), aslinearoperator(A), sb.Squared(B)),
    "wide ridge": lambda: sb.Problem(sb.SquaredL2(0.5), WIDE, sb.Squared(B[:5], W)),
    "logistic group": lambda: sb.Problem(sb.GroupL2(0.3, GROUPS), A, sb.Logistic(Z)),
    "huber box": lambda: sb.Problem(sb.Box(-0.3, 0.6), A, sb.Huber(B, 0.4)),
    "hinge group": lambda: sb.Problem(sb.GroupL2(0.02, GROUPS), A, sb.Hinge(Z, scale=1 / M)),
    "pinball intercept": lambda: sb.Problem([sb.ElasticNet(0.4, 0.5), sb.Zero()], [A, np.ones(M)], sb.Pinball(B, 0.3)),
    "square root lasso": lambda: sb.Problem(sb.L1(0.2), A, sb.Norm2(B)),
    "tasks": lambda: sb.Problem(sb.GroupL2(0.5, 1), A, sb.Squared(TARGETS)),
    "multinomial": lambda: sb.Problem(sb.GroupL2(0.8, 1), A, sb.Multinomial(LABELS)),
    "multiclass hinge": lambda: sb.Problem(sb.ElasticNet(2.0, 0.4), A, sb.MulticlassHinge(LABELS)),
    "basis pursuit": lambda: sb.Problem(sb.L1(1.0), WIDE, sb.Equality(B[:5])),
    "linear program": lambda: sb.Problem(
        sb.Linear(np.arange(9) - 4.0) + sb.Box(-1, 1), WIDE, sb.Interval(-1.0, np.full(5, 0.5))
    ),
    "robust PCA": lambda: sb.Problem(
        [sb.SquaredL2(1.0), sb.L1(0.4), sb.Nuclear(0.9, MATRIX.shape)], [sb.Identity()] * 3, sb.Equality(MATRIX)
    ),
}

ACCURACY = {"spdc": 5e-3, "fobos": 1e-2, "osga": 1e-2}
"""Allowed suboptimality, relative to the objective at 0, for methods whose gap closes slowly or never. The other
methods must end OPTIMAL."""

OPTIONS: dict[tuple[str, str], dict[str, Any]] = {
    **{("spdc", case): {"rows_per_iteration": 3} for case in CASES},
    ("fista", "hinge group"): {"smoothing": 0.05},
    ("fista", "pinball intercept"): {"smoothing": 0.01},
    ("fista", "square root lasso"): {"smoothing": 0.01},
}

WRONG = {
    ("sp-bcd-published", case) for case in ("linear program", "pinball intercept", "hinge group", "multiclass hinge")
}
"""Cases in which the published method diverges (docs/theory/guarantees.md). Its certificate must still be true."""

WRONG_TOGETHER = {("sp-bcd-published", "basis pursuit")}
"""The same with --backend mpi, where each process draws its own blocks: its strengths do not fit such draws."""

MUST_ACCEPT = {
    "robust PCA": {"admm", "gs-admm", "pdmm", "pdhg", "pdhg-diagonal", "sp-bcd"},
    "lasso": {*METHODS} - {"highs", "alternating", "dual-fista"},
    "wide ridge": {"dual-fista"},
    "hinge group": {"pdhg", "pdhg-diagonal", "spdc", "fobos", "osga", "fista", "admm", "gs-admm", "pdmm"},
}


@cache
def optimum(name: str) -> float:
    pytest.importorskip("cvxpy")
    problem = CASES[name]().to_cvxpy()
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return float(problem.value)


def lacks(method: str, problem: sb.Problem, options: dict[str, Any]) -> bool:
    return method != "auto" and make(method, options).missing(problem.model) is not None


STAYS = ("operator lasso",)
"""Cases in which A has no entries to move to a device."""


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("method", sb.methods())
def test_every_method_reaches_the_optimum_or_says_why_not(method, name, device, pytestconfig):
    problem = CASES[name]()
    wrong = WRONG | WRONG_TOGETHER if pytestconfig.getoption("--backend") == "mpi" else WRONG
    options = OPTIONS.get((method, name), {})
    rough = ACCURACY.get(method, 5e-3 if options else 0.0)
    limits = {"tol": 1e-4, "max_passes": 1_000} if rough else {"tol": 1e-6, "max_passes": 50_000}
    if (method, name) in wrong:
        limits["max_passes"] = 500
    if lacks(method, problem, options):
        assert method not in MUST_ACCEPT.get(name, ())
        with pytest.raises(TypeError, match=f"method='{method}' cannot treat this problem: "):
            sb.solve(problem, method=method, **limits, **options)
        return
    if device is not None and name in STAYS:
        with pytest.raises(TypeError, match="cannot be moved to a device"):
            sb.solve(problem, method=method, device=device)
        return
    if device is not None and (method, name) == ("gs-admm", "basis pursuit"):
        pytest.skip("tens of thousands of passes, of which each is slow on so small a problem")
    result = sb.solve(problem, method=method, device=device, **limits, **options)
    best = optimum(name)
    scale = max(abs(best), problem.model.value_at_zero if rough else 0.0)
    certificate = result.certificate
    if certificate.dual_infeasibility == 0:
        assert certificate.dual_value <= best + 1e-7 * scale
    if certificate.primal_infeasibility == 0:
        assert certificate.primal_value >= best - 1e-7 * scale
    if (method, name) in wrong:
        return
    assert abs(certificate.primal_value - best) <= (rough or 3e-6) * scale
    assert rough or result.status is sb.Status.OPTIMAL, result.message
    again = sb.certify(problem, result.x, result.y)
    assert again.primal_value == pytest.approx(certificate.primal_value, rel=1e-9, abs=1e-12)
    assert again.dual_value == pytest.approx(certificate.dual_value, rel=1e-9, abs=1e-12)


class Counted(Dense):
    """A dense matrix that counts visited columns as a fraction of all columns: half a visit per product."""

    def __init__(self, array: np.ndarray) -> None:
        super().__init__(array)
        self.visits = 0.0

    def _count(self, result: Any, share: float = 1.0) -> Any:
        self.visits += 0.5 * share
        return result

    def _share(self, columns, rows):
        return columns.size / self.shape[1] if columns is not None else rows.size / self.shape[0]

    def matvec(self, x, columns=None, rows=None):
        whole = columns is None and rows is None
        share = np.count_nonzero(x) / x.size if whole else self._share(columns, rows)
        return self._count(super().matvec(x, columns, rows), share)

    def rmatvec(self, y, columns=None, rows=None):
        whole = columns is None and rows is None
        return self._count(super().rmatvec(y, columns, rows), 1.0 if whole else self._share(columns, rows))

    def gram(self, weight, columns=None, side="columns"):
        size = self.shape[0] if side == "rows" else self.shape[1] if columns is None else columns.size
        return self._count(super().gram(weight, columns, side), 0.5 * size)

    def ordered(self, by):
        return self


UNCOUNTED = {"sp-bcd", "pure-cd", "descent", "multipliers"}
"""Methods whose kernels bypass the operator, or whose passes include the time of factorisations."""


@pytest.mark.parametrize("shape", [(30, 40), (40, 30)])
@pytest.mark.parametrize("method", [name for name in METHODS if name not in UNCOUNTED])
def test_passes_are_the_visits_of_the_columns(method, shape, rng):
    array = np.asfortranarray(rng.standard_normal(shape))
    # a nearly full x, since a product with zeros costs less and is counted as less
    problem = sb.Problem(sb.SquaredL2(0.1), array, sb.Squared(rng.standard_normal(shape[0])))
    model = replace(problem.model, A=Counted(array))
    chosen = make(method, {}).for_model(model)
    if chosen.missing(model) is not None:
        pytest.skip("another kind of problem")
    state = chosen.init(model, Start(rng.standard_normal(shape[1]), rng.standard_normal(shape[0])))
    for _ in range(4):
        state = chosen.advance(state, 10.0)
        chosen.candidates(state)
    assert state.passes == pytest.approx(model.A.visits, rel=0.03, abs=2.5)
    assert state.passes >= 40


@pytest.mark.parametrize("case", ["lasso", "pinball intercept", "linear program", "robust PCA"])
@pytest.mark.parametrize("method", METHODS)
def test_an_advance_by_a_tiny_amount_makes_progress(method, case):
    """Work is a sum of floats, so that the remaining work may be below its rounding error. A loop must not stall."""
    problem = CASES[case]()
    options = OPTIONS.get((method, case), {})
    if method == "highs" or lacks(method, problem, options):
        pytest.skip("another kind of problem, or one that another process works on")
    chosen, model = METHODS[method](**options), problem.model.with_memory()
    state = chosen.init(model, Start(np.zeros(model.A.shape[1]), np.zeros(model.A.shape[0])))
    for _ in range(3):
        state.passes += 1e3
        before = state.passes
        state = chosen.advance(state, 1e-14)
        assert state.passes > before
        state.wants_certificate = False


@pytest.mark.parametrize("method", sb.methods())
def test_the_input_is_unchanged_and_a_seed_determines_the_result(method):
    problem = sb.Problem(sb.L1(0.5), A, sb.Squared(B))
    x0, y0 = np.full(N, 0.1), np.full(M, 0.2)
    if lacks(method, problem, {}):
        pytest.skip("another kind of problem")
    first, second = (sb.solve(problem, method=method, x0=x0, y0=y0, tol=0, max_passes=30, seed=3) for _ in range(2))
    assert np.all(x0 == 0.1)
    assert np.all(y0 == 0.2)
    assert first.x.tobytes() == second.x.tobytes()
    assert first.y.tobytes() == second.y.tobytes()
    assert first.passes >= 30


@pytest.mark.not_on("mpi", reason="each process draws as many as the others, at least as many as asked for in all")
@pytest.mark.parametrize("method", METHODS)
def test_blocks_per_iteration_is_used_or_rejected(method):
    problem = sb.Problem(sb.L1(0.5), A, sb.Squared(B))
    if METHODS[method]().draws:
        result = sb.solve(problem, method=method, blocks_per_iteration=3, max_passes=20)
        assert result.settings["blocks_per_iteration"] == 3
    else:
        with pytest.raises((ValueError, TypeError), match=r"blocks|cannot treat"):
            sb.solve(problem, method=method, blocks_per_iteration=3, max_passes=20)


def test_the_page_on_methods_lists_all_methods_and_options():
    page = (Path(__file__).parents[1] / "docs" / "methods.md").read_text()
    rows = {row.split("|")[1].strip(" `"): row.split("|")[4] for row in page.splitlines() if row.startswith("| `")}
    assert {"auto", *rows} == set(sb.methods())
    for name, cls in METHODS.items():
        of_layers = {option for layer in cls.layers for option in (layer, *LAYERS[layer].options)}
        assert set(re.findall(r"`(\w+)`", rows[name])) == {field.name for field in fields(cls)} | of_layers
