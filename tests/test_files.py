"""Problems read from files are the problems that were written."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy import sparse

import saddleback as sb
from saddleback.io.problem_files import read_problem

rng = np.random.default_rng(0)
A = rng.standard_normal((5, 7))
b = rng.standard_normal(5)
labels = np.array([1, -1, 1, 1, -1])

MPS = """\
NAME          TINY
{sense}ROWS
 N  COST
 L  LIMIT
 G  FLOOR
 E  FIXED
 L  RANGED
COLUMNS
{marker}    X         COST         1.0   LIMIT        1.0
    X         FIXED        1.0
    Y         COST         2.0   LIMIT        1.0
    Y         FLOOR        1.0   RANGED       3.0
    Z         FIXED        1.0
RHS
    RHS       COST       -10.0   LIMIT        4.0
    RHS       FLOOR        1.0   FIXED        2.0
    RHS       RANGED       9.0
RANGES
    RNG       RANGED       6.0
BOUNDS
 UP BND       X            4.0
 FR BND       Z
ENDATA
"""
MAXIMISE = "OBJSENSE\n    MAX\n"
INTEGERS = "    MARK      'MARKER'                 'INTORG'\n"


@pytest.fixture
def write(tmp_path):
    def write_arrays(**arrays):
        path = tmp_path / "problem.npz"
        np.savez(path, **arrays)
        return path

    return write_arrays


def write_mps(folder, sense="", marker=""):
    path = folder / "tiny.mps"
    path.write_text(MPS.format(sense=sense, marker=marker))
    return path


def assert_same(loaded, expected):
    """Assert that two problems are equal, by their values at random points."""
    f, g = loaded.model, expected.model
    for _ in range(5):
        x, y = rng.standard_normal(f.A.shape[1]), rng.standard_normal(f.A.shape[0])
        assert f.f.value(x) == pytest.approx(g.f.value(x))
        assert f.g.value(y) == pytest.approx(g.g.value(y))
        np.testing.assert_allclose(f.A.matvec(x), g.A.matvec(x))


# --- arrays ---------------------------------------------------------------------------------------------------------


def test_a_lasso_is_the_default(write):
    loaded = read_problem(write(A=A, b=b, alpha=0.1))
    assert_same(loaded, sb.Problem(sb.L1(0.1), A, sb.Squared(b)))
    assert loaded.objective(3.0) == 3.0


@pytest.mark.parametrize("convert", [sparse.csc_matrix, sparse.csr_matrix, sparse.csr_array])
def test_sparse_matrices_as_scipy_writes_them(write, tmp_path, convert):
    matrix = convert(np.where(A > 0, A, 0.0))
    sparse.save_npz(tmp_path / "matrix.npz", matrix)
    with np.load(tmp_path / "matrix.npz") as stored:
        path = write(**stored, b=b, alpha=0.1)
    assert_same(read_problem(path), sb.Problem(sb.L1(0.1), matrix, sb.Squared(b)))


def test_sparse_matrices_by_hand(write):
    S = sparse.csc_matrix(A)
    path = write(format="csc", shape=S.shape, data=S.data, indices=S.indices, indptr=S.indptr, b=b, alpha=1)
    assert_same(read_problem(path), sb.Problem(sb.L1(1), A, sb.Squared(b)))


@pytest.mark.parametrize(
    ("arrays", "penalty", "loss"),
    [
        (
            {"loss": "Pinball", "b": b, "quantile": 0.9, "penalty": "GroupL2", "alpha": 0.1, "groups": [3, 4]},
            sb.GroupL2(0.1, [3, 4]),
            sb.Pinball(b, 0.9),
        ),
        ({"loss": "Hinge", "labels": labels, "scale": 0.2, "alpha": 1.0}, sb.L1(1.0), sb.Hinge(labels, scale=0.2)),
        ({"penalty": "GroupL2", "alpha": 1, "groups": 7, "b": b}, sb.GroupL2(1, 7), sb.Squared(b)),
        ({"penalty": "Zero", "b": b}, sb.Zero(), sb.Squared(b)),
        (
            {"penalty": "Box", "penalty.lower": -1.0, "penalty.upper": np.inf, "loss": "Interval"}
            | {"loss.lower": -b * b, "loss.upper": np.full(5, np.inf)},
            sb.Box(-1.0, np.inf),
            sb.Interval(-b * b, np.inf),
        ),
        ({"b": b, "penalty.alpha": 0.1}, sb.L1(0.1), sb.Squared(b)),
    ],
)
def test_arguments_are_stored_by_name(write, arrays, penalty, loss):
    assert_same(read_problem(write(A=A, **arrays)), sb.Problem(penalty, A, loss))


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"b": b, "alpha": 0.1}, "lacks A"),
        ({"A": A}, "lacks alpha, b"),
        ({"A": A, "b": b, "alpha": 0.1, "quantile": 0.5}, "has quantile"),
        ({"A": A, "b": b, "alpha": 0.1, "loss": "Squarred"}, "loss='Squarred' is not known"),
        ({"A": A, "b": b, "alpha": 0.1, "loss": "L1"}, "loss='L1' is not known"),
        ({"A": A, "b": b, "alpha": 0.1, "penalty": 3}, "penalty=3 is not known"),
        ({"A": A, "b": b, "alpha": -0.1}, "alpha"),
        ({"A": A, "b": b[:3], "alpha": 0.1}, "rows"),
        ({"A": A, "b": np.array([None] * 5), "alpha": 0.1}, "'b' in problem.npz holds objects"),
        (
            {"A": A, "penalty": "Box", "loss": "Interval", "lower": 0, "upper": 1},
            r"lacks penalty\.lower, penalty\.upper, loss\.lower, loss\.upper",
        ),
        (
            {"data": b, "indices": b, "indptr": b, "shape": (5, 7), "format": "coo", "b": b, "alpha": 0.1},
            "format 'coo'",
        ),
    ],
)
def test_error_messages_name_the_defect(write, arrays, words):
    with pytest.raises(ValueError, match=words):
        read_problem(write(**arrays))


def test_other_files_are_rejected(tmp_path):
    pytest.importorskip("highspy")
    with pytest.raises(FileNotFoundError, match=r"none\.npz"):
        read_problem(tmp_path / "none.npz")
    for name, words in (("text.npz", "numpy.savez"), ("text.mps", "MPS"), ("text.txt", "ending")):
        (tmp_path / name).write_text("hello\n")
        with pytest.raises(ValueError, match=words):
            read_problem(tmp_path / name)


# --- linear programs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sense", "sign"), [("", 1.0), (MAXIMISE, -1.0)])
def test_a_linear_program(tmp_path, sense, sign):
    pytest.importorskip("highspy")
    loaded = read_problem(write_mps(tmp_path, sense))
    matrix = np.array([[1.0, 1, 0], [0, 1, 0], [1, 0, 1], [0, 3, 0]])
    expected = sb.Problem(
        sb.Linear([sign, 2 * sign, 0]) + sb.Box([0, 0, -np.inf], [4, np.inf, np.inf]),
        matrix,
        sb.Interval([-np.inf, 1, 2, 3], [4, np.inf, 2, 9]),
    )
    assert_same(loaded, expected)
    inside, rows = np.array([1.0, 2.0, 1.0]), np.array([3.0, 2.0, 2.0, 6.0])
    assert loaded.model.f.value(inside) == sign * 5.0
    assert loaded.model.g.value(rows) == 0.0
    assert loaded.model.g.value(rows + np.array([0, 0, 0, 4])) == np.inf
    assert loaded.objective(sign * 5.0) == 15.0  # the right-hand side of the objective is the negative offset
    assert loaded.column_names == ("X", "Y", "Z")
    assert loaded.row_names == ("LIMIT", "FLOOR", "FIXED", "RANGED")


def test_integer_variables_are_rejected(tmp_path):
    pytest.importorskip("highspy")
    with pytest.raises(ValueError, match="integer"):
        read_problem(write_mps(tmp_path, marker=INTEGERS))


def test_bounds_that_cross_are_named_with_their_file_and_column(tmp_path):
    """HiGHS keeps the lower bound 0 if the file states only a negative upper bound."""
    pytest.importorskip("highspy")
    path = write_mps(tmp_path)
    path.write_text(path.read_text().replace("UP BND       X            4.0", "UP BND       X           -2.0"))
    with pytest.raises(
        ValueError,
        match=r"tiny\.mps: column 'X' has the lower bound 0 and the upper bound -2: .*lower bound is 0 unless the file",
    ):
        read_problem(path)
    path.write_text(path.read_text().replace("-2.0", "-2.0\n MI BND       X"))
    assert read_problem(path).penalty.terms[1].lower[0] == -np.inf


def test_without_highspy_the_message_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(ImportError, match=r"saddleback\[lp\]"):
        read_problem(write_mps(tmp_path))


@pytest.mark.parametrize("name", ["afiro", "adlittle", "blend", "kb2", "recipe"])
def test_netlib_programs_have_the_optimum_of_highs(data, name):
    highspy = pytest.importorskip("highspy")
    path = data / "netlib" / f"{name}.mps.gz"
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.readModel(str(path))
    solver.run()
    loaded = read_problem(path)
    x = np.array(solver.getSolution().col_value)
    y = -np.array(solver.getSolution().row_dual)  # y is in the subdifferential of the loss
    certificate = sb.certify(loaded, x, y)
    assert certificate.error < 1e-7
    assert loaded.objective(certificate.primal_value) == pytest.approx(solver.getInfo().objective_function_value)
