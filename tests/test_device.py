"""A on a device: the results on the CPU device of torch are compared with numpy."""

from __future__ import annotations

import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from catalogue import FUNCTIONS, LOSSES, PENALTIES, SIZE
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

import saddleback as sb
from saddleback.datasets import make_lasso, make_robust_pca
from saddleback.functions.domains import slack
from saddleback.functions.traits import moved, zero_slack
from saddleback.methods.contract import Averages
from saddleback.operators import as_operator
from saddleback.operators.stacked import hstack
from saddleback.places.choose import block_kernel_for, descent_kernel_for
from saddleback.places.newton import smooth_part
from saddleback.places.torch import open_device
from saddleback.steps.strengths import Strengths

torch = pytest.importorskip("torch")
torch.set_num_threads(1)
CPU = open_device("cpu")


# --- arrays -----------------------------------------------------------------------------------------------------------

CALLS = {
    "value": (lambda f, x: f.value(x), "x"),
    "finite_value": (lambda f, x: f.finite_value(x), "x"),
    "project": (lambda f, x: f.domain.project(x), "x"),
    "prox": (lambda f, x, s: f.prox(x, s), "xs"),
    "subgradient": (lambda f, x: f.subgradient(x), "x"),
    "largest multiple": (lambda f, x: f.domain.largest_multiple(x), "x"),
    "near": (lambda f, x, z: f.near(x, z), "xz"),
    "recession": (lambda f, x: f.recession(x), "x"),
    "slack": (lambda f, x: slack(f.domain, x), "x"),
    "zero slack": (zero_slack, "x"),
}


def flat(value):
    parts = value if isinstance(value, tuple) else (value,)
    return np.concatenate([np.ravel(np.asarray(part, dtype=float)) for part in parts if part is not None] or [[]])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_agree_with_numpy(name, rng):
    here = FUNCTIONS[name].bind((SIZE,))
    sides = [(here, moved(here, CPU.place)), (here.conjugate(), moved(here.conjugate(), CPU.place))]
    for (here, there), (method, (call, letters)) in product(sides, CALLS.items()):
        point = {"x": rng.standard_normal(SIZE), "z": rng.standard_normal(SIZE), "s": rng.random(SIZE) + 0.5}
        if not here.diagonal_steps:
            point["s"] = 0.7
        arguments = [point[letter] for letter in letters]
        try:
            expected = call(here, *arguments)
        except TypeError:
            continue  # it has no closed form on either side
        placed = [a if isinstance(a, float) else CPU.place(a) for a in arguments]
        found = call(there, *placed)
        np.testing.assert_allclose(flat(found), flat(expected), rtol=1e-12, atol=1e-13, err_msg=method)


def test_arrays_combine_with_numpy_arrays_and_numbers(rng):
    a, b = rng.standard_normal(4), rng.standard_normal(4)
    there = CPU.place(a)
    for found, expected in [
        (there + b, a + b),
        (b - there, b - a),
        (2.0 * there, 2.0 * a),
        (np.float64(3.0) / there, 3.0 / a),
        (np.where(there > 0, b, 0.0), np.where(a > 0, b, 0.0)),
        (there[::-1], a[::-1]),
        (there[np.array([2, 0])], a[[2, 0]]),
        (np.concatenate([there, b]), np.concatenate([a, b])),
    ]:
        assert np.allclose(np.asarray(found), expected, rtol=1e-15)
    changed = there.copy()
    changed[1:3] = b[:2]
    changed *= 2.0
    assert np.allclose(np.asarray(changed), 2.0 * np.array([a[0], b[0], b[1], a[3]]))
    assert np.array_equal(np.asarray(there), a)


def test_a_broadcast_value_stays_one_number():
    there = CPU.place(np.broadcast_to(3.0, (1000,)))
    assert there.strides == (0,)
    assert there.tensor.untyped_storage().nbytes() == 8


def test_a_missing_operation_of_arrays_is_named():
    with pytest.raises(TypeError, match=r"numpy\.median"):
        np.median(CPU.place(np.ones(3)))
    with pytest.raises(TypeError, match="arctan"):
        np.arctan(CPU.place(np.ones(3)))


