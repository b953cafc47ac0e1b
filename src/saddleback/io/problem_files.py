"""Problems in files, arrays in ``.npz`` and linear programs in ``.mps`` and ``.mps.gz``; and their solutions."""

from __future__ import annotations

import csv
import gzip
import inspect
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from .. import functions
from ..common.arrays import Vector
from ..common.damage import damage
from ..common.outputs import as_text, replacing, replacing_text
from ..functions import Box, Interval, Linear, Loss
from ..functions.by_columns import ByColumns
from ..functions.concave import Concave
from ..functions.penalties import Penalty
from ..linear_programs.program import import_highspy
from ..operators.sparse_input import SparseArrays, canonical
from ..places.mpi.communicator import SERIAL, Communicator, MPICommunicator
from ..places.mpi.distribute import read_by_parts
from ..problem import Problem
from ..result import Result, Status
from .archives import READ_AT_ONCE, Archive
from .column_files import ColumnFile

OTHERS = (ByColumns, Concave)
"""Penalties that a file cannot have: one is made of other penalties, and the others are not convex."""

SPARSE_KEYS = ("format", "shape", "data", "indices", "indptr")
"""The keys that ``scipy.sparse.save_npz`` writes for a CSC or CSR matrix."""

MATRIX_KEYS = ("A", "data", "indices", "indptr")
"""Arrays of the size of the matrix."""

SPARSE_FLAG = "_is_array"
"""The key that it adds for a sparse array, as opposed to a sparse matrix; the problem is the same."""

WITH_NUMBERS, WITHOUT_NUMBER = ("COLUMNS", "RHS", "RANGES", "BOUNDS"), ("FR", "MI", "PL", "BV")
"""Sections of an MPS file whose lines end with a number, and the kinds of bounds that need none."""

IGNORED = r"^WARNING: +(.*(?:not defined|undefined|duplicate|same name|not in \w+ +section).*)"
"""Warnings of HiGHS that mean that it reads another program than the file states."""

INFINITE_BOUND = 1e20
"""Bounds of at least this size are infinite in an MPS file, as in HiGHS."""


Loaded = TypeVar("Loaded", bound="LoadedProblem")


class LoadedProblem(Problem):
    """A problem from a file.

    Attributes
    ----------
    sign, offset : the objective in the sense of the file is ``sign * value + offset``, with sign -1 if the file states
        a maximisation.
    column_names, row_names : names in a linear program; empty for other problems.
    """

    sign: float = 1.0
    offset: float = 0.0

    @classmethod
    def of(cls: type[Loaded], problem: Problem) -> Loaded:
        """Return a problem as one of this class, without names, sign or offset."""
        loaded = cls.__new__(cls)
        loaded.__dict__.update(problem.__dict__)
        return loaded

    def objective(self, value: float) -> float:
        """Return a value of the minimised problem in the sense of the file."""
        return self.sign * value + self.offset


def read_problem(path: str | Path) -> LoadedProblem:
    """Read a problem from a file.

    Parameters
    ----------
    path : str or Path
        An ``.npz`` file with the arguments of a problem by name; or an ``.mps`` or ``.mps.gz`` file with a linear
        program, which needs highspy.

    Returns
    -------
    LoadedProblem
        A ``Problem``, a minimisation, that also has ``column_names`` and ``row_names``, and ``sign`` and ``offset`` of
        the objective: ``problem.objective(value)`` states a value in the sense of the file.

    Notes
    -----
    An ``.npz`` file has a dense matrix ``A``, or a sparse one as ``scipy.sparse.save_npz`` writes it; ``loss``
    and ``penalty``, names of the catalogue, "Squared" and "L1" by default; and every argument of those two
    classes under its own name. A name that both classes have, or that a sparse matrix has too, is written with
    its owner in front, as in ``penalty.lower``.

    Examples
    --------
    >>> import numpy as np, os, tempfile, saddleback as sb
    >>> path = os.path.join(tempfile.mkdtemp(), "lasso.npz")
    >>> np.savez(path, A=np.eye(3), b=np.array([3.0, -0.5, 1.0]), alpha=1.0)
    >>> sb.read_problem(path).n_blocks
    3
    """
    return read_together(path, SERIAL)


