"""Forged checkpoints: they execute no code, and cause an error that names the file or end in a true certificate."""

from __future__ import annotations

import copy
import io
import json
import os
import pkgutil
import signal
import zipfile
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from mutated_checkpoints import Parts, mutated, read, rewrite_members, write
from test_checkpoints import PROBLEMS, lasso, slow, stopped_after

import saddleback as sb
from saddleback.checkpoints import check, declared, graph, thaw
from saddleback.common.rebuildable import CLASSES, MAKERS
from saddleback.engine.clock import Clock
from saddleback.engine.run import Contents, Limits
from saddleback.methods import State
from saddleback.places.mpi.communicator import SERIAL

OPTIONS: dict[str, Any] = {"tol": 1e-12, "method": "sp-bcd", "finish": False}


def small() -> sb.Problem:
    rng = np.random.default_rng(0)
    return sb.Problem(sb.L1(0.5), rng.standard_normal((12, 20)), sb.Absolute(rng.standard_normal(12)))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The parts of a checkpoint."""
    path = tmp_path_factory.mktemp("saved") / "run"
    sb.solve(small(), max_passes=40, checkpoint=path, **OPTIONS)
    return read(path)


@pytest.fixture
def parts(saved):
    """A copy of the parts of the checkpoint."""
    return copy.deepcopy(saved)


def resumed(path: Any, changed: Parts) -> sb.Result:
    write(path, changed)
    return sb.solve(small(), max_passes=60, resume=path, **OPTIONS)


def ends_well(path: Any, changed: Parts) -> bool:
    """Return whether the run resumes; fail the test on an error that does not name the file."""
    try:
        resumed(path, changed)
    except ValueError as error:
        if "resume=" not in str(error):
            raise
        return False
    return True


def modules() -> list[str]:
    """Every module of the package that can be imported; some need optional libraries."""
    found = [each.name for each in pkgutil.walk_packages(sb.__path__, "saddleback.")]
    return ["saddleback", *(name for name in found if not name.endswith("__main__"))]


def reachable(name: str) -> list[str]:
    """Return the names of all attributes of a module, and of their attributes."""
    try:
        module = import_module(name)
    except ImportError:
        return []
    found = []
    for first, one in vars(module).items():
        found.append(first)
        if hasattr(one, "__dict__"):
            found += [f"{first}.{second}" for second in vars(one)]
    return found


FRIENDS = ["os.system", "os.popen", "subprocess.run", "builtins.eval", "__builtins__.eval", "__builtins__.open", "eval"]
FRIENDS += [
    "exec",
    "open",
    "np.load",
    "np.fromfile",
    "importlib.import_module",
    "sys.modules",
    "Path.unlink",
    "json.loads",
]


def calls(name: str, told: Any) -> list[dict[str, Any]]:
    """Return every entry that names a class or function."""
    return [
        {"tuple": [told], "class": name},
        {"tuple": [], "class": name},
        {"class": name, "fields": {}},
        {"class": name, "fields": {"args": told}},
        {"enum": name, "name": told},
        {"maker": name, "args": [told], "options": {}, "carries": {}},
        {"maker": name, "args": [], "options": {}, "carries": {"args": told}},
    ]


@pytest.mark.parametrize("module", modules())
def test_no_name_of_any_module_is_called(module, parts, tmp_path):
    """A checkpoint that tries to run a shell command, through every module and everything that it imports."""
    ran = tmp_path / "ran"
    worst = [*(f"{module}:{path}" for path in FRIENDS), f"{module}.os:system", "os:system", "builtins:eval"]
    entries = [entry for name in worst for entry in calls(name, f"touch {ran}")]
    names = {f"{module}:{path}" for path in reachable(module)} - CLASSES.keys() - MAKERS.keys()
    entries += [calls(name, f"touch {ran}")[i % 7] for i, name in enumerate(sorted(names))]
    for entry in entries:
        with pytest.raises(check.Unreadable):
            thaw.thaw(graph.Graph([entry], []), {}, Contents, ["run"])
    table = parts.header["table"]
    table.append({"tuple": [f"touch {ran}"], "class": f"{module}:os.system"})
    table[table[0]["fields"]["run"]["at"]]["fields"]["x_"] = {"at": len(table) - 1}
    with pytest.raises(ValueError, match="a class that a run cannot hold"):
        resumed(tmp_path / "evil", parts)
    assert not ran.exists()


def test_classes_of_a_checkpoint_are_classes_and_only_those_of_a_run():
    """Every class in the annotations of a run can be stored, and no class can that is not declared for it."""
    assert all(
        isinstance(cls, type) and cls.__module__.startswith(("saddleback.", "test_")) for cls in CLASSES.values()
    )
    assert not any(issubclass(cls, (BaseException, io.IOBase, os.PathLike)) for cls in CLASSES.values())
    for cls in CLASSES.values():
        assert declared.attributes(cls).types or cls is State
    for maker in (maker for maker in MAKERS if maker.startswith("saddleback.")):  # other tests declare some too
        call = declared.call(maker)
        assert call.types.keys() == call.parameters.keys()


@pytest.mark.parametrize("kind", ["|O", "O", "|V8", "<U4", "<M8[s]", "<c16", ">f8", "<f16", "f8,f8", "nonsense"])
def test_arrays_hold_only_numbers(kind, parts, tmp_path):
    entry = next(entry for entry in parts.header["table"] if "array" in entry)
    entry["type"] = kind
    with pytest.raises(ValueError, match="does not know"):
        resumed(tmp_path / "run", parts)


@pytest.mark.parametrize(
    "form",
    [
        {"offset": -8},
        {"offset": 8},
        {"offset": 1},
        {"strides": [16]},
        {"strides": [-8]},
        {"strides": [4]},
        {"shape": [10**13], "strides": [0]},
        {"shape": [-1]},
        {"shape": [10**30]},
        {"shape": [21]},
        {"shape": [True]},
        {"shape": [2, 10], "strides": [8]},
        {"array": 10**6},
        {"array": -1},
        {"more": 1},
    ],
)
def test_arrays_lie_inside_their_buffers(form, parts, tmp_path):
    entry = next(entry for entry in parts.header["table"] if entry.get("shape") == [20] and entry["offset"] == 0)
    entry |= form
    with pytest.raises(ValueError, match="does not know"):
        resumed(tmp_path / "run", parts)


def fields(parts: Parts, cls: str) -> dict[str, Any]:
    return next(entry["fields"] for entry in parts.header["table"] if str(entry.get("class")).endswith(f":{cls}"))


@pytest.mark.parametrize("value", [float("nan"), -1.0, float("inf"), -1e300, "1", None, True, [], {"at": 0}])
@pytest.mark.parametrize("field", ["seconds", "due", "state.passes", "incumbent.passes"])
def test_an_invalid_clock_is_reported(field, value, parts, tmp_path):
    """Such a run used to continue without end."""
    owner, _, name = field.rpartition(".")
    cls = {"": "Run", "state": "RestartedState", "incumbent": "Incumbent"}[owner]
    fields(parts, cls)[name] = value
    with pytest.raises(ValueError, match="resume="):
        resumed(tmp_path / "run", parts)


def test_passes_that_are_not_a_number_end_a_run(parts, tmp_path):
    """The layers do not check passes before they are added up."""
    fields(parts, "SPBCDState")["passes"] = float("nan")
    with pytest.raises(ValueError, match="could not continue from this file"):
        resumed(tmp_path / "run", parts)
    certificate = sb.solve(small(), max_passes=1).certificate
    clock = Clock(1e-9, SERIAL)
    assert Limits(0.0, 1e9, Clock(None, SERIAL)).reached(certificate, float("nan")) is sb.Status.MAX_PASSES
    clock.before = float("nan")
    assert clock.expired()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("buffer", range(12))
def test_impossible_numbers_end_in_a_true_certificate(buffer, parts, tmp_path):
    array = parts.arrays[f"buffer_{buffer}"]
    array[:] = 0
    if ends_well(tmp_path / "run", parts):
        result = resumed(tmp_path / "run", parts)
        assert sb.certify(small(), result.x, result.y) == result.certificate
    if array.dtype.kind == "f":
        array[-1] = np.nan
        assert not ends_well(tmp_path / "run", parts)


@pytest.mark.parametrize(
    "header",
    [
        {"fingerprint": None},
        {"fingerprint": []},
        {"fingerprint": {"tol": {"at": []}}},
        {"fingerprint": {"the entries of A": []}},
        {"generators": None},
        {"generators": []},
        {"generators": [{"0": {}}]},
        {"generators": [{"0": {"random": {}}}]},
        {"table": []},
        {"table": None},
        {"table": [None]},
        {"table": [{"list": [{"at": 0}]}]},
        {"version": {}},
        {"format": True},
        {"format": None},
    ],
)
def test_headers_are_checked(header, parts, tmp_path):
    with pytest.raises(ValueError, match="resume="):
        resumed(tmp_path / "run", Parts(parts.header | header, parts.arrays))


def test_a_version_cannot_write_on_the_terminal(parts, tmp_path):
    parts.header.update({"format": 99, "version": "\x1b[2J\x07" + "long " * 1000})
    with pytest.raises(ValueError, match="format 99") as raised:
        resumed(tmp_path / "run", parts)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 1000


def test_entries_never_refer_to_themselves(parts, tmp_path):
    table = parts.header["table"]
    fields(parts, "SPBCDState")["notes"] = {"at": len(table)}
    for loop in (
        [{"list": [{"at": len(table)}]}],
        [{"list": [{"at": len(table) + 1}]}, {"list": [{"at": len(table)}]}],
        [{"list": [{"at": 0}]}],
    ):
        changed = Parts(parts.header | {"table": [*table, *loop]}, parts.arrays)
        with pytest.raises(ValueError, match="an entry that refers to itself"):
            resumed(tmp_path / "run", changed)
    deep = [{"list": [{"at": len(table) + i}]} for i in range(2, 5000)]
    chain = [{"dict": {"step": {"at": len(table) + 1}}}, *deep, {"list": []}]
    with pytest.raises(ValueError, match="a chain of more than"):
        resumed(tmp_path / "run", Parts(parts.header | {"table": [*table, *chain]}, parts.arrays))


def test_deep_json_is_reported(parts, tmp_path):
    write(tmp_path / "run", parts)

    def deep(members: Any) -> Any:
        for name, data in members:
            if name == "header.npy":
                stream = io.BytesIO()
                np.save(stream, np.frombuffer(b"[" * 10**6, dtype=np.uint8))
                data = stream.getvalue()
            yield name, data

    rewrite_members(tmp_path / "run", deep)
    with pytest.raises(ValueError, match="not a complete checkpoint"):
        sb.solve(small(), resume=tmp_path / "run", **OPTIONS)


def npy(shape: Any, dtype: str, data: bytes) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"shape": shape, "fortran_order": False, "descr": dtype})
    return stream.getvalue() + data


ARCHIVES = {
    "1e13 entries": lambda m: [*m[:-1], (m[-1][0], npy((10**13,), "<f8", b"\0" * 8))],
    "1e13 entries of the header": lambda m: [("header.npy", npy((10**13,), "|u1", b"{}")), *m[1:]],
    "objects": lambda m: [*m[:-1], (m[-1][0], npy((1,), "|O", b"cos\nsystem\n(S'touch ran'\ntR."))],
    "another part": lambda m: [*m, ("../../evil.npy", b"")],
    "an absolute part": lambda m: [*m, ("/tmp/evil.npy", b"")],
    "a gap": lambda m: [*m[:-2], m[-1]],
    "no array": lambda m: [*m[:-1], (m[-1][0], b"nothing")],
    "an unclosed header": lambda m: [*m[:-1], (m[-1][0], m[-1][1][:30] + b"((((" + m[-1][1][34:])],
    "a part too long": lambda m: [*m[:-1], (m[-1][0], m[-1][1] + b"\0" * 8)],
    "a part too short": lambda m: [*m[:-1], (m[-1][0], m[-1][1][:-8])],
    "two of one name": lambda m: [*m, m[-1]],
    "truth values of 2": lambda m: [*m[:-1], (m[-1][0], npy((3,), "|b1", b"\2\2\2"))],
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", ARCHIVES)
def test_archives_are_checked_before_memory_is_allocated(name, parts, tmp_path):
    path = tmp_path / "run"
    write(path, parts)
    rewrite_members(path, ARCHIVES[name])
    with pytest.raises(ValueError, match="not a complete checkpoint"):
        sb.solve(small(), resume=path, **OPTIONS)


def test_a_compressed_archive_is_reported(parts, tmp_path):
    """A gigabyte of zeros is a megabyte when it is compressed."""
    text = np.frombuffer(json.dumps(parts.header).encode(), dtype=np.uint8)
    with (tmp_path / "run").open("wb") as stream:
        np.savez_compressed(stream, header=text, **parts.arrays)
    with pytest.raises(ValueError, match=r"larger than the file|compressed"):
        sb.solve(small(), resume=tmp_path / "run", **OPTIONS)


def test_parts_that_share_their_bytes_are_reported(parts, tmp_path):
    """An archive may list the same bytes many times, so that its contents are larger than the file."""
    path = tmp_path / "run"
    write(path, parts)
    with zipfile.ZipFile(path, "a") as archive:
        last = archive.infolist()[-1]
        archive.filelist += [last] * 10_000
        archive._didModify = True
    with pytest.raises(ValueError, match="larger than the file"):
        sb.solve(small(), resume=path, **OPTIONS)


def test_another_file_with_a_huge_part_is_not_overwritten(tmp_path):
    path = tmp_path / "data.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.npy", npy((10**13,), "|u1", b"{}"))
    with pytest.raises(ValueError, match="is not a checkpoint of saddleback: name another file"):
        sb.solve(small(), checkpoint=path)


def test_certificates_of_another_problem_are_reported(tmp_path):
    """They would be certificates of a smaller problem."""
    from test_checkpoints import SMALL_MATRIX, pca

    assert stopped_after(1, tmp_path / "run", pca(SMALL_MATRIX))
    parts = read(tmp_path / "run")
    place = next(i for i, entry in enumerate(parts.header["table"]) if entry == {"known": "smaller"})
    fields(parts, "Incumbent")["model"] = {"at": place}
    write(tmp_path / "run", parts)
    with pytest.raises(ValueError, match="certificates belong to another problem"):
        sb.solve(pca(SMALL_MATRIX), resume=tmp_path / "run")


def test_a_stored_falling_direction_is_checked(tmp_path):
    """Otherwise a program with a solution would be called unbounded."""
    make, options = PROBLEMS["linear program"], {"method": "r2hpdhg", "tol": 1e-9}
    assert stopped_after(3, tmp_path / "run", make(), **options)
    parts = read(tmp_path / "run")
    state = parts.header["table"][fields(parts, "Run")["state"]["at"]]["fields"]
    fields(parts, "InfeasibilityDetector")["_falls"] = state["x"]
    write(tmp_path / "run", parts)
    with pytest.raises(ValueError, match="falling direction proves nothing"):
        sb.solve(make(), resume=tmp_path / "run", **options)


def test_a_stored_objective_that_is_too_low_is_reported(parts, tmp_path):
    fields(parts, "PrimalSide")["value"] -= 1.0
    with pytest.raises(ValueError, match="the best point has an objective of"):
        resumed(tmp_path / "run", parts)


def test_a_stored_bound_that_is_too_high_is_reported(parts, tmp_path):
    fields(parts, "DualSide")["value"] = fields(parts, "PrimalSide")["value"]
    with pytest.raises(ValueError, match="the best point has an error of"):
        resumed(tmp_path / "run", parts)


@pytest.mark.parametrize("drawn", [{"n_blocks": 10**8}, {"drawn": 0}, {"drawn": 10**9}, {"drawn": -1, "n_blocks": -1}])
def test_too_many_blocks_are_reported(drawn, parts, tmp_path):
    """A pass would take hours and use all memory."""
    fields(parts, "KNice").update(drawn)
    with pytest.raises(ValueError, match="draws of"):
        resumed(tmp_path / "run", parts)


def test_numbers_of_blocks_that_are_not_positive_are_reported(parts, tmp_path):
    chosen = parts.header["table"][fields(parts, "SPBCDState")["choices"]["at"]]
    chosen["fields"]["blocks_per_iteration"] = 0
    with pytest.raises(ValueError, match="numbers of blocks are not positive"):
        resumed(tmp_path / "run", parts)


def test_texts_cannot_write_on_the_terminal(parts, tmp_path):
    fields(parts, "RestartedState")["ended"] = "\x1b[2J"
    with pytest.raises(ValueError, match="a text with control characters"):
        resumed(tmp_path / "run", parts)


def test_a_column_is_packed_once(tmp_path):
    """A million copies of a few columns would form a matrix larger than memory."""
    assert stopped_after(2, tmp_path / "run", lasso(), tol=1e-10)
    parts = read(tmp_path / "run")
    table = parts.header["table"]
    packed = next(entry for entry in table if str(entry.get("maker")).endswith("Model.packed"))
    parts.arrays[f"buffer_{table[packed['args'][1]['at']]['array']}"][:] = 3
    write(tmp_path / "run", parts)
    with pytest.raises(ValueError, match="lists something twice"):
        sb.solve(lasso(), tol=1e-10, resume=tmp_path / "run")


def test_many_arrays_in_one_buffer_are_reported(parts, tmp_path):
    """Each array has to be checked."""
    place = len(parts.arrays)
    parts.arrays[f"buffer_{place}"] = np.zeros(20_000)
    entry = {"array": place, "type": "<f8", "shape": [20_000], "strides": [8], "offset": 0}
    parts.header["table"] += [entry] * 2000
    with pytest.raises(ValueError, match="an array outside its buffer"):
        resumed(tmp_path / "run", parts)


def test_only_marked_classes_are_stored():
    class Mine(State):
        pass

    with pytest.raises(TypeError, match=r"cannot hold a .*Mine: mark the class with @stored"):
        graph.freeze(Mine(x=np.zeros(1), y=np.zeros(1)), {})


HURT: dict[str, tuple[Any, dict[str, Any], int]] = {
    "descent": (lasso, {"tol": 1e-8}, 2),
    "blocks": (slow, {"method": "sp-bcd", "tol": 1e-4, "finish": False}, 6),
    "finish": (slow, {"tol": 1e-8}, 15),
    "pdhg": (PROBLEMS["hinge"], {"method": "pdhg", "tol": 1e-4}, 4),
    "admm": (PROBLEMS["lasso"], {"method": "admm"}, 4),
    "alternating": (PROBLEMS["identities"], {"method": "alternating", "tol": 1e-8}, 1),
    "linear program": (PROBLEMS["linear program"], {"method": "r2hpdhg"}, 4),
    "highs": (PROBLEMS["linear program"], {"method": "highs"}, 1),
    "pure-cd": (slow, {"method": "pure-cd", "tol": 1e-4}, 4),
    "tasks": (PROBLEMS["tasks"], {"method": "fista"}, 4),
}


class Endless(BaseException):
    pass


def check_mutated(name: str, seeds: range, folder: Any) -> None:
    """Resume from changed checkpoints: each ends in an error that names the file, or in a true certificate."""
    make, options, writes = HURT[name]
    problem, options = make(), {"max_passes": 2000, "time_limit": 2.0} | options
    expected = sb.solve(problem, **options)
    assert stopped_after(writes, folder / "run", problem, **options)
    whole = read(folder / "run")

    def ring(*_: Any) -> None:
        raise Endless

    before = signal.signal(signal.SIGALRM, ring)
    try:
        for seed in seeds:
            what, changed = mutated(np.random.default_rng([seed, len(name)]), whole)
            write(folder / "changed", changed)
            signal.alarm(30)
            try:
                result = sb.solve(problem, resume=folder / "changed", **options)
            except ValueError as error:
                if "resume=" not in str(error):
                    raise AssertionError(what) from error
            else:
                found = sb.certify(problem, result.x, result.y)
                assert found.primal_value == pytest.approx(result.objective, rel=1e-9, nan_ok=True), what
                assert result.status not in (sb.Status.INFEASIBLE, sb.Status.UNBOUNDED), what
                if result.status is sb.Status.OPTIMAL:
                    assert result.objective == pytest.approx(expected.objective, rel=2 * options.get("tol", 1e-6)), what
            signal.alarm(0)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


needs_alarm = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="needs an alarm, which ends what hangs")


@needs_alarm
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", HURT)
def test_changed_checkpoints(name, tmp_path):
    check_mutated(name, range(8), tmp_path)


@needs_alarm
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", HURT)
def test_a_thousand_changed_checkpoints(name, tmp_path):
    check_mutated(name, range(100, 200), tmp_path)
