"""The tables on tall data, at a size at which they say nothing about speed."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from saddleback.bench import tall

pq = pytest.importorskip("pyarrow.parquet")

linux = pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")


def program(folder, *options):
    """Run the program, and return its tables as lists of cells, without their second lines."""
    command = [sys.executable, "-m", "saddleback.bench.tall", "--folder", str(folder), "--rows", "4e3", "--runs", "1"]
    told = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    tables = [table.splitlines() for table in told.stdout.strip().split("\n\n")]
    return [[[cell.strip() for cell in row.strip("|").split("|")] for row in (t[0], *t[2:])] for t in tables]


@linux
def test_files_and_memory(tmp_path):
    on_files, in_memory = program(tmp_path, "--case", "quantile")
    name, seconds, readings, gap, peak, before, reading, ratio = on_files[1]
    assert name == "quantile 0.9 + L1, 4,000 x 20"
    assert float(gap) <= 1e-6
    assert float(peak) >= float(before) > 10
    assert float(readings) >= 1
    assert min(map(float, (seconds, ratio))) > 0
    assert float(reading) >= 0
    assert [row[0] for row in in_memory] == ["fit to an array, 4,000 x 50, L1", "quantile", "smoothed_quantile"]
    assert float(in_memory[1][2]) <= 1e-6


def test_files_are_made_once_and_shared_by_sizes(tmp_path, monkeypatch):
    monkeypatch.setattr(tall, "PART_ROWS", 1000)
    few = tall.files(tmp_path, 2000, 3)
    times = [tmp_path.joinpath(path).stat().st_mtime_ns for path in few]
    more = tall.files(tmp_path, 2500, 3)
    assert more[:2] == few
    assert [tmp_path.joinpath(path).stat().st_mtime_ns for path in few] == times
    assert [pq.read_metadata(path).num_rows for path in more] == [1000, 1000, 500]
    table = pq.read_table(more[0])
    assert table.column_names == ["x0", "x1", "x2", "y", "c"]
    assert np.array_equal(table["c"].to_numpy() == 1, table["y"].to_numpy() > 3)
    assert not list(tmp_path.rglob("*.part"))


def test_all_libraries_minimise_the_mean_loss():
    X, y = tall.an_array("quantile", 500, 3)
    found = tall.LIBRARIES["quantile"][tall.OURS[1]](X, y)
    value = tall.mean_loss("quantile", X @ found.coef + found.intercept, y)
    assert found.bound <= value * (1 + 1e-12)
    assert value == pytest.approx(found.bound, rel=1e-8)
    X, y = tall.an_array("logistic", 500, 3)
    bound = tall.LIBRARIES["logistic"][tall.OURS[1]](X, y).bound
    other = tall.LIBRARIES["logistic"]["scikit-learn, lbfgs"](X, y)
    assert tall.mean_loss("logistic", X @ other.coef + other.intercept, y) == pytest.approx(bound, rel=1e-5)


def test_ratios_are_to_our_fit_of_the_same_accuracy(capsys):
    def run(seconds, value):
        return [{"seconds": seconds, "value": value, "bound": 1.0}]

    ours = dict(zip(tall.OURS, (run(1.0, 1 + 1e-7), run(2.0, 1 + 1e-10)), strict=True))
    others = {
        "rough": run(6.0, 1.01),
        "sharp": run(6.0, 1 + 1e-11),
        "late": [{"failed": tall.LIMIT_CODE, "said": ""}],
        "missing": [{"failed": 1, "said": "No module named 'missing'"}],
    }
    tall.compare(ours | others, 60.0)
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| rough | 6.00 | 6.0 | 1.0e-02 |",
        "| sharp | 6.00 | 3.0 | 1.0e-11 |",
        "| late | more than 60 | more than 30 |  |",
        "| missing | No module named 'missing' |  |  |",
    ]


def test_the_median_run_is_told():
    runs = [{"seconds": seconds} for seconds in (3.0, 1.0, 2.0)]
    assert tall.span(runs) == "2.00 (1.00 to 3.00)"
    assert tall.span(runs[:1]) == "3.00"


@linux
@pytest.mark.slow
def test_a_library_that_takes_too_long_is_stopped(tmp_path):
    tables = program(tmp_path, "--against", "--case", "scikit-learn", "--limit", "1e-5")
    assert len(tables) == 2
    for _, default, sharp, other in tables:
        assert float(default[3]) <= 1e-6
        assert float(sharp[3]) <= 1e-9
        assert other[1].startswith("more than")


@linux
@pytest.mark.slow
def test_processes(tmp_path):
    pytest.importorskip("mpi4py")
    pytest.importorskip("distributed")
    [[_, *rows]] = program(tmp_path, "--processes")
    assert [row[0] for row in rows] == ["1", "2", "4"]
    assert all(float(cell) > 0 for row in rows for cell in row)
