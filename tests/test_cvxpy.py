"""Problems written for CVXPY and read from it, compared at points and at solutions."""

from __future__ import annotations

import catalogue
import numpy as np
import pytest
from catalogue import LOSSES, SIZE, B
from own_functions import Own
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import saddleback as sb
from saddleback import functions
from saddleback.functions import Term
from saddleback.functions.concave import Concave

cp = pytest.importorskip("cvxpy")

A = np.random.default_rng(5).standard_normal((SIZE, SIZE))
IN_SHAPE = {"Nuclear + Linear": sb.Nuclear(0.3, (2, 3)) + sb.Linear(0.1 * B.reshape(2, 3))}
FUNCTIONS = catalogue.FUNCTIONS | IN_SHAPE  # as problems need them, in which x has the shape of the nuclear norm


def alone(name):
    """Return a problem in which a function of the catalogue is the penalty or the loss."""
    if name in LOSSES:
        return sb.Problem(sb.SquaredL2(0.3), A, LOSSES[name])
    return sb.Problem(FUNCTIONS[name], A, sb.Huber(B, 0.7))


def points(problem, name, rng):
    """Return random points, half of them in the domain of the function."""
    free = [rng.standard_normal(SIZE) for _ in range(3)]
    inside = [FUNCTIONS[name].prox(v.reshape(FUNCTIONS[name].shape or v.shape), 1.0).ravel() for v in free]
    if name in LOSSES:
        inside = [np.linalg.solve(A, u) for u in inside]
    return [x.reshape(problem.x_shapes[0]) for x in free + inside]


def value_for_cvxpy(program, slack=1e-9):
    """Return the objective at the values of the variables, infinite if a constraint is violated."""
    feasible = all(np.all(constraint.violation() <= slack) for constraint in program.constraints)
    return float(program.objective.value) if feasible else np.inf


def same(first, second):
    return first == second or abs(first - second) <= 1e-7 * (1 + abs(first))


def optimum(program):
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(program.value)


# --- to CVXPY ---------------------------------------------------------------------------------------------------------


def test_every_function_of_the_catalogue_has_a_translation():
    from saddleback.interop import writing  # which imports CVXPY

    terms = [getattr(functions, name) for name in functions.__all__]
    terms = [
        term for term in terms if isinstance(term, type) and issubclass(term, Term) and not term.__abstractmethods__
    ]
    terms = [term for term in terms if not issubclass(term, Concave)]  # no problem has them
    assert len(terms) > 20
    unknown = writing.written.dispatch(Term)
    assert [term.__name__ for term in terms if writing.written.dispatch(term) is unknown] == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_values_are_the_same(name, rng):
    problem = alone(name)
    program = problem.to_cvxpy()
    assert program.is_dcp()
    for x in points(problem, name, rng):
        program.var_dict["x"].value = x
        assert same(problem.value(x), value_for_cvxpy(program))


def test_blocks_tasks_and_operators_have_the_same_values(rng):
    dense, tall = rng.standard_normal((4, 3)), sparse.random_array((4, 5), density=0.5, rng=rng, format="csr")
    targets = rng.standard_normal((4, 2))
    blocks = [dense, tall, sb.Identity(0.5), np.ones(4)]
    penalties = [sb.GroupL2(0.3, [2, 1]), sb.L1(0.2, rng.random(5)), sb.Nuclear(0.4, (4, 2)), sb.Zero()]
    problems = [
        sb.Problem(penalties, blocks, sb.Squared(targets, rng.random(4))),
        sb.Problem(sb.SparseGroup(0.3, 1, 0.2), aslinearoperator(dense), sb.Logistic(np.sign(targets[:, 0]))),
        sb.Problem(
            [sb.Linear(rng.standard_normal(8)), sb.Nuclear(1.0, (2, 4))],
            [sb.Identity(), sparse.eye_array(8)],
            sb.Absolute(targets.ravel()),
        ),
        sb.Problem(sb.Box(-9.0, [[9.0], [8.0], [7.0]] * np.ones((3, 2))), dense, sb.Interval(-99.0, 99.0 + targets)),
    ]
    rows = [[dense, tall], [aslinearoperator(rng.standard_normal((2, 3))), None], [None, sb.Identity()]]
    problems += [
        sb.Problem([sb.L1(0.3), sb.SquaredL2(0.2)], rows, [sb.Hinge(np.sign(targets[:, 0])), sb.LInf(0.5), sb.L1(0.1)]),
        sb.Problem(sb.L1(0.3), [dense, dense[:2]], [sb.Squared(targets), sb.GroupL2(0.5, [[1], [0]])]),
    ]
    for problem in problems:
        x = [rng.standard_normal(shape) for shape in problem.x_shapes]
        program = problem.to_cvxpy()
        for name, variable in program.var_dict.items():
            variable.value = x[int(name[2:-1])] if problem.is_list else x[0]
        assert same(problem.value(x if problem.is_list else x[0]), value_for_cvxpy(program))