# --- operators --------------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(5)
FULL = RNG.standard_normal((13, 9)) * (RNG.random((13, 9)) < 0.6)
MATRICES = {
    "F order": np.asfortranarray(FULL),
    "C order": np.ascontiguousarray(FULL),
    "float32": np.asfortranarray(FULL, dtype=np.float32),
    "csc": sparse.csc_matrix(FULL),
    "csr": sparse.csr_matrix(FULL),
    "csr float32": sparse.csr_matrix(FULL.astype(np.float32)),
}


@pytest.mark.parametrize("columnar", [False, True])
@pytest.mark.parametrize("name", MATRICES)
def test_operators_agree_with_numpy(name, columnar, rng):
    here = as_operator(MATRICES[name], "A")
    there = CPU.operator(here)
    here, there = (here.ordered("columns"), there.ordered("columns")) if columnar else (here, there)
    x, y, some = rng.standard_normal(9), rng.standard_normal(13), np.array([7, 0, 4])
    few, positive = np.where(np.arange(9) == 3, x, 0.0), (rng.random(9), rng.random(13))
    calls = [
        lambda A: A.matvec(x),
        lambda A: A.matvec(few),
        lambda A: A.matvec(np.zeros(9)),
        lambda A: A.rmatvec(y),
        lambda A: A.matvec(x[some], some),
        lambda A: A.rmatvec(y, some),
        lambda A: A.rmatvec(y, np.arange(2, 6)),
        lambda A: A.matvec(x[2:6], slice(2, 6)),
        lambda A: A.sums(2, weights=(None, y))[0],
        lambda A: A.sums(1, some)[1],
        lambda A: A.entries(some),
        lambda A: A.entries(compressed=True).toarray(),
        lambda A: np.tril(A.gram(positive[1], some)),
        lambda A: np.tril(A.gram(None, some)),
        lambda A: np.tril(A.gram(positive[0], side="rows")),
        lambda A: A.restrict(np.array([1, 5, 6]), some).matvec(x[some]),
        lambda A: A.ordered("columns").pack(some, False).rmatvec(y),
        lambda A: np.concatenate([*A.sums(2), *A.sums(np.inf, weights=positive), *A.sums(1, weights=positive)]),
        *(lambda A, power=power: np.concatenate(A.sums(power)) for power in (0, 1, 2)),
    ]
    for number, call in enumerate(calls):
        np.testing.assert_allclose(
            call(there), call(here), rtol=2e-6 if "32" in name else 1e-12, atol=1e-13, err_msg=number
        )
    on_device = there.rmatvec(CPU.place(y))
    assert np.allclose(np.asarray(on_device), here.rmatvec(y), rtol=1e-6)
    assert there.traits.stored == here.traits.stored


def test_neighbouring_columns_are_a_view():
    there = CPU.operator(as_operator(MATRICES["F order"], "A"))
    assert there.part(np.arange(2, 5)).array.data_ptr() == there.array[:, 2].data_ptr()


@pytest.mark.parametrize("names", [("F order", "float32"), ("csc", "csr"), ("F order", "csc")])
def test_joined_matrices(names, rng):
    first, second = (CPU.operator(as_operator(MATRICES[name], "A")) for name in names)
    x = rng.standard_normal(18)
    joined = hstack(first, second)
    assert np.allclose(joined.matvec(x), FULL @ x[:9] + FULL @ x[9:], atol=1e-6)


# --- kernels ----------------------------------------------------------------------------------------------------------


def models(penalty, loss, rng, as_sparse):
    """Return a model on the host and on the device."""
    A = rng.standard_normal((SIZE, SIZE)) * (rng.random((SIZE, SIZE)) < 0.7) + np.eye(SIZE)
    problem = sb.Problem(PENALTIES[penalty], sparse.csc_matrix(A) if as_sparse else A, LOSSES[loss])
    return problem.model, problem.placed(CPU).model


