"""Problems written for CVXPY and read from it, compared at points and at solutions."""

from __future__ import annotations

import catalogue
import cvxpy as cp
import numpy as np
import pytest
from catalogue import LOSSES, SIZE, B
from own_functions import Own
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import saddleback as sb
from saddleback import functions
from saddleback.functions import Term
from saddleback.interop import writing

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
    terms = [getattr(functions, name) for name in functions.__all__]
    terms = [
        term for term in terms if isinstance(term, type) and issubclass(term, Term) and not term.__abstractmethods__
    ]
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