def test_functions_of_the_user_are_refused():
    own = Own(sb.L1(1.0), SIZE)
    with pytest.raises(TypeError, match="Own cannot be written for CVXPY"):
        sb.Problem(own, A, sb.Squared(B)).to_cvxpy()
    with pytest.raises(TypeError, match="Own cannot be written for CVXPY"):
        sb.Problem(sb.L1(1.0), A, own).to_cvxpy()
    with pytest.raises(TypeError, match="Own cannot be written for CVXPY"):
        sb.Problem(
            own + sb.Linear(1.0) if hasattr(own, "__add__") else sb.Linear(1.0) + own, A, sb.Squared(B)
        ).to_cvxpy()


def test_a_large_linear_operator_is_refused():
    n = 4000
    large = LinearOperator((n, n), matvec=lambda x: x, rmatvec=lambda y: y, dtype=float)
    with pytest.raises(ValueError, match="LinearOperator of 4000 x 4000"):
        sb.Problem(sb.L1(1.0), large, sb.Squared(np.ones(n))).to_cvxpy()


# --- from CVXPY -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_problem_that_was_written_can_be_read(name, rng):
    problem = alone(name)
    again = sb.from_cvxpy(problem.to_cvxpy())
    for x in points(problem, name, rng):
        own = x.reshape(again.x_shapes[0])
        assert same(problem.value(x), again.objective(again.value([own])))


x, X, t = cp.Variable(4, name="x"), cp.Variable((2, 2), name="X"), cp.Variable(name="t")
P = cp.Parameter(nonneg=True, name="P", value=0.3)
M = np.random.default_rng(1).standard_normal((5, 4))
b = np.random.default_rng(2).standard_normal(5)
C = np.random.default_rng(3).standard_normal((3, 3, 2))

