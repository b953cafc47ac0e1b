"""Problems in files, arrays in ``.npz`` and linear programs in ``.mps`` and ``.mps.gz``; and their solutions."""

from __future__ import annotations

import csv
import inspect
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from . import functions
from .column_files import ColumnFile
from .functions import Box, Interval, Linear, Loss
from .functions.penalties import Penalty
from .linear_program import import_highspy
from .problem import Problem
from .ranks import ALONE, Ranks, Team
from .result import Result
from .sharding import read_by_parts

SPARSE_KEYS = ("format", "shape", "data", "indices", "indptr")
"""What ``scipy.sparse.save_npz`` writes for a CSC or CSR matrix."""

MATRIX_KEYS = ("A", "data", "indices", "indptr")
"""Arrays of the size of the matrix."""

SPARSE_FLAG = "_is_array"
"""What it adds for a sparse array, to tell it from a sparse matrix; the problem is the same."""


@dataclass(frozen=True)
class LoadedProblem:
    """A problem as a file states it.

    Attributes
    ----------
    problem : what to minimise.
    sign, offset : the objective in the file's own sense is ``sign * value + offset``, with sign -1 where the file
        states a maximisation.
    column_names, row_names : of a linear program; empty elsewhere.
    """

    problem: Problem
    sign: float = 1.0
    offset: float = 0.0
    column_names: tuple[str, ...] = ()
    row_names: tuple[str, ...] = ()

    def objective(self, value: float) -> float:
        """Return a value of the minimised problem in the file's own sense."""
        return self.sign * value + self.offset


