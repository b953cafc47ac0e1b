"""Tall data: ``python -m saddleback.bench.tall --folder DIR`` makes the tables of ``docs/scaling.md`` on many rows.

Without a further option there are two tables: fits to Parquet files, which are compared with plain readings of the same
columns, and fits to arrays, whose memory is compared with the size of X. ``--against`` compares with other libraries on
the same arrays, and ``--processes`` measures MPI processes and Dask workers on the same files.

Every fit runs in a separate process, ``--runs`` times; fits of a table take turns, so that other work on the machine
disturbs all of them alike. Tables have the median seconds, with their range. Seconds are those of the fit alone,
without imports. Peak memory is the highest of all runs during the fit, as the operating system reports it (Linux).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import saddleback as sb
from saddleback.common.arrays import Vector
from saddleback.estimators import SparseClassifier, SparseRegressor
from saddleback.estimators.objective import CLASSIFICATION, REGRESSION

QUANTILE, ALPHA, GROUP = 0.9, 1e-3, 5
"""The quantile, the weight of all penalties, and the size of the groups."""

PART_ROWS, GROUP_ROWS = 1_000_000, 200_000
"""Rows of a file, and of a row group in it."""

INFORMATIVE = 10
"""Columns with a coefficient that is not 0."""

THREADS, READAHEAD = 2, 2
"""Threads of a plain reading, and what it reads ahead: less than by default, which took more memory."""

READINGS = 2
"""Plain readings, of which the fastest counts: the first may find the files not yet in memory."""

SHARP, DEFAULT = 1e-9, 1e-6
"""Tolerance of the fit whose lower bound judges all others, and that of estimators by default."""

WARM_UP_ROWS = 2000
"""Rows of a first fit that is not measured, in which libraries compile and load what they need."""

BLOCK_ROWS = 500_000
"""Rows of a block of an array of Dask."""

LIMIT_CODE = -getattr(signal, "SIGALRM", 14)
"""Exit code of a process whose fit took longer than its limit. Windows, which has no such signal, can import this."""


class OnFiles(NamedTuple):
    """A model that is fitted to files with ``columns`` features and a share of the rows of the largest table."""

    loss: str
    penalty: str
    columns: int
    share: float

    @property
    def name(self) -> str:
        """How the model is called in the table."""
        loss = f"quantile {QUANTILE}" if self.loss == "quantile" else self.loss
        return f"{loss} + {'L1' if self.penalty == 'l1' else f'groups of {GROUP}'}"

    def shape(self, rows: int) -> tuple[int, int]:
        """Return the shape of its files, if the largest table has so many rows."""
        return int(rows * self.share), self.columns

    def title(self, rows: int) -> str:
        """Return the name with the shape."""
        return f"{self.name}, {sized(*self.shape(rows))}"


ON_FILES = [OnFiles("quantile", "l1", 20, 1.0)] + [
    OnFiles(loss, penalty, 50, 0.2) for loss in ("logistic", "huber", "hinge") for penalty in ("l1", "group")
]

IN_MEMORY = (1_000_000, 50)
"""Shape of the array on which memory is measured."""

AGAINST_COLUMNS = 10
AGAINST_ROWS: Mapping[str, Sequence[int]] = {"quantile": (100_000, 1_000_000), "logistic": (10_000_000,)}
"""Shapes of the arrays on which libraries are compared, by the loss."""

PROCESSES = (1, 2, 4)
PROCESSES_SHAPE = (20_000_000, 20)
"""Numbers of processes, and the shape of the files that they read."""


def main() -> None:
    """Print the tables that are asked for; or measure one fit, in the process that a table starts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where the files are made and kept (13 GB for 1e8)")
    parser.add_argument("--rows", type=float, default=1e8, help="rows of the largest files; no table has more")
    parser.add_argument("--case", default="", help="only cases whose names contain this")
    parser.add_argument("--against", action="store_true", help="compare with other libraries")
    parser.add_argument("--processes", action="store_true", help="measure several processes")
    parser.add_argument("--runs", type=int, default=3, help="runs of each fit")
    parser.add_argument("--limit", type=float, default=120.0, help="most seconds of a fit of another library")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if sys.platform != "linux":
        parser.error("the peak of memory is read from /proc: expected Linux")
    if chosen.one is not None:
        told = MEASURES[chosen.one[0]](**json.loads(chosen.one[1]))
        if told is not None:
            print(json.dumps(told))
        return
    rows = int(chosen.rows)
    if chosen.against:
        print_against(rows, chosen.case, chosen.limit, chosen.runs)
    if chosen.processes:
        print_processes(chosen.folder, rows, chosen.runs)
    if not chosen.against and not chosen.processes:
        print_files(chosen.folder, rows, chosen.case, chosen.runs)
        print()
        print_memory(rows, chosen.case, chosen.runs)