class At:
    """An iterate for a kernel."""

    def __init__(self, model):
        m, n = model.A.shape
        self.x, self.y, self.u = np.zeros(n), np.zeros(m), np.zeros(m)
        self.averages = Averages.of(model)


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("loss", ["Squared", "Hinge", "Logistic", "Interval"])
@pytest.mark.parametrize("penalty", ["L1", "GroupL2 scattered", "SparseGroup", "Box half"])
def test_sweeps_agree_with_the_numpy_kernel(penalty, loss, as_sparse, rng):
    here, there = models(penalty, loss, rng, as_sparse)
    strengths = Strengths(rng.random(SIZE) + 3.0, rng.random(SIZE) + 3.0)
    for drawn in {1, max(1, len(here.blocks) - 1), len(here.blocks)}:
        draws = np.array([rng.choice(len(here.blocks), drawn, replace=False) for _ in range(6)])
        points = At(here), At(here)
        for model, backend, at in zip((here, there), ("numpy", "torch"), points, strict=True):
            kernel = block_kernel_for(model, drawn, backend, "eager")
            for half in (draws[:2], draws[2:]):
                kernel.sweep(half, strengths, len(here.blocks) / drawn, at)
        for vector in ("x", "y", "u"):
            assert np.allclose(getattr(points[0], vector), getattr(points[1], vector), atol=1e-12)
        assert np.allclose(points[0].averages.x, points[1].averages.x, atol=1e-12)
        assert np.allclose(points[0].averages.y, points[1].averages.y, atol=1e-12)


@pytest.mark.parametrize("loss", ["Squared weighted", "Huber", "Logistic"])
@pytest.mark.parametrize("penalty", ["L1", "SparseGroup", "ElasticNet"])
def test_descent_descends_and_keeps_its_points_consistent(penalty, loss, rng):
    _, model = models(penalty, loss, rng, False)
    kernel = descent_kernel_for(model, "torch", 16)
    x = rng.standard_normal(SIZE)
    u = model.A.matvec(x)
    y = model.g.subgradient(u)
    values = [model.f.value(x) + model.g.value(u)]
    for _ in range(4):
        assert kernel.sweep(2, x, u, y) % SIZE == 0
        assert np.allclose(u, model.A.matvec(x), atol=1e-12)
        assert np.allclose(y, model.g.subgradient(u), atol=1e-12)
        values.append(model.f.value(x) + model.g.value(u))
    assert values[-1] < values[0]
    assert values[-1] <= values[1] + 1e-12


@pytest.mark.parametrize("direct", [True, False])
def test_newton_systems(direct, rng, monkeypatch):
    from saddleback.places.torch import kernels as on_device

    if not direct:
        monkeypatch.setattr(on_device, "DIRECT", 0)
    _, model = models("SparseGroup", "Squared", rng, False)
    kernel, x = descent_kernel_for(model, "torch", 16), rng.standard_normal(SIZE)
    part = smooth_part(model.f.normal_form(), model.blocks, x)
    weight, right = rng.random(SIZE) + 0.1, rng.standard_normal(part.free.size)
    d, _ = kernel.solve(part, weight, right, np.ones(part.free.size), 1e-12, 200)
    columns = model.A.entries(part.free)
    matrix = part.added_to(columns.T @ (weight[:, None] * columns))
    assert np.allclose(matrix @ d, right, atol=1e-8)


def test_kernels_without_a_device_are_rejected(rng):
    problem = sb.Problem(sb.L1(0.1), rng.standard_normal((5, 4)), sb.Squared(np.ones(5)))
    with pytest.raises(ValueError, match="A is not a matrix on a device"):
        sb.solve(problem, backend="torch")
    with pytest.raises(ValueError, match="backend='native' cannot treat"):
        sb.solve(problem, backend="native", device="cpu")
    assert sb.solve(problem, backend="numpy", device="cpu", method="sp-bcd").settings["backend"] == "numpy"


# --- solves -----------------------------------------------------------------------------------------------------------


def same(first, second, tol=1e-6):
    assert first.status is second.status is sb.Status.OPTIMAL
    assert abs(first.objective - second.objective) <= 3 * tol * abs(first.objective)