def read_problem(path: str | Path, team: Team = ALONE) -> LoadedProblem:
    """Read a problem from a file.

    Parameters
    ----------
    path : ``.npz``, with the arguments of a problem by name; or ``.mps`` or ``.mps.gz``, a linear program, which
        needs highspy.
    team : processes that solve it together; each reads its own columns from an ``.npz`` file.

    Notes
    -----
    An ``.npz`` file has a dense matrix ``A``, or a sparse one as ``scipy.sparse.save_npz`` writes it; ``loss``
    and ``penalty``, names of the catalogue, "Squared" and "L1" by default; and every argument of those two
    classes under its own name. A name that both classes have, or that a sparse matrix has too, is written with
    its owner in front, as in ``penalty.lower``.

    Examples
    --------
    >>> import numpy as np, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "lasso.npz")
    >>> np.savez(path, A=np.eye(3), b=np.array([3.0, -0.5, 1.0]), alpha=1.0)
    >>> read_problem(path).problem.n_blocks
    3
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file")
    name = path.name.lower()
    if name.endswith(".npz"):
        return LoadedProblem(_problem_of(path, team))
    if name.endswith((".mps", ".mps.gz")):
        return _read_linear_program(path)
    raise ValueError(f"{path.name} has no known ending: expected .npz, .mps or .mps.gz")


def check_writable(path: Path) -> None:
    """Raise where a solution could not be written to a file of this name, before it has been computed."""
    if path.suffix.lower() not in (".npz", ".csv", ""):
        raise ValueError(f"--out {path} has no known ending: expected .npz for arrays or .csv for a table")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"--out {path}: there is no folder {path.parent}")


def write_solution(path: Path, loaded: LoadedProblem, result: Result, team: Team = ALONE) -> None:
    """Write x and y of the minimised problem to a file.

    Parameters
    ----------
    path : ``.csv`` for a table, a line for every column with its value, then one for every row with the value of Ax
        and its dual; ``.npz``, or no ending, for the arrays x and y, and the names in an MPS file.
    loaded : the problem as its file states it.
    result : its solution.
    team : processes that have solved it together, of which the first writes.
    """
    x, y, activity = np.ravel(result.x), np.ravel(result.y), np.empty(0)
    table_wanted = path.suffix.lower() == ".csv"
    if table_wanted:
        activity = loaded.problem.model.A.matvec(x)
    if team.rank > 0:
        return
    if not table_wanted:
        columns, rows = (np.array(names, dtype=str) for names in (loaded.column_names, loaded.row_names))
        with path.open("wb") as stream:  # an open file keeps its name, to which savez would add an ending
            np.savez(stream, x=result.x, y=result.y, column_names=columns, row_names=rows)
        return
    with path.open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(("kind", "name", "value", "dual"))
        for column in zip(loaded.column_names or range(x.size), x.tolist(), strict=True):
            table.writerow(("column", *column, ""))
        for row in zip(loaded.row_names or range(y.size), activity.tolist(), y.tolist(), strict=True):
            table.writerow(("row", *row))


# --- arrays -----------------------------------------------------------------------------------------------------------


def _read_arrays(path: Path, without: Collection[str]) -> dict[str, Any]:
    """Return the arrays of a file by name, scalars as plain values, and None for those to be left out."""
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path.name} is not an .npz file as numpy.savez writes it")
    arrays: dict[str, Any] = {}
    with np.load(path, allow_pickle=False) as stored:
        for key in stored.files:
            if key in without:
                arrays[key] = None
                continue
            try:
                array = stored[key]
            except ValueError:
                raise ValueError(f"{key!r} in {path.name} holds objects: expected numbers or text") from None
            arrays[key] = array.item() if array.ndim == 0 else array
    return arrays


def _problem_of(path: Path, team: Team) -> Problem:
    """Return the problem that named arrays describe, or raise with the names that are missing or unknown."""
    arrays = _read_arrays(path, without=MATRIX_KEYS if isinstance(team, Ranks) else ())
    loss = _class(arrays, "loss", "Squared", Loss)
    penalty = _class(arrays, "penalty", "L1", Penalty)
    matrix = ("A",) if "A" in arrays else SPARSE_KEYS
    loss_keys = _argument_keys(arrays, "loss", loss, {*_parameters(penalty), *matrix})
    penalty_keys = _argument_keys(arrays, "penalty", penalty, {*_parameters(loss), *matrix})
    missing = [] if all(key in arrays for key in matrix) else ["A"]
    for cls, keys in ((penalty, penalty_keys), (loss, loss_keys)):
        needed = [name for name, parameter in _parameters(cls).items() if parameter.default is parameter.empty]
        missing += [keys[name] for name in needed if keys[name] not in arrays]
    known = {"loss", "penalty", *matrix, *loss_keys.values(), *penalty_keys.values()}
    unknown = set(arrays) - known - {SPARSE_FLAG}
    what = f"penalty {penalty.__name__} and loss {loss.__name__}"
    if missing:
        raise ValueError(f"the file lacks {', '.join(missing)}, expected with {what}")
    if unknown:
        raise ValueError(f"the file has {_listed(unknown)}: expected, with {what}, only {_listed(known)}")
    f, g = (
        cls(**{name: arrays[key] for name, key in keys.items() if key in arrays})
        for cls, keys in ((penalty, penalty_keys), (loss, loss_keys))
    )
    return read_by_parts(f, ColumnFile(path), g, team) if isinstance(team, Ranks) else Problem(f, _matrix(arrays), g)


def _class(arrays: Mapping[str, Any], role: str, default: str, kind: type) -> type:
    """Return the class of the catalogue that the file names."""
    catalogue = {
        name: cls
        for name, cls in vars(functions).items()
        if inspect.isclass(cls) and issubclass(cls, kind) and not inspect.isabstract(cls)
    }
    name = arrays.get(role, default)
    if not isinstance(name, str) or name not in catalogue:
        raise ValueError(f"{role}={name!r} is not known: expected one of {_listed(catalogue)}")
    return catalogue[name]


def _parameters(cls: type) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(cls).parameters)


def _argument_keys(arrays: Mapping[str, Any], role: str, cls: type, taken: set[str]) -> dict[str, str]:
    """Return the key of every argument: its own name, with the role in front where that is taken or written so."""
    written = {name: f"{role}.{name}" for name in _parameters(cls)}
    return {name: key if key in arrays or name in taken else name for name, key in written.items()}


def _matrix(arrays: Mapping[str, Any]) -> Any:
    if "A" in arrays:
        return arrays["A"]
    layout = arrays["format"]
    layout = layout.decode() if isinstance(layout, bytes) else layout
    if layout not in ("csc", "csr"):
        raise ValueError(f"the sparse matrix has the format {layout!r}: expected 'csc' or 'csr'")
    container = sparse.csc_matrix if layout == "csc" else sparse.csr_matrix
    return container((arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"]))


def _listed(names: Any) -> str:
    return ", ".join(sorted(names))


# --- linear programs --------------------------------------------------------------------------------------------------


def _read_linear_program(path: Path) -> LoadedProblem:
    """Return min c'x with bounds on x and on Ax; a maximisation is turned around."""
    highspy = import_highspy("reading an .mps file")
    reader = highspy.Highs()
    reader.setOptionValue("output_flag", False)
    if reader.readModel(str(path)) == highspy.HighsStatus.kError:
        raise ValueError(f"{path.name} is not an MPS file that HiGHS can read")
    model = reader.getModel()
    lp = model.lp_
    if any(kind != highspy.HighsVarType.kContinuous for kind in lp.integrality_):
        raise ValueError(f"{path.name} has integer variables: expected continuous ones only")
    if model.hessian_.dim_ > 0:
        raise ValueError(f"{path.name} has a quadratic objective: expected a linear program")
    if lp.num_row_ == 0 or lp.num_col_ == 0:
        raise ValueError(f"{path.name} has {lp.num_row_} rows and {lp.num_col_} columns: expected some")
    entries = (np.array(lp.a_matrix_.value_), np.array(lp.a_matrix_.index_), np.array(lp.a_matrix_.start_))
    by_column = lp.a_matrix_.format_ == highspy.MatrixFormat.kColwise
    container = sparse.csc_matrix if by_column else sparse.csr_matrix
    A = container(entries, shape=(lp.num_row_, lp.num_col_)).tocsc()
    sign = -1.0 if lp.sense_ == highspy.ObjSense.kMaximize else 1.0
    problem = Problem(
        Linear(sign * np.array(lp.col_cost_)) + Box(np.array(lp.col_lower_), np.array(lp.col_upper_)),
        A,
        Interval(np.array(lp.row_lower_), np.array(lp.row_upper_)),
    )
    return LoadedProblem(problem, sign, float(lp.offset_), tuple(lp.col_names_), tuple(lp.row_names_))
