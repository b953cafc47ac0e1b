"""Rows that MPI processes read together have the sums of all rows, on every process.

Run as a program, ``mpiexec -n N python test_tall_mpi.py``, this file does what its tests look at.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from saddleback.places.mpi.communicator import SERIAL, communicator_of
from saddleback.tall.rows import ArrayRows, Rows
from saddleback.tall.spread import Joined, Spread, share

BESIDE = Path(sys.executable).parent / "mpiexec"
MPIEXEC = str(BESIDE) if BESIDE.exists() else shutil.which("mpiexec")
needs_mpi = pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")

ROWS, COLUMNS = 230, 3


def table(rows=ROWS, seed=0):
    """Multiples of 1/8, whose sums are exact in any order."""
    rng = np.random.default_rng(seed)
    return rng.integers(-40, 40, (rows, COLUMNS)) / 8, rng.integers(0, 9, rows) / 4, rng.integers(1, 5, rows) / 2


class Short(ArrayRows):
    """The rows of an array in chunks of given heights."""

    def __init__(self, heights, X, *data):
        super().__init__(X, *data)
        self._starts = np.append(0, np.cumsum(heights)).astype(int)
        self.lengths = tuple(heights)


HEIGHTS = (40, 20, 50, 10, 30, 40, 40)


@dataclass(frozen=True)
class Moments:
    """Sums over rows, and lists of what was visited."""

    gram: np.ndarray
    sums: np.ndarray
    chunks: list
    rows: list

    def __add__(self, other):
        return Moments(
            self.gram + other.gram, self.sums + other.sums, self.chunks + other.chunks, self.rows + other.rows
        )

    @classmethod
    def of(cls, chunk):
        rows = list(range(chunk.first, chunk.first + len(chunk)))
        weighted = chunk.X * chunk.weight[:, None]
        return cls(chunk.X.T @ weighted, weighted.T @ chunk.target, [chunk.number], rows)

    def plain(self):
        return [self.gram.tolist(), self.sums.tolist(), self.chunks, self.rows]


def finite(chunk):
    """Visit a chunk that should have no NaN."""
    if np.isnan(chunk.X).any():
        raise ValueError(f"X has a NaN in chunk {chunk.number}")
    return Moments.of(chunk)


class TwoPartsError(Exception):
    """An error that cannot be pickled as it is."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def odd_failure(chunk):
    raise TwoPartsError("here", "there")


class Stuck:
    """Something that cannot be added up."""

    def __add__(self, other):
        raise ValueError("sums of different shapes")


def stuck(chunk):
    return Stuck()


def message(task):
    """Return the type and the message of the error of a task."""
    try:
        task()
    except Exception as error:
        return [type(error).__name__, str(error), str(error.__cause__)]
    return None


# What the processes do