# Tables


def print_files(folder: Path, rows: int, named: str, runs: int) -> None:
    """Print the table of fits to files."""
    chosen = [model for model in ON_FILES if named in model.name]
    tasks = {
        model.title(rows): {
            "loss": model.loss,
            "penalty": model.penalty,
            "paths": files(folder, *model.shape(rows)),
            "columns": model.columns,
        }
        for model in chosen
    }
    head(
        "fit to files", "seconds", "readings", "gap", "peak, MB", "before the fit, MB", "one reading, s",
        "seconds / (readings x reading)",
    )  # fmt: skip
    for name, told in in_turns("files", tasks, runs).items():
        middle = in_the_middle(told)
        line(
            name,
            span(told),
            f"{middle['readings']:.0f}",
            f"{middle['gap']:.1e}",
            f"{max(run['peak'] for run in told) / 1e6:.0f}",
            f"{max(run['before'] for run in told) / 1e6:.0f}",
            f"{middle['reading']:.2f}",
            f"{median(run['seconds'] / (run['readings'] * run['reading']) for run in told):.2f}",
        )


def print_memory(rows: int, named: str, runs: int) -> None:
    """Print the table of fits to an array."""
    shape = min(rows, IN_MEMORY[0]), IN_MEMORY[1]
    tasks = {loss: {"loss": loss, "shape": shape} for loss in [*REGRESSION, *CLASSIFICATION] if named in loss}
    head(f"fit to an array, {sized(*shape)}, L1", "seconds", "gap", "further memory / size of X")
    for name, told in in_turns("memory", tasks, runs).items():
        further = max(run["further"] for run in told)
        line(name, span(told), f"{in_the_middle(told)['gap']:.1e}", f"{further:.2f}")


def print_against(rows: int, named: str, limit: float, runs: int) -> None:
    """Print the tables of other libraries.

    Errors are relative distances of objectives from a lower bound that our sharpest fit certifies. The ratio of a
    library is that to the fastest of our fits which is at least as accurate; what is below the tolerance of the
    sharpest fit counts as equal.
    """
    for loss, heights in AGAINST_ROWS.items():
        for height in sorted({min(rows, height) for height in heights}):
            shape = height, AGAINST_COLUMNS
            tasks = {
                name: {"library": name, "loss": loss, "shape": shape, "limit": 0.0 if name in OURS else limit}
                for name in LIBRARIES[loss]
                if named in name or name in OURS
            }
            head(f"{loss}, {sized(*shape)}", "seconds", "ratio to ours", "relative error")
            compare(in_turns("against", tasks, runs), limit)
            print()