@pytest.mark.parametrize("penalty", [sb.L1(0.3), sb.GroupL2(0.3, 5)])
@pytest.mark.parametrize(("loss", "method"), [(sb.Squared, "auto"), (sb.Huber, "auto"), (sb.Absolute, "sp-bcd")])
def test_working_sets_and_finishes(penalty, loss, method):
    data = make_lasso(60, 500, 20)
    problem = sb.Problem(penalty.with_alpha(3 * data.alpha), data.A, loss(data.b))
    there = sb.solve(problem, method=method, device="cpu")
    same(sb.solve(problem), there)
    assert there.settings["backend"] == "torch"
    again = sb.certify(problem, there.x, there.y)
    assert again.error == pytest.approx(there.certificate.error, abs=1e-9)


@pytest.mark.filterwarnings("ignore:Sparse")  # a warning of torch about the given tensor
@pytest.mark.parametrize("kind", ["dense", "float32", "row-major", "csr", "csc", "coo"])
def test_tensors_in_and_out(kind):
    data = make_lasso(40, 90, 8)
    A = torch.from_numpy(data.A.T.copy()).T
    A = {
        "dense": lambda: A,
        "float32": A.float,
        "row-major": A.contiguous,
        "csr": A.to_sparse_csr,
        "csc": A.to_sparse_csc,
        "coo": A.to_sparse_coo,
    }[kind]()
    problem = sb.Problem(sb.L1(data.alpha), A, sb.Squared(torch.from_numpy(data.b)))
    result = sb.solve(problem)
    assert isinstance(result.x, torch.Tensor)
    assert isinstance(result.y, torch.Tensor)
    assert result.x.dtype == torch.float64
    exact = data.A.astype(np.float32) if kind == "float32" else data.A
    host = sb.Problem(sb.L1(data.alpha), exact, sb.Squared(data.b))
    same(sb.solve(host), result)
    assert sb.certify(host, result.x, result.y).error <= 1.1e-6
    assert sb.certify(problem, result.x, result.y).error <= 1.1e-6
    assert sb.solve(problem, x0=result).passes < result.passes
    seen = []
    sb.solve(problem, callback=lambda info: seen.append(info.x))
    assert all(isinstance(x, torch.Tensor) for x in seen)


def test_tensors_in_the_second_of_two_losses():
    losses = [sb.Squared(np.ones(3)), sb.Absolute(torch.zeros(3))]
    assert isinstance(sb.solve(sb.Problem(sb.L1(0.1), [np.eye(3), np.eye(3)], losses)).x, torch.Tensor)


@pytest.mark.parametrize("missing", [False, True])
def test_robust_pca_agrees_with_numpy(missing, rng):
    data = make_robust_pca(120, 150, 3)
    nuclear, sparse_part = sb.Nuclear(data.nuclear_alpha, data.B.shape), sb.L1(data.sparse_alpha)

    def problem(B):
        if missing:
            seen = np.random.default_rng(0).random(data.B.shape) < 0.8
            return sb.Problem([sparse_part, nuclear], [sb.Identity()] * 2, sb.Squared(B, seen.astype(float)))
        return sb.Problem([sb.SquaredL2(1.0), sparse_part, nuclear], [sb.Identity()] * 3, sb.Equality(B))

    here = sb.solve(problem(data.B))
    there = sb.solve(problem(data.B), device="cpu")
    tensors = sb.solve(problem(torch.from_numpy(data.B)))
    same(here, there)
    assert (here.method, here.passes) == (there.method, there.passes)
    for a, b, c in zip(here.x, there.x, tensors.x, strict=True):
        assert isinstance(b, np.ndarray)
        assert isinstance(c, torch.Tensor)
        assert np.allclose(a, b, atol=1e-6 * np.abs(a).max())
        assert np.allclose(b, c.numpy(), atol=1e-9 * np.abs(a).max())


def test_a_problem_is_moved_once():
    data = make_lasso(30, 60, 5)
    problem = sb.Problem(sb.L1(data.alpha), data.A, sb.Squared(data.b)).placed(CPU)
    assert problem.placed(CPU).model.A is problem.model.A
    same(sb.solve(problem), sb.solve(problem, device="cpu"))


class Own:
    """A user-defined penalty: |x| in each coordinate."""

    def value(self, x):
        return float(np.abs(x).sum())

    def prox(self, v, step):
        return np.sign(v) * np.maximum(np.abs(v) - step, 0.0)


