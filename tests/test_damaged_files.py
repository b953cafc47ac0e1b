"""A damaged file causes one line of error and exit code 2, or is a valid problem; it never causes a traceback."""

from __future__ import annotations

import gzip
import io
import zipfile

import numpy as np
import pytest
from scipy import sparse
from typer.testing import CliRunner

import saddleback as sb
from saddleback.cli import app

FAST, SLOW = range(20), range(20, 300)
LIMITS = ["--no-progress", "--max-passes", "2000", "--time-limit", "5"]

MPS = b"""\
NAME          TINY
ROWS
 N  COST
 L  LIMIT
 G  FLOOR
 E  FIXED
COLUMNS
    X         COST         1.0   LIMIT        1.0
    X         FIXED        1.0
    Y         COST         2.0   LIMIT        1.0
    Y         FLOOR        1.0
    Z         FIXED        1.0
RHS
    RHS       LIMIT        4.0   FLOOR        1.0
    RHS       FIXED        2.0
BOUNDS
 UP BND       X            4.0
 FR BND       Z
ENDATA
"""


def _archive(**arrays) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def _compressed(**arrays) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


A, b = np.random.default_rng(0).standard_normal((4, 3)), np.arange(4.0)
S = sparse.csc_matrix(np.where(A > 0, A, 0.0))
SPARSE = {"format": "csc", "shape": S.shape, "data": S.data, "indices": S.indices, "indptr": S.indptr}
FILES = {
    "dense.npz": _archive(A=A, b=b, alpha=0.1),
    "sparse.npz": _archive(**SPARSE, b=b, alpha=0.1),
    "small.npz": _compressed(A=A, b=b, alpha=0.1, penalty="GroupL2", groups=[1, 2]),
    "tiny.mps": MPS,
    "tiny.mps.gz": gzip.compress(MPS, mtime=0),
}


def _mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """Flip, replace, delete, repeat or insert some bytes."""
    data = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        if not data:
            break
        at, size = int(rng.integers(len(data))), int(rng.integers(1, 9))
        match int(rng.integers(6)):
            case 0:
                data[at] ^= 1 << int(rng.integers(8))
            case 1:
                data[at : at + size] = rng.bytes(size)
            case 2:
                del data[at : at + size]
            case 3:
                data[at:at] = data[at : at + size]
            case 4:
                data[at : at + 1] = rng.choice([b"-", b"9", b" ", b"\n", b"nan", b"1e300", b"\x00"])
            case 5:
                del data[at:]
    return bytes(data)


def _repacked(content: bytes, rng: np.random.Generator) -> bytes:
    """Mutate one member of an archive and write it with a correct checksum."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(stream, "w") as new:
        names = old.namelist()
        chosen = names[int(rng.integers(len(names)))]
        for name in names:
            new.writestr(name, _mutated(old.read(name), rng) if name == chosen else old.read(name))
    return stream.getvalue()


def _run(path, content: bytes):
    path.write_bytes(content)
    return CliRunner().invoke(app, ["solve", str(path), *LIMITS])


def _check(done):
    """Fail on any exception except ``SystemExit``; exit code 1 means that a solve ended at its limit and says so."""
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    if done.exit_code == 2:
        lines = done.stderr.strip().splitlines()
        assert len(lines) == 1
        assert lines[0].startswith("Error: ")
    elif done.exit_code == 1:
        assert "status                MAX_PASSES" in done.stdout or "status                TIME_LIMIT" in done.stdout


def _try(name: str, seeds: range, tmp_path) -> None:
    if ".mps" in name:
        pytest.importorskip("highspy")
    for seed in seeds:
        rng = np.random.default_rng(seed)
        content = FILES[name]
        damaged = _repacked(content, rng) if name.endswith(".npz") and seed % 2 else _mutated(content, rng)
        try:
            _check(_run(tmp_path / name, damaged))
        except AssertionError as error:
            raise AssertionError(f"{name}, seed {seed}: {error}") from error


@pytest.mark.parametrize("name", FILES)
def test_mutated_files(name, tmp_path):
    _try(name, FAST, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_many_mutated_files(name, tmp_path):
    _try(name, SLOW, tmp_path)


@pytest.mark.parametrize("name", FILES)
def test_whole_files_are_solved(name, tmp_path):
    if ".mps" in name:
        pytest.importorskip("highspy")
    assert _run(tmp_path / name, FILES[name]).exit_code == 0


# --- one kind of damage at a time -------------------------------------------------------------------------------------


def _with_member(name: str, content: bytes) -> bytes:
    """Return an archive of a Lasso in which one member is replaced."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(FILES["dense.npz"])) as old, zipfile.ZipFile(stream, "w") as new:
        for own in old.namelist():
            if own != name:
                new.writestr(own, old.read(own))
        new.writestr(name, content)
    return stream.getvalue()