def read_together(path: str | Path, team: Communicator) -> LoadedProblem:
    """Read a problem that several processes solve together; each reads its own columns from an ``.npz`` file."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file")
    name = path.name.lower()
    if name.endswith(".npz"):
        return LoadedProblem.of(_problem_of(path, team))
    if name.endswith((".mps", ".mps.gz")):
        return _read_linear_program(path)
    raise ValueError(f"{path.name} has no known ending: expected .npz, .mps or .mps.gz")


def check_ending(path: Path | None) -> None:
    """Raise if a solution could not be written to a file of this name; called before the solve."""
    if path is not None and path.suffix.lower() not in (".npz", ".csv", ""):
        raise ValueError(f"--out {path} has no known ending: expected .npz for arrays or .csv for a table")


def write_solution(path: Path, loaded: LoadedProblem, result: Result, team: Communicator = SERIAL) -> None:
    """Write a solution, or the proof that there is none, to a file.

    Parameters
    ----------
    path : ``.csv`` for a table, ``.npz`` or no ending for arrays.
    loaded : the problem as its file states it.
    result : its solution.
    team : processes that have solved it together, of which the first writes.

    Notes
    -----
    A table begins with a line "status". Then comes one line per column with its value x and its reduced cost, and one
    line per row with the value of Ax and its shadow price. Both prices are empty unless the problem is a linear program
    and the status is OPTIMAL; they are in the sense of the file, as in HiGHS. If the problem is proved to have no
    solution, x, Ax and prices are left out and ``ray`` has the proof: one entry per row if the problem is infeasible,
    one per column if it is unbounded.

    An ``.npz`` file has the same as arrays: ``status``; ``x``, ``y``, and of a solved linear program ``shadow_prices``
    and ``reduced_costs``, or ``ray``; and the names in an MPS file. y is that of the minimised problem.
    """
    solved = result.status not in (Status.INFEASIBLE, Status.UNBOUNDED)
    table_wanted = path.suffix.lower() == ".csv"
    activity = loaded.model.A.matvec(np.ravel(result.x)) if table_wanted and solved else None
    if team.rank > 0:
        return
    priced = result.shadow_prices is not None
    arrays = {
        "x": np.ravel(result.x) if solved else None,
        "y": np.ravel(result.y) if solved else None,
        "shadow_prices": loaded.sign * np.ravel(result.shadow_prices) if priced else None,
        "reduced_costs": loaded.sign * np.ravel(result.reduced_costs) if priced else None,
        "ray": None if result.ray is None else np.ravel(result.ray),
    }
    if table_wanted:
        _write_table(path, loaded, result, arrays | {"activity": activity})
        return
    found: dict[str, Any] = {name: values for name, values in arrays.items() if values is not None}
    if solved:
        found |= {"x": result.x, "y": result.y}
    columns, rows = (np.array(names, dtype=str) for names in (loaded.column_names, loaded.row_names))
    with replacing(path) as stream:  # savez would add an ending to a name
        np.savez(stream, status=result.status.name, **found, column_names=columns, row_names=rows)


def _write_table(path: Path, loaded: LoadedProblem, result: Result, arrays: Mapping[str, Any]) -> None:
    rows, columns = loaded.model.A.shape
    direction = "ray" if result.status is Status.UNBOUNDED else None
    conflict = "ray" if result.status is Status.INFEASIBLE else None
    kinds = (
        ("column", loaded.column_names or range(columns), ("x", "reduced_costs", None, direction)),
        ("row", loaded.row_names or range(rows), ("activity", None, "shadow_prices", conflict)),
    )
    with replacing_text(path) as stream:
        table = csv.writer(stream)
        table.writerow(("kind", "name", "value", "reduced_cost", "shadow_price", "ray"))
        table.writerow(("status", result.status.name, "", "", "", ""))
        for kind, names, contents in kinds:
            stored = [arrays[each] if each else None for each in contents]
            listed = [[""] * len(names) if values is None else values.tolist() for values in stored]
            table.writerows((kind, *line) for line in zip(map(as_text, names), *listed, strict=True))


# --- arrays -----------------------------------------------------------------------------------------------------------


def _read_arrays(path: Path, without: Collection[str]) -> dict[str, Any]:
    """Return the arrays of a file by name, scalars as plain values, and None for those in ``without``."""
    archive = Archive(path)
    return {name: None if name in without else archive.array(name) for name in archive.names}


def _problem_of(path: Path, team: Communicator) -> Problem:
    """Return the problem that named arrays describe, or raise an error with the names that are missing or unknown."""
    arrays = _read_arrays(path, without=MATRIX_KEYS if isinstance(team, MPICommunicator) else ())
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
    return (
        read_by_parts(f, ColumnFile(path), g, team)
        if isinstance(team, MPICommunicator)
        else Problem(f, _matrix(arrays), g)
    )


def _class(arrays: Mapping[str, Any], role: str, default: str, kind: type) -> type:
    """Return the class of the catalogue that the file names; the arguments of these classes are arrays."""
    catalogue = {
        name: cls
        for name, cls in vars(functions).items()
        if inspect.isclass(cls) and issubclass(cls, kind) and not (inspect.isabstract(cls) or issubclass(cls, OTHERS))
    }
    name = arrays.get(role, default)
    if not isinstance(name, str) or name not in catalogue:
        raise ValueError(f"{role}={name!r} is not known: expected one of {_listed(catalogue)}")
    return catalogue[name]


def _parameters(cls: type) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(cls).parameters)


def _argument_keys(arrays: Mapping[str, Any], role: str, cls: type, taken: set[str]) -> dict[str, str]:
    """Return the key of every argument: its name, with the role in front if the name is taken or the file has it so."""
    written = {name: f"{role}.{name}" for name in _parameters(cls)}
    return {name: key if key in arrays or name in taken else name for name, key in written.items()}


def _matrix(arrays: Mapping[str, Any]) -> Any:
    if "A" in arrays:
        return arrays["A"]
    layout = arrays["format"]
    layout = layout.decode(errors="replace") if isinstance(layout, bytes) else layout
    if not isinstance(layout, str) or layout not in ("csc", "csr"):
        raise ValueError(f"the sparse matrix has the format {layout!r}: expected 'csc' or 'csr'")
    rows, columns = _sizes(arrays["shape"])
    return canonical(SparseArrays(layout, (rows, columns), *(arrays[part] for part in SPARSE_KEYS[2:])), "A")


def _sizes(shape: Any) -> tuple[int, int]:
    sizes = np.ravel(shape).tolist()
    if len(sizes) != 2 or not all(isinstance(size, int) for size in sizes):
        raise ValueError(f"'shape' is {sizes}: expected the number of rows and of columns")
    return sizes[0], sizes[1]


def _listed(names: Any) -> str:
    return ", ".join(sorted(names))


# --- linear programs --------------------------------------------------------------------------------------------------


def _read_linear_program(path: Path) -> LoadedProblem:
    """Return min c'x with bounds on x and on Ax; a maximisation is turned into a minimisation."""
    highspy = import_highspy("reading an .mps file")
    reader = highspy.Highs()
    declared = _checked_columns(path)
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        for option, value in (("log_to_console", False), ("log_file", str(log))):
            reader.setOptionValue(option, value)
        if reader.readModel(str(path)) == highspy.HighsStatus.kError:
            raise ValueError(f"{path.name} is not an MPS file that HiGHS can read")
        reader.setOptionValue("log_file", "")
        warned = re.findall(IGNORED, log.read_text(errors="replace"), re.MULTILINE)
    if warned:
        said = " ".join(warned[0].split())  # names may have characters that end a line
        raise ValueError(f"{path.name}: {said}: expected every name once, and each coefficient once in a declared row")
    model = reader.getModel()
    lp = model.lp_
    unknown = [name for name in lp.col_names_ if name not in declared and " " not in name]
    if unknown:
        raise ValueError(f"{path.name} has bounds on {unknown[0]!r}, which is no column: expected a name from COLUMNS")
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
    bounds = (lp.col_lower_, lp.col_upper_, lp.row_lower_, lp.row_upper_)
    lower, upper, row_lower, row_upper = (_with_infinities(np.array(bound)) for bound in bounds)
    _check_order(path.name, "column", lp.col_names_, lower, upper)
    _check_order(path.name, "row", lp.row_names_, row_lower, row_upper)
    problem = Problem(Linear(sign * np.array(lp.col_cost_)) + Box(lower, upper), A, Interval(row_lower, row_upper))
    loaded = LoadedProblem.of(problem)
    loaded.sign, loaded.offset = sign, float(lp.offset_)
    loaded.column_names, loaded.row_names = tuple(lp.col_names_), tuple(lp.row_names_)
    return loaded


