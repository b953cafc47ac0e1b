"""The benchmarks in benchopt's format: they run, and no solver finds a lower value than ours."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest

pytest.importorskip("benchopt", reason="benchopt is not installed")

from benchopt.benchmark import Benchmark
from benchopt.utils.parametrized_name_mixin import product_param

FOLDER = Path(__file__).parent.parent / "benchopt"
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/objective.py"))
TOL = 1e-8


def instances(cls, parameters):
    return [cls.get_instance(**each) for each in product_param(parameters)]


def problems(benchmark):
    """Every objective on every small data set."""
    (data,) = benchmark.get_datasets()
    for dataset in instances(data, data.test_parameters):
        for objective in instances(benchmark.get_benchmark_objective(), benchmark.get_benchmark_objective().parameters):
            objective.set_data(**dataset.get_data())
            yield objective


def value(objective, solver):
    """The objective at the solver's answer, None if it does not treat the problem."""
    given = objective.get_objective()
    skipped, _ = solver.skip(**given)
    if skipped:
        return None
    solver.set_objective(**given)
    if solver.sampling_strategy == "callback":
        steps = iter(range(3000))
        solver.run(lambda: next(steps, None) is not None)
    else:
        solver.run(TOL)
    return objective.evaluate_result(**solver.get_result())["value"]


@pytest.mark.parametrize("name", NAMES)
def test_our_value_is_the_lowest(name):
    benchmark = Benchmark(FOLDER / name)
    ours, others = [], []
    for solver in benchmark.get_solvers():
        # skglm compiles for many seconds: it runs in the slow test below
        (ours if solver.name == "saddleback" else others if solver.name != "skglm" else []).append(solver)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of other libraries
        for objective in problems(benchmark):
            start = objective.evaluate_result(**objective.get_one_result())["value"]
            best = value(objective, *(instances(ours[0], ours[0].parameters)))
            assert best < start
            found = [value(objective, peer) for cls in others for peer in instances(cls, cls.parameters)]
            found = [each for each in found if each is not None]
            assert found, f"no peer of {name} treats {objective}"
            assert best <= min(found) * (1 + 1e-6)
            assert min(found) <= best * (1 + 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_benchopt_runs(name, tmp_path):
    """With benchopt's own command, on small data, with all solvers."""
    import pandas as pd

    benchmark = Benchmark(FOLDER / name)
    (data,) = benchmark.get_datasets()
    small = [str(dataset) for dataset in instances(data, data.test_parameters)]
    options = [
        "--no-plot",
        "--no-cache",
        "--max-runs",
        "3",
        "--timeout",
        "60",
        "--output",
        str(tmp_path / "out.parquet"),
    ]
    command = [sys.executable, "-m", "benchopt", "run", str(FOLDER / name), *options]
    subprocess.run([*command, *(part for each in small for part in ("-d", each))], check=True)
    curves = pd.read_parquet(tmp_path / "out.parquet")
    assert {solver.name for solver in benchmark.get_solvers()} <= {each.split("[")[0] for each in curves["solver_name"]}