def program(team):
    X, target, weight = table()
    whole = Short(HEIGHTS, X, target, weight)
    spread = Spread(whole, team)
    told = {"spread": spread.read(Moments.of).plain(), "some": spread.read_some(Moments.of, [5, 1]).plain()}
    told["own"] = list(spread.own)
    told["outside"] = spread.chunk(6).X.tolist()

    bounds = np.append(0, np.cumsum(HEIGHTS))
    first, end = (len(HEIGHTS) * rank // team.size for rank in (team.rank, team.rank + 1))
    part = slice(bounds[first], bounds[end])
    mine = Short(HEIGHTS[first:end], X[part], target[part], weight[part])
    joined = Joined(mine, team)
    told["joined"] = joined.read(Moments.of).plain()
    told["lengths"] = joined.lengths
    told["place"] = joined.place(joined.own[-1], 5)

    last_alone = Joined(mine if team.rank == team.size - 1 else None, team)
    told["last alone"] = last_alone.read(Moments.of).plain()
    without = Joined(ArrayRows(X[:0], target[:0], weight[:0]) if team.rank else whole, team)
    told["without"] = without.read(Moments.of).plain()
    told["few chunks"] = Spread(Short((230,), X, target, weight), team).read(Moments.of).plain()

    X[155, 1] = np.nan  # in chunk 5
    told["nan"] = message(lambda: spread.read(finite))
    told["odd"] = message(lambda: spread.read(odd_failure))
    told["stuck"] = message(lambda: spread.read(stuck))
    told["after"] = spread.read_some(Moments.of, range(5)).plain()
    told["nothing"] = message(lambda: spread.read_some(Moments.of, []))
    told["no rows"] = message(lambda: Joined(None, team))
    told["empty"] = message(lambda: Spread(ArrayRows(X[:0], target[:0]), team))
    if team.size > 1:
        names = ("a", "b", "c") if team.rank else ("a", "c", "b")
        told["names"] = message(lambda: Joined(ArrayRows(X, target, weight, names), team))
        told["other rows"] = message(lambda: Spread(ArrayRows(X[team.rank :], target[team.rank :]), team))
        told["elsewhere"] = message(lambda: joined.chunk((joined.own.stop) % len(HEIGHTS)))
    return told


def failing(team):
    """Fail on one process while the others read."""
    X, target, weight = table()
    with team:
        if team.rank == 1:
            raise OSError("the disk of rank 1 is gone")
        Spread(ArrayRows(X, target, weight), team).read(Moments.of)


def interrupted(chunk):
    if chunk.number == 6:
        raise KeyboardInterrupt("stopped by hand")
    return Moments.of(chunk)


def stopping(team):
    """Stop on one process by what is no error of a visit."""
    with team:
        Spread(Short(HEIGHTS, *table()), team).read(interrupted)


# Tests


def start(processes, name, timeout=120):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "OMPI", "PMIX"))}
    return subprocess.run(
        [MPIEXEC, "-n", str(processes), sys.executable, __file__, name],
        capture_output=True, text=True, timeout=timeout, env=environment, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module", params=[1, 2, 4, pytest.param(5, marks=pytest.mark.slow)])
def told(request):
    """What all processes tell."""
    if MPIEXEC is None:
        pytest.skip("no mpiexec")
    done = start(request.param, "program")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


def expected(**changes):
    data = dict(zip(("X", "target", "weight"), table(), strict=True)) | changes
    return Short(HEIGHTS, *data.values()).read(Moments.of).plain()


def test_the_sum_is_that_of_all_rows_on_every_process(told):
    for of_one in told:
        assert of_one["spread"] == of_one["joined"] == of_one["without"] == expected()
        assert of_one["few chunks"][:2] == expected()[:2]
        assert of_one["lengths"] == list(HEIGHTS)


def test_chunks_are_divided_in_order(told):
    assert [number for of_one in told for number in of_one["own"]] == list(range(len(HEIGHTS)))
    X, _, _ = table()
    assert all(of_one["outside"] == X[190:].tolist() for of_one in told)


def test_some_chunks_only(told):
    for of_one in told:
        assert sorted(of_one["some"][2]) == [1, 5]
        assert sorted(of_one["some"][3]) == [*range(40, 60), *range(150, 190)]


def test_processes_without_rows_take_part(told):
    first = len(HEIGHTS) * (len(told) - 1) // len(told)
    X, target, weight = (column[sum(HEIGHTS[:first]) :] for column in table())
    alone = Short(HEIGHTS[first:], X, target, weight).read(Moments.of).plain()
    assert all(of_one["last alone"] == alone for of_one in told)


def test_an_error_of_one_process_is_raised_on_all(told):
    for of_one in told:
        kind, said, cause = of_one["nan"]
        assert (kind, said) == ("ValueError", "X has a NaN in chunk 5")
        kind, said, _ = of_one["odd"]
        assert "here and there" in said
        assert kind == ("TwoPartsError" if len(told) == 1 else "RuntimeError")
        assert of_one["stuck"][:2] == ["ValueError", "sums of different shapes"]
        if len(told) > 1:
            owner = next(rank for rank, other in enumerate(told) if 5 in other["own"])
            assert f"process {owner} of {len(told)} has failed" in cause
            assert "in finite" in cause  # the traceback there


def test_reading_goes_on_after_an_error(told):
    whole = Short(HEIGHTS, *table())
    assert all(of_one["after"] == whole.read_some(Moments.of, range(5)).plain() for of_one in told)


def test_what_cannot_be_read_is_refused_on_all(told):
    for rank, of_one in enumerate(told):
        assert of_one["nothing"][1] == "no chunk was named to read: expected at least one"
        assert of_one["no rows"][1] == of_one["empty"][1] == "X has no rows on any process: expected at least one"
        if len(told) > 1:
            assert "the columns a, c, b on process 0, and a, b, c on process 1" in of_one["names"][1]
            assert "other chunks on process 1 than on the first process" in of_one["other rows"][1]
            assert f"lies with another process, not with process {rank}" in of_one["elsewhere"][1]


def test_the_place_of_a_row_is_that_on_its_process(told):
    for rank, of_one in enumerate(told):
        chunks = HEIGHTS[len(HEIGHTS) * rank // len(told) : len(HEIGHTS) * (rank + 1) // len(told)]
        assert of_one["place"] == f"row {sum(chunks[:-1]) + 5} of process {rank}"


@needs_mpi
@pytest.mark.slow  # the grace of the team, five seconds each
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("failing", "rank 1 of 2 has failed (OSError: the disk of rank 1 is gone)"),
        ("stopping", "rank 1 of 2 has failed (KeyboardInterrupt: stopped by hand)"),
    ],
)
def test_a_process_that_does_not_come_to_the_sum_ends_all(name, said):
    done = start(2, name)
    assert done.returncode != 0
    assert said in done.stderr


def test_a_process_alone_reads_as_without_a_team():
    rows: Rows = Short(HEIGHTS, *table())
    assert Spread(rows, SERIAL).read(Moments.of).plain() == Joined(rows, SERIAL).read(Moments.of).plain() == expected()
    assert Spread(rows, SERIAL).place(1, 2) == "row 42"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 40])
def test_shares_are_contiguous_and_about_equal(size, rng):
    for lengths in ([1], [5] * 40, [3, 0, 4, 0, 0], rng.integers(1, 100, 200).tolist()):
        shares = [share(lengths, rank, size) for rank in range(size)]
        assert [number for one in shares for number in one] == list(range(len(lengths)))
        rows = [sum(lengths[number] for number in one) for one in shares]
        assert max(rows) <= sum(lengths) / size + max(lengths)
        assert min(rows) >= sum(lengths) / size - max(lengths)


if __name__ == "__main__":
    from mpi4py import MPI

    TEAM = communicator_of(MPI.COMM_WORLD)
    found = TEAM.all(globals()[sys.argv[1]](TEAM))
    if TEAM.rank == 0:
        print("\n" + json.dumps(found), flush=True)