def compare(runs: Mapping[str, list[dict[str, Any]]], limit: float) -> None:
    """Print a line for each library."""
    bound = max(run["bound"] for name in OURS for run in runs[name])
    own = {name: in_the_middle(runs[name]) for name in OURS}
    for name, told in runs.items():
        stopped = [run for run in told if "failed" in run]
        if stopped:
            late = stopped[0]["failed"] == LIMIT_CODE
            ratio = limit / max(run["seconds"] for run in own.values())
            line(
                name, *([f"more than {limit:.0f}", f"more than {ratio:.0f}"] if late else [stopped[0]["said"], ""]), ""
            )
            continue
        middle = in_the_middle(told)
        error = middle["value"] / bound - 1.0
        as_good = [run["seconds"] for run in own.values() if run["value"] / bound - 1.0 <= max(error, SHARP)]
        ratio = middle["seconds"] / min(as_good)
        line(name, span(told), "" if name in OURS else f"{ratio:.1f}", f"{error:.1e}")


def print_processes(folder: Path, rows: int, runs: int) -> None:
    """Print the table of several processes; ratios are those of one process to several."""
    shape = min(rows, PROCESSES_SHAPE[0]), PROCESSES_SHAPE[1]
    task: dict[str, Any] = {"paths": files(folder, *shape), "columns": shape[1]}
    of_mpi = in_turns("mpi", {str(count): task | {"processes": count} for count in PROCESSES}, runs)
    of_dask = in_turns("dask", {str(count): task | {"workers": count} for count in PROCESSES}, runs)
    title = f"{ON_FILES[0].name}, {sized(*shape)}, processes"
    head(title, "MPI, s", "readings", "ratio", "Dask, s", "readings", "ratio")
    for count in map(str, PROCESSES):
        cells: list[str] = []
        for found in (of_mpi, of_dask):
            one, several = (in_the_middle(found[number]) for number in (str(PROCESSES[0]), count))
            ratio = one["seconds"] / several["seconds"]
            cells += [span(found[count]), f"{several['readings']:.0f}", f"{ratio:.2f}"]
        line(count, *cells)


