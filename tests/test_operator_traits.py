"""Every operator that wraps other operators combines their facts as stated here, or the exception has a reason.

A fact is a field of ``Traits``, or an attribute that the contract declares. A fact that a wrapper forgets would
silently have its default value, which affects how a problem is solved. So each wrapper is tested on operators with
other values than the default. A new fact or a new wrapper fails here until it has a line in the tables.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import saddleback as sb
from saddleback.operators import (
    Above,
    Abstract,
    Adjoint,
    Dense,
    Operator,
    ScaledIdentity,
    Sharded,
    Stacked,
    Streamed,
    Tasks,
    as_operator,
)
from saddleback.operators.linear_operator import linear_operators, probe_passes
from saddleback.operators.memory import bytes_in_memory
from saddleback.operators.traits import Traits
from saddleback.places.files.operator import with_memory
from saddleback.places.mpi.operator import collected
from saddleback.places.torch import open_device

TRAITS = {field.name for field in fields(Traits)}
FACTS = {*Operator.__annotations__, *TRAITS} - {"traits"}
M, N, Q = 6, 4, 3
A = np.asfortranarray(np.random.default_rng(0).standard_normal((M, N)))

DENSE = Dense(A)
DEFAULT = object()
"""Facts that a wrapper leaves at their default on purpose, each with the reason."""


MARKS: dict[str, Any] = {
    "splits": False,
    "entries_known": False,
    "stored": 7,
    "launch_cost": 5,
    "tasks": 2,
    "first_adjoint": (np.ones(M), np.ones(N)),
    "identity_scales": (2.0,),
    "panels": np.array([0, 3, N]),
    "reads_columns": False,
    "budget": 1e4,
    "norm": 2.5,
    "device": "one",
}
"""A value of each fact that differs from that of a matrix in memory."""


def marked(fact: str | None = None) -> Dense:
    """Return a matrix with one fact set to its value in the table above."""
    operator = Dense(A)
    if fact in TRAITS & set(MARKS):
        operator.traits = replace(operator.traits, **{fact: MARKS[fact]})
    elif fact in MARKS:
        setattr(operator, fact, MARKS[fact])
    return operator


def fact_of(operator: Operator, fact: str) -> Any:
    return getattr(operator.traits if fact in TRAITS else operator, fact)


def all_of(fact: str) -> Callable[..., Any]:
    return lambda *of: all(fact_of(each, fact) for each in of)


def most_of(fact: str) -> Callable[..., Any]:
    return lambda *of: max(fact_of(each, fact) for each in of)


def least_of(fact: str) -> Callable[..., Any]:
    return lambda *of: min(fact_of(each, fact) for each in of)


def sum_of(fact: str) -> Callable[..., Any]:
    return lambda *of: sum(fact_of(each, fact) for each in of)


def same(fact: str) -> Callable[..., Any]:
    return lambda a: fact_of(a, fact)


def panels_side_by_side(*of: Operator) -> Any:
    if all(each.traits.panels is None for each in of):
        return None
    ends = [np.array([0, N]) if each.traits.panels is None else each.traits.panels for each in of]
    return np.concatenate([ends[0][:-1], N + ends[1]])


def scales_side_by_side(*of: Operator) -> Any:
    scales = [each.traits.identity_scales for each in of]
    return None if None in scales else sum(scales, ())


def device_of_all(*of: Operator) -> Any:
    return of[0].traits.device if len({each.traits.device for each in of}) == 1 else None


def norm_of_all(*of: Operator) -> Any:
    norms = [each.traits.norm for each in of]
    return None if None in norms else float(np.hypot(*norms))


SIDE_BY_SIDE: dict[str, Any] = {
    "shape": lambda a, b: (M, 2 * N),
    "splits": all_of("splits"),
    "entries_known": all_of("entries_known"),
    "stored": sum_of("stored"),
    "launch_cost": most_of("launch_cost"),
    "identity_scales": scales_side_by_side,
    "tasks": most_of("tasks"),
    "reads_columns": all_of("reads_columns"),
    "budget": least_of("budget"),
    "norm": norm_of_all,
    "device": device_of_all,
}
"""Rules for columns side by side, in one process or in several."""

STACKED = SIDE_BY_SIDE | {
    "panels": panels_side_by_side,
    "first_adjoint": DEFAULT,  # each part may have been scanned with another y
    "holders": DEFAULT,  # each process has one operator, and the processes' operators are side by side
}

ABOVE = SIDE_BY_SIDE | {
    "shape": lambda a, b: (2 * M, N),
    "launch_cost": sum_of("launch_cost"),  # a product starts one product per part
    "identity_scales": DEFAULT,
    "panels": lambda a, b: next((each.traits.panels for each in (a, b) if each.traits.panels is not None), None),
    "first_adjoint": DEFAULT,
    "holders": DEFAULT,
}
"""Rules for operators one above the other."""

SHARDED = SIDE_BY_SIDE | {
    "first_adjoint": lambda a, b: a.first_adjoint and b.first_adjoint and (np.ones(M), np.ones(2 * N)),
    "holders": lambda a, b: (np.repeat([0, 1], N), 2, 0),
    "panels": DEFAULT,  # the panels of a process are in its own columns, which need not be neighbours in A
}

ADJOINT: dict[str, Any] = {
    "shape": lambda a: (N, M),
    "splits": lambda a: False,
    "entries_known": same("entries_known"),
    "stored": same("stored"),
    "launch_cost": same("launch_cost"),
    "tasks": same("tasks"),
    "panels": DEFAULT,  # panels are of columns of A, which are its rows
    "reads_columns": lambda a: False,
    "budget": same("budget"),
    "norm": same("norm"),
    "device": same("device"),
    "identity_scales": DEFAULT,
    "first_adjoint": DEFAULT,
    "holders": DEFAULT,
}

TASKS: dict[str, Any] = {
    "shape": lambda a: (M * Q, N * Q),
    "splits": same("splits"),
    "entries_known": same("entries_known"),
    "stored": lambda a: Q * a.traits.stored,
    "launch_cost": lambda a: Q * a.traits.launch_cost,  # one product per task, each with its start-up cost
    "tasks": lambda a: Q,
    "panels": lambda a: None if a.traits.panels is None else Q * a.traits.panels,
    "reads_columns": same("reads_columns"),
    "budget": same("budget"),
    "norm": same("norm"),
    "device": same("device"),
    "first_adjoint": DEFAULT,  # that y belongs to one task
    "identity_scales": DEFAULT,  # an identity has the shape of the loss, including tasks
    "holders": DEFAULT,  # it is distributed as a whole, and its parts never are
}


class TwoProcesses:
    """The first of two processes, with the messages of the other process given."""

    rank, size = 0, 2

    def __init__(self, told: list[Any]) -> None:
        self.told = told

    def all(self, thing: Any) -> list[Any]:
        self.heard = thing
        return [thing, self.told.pop(0)] if self.told else [thing, thing]

    def gather(self, part: Any, sizes: Any) -> Any:
        return np.ones(int(np.sum(sizes)))


def sharded(a: Operator, b: Operator) -> Sharded:
    places = [np.arange(N), np.arange(N, 2 * N)]
    other = TwoProcesses([])
    Sharded(b, places, other)  # type: ignore[arg-type]
    return Sharded(a, places, TwoProcesses([other.heard]))  # type: ignore[arg-type]


PAIRS = {
    "stacked": (lambda a, b: Stacked([a, b]), STACKED),
    "above": (lambda a, b: Above([a, b], [M, M]), ABOVE),
    "sharded": (sharded, SHARDED),
}


def assert_fact(found: Operator, fact: str, expected: Any, *of: Operator) -> None:
    wanted = fact_of(DENSE, fact) if expected is DEFAULT else expected(*of)
    value = fact_of(found, fact)
    assert (value is None) == (wanted is None), fact
    if wanted is not None:
        for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (value, wanted)), strict=True):
            np.testing.assert_array_equal(one, other, err_msg=fact)


def test_every_fact_of_the_contract_has_a_line():
    assert set(STACKED) == set(ABOVE) == set(SHARDED) == set(TASKS) == set(ADJOINT) == FACTS
    assert set(MARKS) == FACTS - {"shape", "holders"}  # an operator inside another one cannot choose these
    assert [fact for fact in MARKS if np.array_equal(MARKS[fact], fact_of(DENSE, fact))] == []


def test_every_operator_is_known_as_a_wrapper_or_not():
    for module in pkgutil.walk_packages(sb.__path__, "saddleback."):
        if module.name.split(".")[1] in ("operators", "places"):
            pytest.importorskip("torch") if "torch" in module.name else None
            importlib.import_module(module.name)

    def below(cls: type) -> set[type]:
        return {cls, *(each for sub in cls.__subclasses__() for each in below(sub))}

    known = {"Operator", "Abstract", "Dense", "Compressed", "Transposed", "BothWays", "ScaledIdentity", "Streamed"}
    known |= {"Implicit", "Differences", "Repeat"}
    known |= {"OnDevice", "DenseOnDevice", "SparseOnDevice"}
    wrappers = {"Stacked", "Above", "Adjoint", "Tasks", "Sharded"}
    assert {cls.__name__ for cls in below(Operator) if cls.__module__.startswith("saddleback.")} == known | wrappers


@pytest.mark.parametrize("fact", sorted(FACTS))
@pytest.mark.parametrize("which", ["neither", "first", "second", "both"])
@pytest.mark.parametrize("kind", list(PAIRS))
def test_operators_beside_or_above_each_other_combine_their_facts(kind, which, fact):
    make, expected = PAIRS[kind]
    parts = [marked(fact if which in (own, "both") else None) for own in ("first", "second")]
    assert_fact(make(*parts), fact, expected[fact], *parts)


@pytest.mark.parametrize("fact", sorted(FACTS))
@pytest.mark.parametrize("is_marked", [False, True])
def test_tasks_have_the_facts_of_their_matrix(is_marked, fact):
    single = marked(fact if is_marked else None)
    assert_fact(Tasks(single, Q), fact, TASKS[fact], single)


@pytest.mark.parametrize("fact", sorted(FACTS))
@pytest.mark.parametrize("is_marked", [False, True])
def test_the_adjoint_has_the_facts_of_its_matrix(is_marked, fact):
    of = marked(fact if is_marked else None)
    assert_fact(Adjoint(of), fact, ADJOINT[fact], of)


def test_check_knows_the_rounding_under_a_matrix_variable():
    """The products are in float32 and do not declare it, which used to raise a ProbeError."""
    single = A.astype(np.float32)
    coarse = LinearOperator(
        A.shape,
        matvec=lambda x: (single @ x.astype(np.float32)).astype(float),
        rmatvec=lambda y: (single.T @ y.astype(np.float32)).astype(float),
        dtype=float,
    )
    assert sb.check(sb.Problem(sb.L1(1.0), coarse, sb.Squared(np.ones((M, Q))))).tests


def test_linear_operators_are_found_inside_others(rng):
    """Properties such as the rounding of their products are read from the operator itself."""
    coarse = Abstract(aslinearoperator(A.astype(np.float32)), "A")
    for outside in (coarse, Stacked([marked(), coarse]), Above([marked(), coarse], [M, M]), Tasks(coarse, Q)):
        assert linear_operators(outside) == [coarse]
    assert linear_operators(Stacked([marked(), marked()])) == []
    assert probe_passes(Tasks(coarse, 2)) == 0.25
    assert probe_passes(Stacked([marked(), coarse])) == 0.25


def test_bytes_in_memory():
    """Half as many in float32; those of its matrix for a matrix variable; those of each process with MPI."""
    single, double = Dense(A.astype(np.float32)), marked()
    assert bytes_in_memory(single) == 4 * M * N
    assert bytes_in_memory(Stacked([single, double])) == 12 * M * N
    assert bytes_in_memory(Above([single, None, double], [M, 3, M])) == 12 * M * N
    assert bytes_in_memory(Tasks(single, Q)) == 4 * M * N
    assert bytes_in_memory(sharded(single, double)) == 4 * M * N


@pytest.fixture
def matrices(tmp_path):
    """One operator of every kind, and some with a matrix variable or side by side with another one."""
    for order in ("C", "F"):
        np.save(tmp_path / f"{order}.npy", np.array(A, order=order))
    kinds: dict[str, Any] = {
        "by columns": A,
        "by rows": np.ascontiguousarray(A),
        "float32": A.astype(np.float32),
        "CSC": sparse.csc_array(A),
        "CSR": sparse.csr_array(A),
        "LinearOperator": aslinearoperator(A),
        "differences": sb.Differences(shape=(2, 3)),
        "repeat": sb.Repeat([2, 0, 1, 1, 2]),
        "file by columns": Streamed(tmp_path / "F.npy", memory=1e5),
        "file by rows": Streamed(tmp_path / "C.npy", memory=1e5),
    }
    found = {name: as_operator(source, "A") for name, source in kinds.items()}
    found["identity"] = ScaledIdentity(M, 2.0)
    for name in ("by rows", "CSR", "file by rows", "differences"):
        found[f"{name}, tasks"] = Tasks(found[name], Q)
    for name in ("by rows", "file by columns", "identity"):
        found[f"{name}, stacked"] = Stacked([found[name], found["CSC"]])
    return found


SAME: dict[str, tuple[Callable[[Operator], Operator], set[str]]] = {
    "by columns": (lambda op: op.ordered("columns"), {"first_adjoint"}),  # a copy is made before its facts are read
    "by rows": (lambda op: op.ordered("rows"), {"first_adjoint"}),
    "with memory": (with_memory, set()),
    "collected": (collected, set()),
}
"""Conversions to another form of the same operator, and the facts that each may change."""


@pytest.mark.parametrize("way", list(SAME))
def test_another_form_has_the_same_facts(way, matrices):
    change, may_differ = SAME[way]
    for operator in matrices.values():
        other = change(operator)
        for fact in FACTS - may_differ:
            assert_fact(other, fact, same(fact), operator)


KEPT = ("splits", "entries_known", "tasks")
"""Facts that a part of the rows and columns keeps; all others describe where entries lie and their number."""


def test_a_part_has_the_facts_that_do_not_depend_on_where_it_lies(matrices):
    for name, operator in ((name, operator.ordered("columns")) for name, operator in matrices.items()):
        if not operator.traits.splits:
            continue
        rows, columns = (np.arange(size) for size in operator.shape)
        for part in (operator.restrict(rows, columns), operator.pack(columns, False), operator.pack(columns, True)):
            assert part.shape == operator.shape, name
            for fact in KEPT:
                assert fact_of(part, fact) == fact_of(operator, fact), (name, fact)


def test_on_a_device_an_operator_has_the_same_facts(matrices):
    pytest.importorskip("torch")
    for name, operator in matrices.items():
        if "file" in name or name == "LinearOperator":
            continue  # these cannot be moved to a device
        there = open_device("cpu").operator(operator)
        for fact in FACTS - {"device"}:
            assert_fact(there, fact, same(fact), operator)
        mixed = name == "identity, stacked"  # of entries and of vectors on the device
        assert there.traits.device == (None if mixed else open_device("cpu")), name