def _check_order(file: str, kind: str, names: Sequence[str], lower: Vector, upper: Vector) -> None:
    """Raise for a lower bound above the upper one, with the name of its column or row."""
    crossing = np.flatnonzero(lower > upper)
    if crossing.size:
        first = crossing[0]
        hint = "; the lower bound is 0 unless the file states one, such as MI for none" if lower[first] == 0 else ""
        raise ValueError(
            f"{file}: {kind} {names[first]!r} has the lower bound {lower[first]:g} and the upper bound "
            f"{upper[first]:g}: expected lower <= upper{hint}"
        )


def _with_infinities(bound: Vector) -> Vector:
    return np.where(np.abs(bound) >= INFINITE_BOUND, np.copysign(np.inf, bound), bound)


def _checked_columns(path: Path) -> set[str]:
    """Return the names in COLUMNS, or raise if a number would be misread by HiGHS without a warning."""
    _check_compression(path)
    opened: Any = gzip.open if path.name.lower().endswith(".gz") else open
    section, columns = "", set()
    with opened(path, "rt", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            words = line.split()
            if not words or line.startswith("*"):
                continue
            if not line[:1].isspace():
                section = words[0]
            elif section in WITH_NUMBERS and "'MARKER'" not in words and words[0] not in WITHOUT_NUMBER:
                if _has_nan(words) or not _is_number(words[-1]):
                    raise ValueError(f"{path.name}: line {number} has {words[-1]!r}: expected a finite number there")
                columns |= {words[0]} if section == "COLUMNS" else set()
    return columns


def _is_number(word: str) -> bool:
    try:
        return not np.isnan(float(word))
    except ValueError:
        return False


def _check_compression(path: Path) -> None:
    """Raise if a ``.gz`` file is damaged: HiGHS would read only what comes before the damage."""
    if path.name.lower().endswith(".gz"):
        with damage(path.name), gzip.open(path) as content:
            while content.read(READ_AT_ONCE):
                pass


def _has_nan(words: list[str]) -> bool:
    return any(word.lower().lstrip("+-") == "nan" for word in words[1 + len(words) % 2 :: 2])
