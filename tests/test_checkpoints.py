"""Checkpoints: a resumed run ends with the same bits, and a bad file or disk ends with a clear message."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from types import GenericAlias, SimpleNamespace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from profiles import examples
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

import saddleback as sb
from saddleback.checkpoints import file, graph, thaw
from saddleback.checkpoints import writer as keeper
from saddleback.checkpoints.check import expanded
from saddleback.common import outputs as whole
from saddleback.common.rebuildable import derived, stored
from saddleback.engine.registry import METHODS
from saddleback.functions import singular

RNG = np.random.default_rng(3)
A = RNG.standard_normal((60, 20)) * (RNG.random((60, 20)) < 0.6)
B = A[:, :4].sum(axis=1) + 0.5 * RNG.standard_normal(60)
WIDE = RNG.standard_normal((40, 450))
TARGET = WIDE[:, ::45].sum(axis=1) + 0.1 * RNG.standard_normal(40)
TALL = RNG.standard_normal((6000, 5))
HEIGHTS = TALL.sum(axis=1) + RNG.standard_normal(6000)


def low_rank(rows: int, columns: int) -> Any:
    matrix = RNG.standard_normal((rows, 3)) @ RNG.standard_normal((3, columns))
    return matrix + 10.0 * (RNG.random((rows, columns)) < 0.05)


SMALL_MATRIX, MATRIX = low_rank(12, 9), low_rank(60, 70)


def pca(matrix: Any) -> sb.Problem:
    parts = [sb.SquaredL2(1.0), sb.L1(0.3), sb.Nuclear(5.0, matrix.shape)]
    return sb.Problem(parts, [sb.Identity()] * 3, sb.Equality(matrix))


PROBLEMS = {
    "lasso": lambda: sb.Problem(sb.L1(3.0), A, sb.Squared(B)),
    "row-major sparse": lambda: sb.Problem(sb.L1(1.0), sparse.csr_matrix(A), sb.Absolute(B)),
    "operator": lambda: sb.Problem(sb.L1(3.0), aslinearoperator(A), sb.Squared(B)),
    "hinge": lambda: sb.Problem(sb.GroupL2(0.5, 4), A, sb.Hinge(np.sign(B))),
    "linear program": lambda: sb.Problem(
        sb.Linear(np.cos(np.arange(20.0))) + sb.Box(-1.0, 2.0), A, sb.Interval(B - 9.0, B + 3.0)
    ),
    "unbounded": lambda: sb.Problem(
        sb.Linear(A.T @ B) + sb.NonNegative(), -np.abs(A), sb.Interval(-np.inf, 1.0 + 0 * B)
    ),
    "intercept": lambda: sb.Problem([sb.ElasticNet(0.4, 0.5), sb.Zero()], [A, np.ones(60)], sb.Pinball(B, 0.3)),
    "tasks": lambda: sb.Problem(sb.GroupL2(1.0, 2), A, sb.Squared(np.column_stack([B, -B]))),
    "identities": lambda: sb.Problem(
        [sb.L1(0.3), sb.Nuclear(5.0, SMALL_MATRIX.shape)], [sb.Identity()] * 2, sb.Squared(SMALL_MATRIX)
    ),
    "ridge": lambda: sb.Problem(sb.SquaredL2(1.0), A, sb.Absolute(B)),
    "matrices": lambda: pca(SMALL_MATRIX),
}


def stopped_after(writes: int, path: Any, problem: sb.Problem, **options: Any) -> bool:
    """Run until the given number of checkpoints is written, one per slice, then die; return whether it did."""

    class Death(BaseException):
        pass

    left = writes

    def write(*args: Any) -> None:
        nonlocal left
        file.write(*args)
        left -= 1
        if left == 0:
            raise Death

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keeper, "write", write)
        try:
            sb.solve(problem, checkpoint=path, checkpoint_every=0.0, **options)
        except Death:
            return True
    return False


def assert_same(found: sb.Result, expected: sb.Result) -> None:
    """Assert that everything except the seconds is equal bit by bit; the problems are equal, but not the same."""
    for one, other in zip(points(found), points(expected), strict=True):
        assert np.array_equal(one, other)
    plain, reference = (dict(vars(result)) for result in (found, expected))
    for each in (plain, reference):
        each["history"] = each["history"].to_dict()
        del each["seconds"], each["history"]["seconds"], each["x"], each["y"], each["problem"]
    np.testing.assert_equal(plain, reference)


def points(result: sb.Result) -> list[Any]:
    return [*(result.x if isinstance(result.x, list) else [result.x]), result.y]


def check_resumed(path: Any, make: Any, writes: tuple[int, ...], **options: Any) -> int:
    expected = sb.solve(make(), **options)
    resumed = 0
    for count in writes:
        if stopped_after(count, path, make(), **options):
            resumed += 1
            assert_same(sb.solve(make(), resume=path, **options), expected)
    return resumed


@pytest.mark.parametrize("method", METHODS)
def test_every_method_resumes_with_the_same_bits(method, tmp_path):
    """This holds on every problem that the method accepts, from its first checkpoint and from a later one."""
    options = {"method": method, "tol": 1e-9, "max_passes": 40, "check_every": 9}
    resumed = 0
    for make in PROBLEMS.values():
        if METHODS[method]().missing(make().model) is None:
            resumed += check_resumed(tmp_path / "run", make, (1, 7), **options)
    assert resumed >= 1


LAYERED = {
    "descent on a set": (lambda: sb.Problem(sb.L1(2.0), WIDE, sb.Squared(TARGET)), {}),
    "descent on arrays": (lambda: sb.Problem(sb.L1(2.0), WIDE, sb.Squared(TARGET)), {"backend": "numpy"}),
    "row-major": (lambda: sb.Problem(sb.L1(2.0), np.ascontiguousarray(WIDE), sb.Logistic(np.sign(TARGET))), {}),
    "multipliers on a set": (lambda: sb.Problem(sb.L1(1.0), WIDE, sb.Absolute(TARGET)), {"finish": False}),
    "blocks on a set": (
        lambda: sb.Problem(sb.L1(1.0), WIDE, sb.Absolute(TARGET)),
        {"method": "sp-bcd", "finish": False},
    ),
    "blocks on arrays": (
        lambda: sb.Problem(sb.L1(1.0), WIDE, sb.Absolute(TARGET)),
        {"method": "sp-bcd", "finish": False, "backend": "numpy"},
    ),
    "no layers": (
        lambda: sb.Problem(sb.L1(1.0), WIDE, sb.Absolute(TARGET)),
        {"finish": False, "working_set": False, "restarts": False, "blocks_per_iteration": 7},
    ),
    "lazy dual": (
        lambda: sb.Problem(sb.L1(1.0), sparse.csc_matrix(A), sb.Hinge(np.sign(B))),
        {"finish": False, "dual": "lazy", "blocks_per_iteration": 1},
    ),
    "finish at once": (lambda: sb.Problem(sb.L1(1.0), WIDE, sb.Absolute(TARGET)), {"method": "finish"}),
    "finish after blocks": (
        lambda: sb.Problem(sb.L1(0.5), WIDE, sb.Absolute(TARGET)),
        {"method": "sp-bcd", "tol": 1e-9},
    ),
    "finish after multipliers": (lambda: sb.Problem(sb.L1(0.5), WIDE, sb.Absolute(TARGET)), {"tol": 1e-9}),
    "finish on some rows": (lambda: sb.Problem(sb.L1(5.0), TALL, sb.Pinball(HEIGHTS, 0.3)), {"method": "finish"}),
    "a block more than columns": (lambda: sb.Problem(sb.L1(1.0), WIDE, sb.Absolute(TARGET)), {"method": "pdmm"}),
    "pure-cd on a set": (lambda: sb.Problem(sb.L1(1.0), WIDE, sb.Absolute(TARGET)), {"method": "pure-cd"}),
    "equal rows": (lambda: sb.Problem(sb.L1(1.0), np.repeat(A, 3, axis=0), sb.Absolute(np.repeat(B, 3))), {}),
    "quadratic block": (lambda: pca(SMALL_MATRIX), {}),
    "an infeasible program": (
        lambda: sb.Problem(sb.Linear(np.ones(20)) + sb.Box(0.0, 1.0), A, sb.Interval(B + 50.0, B + 60.0)),
        {},
    ),
}


@pytest.mark.parametrize("name", LAYERED)
def test_every_layer_resumes_with_the_same_bits(name, tmp_path):
    make, options = LAYERED[name]
    assert check_resumed(tmp_path / "run", make, (1, 4, 15), **({"max_passes": 150} | options)) >= 1


def test_singular_vectors_are_remembered(tmp_path, monkeypatch):
    """The nuclear norm starts from its last singular vectors, which affects the last bits."""
    monkeypatch.setattr(singular, "GRAM_SIDE", 4)
    options = {"method": "alternating", "eliminate": True, "max_passes": 60, "tol": 1e-12}
    assert check_resumed(tmp_path / "run", lambda: pca(MATRIX), (4, 15), **options) == 2


@examples(8)
@given(st.data())
def test_a_run_may_stop_at_any_checkpoint(data):
    """A run dies at any checkpoint, and dies again after resuming, at any point of the layers."""
    import tempfile

    name = data.draw(st.sampled_from(["descent on a set", "blocks on a set", "finish after blocks", "finish at once"]))
    make, options = LAYERED[name]
    first, second = (data.draw(st.integers(1, 40)) for _ in range(2))
    expected = _expected(name)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run")
        if stopped_after(first, path, make(), **options):
            stopped_after(second, path, make(), resume=path, **options)
            assert_same(sb.solve(make(), resume=path, **options), expected)


@cache
def _expected(name: str) -> sb.Result:
    make, options = LAYERED[name]
    return sb.solve(make(), **options)


def lasso(alpha: float = 2.0, seed: int = 3) -> sb.Problem:
    shift = 0.0 if seed == 3 else 1e-3 * np.random.default_rng(seed).standard_normal(WIDE.shape)
    return sb.Problem(sb.L1(alpha), WIDE + shift, sb.Squared(TARGET))


@pytest.fixture
def saved(tmp_path):
    """A checkpoint of a Lasso."""
    assert stopped_after(2, tmp_path / "run", lasso(), tol=1e-10)
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (lambda p: sb.solve(lasso(), tol=1e-4, resume=p), r"tol \(1e-10 there, 0.0001 here\)"),
        (lambda p: sb.solve(lasso(), tol=1e-10, seed=4, resume=p), r"seed \(0 there, 4 here\)"),
        (lambda p: sb.solve(lasso(), "sp-bcd", tol=1e-10, resume=p), r"method \(descent there, sp-bcd here\)"),
        (
            lambda p: sb.solve(lasso(), "sp-bcd", step=(np.ones(450), 1.0), resume=p),
            r"step \(left out there, of type tuple",
        ),
        (lambda p: sb.solve(lasso(), tol=1e-10, working_set=False, resume=p), r"working_set \(left out there, False"),
        (lambda p: sb.solve(lasso(2.5), tol=1e-10, resume=p), r"bounds of the penalty"),
        (lambda p: sb.solve(lasso(seed=5), tol=1e-10, resume=p), "the entries of A"),
        (
            lambda p: sb.solve(sb.Problem(sb.L1(2.0), -WIDE, sb.Squared(TARGET)), tol=1e-10, resume=p),
            "the entries of A",
        ),
        (
            lambda p: sb.solve(sb.Problem(sb.L1(2.0), WIDE, sb.Squared(TARGET + 1.0)), tol=1e-10, resume=p),
            "the data of the loss",
        ),
        (
            lambda p: sb.solve(sb.Problem(sb.L1(2.0), WIDE[:, 1:], sb.Squared(TARGET)), tol=1e-10, resume=p),
            r"the shape of A \(40 x 450 there, 40 x 449 here\); the blocks of x \(450 there, 449 here\): pass",
        ),
        (lambda p: sb.solve(lasso(), tol=1e-10, x0=np.zeros(450), resume=p), "leave them out"),
        (lambda p: sb.solve(lasso(), resume=p.with_name("none")), "is not a file"),
        (lambda p: sb.solve(lasso(), checkpoint=p.parent), "is a folder"),
        (lambda p: sb.solve(lasso(), checkpoint=p.parent / "none" / "run"), "no folder"),
        (lambda p: sb.solve(lasso(), checkpoint=p, checkpoint_every=-1), "at least 0"),
    ],
)
def test_a_checkpoint_of_another_run_is_rejected(saved, changed, told):
    with pytest.raises((ValueError, FileNotFoundError), match=told) as raised:
        changed(saved)
    assert not re.search(r"\[|[0-9a-f]{16}", str(raised.value))  # neither sums nor digests are compared


def test_a_number_of_numpy_is_a_number(saved):
    assert sb.solve(lasso(), tol=np.float64(1e-10), seed=np.int64(0), resume=saved).status is sb.Status.OPTIMAL


def test_different_bounds_anywhere_are_detected(tmp_path):
    def boxed(upper: float) -> sb.Problem:
        return sb.Problem(sb.Box(0.0, upper), WIDE[:, :30], sb.Absolute(TARGET))

    assert stopped_after(1, tmp_path / "run", boxed(3.0), tol=1e-9)
    with pytest.raises(ValueError, match="bounds of the penalty"):
        sb.solve(boxed(5.0), tol=1e-9, resume=tmp_path / "run")


def test_a_run_on_a_device_resumes_with_the_same_bits(tmp_path):
    pytest.importorskip("torch")
    assert check_resumed(tmp_path / "run", lasso, (1, 3), tol=1e-10, device="cpu")
    with pytest.raises(TypeError, match="leave checkpoint or device out"):
        sb.solve(pca(low_rank(6, 8)), device="cpu", checkpoint=tmp_path / "run")


def test_limits_and_threads_may_change(saved):
    expected = sb.solve(lasso(), tol=1e-10)
    assert_same(sb.solve(lasso(), tol=1e-10, threads=1, time_limit=60.0, max_passes=1e6, resume=saved), expected)


def test_a_damaged_file_is_reported(saved):
    whole = saved.read_bytes()
    for size in (0, 10, len(whole) // 2, len(whole) - 1):
        saved.write_bytes(whole[:size])
        with pytest.raises(ValueError, match="not a complete checkpoint"):
            sb.solve(lasso(), tol=1e-10, resume=saved)
    saved.write_bytes(b"something else")
    with pytest.raises(ValueError, match="not a complete checkpoint"):
        sb.solve(lasso(), tol=1e-10, resume=saved)


def test_a_flipped_byte_never_gives_another_answer(saved):
    whole = bytearray(saved.read_bytes())
    expected = sb.solve(lasso(), tol=1e-10)
    generator = np.random.default_rng(0)
    for place in generator.integers(len(whole), size=60):
        broken = whole.copy()
        broken[place] ^= 1 << int(generator.integers(8))
        saved.write_bytes(broken)
        told = "resume="
        try:
            result = sb.solve(lasso(), tol=1e-10, resume=saved)
        except ValueError as error:
            told = str(error)
        else:
            assert_same(result, expected)
        assert "resume=" in told


def test_foreign_and_newer_files_are_reported(saved):
    stored = dict(np.load(saved))
    header = json.loads(stored["header"].tobytes())

    def rewritten(**changes: Any) -> None:
        with saved.open("wb") as stream:
            text = json.dumps(header | changes).encode()
            np.savez(stream, **(stored | {"header": np.frombuffer(text, dtype=np.uint8)}))

    rewritten(format=file.FORMAT + 1, version="9.9")
    with pytest.raises(ValueError, match=rf"written by saddleback 9\.9, in format {file.FORMAT + 1}"):
        sb.solve(lasso(), tol=1e-10, resume=saved)
    rewritten(kind="another")
    with pytest.raises(ValueError, match="not a checkpoint of saddleback"):
        sb.solve(lasso(), tol=1e-10, resume=saved)
    table = json.loads(json.dumps(header["table"]).replace('"passes"', '"miles"'))
    rewritten(table=table)
    with pytest.raises(ValueError, match="parts that this version does not know"):
        sb.solve(lasso(), tol=1e-10, resume=saved)
    rewritten(format=str(file.FORMAT))
    with pytest.raises(ValueError, match=rf"its format is '{file.FORMAT}', and not a number"):
        sb.solve(lasso(), tol=1e-10, resume=saved)


@pytest.mark.parametrize("later", [0, 60])
def test_an_error_of_a_function_of_the_user_is_not_blamed_on_the_file(later, tmp_path):
    class Own:
        separable, left = True, np.inf

        def value(self, x):
            return float(np.abs(x).sum())

        def prox(self, v, step):
            Own.left -= 1
            if Own.left < 0:
                raise ValueError("a mistake in prox")
            return np.sign(v) * np.maximum(np.abs(v) - step, 0)

    rng = np.random.default_rng(0)
    problem = sb.Problem(Own(), rng.standard_normal((40, 30)), sb.Absolute(rng.standard_normal(40)))
    sb.solve(problem, tol=1e-12, max_passes=20, checkpoint=tmp_path / "run")
    Own.left = later
    with pytest.raises(ValueError, match=r"^a mistake in prox$"):
        sb.solve(problem, tol=1e-12, max_passes=400, resume=tmp_path / "run")


def test_without_locks_a_file_is_closed_before_it_is_renamed(tmp_path, monkeypatch):
    """Windows does not rename an open file."""
    streams = []
    monkeypatch.setattr(whole, "fcntl", None)
    monkeypatch.setattr(whole.os, "replace", lambda old, new: streams.append(streams[0].closed))
    with whole.replacing(tmp_path / "run") as stream:
        streams.append(stream)
    assert streams[1]


def test_a_full_disk_is_a_warning_and_keeps_the_last_checkpoint(saved, monkeypatch):
    before, expected = saved.read_bytes(), sb.solve(lasso(), tol=1e-10)

    def full(stream: Any, **arrays: Any) -> None:
        stream.write(b"the beginning")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(file.np, "savez", full)
    with pytest.warns(RuntimeWarning, match="No space left"):
        result = sb.solve(lasso(), tol=1e-10, checkpoint=saved, checkpoint_every=0.0)
    assert_same(result, expected)
    assert saved.read_bytes() == before
    assert [each.name for each in saved.parent.iterdir()] == ["run"]


def slow() -> sb.Problem:
    return sb.Problem(sb.L1(1.0), WIDE, sb.Absolute(TARGET))


@pytest.mark.parametrize("how", ["callback", "keyboard", "time"])
def test_a_run_that_is_stopped_leaves_a_checkpoint(how, tmp_path):
    options = {"method": "sp-bcd", "tol": 1e-9, "finish": False, "max_passes": 3000}
    path = tmp_path / "run"

    stops = iter([True])

    def stop(info: sb.Info) -> bool:
        now = info.passes >= 100 and next(stops, False)
        if now and how == "keyboard":
            signal.raise_signal(signal.SIGINT)
        return now and how == "callback"

    limit = {"time_limit": 0.02} if how == "time" else {"callback": stop}
    first = sb.solve(slow(), checkpoint=path, **limit, **options)
    assert first.status is (sb.Status.TIME_LIMIT if how == "time" else sb.Status.INTERRUPTED)
    assert "resume" in first.message
    again = sb.solve(slow(), resume=path, **options)
    # the time before the checkpoint counts; how long a run takes to end after writing it does not
    assert again.seconds >= first.history.seconds[-1]
    assert np.all(np.diff(again.history.seconds) >= 0)
    assert_same(again, sb.solve(slow(), **options))


def test_a_pass_limit_can_be_raised(tmp_path):
    options = {"method": "sp-bcd", "finish": False}
    first = sb.solve(slow(), checkpoint=tmp_path / "run", max_passes=50, **options)
    assert first.status is sb.Status.MAX_PASSES
    assert sb.solve(slow(), resume=tmp_path / "run", max_passes=20_000, **options).status is sb.Status.OPTIMAL


@pytest.mark.parametrize("method", ["sp-bcd", "descent"])
def test_a_pass_limit_leaves_no_trace(method, tmp_path):
    """If the limit interrupts a working set, the run resumes from the state before it."""
    make = lambda: sb.Problem(sb.L1(0.5), WIDE, sb.Squared(TARGET))  # noqa: E731
    options = {"method": method, "tol": 1e-10}
    whole = sb.solve(make(), **options)
    for share in (0.2, 0.4, 0.7):
        first = sb.solve(make(), checkpoint=tmp_path / "run", max_passes=share * whole.passes, **options)
        assert first.status is sb.Status.MAX_PASSES
        assert_same(sb.solve(make(), resume=tmp_path / "run", **options), whole)


def test_a_callback_that_stops_a_solved_run_changes_nothing(tmp_path):
    result = sb.solve(
        lasso(), tol=1e-9, checkpoint=tmp_path / "run", callback=lambda info: info.certificate.error < 1e-9
    )
    assert_same(result, sb.solve(lasso(), tol=1e-9))


class Toy:
    """A derived object with a part that changes."""

    carries = ("count",)

    def __init__(self, size: int) -> None:
        self.size, self.count = size, np.zeros(size)


@derived
def make_toy(size: int) -> Toy:
    return Toy(size)


def test_what_cannot_remember_its_call_cannot_be_derived():
    @derived
    def make_tuple(size: int) -> tuple[int, int]:
        return size, size

    with pytest.raises(TypeError, match=r"make_tuple is marked with @derived and returned a tuple: expected an object"):
        make_tuple(3)


@stored
@dataclass
class Whole:
    """One object of every kind that a checkpoint may hold."""

    base: NDArray[Any]
    view: NDArray[np.float64]
    same: list[NDArray[np.float64]]
    wide: NDArray[np.float32]
    fortran: NDArray[np.float64]
    odd: NDArray[np.float64]
    numbers: tuple[int, float, float, float, None, bool, slice]
    named: dict[str, float | str]
    toy: list[Toy]
    known: object
    generator: np.random.Generator
    pair: Pair


@stored
class Pair(NamedTuple):
    left: float
    right: Whole | None = None


@stored
@dataclass
class Contents:
    whole: Whole


def test_a_graph_keeps_what_is_shared(rng):
    base = rng.standard_normal((4, 6))
    toy = make_toy(2)
    toy.count += 5.0
    known = object()
    generator = np.random.default_rng(5)
    whole = {
        "base": base,
        "view": base[1:, ::2].T,
        "same": [base, base],
        "wide": np.broadcast_to(np.float32(3.0), (7,)),
        "fortran": np.asfortranarray(base),
        "odd": base[:, ::2][:, [0, 2]],
        "numbers": (1, 2.5, np.inf, np.float64(0.1), None, True, slice(1, 5)),
        "named": {"a": 1.0, "b": "text"},
        "toy": [toy, toy],
        "known": known,
        "generator": generator,
        "pair": Pair(2.0),
    }
    frozen = graph.freeze(Contents(Whole(**whole)), {"it": known})
    json.dumps(frozen.table)
    found = vars(thaw.thaw(frozen, {"it": known}, Contents, ["whole"])["whole"])
    for name in ("base", "view", "wide", "fortran", "odd"):
        assert np.array_equal(found[name], whole[name])
        assert found[name].strides == whole[name].strides
    found["base"][1, 0] = 77.0
    assert found["view"][0, 0] == 77.0
    assert found["same"][0] is found["same"][1] is found["base"]
    assert found["numbers"] == whole["numbers"]
    assert type(found["numbers"][3]) is np.float64
    assert found["named"] == whole["named"]
    assert found["pair"] == Pair(2.0)
    assert found["known"] is known
    assert found["toy"][0] is found["toy"][1]
    assert np.array_equal(found["toy"][0].count, [5.0, 5.0])
    assert found["generator"].integers(1 << 60) == generator.integers(1 << 60)
    with pytest.raises(TypeError, match="cannot hold"):
        graph.freeze([lambda: None], {})


def test_another_file_is_not_overwritten(tmp_path):
    data = tmp_path / "data.npz"
    np.savez(data, A=np.eye(3))
    with pytest.raises(ValueError, match="is not a checkpoint of saddleback: name another file"):
        sb.solve(lasso(), checkpoint=data)
    assert np.load(data).files == ["A"]


def test_a_checkpoint_of_the_host_is_not_one_of_a_device(saved):
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match="device"):
        sb.solve(lasso(), tol=1e-10, resume=saved, device="cpu")


def test_threads_with_one_path_leave_whole_files(tmp_path):
    """At any time the file is a complete checkpoint of one of the threads."""
    path = tmp_path / "run"
    written = file.Stored("1", {}, graph.Graph([{"random": {}}], [np.zeros(20_000)]), [{"0": {}}])
    file.write(path, written)
    done = threading.Event()

    def keep_writing() -> None:
        while not done.is_set():
            file.write(path, written)

    with ThreadPoolExecutor() as pool:
        writers = [pool.submit(keep_writing) for _ in range(3)]
        try:
            for _ in range(60):
                assert file.read(path).graph.buffers[0].size == 20_000
        finally:
            done.set()
        for writer in writers:
            writer.result()
    assert os.listdir(tmp_path) == ["run"]


def test_arrays_may_be_declared_by_an_alias_with_a_name():
    """``NDArray`` is one from numpy 2.5 on."""
    entry = TypeVar("entry", bound=np.generic)
    alias: Any = SimpleNamespace(__value__=np.ndarray[Any, np.dtype[entry]])
    arrays = np.ndarray[Any, np.dtype[np.float64]]
    assert expanded(GenericAlias(alias, (np.float64,))) == expanded(arrays) == arrays


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "there").mkdir()
    link, target = tmp_path / "link", tmp_path / "there" / "run"
    link.symlink_to(target)
    for _ in range(2):  # the first time its target does not exist
        sb.solve(slow(), checkpoint=link, max_passes=20)
        assert link.is_symlink()
        assert file.is_checkpoint(target)
    assert sorted(os.listdir(tmp_path)) == ["link", "there"]
    assert os.listdir(target.parent) == ["run"]
    assert sb.solve(slow(), resume=link, max_passes=30).passes > 20


DYING = """
import os, sys
from pathlib import Path
from saddleback.common.outputs import replacing
with replacing(Path(sys.argv[1])) as stream:
    stream.write(b"half a file")
    stream.flush()
    print("ready", flush=True)
    sys.stdin.readline()
"""


def test_temporary_files_of_a_killed_process_are_removed(tmp_path):
    """Files that a living process is writing, and files of another path, stay."""
    path = tmp_path / "run[1]"
    living, dead = (
        subprocess.Popen([sys.executable, "-c", DYING, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(2)
    )
    other = tmp_path / ".run1.0123456789abcdef.part"
    other.touch()
    try:
        for process in (living, dead):
            assert process.stdout is not None
            process.stdout.readline()
        parts = set(tmp_path.glob(".run[[]*.part"))
        assert len(parts) == 2
        dead.kill()
        dead.communicate()
        sb.solve(slow(), checkpoint=path, max_passes=20)
        assert len(parts & set(tmp_path.iterdir())) == 1
        assert other.exists()
    finally:
        living.communicate(b"go on\n")
    assert path.read_bytes() == b"half a file"  # complete, as far as its writer knows
    assert set(tmp_path.iterdir()) == {path, other}