def _npy(header: str, content: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text + content


def _shaped(shape: str, kind: str = "<f8") -> bytes:
    return _npy(f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}", bytes(96))


def _flipped() -> bytes:
    data = bytearray(FILES["dense.npz"])
    data[data.index(A.tobytes()) + 5] ^= 1
    return bytes(data)


def _sparse(**changes) -> bytes:
    return _archive(**(SPARSE | {"b": b, "alpha": 0.1} | changes))


DAMAGE = {
    "a flipped byte": (_flipped(), "'A' in problem.npz cannot be read"),
    "no magic": (_with_member("A.npy", b"hello, this is not an array"), "'A' in problem.npz cannot be read"),
    "no ending": (_with_member("B", b"hello"), "'B' in problem.npz cannot be read"),
    "a damaged header": (_with_member("A.npy", _npy("{'descr': '<f8', (")), "'A' in problem.npz cannot be read"),
    "an endless header": (_with_member("A.npy", b"\x93NUMPY\x01\x00\xff\xff{"), "'A' in problem.npz cannot be read"),
    "a huge shape": (_with_member("A.npy", _shaped("(10000000, 10000000)")), "expected 800000000000000 for the shape"),
    "an overflowing shape": (
        _with_member("A.npy", _shaped("(2**62, 4)".replace("2**62", str(2**62)))),
        "for the shape",
    ),
    "a negative shape": (_with_member("A.npy", _shaped("(-4, 3)")), "'A' in problem.npz has the shape (-4, 3)"),
    "another version": (_with_member("A.npy", _npy("{}", version=b"\x09\x00")), "version 9.0"),
    "objects": (_with_member("A.npy", _shaped("(4, 3)", "|O")), "'A' in problem.npz holds objects"),
    "times": (_with_member("A.npy", _shaped("(4, 3)", "<M8[s]")), "holds entries of type datetime64[s]"),
    "nothing": (b"", "problem.npz cannot be read"),
    "the beginning alone": (FILES["dense.npz"][:300], "problem.npz cannot be read"),
    "sparse and huge": (_sparse(shape=[2**40, 3]), "A has 1099511627776 rows"),
    "sparse and negative": (_sparse(shape=[-4, 3]), "A has the shape (-4, 3)"),
    "sparse and flat": (_sparse(shape=[4]), "'shape' is [4]"),
    "sparse in fractions": (_sparse(shape=[4.0, 3.0]), "'shape' is [4.0, 3.0]"),
    "sparse and falling": (_sparse(indptr=[0, 4, 2, S.nnz]), "A.indptr falls from 4 to 2"),
    "sparse and negative inside": (_sparse(indptr=[0, -1, 2, S.nnz]), "A.indptr falls from 0 to -1"),
    "sparse beyond the end": (_sparse(indptr=[0, 10**7, 10**7, 10**7]), "A.indptr ends with 10000000"),
    "sparse and out of range": (_sparse(indices=S.indices + 10**6), "A.indices has the value"),
    "sparse and short": (_sparse(data=S.data[:-1]), "A.indices has"),
    "a list of formats": (_sparse(format=["csc", "csc"]), "has the format"),
}


@pytest.mark.parametrize(("content", "words"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_named(content, words, tmp_path):
    done = _run(tmp_path / "problem.npz", content)
    _check(done)
    assert done.exit_code == 2
    assert words in done.stderr


def test_a_damaged_compression_is_named(tmp_path):
    pytest.importorskip("highspy")
    done = _run(tmp_path / "tiny.mps.gz", FILES["tiny.mps.gz"][:-20])
    _check(done)
    assert done.exit_code == 2
    assert "tiny.mps.gz cannot be read" in done.stderr


def test_output_files_never_replace_the_problem(tmp_path):
    path = tmp_path / "problem.npz"
    path.write_bytes(FILES["dense.npz"])
    (tmp_path / "link.npz").symlink_to(path)
    same = [tmp_path / "." / "problem.npz", tmp_path / "link.npz"]
    for option in ("--out", "--checkpoint"):
        for target in same:
            done = CliRunner().invoke(app, ["solve", str(path), option, str(target), "--no-progress"])
            assert done.exit_code == 2
            assert f"FILE and {option} are both" in done.stderr
    assert path.read_bytes() == FILES["dense.npz"]


# --- in Python --------------------------------------------------------------------------------------------------------


def test_read_problem_returns_a_problem(tmp_path):
    pytest.importorskip("highspy")
    path = tmp_path / "tiny.mps"
    path.write_bytes(MPS)
    problem = sb.read_problem(path)
    assert isinstance(problem, sb.Problem)
    assert problem.column_names == ("X", "Y", "Z")
    assert problem.row_names == ("LIMIT", "FLOOR", "FIXED")
    result = sb.solve(problem, tol=1e-9)
    assert problem.objective(result.certificate.primal_value) == pytest.approx(2.0)


EMPTY = {
    "an empty file": b"",
    "a negative shape": _shaped("(-4, 3)"),
    "a huge shape": _shaped("(10000000, 10000000)"),
    "a damaged header": _npy("{'descr': '<f8', ("),
    "a flat array": _shaped("(12,)"),
    "no entries": _shaped("(0, 3)"),
}


@pytest.mark.parametrize("content", EMPTY.values(), ids=EMPTY)
def test_errors_of_column_files_name_the_defect(content, tmp_path):
    path = tmp_path / "A.npy"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"A\.npy"):
        sb.ColumnFile(path)


def test_column_files_check_where_columns_begin(tmp_path):
    path = tmp_path / "A.npz"
    for wrong in ([0, 4, 2, S.nnz], [0, -1, 2, S.nnz], [0, 1, 2, 10**7], [1, 1, 2, 3], [0, 1], [0.0, 1.0, 2.0, 3.0]):
        np.savez(path, **(SPARSE | {"indptr": wrong}))
        with pytest.raises(ValueError, match="'indptr' in"):
            sb.ColumnFile(path)
    np.savez(path, **SPARSE)
    np.testing.assert_array_equal(sb.ColumnFile(path)[1:3].toarray(), S.toarray()[:, 1:3])