MODELS = {
    "lasso": cp.Problem(cp.Minimize(cp.sum_squares(M @ x - b) + P * cp.norm1(x))),
    "ridge": cp.Problem(cp.Minimize(cp.norm(M @ x - b, 2) ** 2 + P * cp.sum_squares(x))),
    "least absolute deviations": cp.Problem(cp.Minimize(cp.norm1(b - M @ x - t))),
    "projection": cp.Problem(cp.Minimize(cp.sum_squares(x - b[:4])), [x >= 1, cp.abs(x) <= 1.5]),
    "portfolio": cp.Problem(
        cp.Maximize(b[:4] @ x - cp.quad_form(x, M.T @ M)), [cp.sum(x) == 1, x >= 0, x[0] + x[1] <= 0.7]
    ),
    "pinball": cp.Problem(cp.Minimize(cp.sum(cp.maximum(0.3 * (b - M @ x), -0.7 * (b - M @ x))) + cp.norm_inf(x))),
    "two planes": cp.Problem(cp.Minimize(cp.sum(cp.maximum(M @ x, 1 - x[0])) + cp.sum_squares(x))),
    "scalene": cp.Problem(cp.Minimize(cp.sum(cp.scalene(M @ x - b, 2, 1)))),
    "svm": cp.Problem(cp.Minimize(cp.sum(cp.pos(1 - cp.multiply(np.sign(b), M @ x + t))) + cp.norm(x) ** 2)),
    "square root": cp.Problem(cp.Minimize(cp.norm(M @ x - b) + 0.2 * cp.norm(x, 1))),
    "groups": cp.Problem(
        cp.Minimize(cp.sum_squares(M @ x - b) + cp.norm(x[:2]) + 2 * cp.norm(x[2:]) + 0.1 * cp.norm1(x))
    ),
    "bounded groups": cp.Problem(cp.Minimize(cp.sum_squares(M @ x - b) + cp.norm(x[:2])), [x[0] <= 0.1]),
    "overlapping groups": cp.Problem(cp.Minimize(cp.sum_squares(M @ x - b) + cp.norm(x[:3]) + cp.norm(x[1:]))),
    "fused": cp.Problem(cp.Minimize(cp.sum_squares(M @ x - b) + 0.5 * cp.tv(x) + 0.1 * cp.norm1(x))),
    "denoising": cp.Problem(cp.Minimize(0.5 * cp.sum_squares(x - b[:4]) + 0.5 * cp.norm1(cp.diff(x)))),
    "completion": cp.Problem(cp.Minimize(cp.normNuc(X)), [X[0, 0] == 1, X[0, 1] == 2, X[1, 0] == 3]),
    "matrix": cp.Problem(
        cp.Minimize(cp.sum_squares(C[0][:, :2] @ X - C[1][:, :2]) + cp.sum(cp.norm(X, 2, axis=1)) + cp.mixed_norm(X.T))
    ),
    "rows and columns": cp.Problem(cp.Minimize(cp.sum_squares(cp.norm(X - C[2][:2], 2, axis=0)) + cp.norm1(X))),
    "linear program": cp.Problem(cp.Minimize(cp.sum(x)), [M @ x <= 1, x >= -2, M @ x >= -3]),
    "not bounded by rows": cp.Problem(cp.Minimize(cp.sum(x) + t), [x >= -2, t >= 1]),
    "poisson": cp.Problem(cp.Minimize(cp.sum(cp.exp(M @ x - 1) - cp.multiply(np.arange(5.0), M @ x)) + cp.norm1(x))),
    "logistic": cp.Problem(cp.Minimize(cp.sum(cp.logistic(M @ x)) / 5 + cp.sum_squares(x - 1))),
    "huber": cp.Problem(cp.Minimize(cp.sum(cp.huber(M @ x - b, 0.2)) + cp.sum_squares(cp.pos(1 + M @ x)))),
    "tubes": cp.Problem(cp.Minimize(cp.sum(cp.pos(cp.abs(M @ x - b) - np.linspace(0.1, 0.2, 5))) + cp.sum_squares(x))),
    "squares": cp.Problem(
        cp.Minimize(
            cp.sum_squares(cp.pos(cp.abs(M @ x - b) - 0.2))
            + cp.sum(cp.huber(cp.pos(M @ x - b), 0.3))
            + 2 * cp.sum_squares(cp.pos(x - 0.1))
            + cp.sum_squares(cp.pos(-x))
        )
    ),
    "groups and squares": cp.Problem(
        cp.Minimize(cp.sum_squares(M @ x - b) + cp.norm(x[:2]) + 2 * cp.norm(x[2:]) + 0.1 * cp.sum_squares(x))
    ),
    "logarithms": cp.Problem(
        cp.Minimize(cp.sum(np.abs(M) @ x) - np.abs(b) @ cp.log(np.abs(M) @ x) + cp.norm1(x)), [x >= 0]
    ),
    "largest difference": cp.Problem(cp.Minimize(cp.sum_squares(M @ x - b) + cp.norm_inf(cp.diff(x)))),
    "largest of rows": cp.Problem(
        cp.Minimize(cp.sum(cp.norm_inf(X, axis=1)) + cp.norm(X[0, 0] - 1) ** 2 + cp.sum(cp.abs(X - C[2][:2])))
    ),
    "infinite norm": cp.Problem(cp.Minimize(cp.norm1(x)), [cp.norm_inf(M @ x - b) <= 0.5]),
    "attributes": cp.Problem(
        cp.Minimize(cp.sum_squares(M[:, :3] @ cp.Variable(3, nonneg=True) - b - cp.Variable(5, bounds=[-0.1, np.inf])))
    ),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_models_of_cvxpy_have_the_same_optimum(name):
    program = MODELS[name]
    expected = optimum(program)
    problem = sb.from_cvxpy(program)
    result = sb.solve(problem, tol=1e-8)
    assert result.status.solved, result.message
    value = problem.objective(result.certificate.primal_value)
    assert value == pytest.approx(expected, abs=1e-6 * max(1.0, abs(expected)))
    problem.assign(result.x)
    assert value_for_cvxpy(program, slack=1e-6) == pytest.approx(value, abs=1e-6 * max(1.0, abs(value)))


def affine_of(rng, variables):
    """Return a random affine expression of one or two variables, of any shape."""
    kind, variable = rng.integers(6), variables[rng.integers(len(variables))]
    flat = cp.reshape(variable, (variable.size,), order="F") if variable.ndim else cp.hstack([variable])
    match kind:
        case 0:
            return variable
        case 1:
            return rng.standard_normal((3, flat.size)) @ flat - rng.standard_normal(3)
        case 2:
            return -2.0 * cp.reshape(flat[::-1], (flat.size,), order="F")
        case 3:
            return cp.cumsum(flat) + rng.standard_normal(flat.size)
        case 4:
            return cp.reshape(rng.standard_normal((6, flat.size)) @ flat, (2, 3), order="C") / 2 + variables[0]
        case _:
            return cp.multiply(rng.standard_normal(flat.size), flat) + cp.sum(variables[-1])


ATOMS = [
    lambda e, rng: cp.sum_squares(e),
    lambda e, rng: cp.sum(cp.multiply(rng.random(e.shape), cp.square(e))),
    lambda e, rng: cp.norm1(e),
    lambda e, rng: cp.sum(cp.multiply(rng.random(e.shape), cp.abs(e))),
    lambda e, rng: cp.norm(cp.vec(e, order="F"), 2) + cp.norm(cp.vec(e, order="C"), 2) ** 2,
    lambda e, rng: cp.sum(cp.norm(e, 2, axis=0)) if e.ndim == 2 else cp.pnorm(e, 2),
    lambda e, rng: cp.mixed_norm(e, 2, 1) if e.ndim == 2 else cp.norm1(e),
    lambda e, rng: cp.sum(cp.huber(e, 0.3)) / 3,
    lambda e, rng: cp.sum(cp.pos(e - 0.1)) + 0.5 * cp.sum(cp.neg(e)),
    lambda e, rng: cp.sum(cp.maximum(e, 1 - 2 * e)),
    lambda e, rng: cp.sum(cp.scalene(e, 1.0, 0.2)),
    lambda e, rng: cp.sum(cp.pos(2 * cp.abs(e) - 0.1)),
    lambda e, rng: cp.sum(cp.exp(e)) - cp.sum(e),
    lambda e, rng: cp.sum(e),
    lambda e, rng: -cp.sum(cp.minimum(e, 0.3)),
    lambda e, rng: cp.quad_over_lin(e, 2.0),
]


@pytest.mark.parametrize("seed", range(60))
def test_random_objectives_have_the_same_values(seed):
    """Matrices, vectors and numbers, weights, both orders of entries; the objective of CVXPY is the definition."""
    rng = np.random.default_rng(seed)
    variables = [cp.Variable((2, 3)), cp.Variable(4), cp.Variable()]
    chosen = rng.choice(len(ATOMS), size=rng.integers(1, 5))
    objective = sum(float(rng.random()) * ATOMS[k](affine_of(rng, variables), rng) for k in chosen)
    program = cp.Problem(cp.Minimize(objective) if seed % 2 else cp.Maximize(-objective))
    problem = sb.from_cvxpy(program)
    for _ in range(3):
        for variable in program.variables():
            variable.value = rng.standard_normal(variable.shape)
        x = [np.ravel(variable.value) for variable in program.variables()]
        x = [block.reshape(shape) for block, shape in zip(x, problem.x_shapes, strict=True)]
        assert problem.objective(problem.value(x)) == pytest.approx(program.objective.value, rel=1e-9, abs=1e-9)


def test_terms_on_single_variables_become_penalties():
    """Only the terms that need A become rows."""

    def shown(name):
        problem = sb.from_cvxpy(MODELS[name])
        return repr(problem.terms), [type(loss).__name__ for loss in problem.losses]

    assert shown("lasso") == ("[L1(alpha=0.3)]", ["Squared"])
    assert shown("groups")[0].startswith("[GroupL2(")
    assert shown("groups")[1] == ["Squared"]
    assert shown("bounded groups")[1] == ["Squared", "Interval"]
    assert shown("pinball") == ("[LInf(alpha=1.0)]", ["Pinball"])
    assert shown("denoising")[1] == ["Squared", "Absolute"]
    assert shown("portfolio")[1] == ["Squared", "Equality", "Interval"]


@pytest.mark.parametrize("level", [0.0, 1e3, 1e6])
def test_the_gap_is_that_of_the_whole_objective(level, rng):
    """A square of x minus data lacks nothing: without its constant, data at a high level would hide any error."""
    data, signal = rng.standard_normal(60) + level, cp.Variable(60)
    program = cp.Problem(cp.Minimize(cp.sum_squares(signal - data) + cp.norm1(cp.diff(signal))))
    problem = sb.from_cvxpy(program)
    result = sb.solve(problem)
    problem.assign(result.x)
    assert result.status is sb.Status.OPTIMAL
    direct = [sb.Squared(data - level, scale=2.0), sb.L1(1.0)]
    best = sb.solve(sb.Problem(sb.Zero(), [sb.Identity(), sb.Differences(60)], direct), tol=1e-10).objective
    assert program.objective.value == pytest.approx(best, rel=1e-5)


def test_contradictions_are_proved():
    program = cp.Problem(cp.Minimize(cp.norm1(x)), [x >= 1, x <= 0])
    assert sb.solve(sb.from_cvxpy(program)).status is sb.Status.INFEASIBLE


def test_reading_leaves_the_variables_alone():
    x.value = np.arange(4.0)
    sb.from_cvxpy(MODELS["lasso"])
    assert np.array_equal(x.value, np.arange(4.0))


REFUSED = {
    "not convex": (cp.Minimize(cp.sqrt(t)), []),
    "entr is not in the catalogue": (cp.Minimize(cp.sum(-cp.entr(x))), []),
    "log1p\\(x\\) cannot be read": (cp.Maximize(cp.sum(cp.log1p(x))), []),
    "expected the power 2": (cp.Minimize(cp.sum(cp.power(x, 4))), []),
    "sigma_max is not in the catalogue": (cp.Minimize(cp.sigma_max(X)), []),
    "expected the norms with p = 1, 2 or inf": (cp.Minimize(cp.norm(x, 3)), []),
    "linear expressions only": (cp.Minimize(cp.sum(cp.logistic(x + 1))), []),
    "or of a positive part": (cp.Minimize(cp.sum_squares(cp.exp(x))), []),
    "maximum of two": (cp.Minimize(cp.sum(cp.maximum(x, 1 - x, 2 * x))), []),
    "atom of an affine expression": (cp.Minimize(cp.exp(cp.norm1(x))), []),
    "expected a constraint on an affine expression": (cp.Minimize(t), [cp.norm(x) <= t]),
    "constraints of the kind SOC": (cp.Minimize(t), [cp.SOC(t, x)]),
    "constraints of the kind PSD": (cp.Minimize(cp.trace(X)), [X >> 0]),
    "cannot be negative": (cp.Minimize(t), [cp.abs(x) <= -1, t >= 0]),
    "attribute integer": (cp.Minimize(cp.norm1(cp.Variable(2, integer=True) - 0.5)), []),
    "attribute symmetric": (cp.Minimize(cp.norm1(cp.Variable((2, 2), symmetric=True) - 0.5)), []),
    "the variable nothing has no entries": (cp.Minimize(cp.norm1(cp.Variable(0, name="nothing"))), []),
    "has no variables": (cp.Minimize(1.0), []),
    "the parameter q has no value": (cp.Minimize(cp.norm1(x) * cp.Parameter(nonneg=True, name="q")), []),
}


@pytest.mark.parametrize("message", REFUSED)
def test_other_forms_are_refused_with_a_reason(message):
    objective, constraints = REFUSED[message]
    with pytest.raises(ValueError, match=message):
        sb.from_cvxpy(cp.Problem(objective, constraints))


def test_something_else_is_refused():
    with pytest.raises(TypeError, match=r"problem is Problem: expected a cvxpy\.Problem"):
        sb.from_cvxpy(alone("L1"))