def in_turns(measure: str, tasks: Mapping[str, dict[str, Any]], runs: int) -> dict[str, list[dict[str, Any]]]:
    """Return what a measure tells on each task in several runs; a task that has failed is not run again."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in tasks}
    for _ in range(runs):
        for name, task in tasks.items():
            if not any("failed" in run for run in found[name]):
                told = in_a_process(measure, **task)
                found[name].append(told)
                print(f"{measure}, {name}: {told}", file=sys.stderr, flush=True)  # kept if a later run fails
    return found


def in_the_middle(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the run with the median seconds."""
    return sorted(runs, key=lambda run: run["seconds"])[(len(runs) - 1) // 2]


def span(runs: Sequence[dict[str, Any]]) -> str:
    """Return the median and the range of the seconds of runs."""
    seconds = sorted(run["seconds"] for run in runs)
    middle = f"{in_the_middle(runs)['seconds']:.2f}"
    return middle if len(runs) == 1 else f"{middle} ({seconds[0]:.2f} to {seconds[-1]:.2f})"


def head(first: str, *others: str) -> None:
    """Print the head of a table, whose columns are numbers except for the first."""
    line(first, *others)
    line("---", *["---:"] * len(others))


def line(*cells: str) -> None:
    """Print a line of a table."""
    print("| " + " | ".join(cells) + " |", flush=True)


def sized(rows: int, columns: int) -> str:
    """Return a shape in words."""
    return f"{rows:,} x {columns}"


def in_a_process(measure: str, processes: int | None = None, **task: Any) -> dict[str, Any]:
    """Return what a measure tells, in a separate process, or in several MPI processes with one thread each.

    If the measure of a library fails, ``failed`` is the exit code, and ``said`` the last line of the error.
    """
    command = [sys.executable, "-m", "saddleback.bench.tall", "--folder", ".", "--one", measure, json.dumps(task)]
    environment = dict(os.environ)
    if processes:
        command = [mpiexec(), "-n", str(processes), *command]
    if measure in ("mpi", "dask"):
        environment["OMP_NUM_THREADS"] = "1"
    told = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if told.returncode == 0:
        found: dict[str, Any] = json.loads(told.stdout.strip().splitlines()[-1])
        return found
    if "library" not in task or task["library"] in OURS:
        raise RuntimeError(f"{measure} {task} has failed:\n{told.stderr}")
    return {"failed": told.returncode, "said": (told.stderr.strip().splitlines() or ["failed"])[-1]}


def mpiexec() -> str:
    """Return the mpiexec of this environment, or that of the system."""
    own = Path(sys.executable).parent / "mpiexec"
    found = str(own) if own.exists() else shutil.which("mpiexec")
    if found is None:
        raise FileNotFoundError("there is no mpiexec: pip install 'saddleback[mpi]'")
    return found


# Data


def some_rows(seed: int, rows: int, columns: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the columns of X, one after the other, and y: linear, + 3, with heavy tails that depend on X."""
    slopes = np.zeros(columns, dtype=np.float32)
    slopes[:INFORMATIVE] = np.random.default_rng(7).standard_normal(INFORMATIVE)[:columns]
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((columns, rows), dtype=np.float32)
    noise = rng.standard_normal(rows, dtype=np.float32)
    noise /= np.sqrt(rng.standard_exponential(rows, dtype=np.float32) + np.float32(0.1))
    y = slopes @ X + np.float32(3.0) + noise * (1 + np.float32(0.3) * np.abs(X[0]))
    return X, y


def files(folder: Path, rows: int, columns: int) -> list[str]:
    """Return the paths of Parquet files with so many rows and columns; those that are missing are made."""
    heights = [min(PART_ROWS, rows - first) for first in range(0, rows, PART_ROWS)]
    paths = []
    for number, height in enumerate(heights):
        path = folder / f"{columns}-columns" / f"part-{number:04d}-{height}-rows.parquet"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            make_file(path, number, height, columns)
        paths.append(str(path))
    return paths


def make_file(path: Path, seed: int, rows: int, columns: int) -> None:
    """Write one file; it gets its name when it is complete."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, y = some_rows(seed, rows, columns)
    named = dict(zip(names(columns), X, strict=True)) | {"y": y, "c": (y > 3).astype(np.int8)}
    part = path.with_suffix(".part")
    pq.write_table(pa.table(named), part, row_group_size=GROUP_ROWS, compression="none", use_dictionary=False)
    part.replace(path)


def names(columns: int) -> list[str]:
    """Return the names of the features."""
    return [f"x{j}" for j in range(columns)]


def an_array(loss: str, rows: int, columns: int) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return X, row by row, and the targets of a loss: numbers, counts or classes."""
    X, y = some_rows(0, rows, columns)
    array = np.empty((rows, columns))
    array[:] = X.T
    if loss in CLASSIFICATION:
        return array, (y > 3).astype(np.int8)
    return array, np.maximum(np.round(y), 0.0).astype(np.float64) if loss == "poisson" else y.astype(np.float64)


# Measures, each in its own process


def measure_files(loss: str, penalty: str, paths: list[str], columns: int) -> dict[str, Any]:
    """Measure a fit to files, and a plain reading just after it: what it leaves in memory does not count then."""
    target = "c" if loss in CLASSIFICATION else "y"
    forget_peak()
    before = in_status("VmRSS")
    told = timed(lambda: model(loss, penalty).fit_files(paths, target, columns=names(columns)))
    peak = in_status("VmHWM")
    reading = min(read_through(paths, [*names(columns), target]) for _ in range(READINGS))
    return told | {"reading": reading, "before": before, "peak": peak}


def measure_memory(loss: str, shape: tuple[int, int]) -> dict[str, Any]:
    """Measure a fit to an array."""
    X, y = an_array(loss, *shape)
    forget_peak()
    before = in_status("VmRSS")
    told = timed(lambda: model(loss).fit(X, y))
    return told | {"further": (in_status("VmHWM") - before) / X.nbytes}


def measure_against(library: str, loss: str, shape: tuple[int, int], limit: float) -> dict[str, Any]:
    """Measure the fit of a library, without a penalty; a positive limit ends the process."""
    warnings.simplefilter("ignore")  # a library may warn; its error is in the table
    fit, (X, y) = LIBRARIES[loss][library], an_array(loss, *shape)
    fit(X[:WARM_UP_ROWS], y[:WARM_UP_ROWS])
    signal.setitimer(signal.ITIMER_REAL, limit)  # the signal ends the process, in compiled code too
    begin = time.perf_counter()
    fitted = fit(X, y)
    seconds = time.perf_counter() - begin
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    value = mean_loss(loss, X @ fitted.coef + fitted.intercept, y)
    return {"seconds": seconds, "value": value, "bound": fitted.bound}


def measure_mpi(paths: list[str], columns: int) -> dict[str, Any] | None:
    """Measure a fit in which each MPI process reads some of the files; the first process tells."""
    from mpi4py import MPI

    team = MPI.COMM_WORLD
    team.Barrier()
    fitted = model("quantile", comm=team, n_jobs=1)
    told = timed(lambda: fitted.fit_files(paths, "y", columns=names(columns)))
    return told if team.rank == 0 else None


def measure_dask(paths: list[str], columns: int, workers: int) -> dict[str, Any]:
    """Measure a fit in which Dask workers read the files."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    addresses = {"dashboard_address": ":0", "worker_dashboard_address": ":0"}
    with LocalCluster(n_workers=workers, threads_per_worker=1, **addresses) as cluster, Client(cluster) as client:
        client.wait_for_workers(workers)
        client.run(importlib.import_module, "saddleback.estimators")
        frame = dd.read_parquet(paths, columns=[*names(columns), "y"])
        return timed(lambda: model("quantile", n_jobs=1).fit(frame, "y"))


MEASURES: Mapping[str, Callable[..., dict[str, Any] | None]] = {
    "files": measure_files,
    "memory": measure_memory,
    "against": measure_against,
    "mpi": measure_mpi,
    "dask": measure_dask,
}


def model(loss: str, penalty: str | None = "l1", **options: Any) -> Any:
    """Return an estimator that has not been fitted."""
    if loss == "quantile":
        options["quantile"] = QUANTILE
    if penalty == "group":
        options["groups"] = GROUP
    kind = SparseClassifier if loss in CLASSIFICATION else SparseRegressor
    return kind(loss=loss, penalty=penalty, alpha=ALPHA, **options)


def timed(fit: Callable[[], Any]) -> dict[str, Any]:
    """Return the seconds of a fit, its readings and its certified gap."""
    begin = time.perf_counter()
    result = fit().result_
    seconds = time.perf_counter() - begin
    if result.status is not sb.Status.OPTIMAL:
        raise RuntimeError(result.message)
    return {"seconds": seconds, "readings": result.passes, "gap": result.relative_gap}


def read_through(paths: list[str], columns: list[str]) -> float:
    """Return the seconds of one plain reading of some columns."""
    import pyarrow as pa
    import pyarrow.dataset

    before = pa.cpu_count()
    pa.set_cpu_count(THREADS)
    ahead = {"batch_readahead": READAHEAD, "fragment_readahead": READAHEAD}
    begin = time.perf_counter()
    for _ in pyarrow.dataset.dataset(paths).to_batches(columns=columns, batch_size=GROUP_ROWS, **ahead):
        pass
    seconds = time.perf_counter() - begin
    pa.set_cpu_count(before)
    return seconds


def in_status(entry: str) -> int:
    """Return an entry of the status of this process, in bytes: VmRSS is its memory, and VmHWM the peak of it."""
    told = next(each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith(entry))
    return 1024 * int(told.split()[1])


def forget_peak() -> None:
    """Let the peak of the memory of this process begin at its present memory."""
    Path("/proc/self/clear_refs").write_text("5")


# Libraries


class Fitted(NamedTuple):
    """What a library has found, and a lower bound of the minimum if it proves one."""

    coef: Vector
    intercept: float
    bound: float | None = None


def mean_loss(loss: str, scores: Vector, y: Vector) -> float:
    """Return the mean loss of scores: what all libraries minimise."""
    if loss == "quantile":
        left = y - scores
        return float(np.mean(np.maximum(QUANTILE * left, (QUANTILE - 1.0) * left)))
    return float(np.mean(np.logaddexp(0.0, np.where(y == 1, -scores, scores))))


def _of_ours(loss: str, tol: float) -> Callable[[Any, Any], Fitted]:
    def fit(X: Any, y: Any) -> Fitted:
        found = model(loss, None, tol=tol).fit(X, y)
        return Fitted(found.coef_.ravel(), float(np.ravel(found.intercept_)[0]), found.certificate_.dual_value)

    return fit


def _of_highs(X: Any, y: Any) -> Fitted:
    from sklearn.linear_model import QuantileRegressor

    found = QuantileRegressor(quantile=QUANTILE, alpha=0.0, solver="highs").fit(X, y)
    return Fitted(found.coef_, float(found.intercept_))


def _of_statsmodels(X: Any, y: Any) -> Fitted:
    regression = importlib.import_module("statsmodels.regression.quantile_regression")
    found = regression.QuantReg(y, np.column_stack([np.ones(y.size), X])).fit(q=QUANTILE).params
    return Fitted(found[1:], float(found[0]))


def _of_pyfixest(method: str) -> Callable[[Any, Any], Fitted]:
    def fit(X: Any, y: Any) -> Fitted:
        columns = names(X.shape[1])
        frame = importlib.import_module("pandas").DataFrame(X, columns=columns).assign(y=y)
        formula = f"y ~ {' + '.join(columns)}"
        quantreg = importlib.import_module("pyfixest").quantreg
        coef = quantreg(formula, frame, quantile=QUANTILE, method=method, vcov=None, seed=0).coef().to_numpy()
        return Fitted(coef[1:], float(coef[0]))

    return fit


def _of_sklearn(X: Any, y: Any) -> Fitted:
    from sklearn.linear_model import LogisticRegression

    found = LogisticRegression(C=np.inf).fit(X, y)
    return Fitted(found.coef_[0], float(found.intercept_[0]))


def _of_dask_ml(solver: str) -> Callable[[Any, Any], Fitted]:
    def fit(X: Any, y: Any) -> Fitted:
        import dask.array as da

        kind = importlib.import_module("dask_ml.linear_model").LogisticRegression
        blocks = [da.from_array(each, chunks=(BLOCK_ROWS, *each.shape[1:])) for each in (X, y)]
        found = kind(solver=solver, C=1e12).fit(*blocks)  # as good as no penalty, which it does not offer
        return Fitted(np.asarray(found.coef_), float(found.intercept_))

    return fit


OURS = (f"saddleback, tol={DEFAULT:.0e}", f"saddleback, tol={SHARP:.0e}")

LIBRARIES: Mapping[str, Mapping[str, Callable[[Any, Any], Fitted]]] = {
    "quantile": {
        **{name: _of_ours("quantile", tol) for name, tol in zip(OURS, (DEFAULT, SHARP), strict=True)},
        "scikit-learn, HiGHS": _of_highs,
        "statsmodels": _of_statsmodels,
        "pyfixest, fn": _of_pyfixest("fn"),
        "pyfixest, pfn": _of_pyfixest("pfn"),
    },
    "logistic": {
        **{name: _of_ours("logistic", tol) for name, tol in zip(OURS, (DEFAULT, SHARP), strict=True)},
        "scikit-learn, lbfgs": _of_sklearn,
        "dask-ml, admm": _of_dask_ml("admm"),
        "dask-ml, lbfgs": _of_dask_ml("lbfgs"),
        "dask-ml, newton": _of_dask_ml("newton"),
    },
}
"""How every library fits a model without a penalty, by the loss and its name."""


if __name__ == "__main__":
    main()