def test_user_functions_stay_on_the_host(rng):
    A, b = rng.standard_normal((20, 8)), rng.standard_normal(20)
    there = sb.solve(sb.Problem(Own(), A, sb.Squared(b)), device="cpu")
    same(sb.solve(sb.Problem(sb.L1(1.0), A, sb.Squared(b))), there)
    assert there.settings["backend"] == "numpy"
    with pytest.raises(TypeError, match="cannot be moved to a device"):
        sb.solve(sb.Problem([Own(), sb.L1(1.0)], [sb.Identity()] * 2, sb.Squared(b)), device="cpu")


# --- errors -----------------------------------------------------------------------------------------------------------


def test_devices_that_do_not_exist():
    problem = sb.Problem(sb.L1(0.1), np.eye(3), sb.Squared(np.ones(3)))
    with pytest.raises(ValueError, match=r"device=9223372036854775808 cannot be used"):
        sb.solve(problem, device=2**63)
    with pytest.raises(ValueError, match="device='nowhere' cannot be used"):
        sb.solve(problem, device="nowhere")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="device='cuda' cannot be used"):
            sb.solve(problem, device="cuda")


def test_what_cannot_be_moved():
    operator = sb.Problem(sb.L1(0.1), aslinearoperator(np.eye(3)), sb.Squared(np.ones(3)))
    with pytest.raises(TypeError, match="LinearOperator"):
        sb.solve(operator, device="cpu")


@pytest.mark.parametrize(
    ("A", "error", "message"),
    [
        (torch.ones(3, 2, 2), ValueError, "A has 3 dimensions"),
        (torch.ones(0, 2), ValueError, "A is empty"),
        (torch.ones(3, 2, dtype=torch.complex64), TypeError, "expected real numbers"),
        (torch.full((3, 2), float("nan")), ValueError, "NaN or infinite"),
    ],
)
def test_tensors_that_are_not_matrices(A, error, message):
    with pytest.raises(error, match=message):
        sb.Problem(sb.L1(0.1), A, sb.Squared(np.ones(3)))


def test_integers_and_vectors_are_matrices():
    result = sb.solve(sb.Problem(sb.L1(0.5), torch.tensor([1, 2, 3]), sb.Squared(np.ones(3))))
    assert result.x.item() == pytest.approx(5.5 / 14, abs=1e-6)


def test_torch_is_not_imported_before_it_is_needed():
    solve = "sb.solve(sb.Problem(sb.L1(0.1), np.eye(3), sb.Squared(np.ones(3))))"
    code = f"import sys, saddleback as sb, numpy as np; {solve}; print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def test_a_set_without_columns_has_products():
    """The finish of this problem computes a Gram matrix of zero columns."""
    A = np.array([[-1.03613363, 0.48354755], [0.75930959, 0.68255093], [-0.26695659, -0.19902913]])
    problem = sb.Problem(sb.GroupL2(0.0017, [2], [1.0]), A, sb.Hinge(torch.ones(3), scale=0.5))
    assert sb.solve(problem, tol=1e-10, max_passes=500, seed=77).status is sb.Status.OPTIMAL


@pytest.mark.parametrize("scale", [0.0, 1e-80, 1e80])
def test_descent_does_not_depend_on_the_units(scale, rng):
    A, labels = rng.standard_normal((20, 6)), np.where(rng.random(20) < 0.5, 1.0, -1.0)
    expected = sb.solve(sb.Problem(sb.SquaredL2(0.1), A if scale else 0 * A, sb.Logistic(labels)))
    problem = sb.Problem(sb.SquaredL2(0.1 * scale**2), torch.from_numpy(A * scale), sb.Logistic(labels))
    result = sb.solve(problem, max_passes=200)
    assert result.status is sb.Status.OPTIMAL
    assert result.objective == pytest.approx(expected.objective, rel=1e-5)


def test_a_choice_between_two_numbers_has_double_precision():
    chosen = np.where(CPU.place(np.array([1.0, -1.0])) > 0, 0.1, 0.3)
    assert np.array_equal(np.asarray(chosen.tensor), [0.1, 0.3])
