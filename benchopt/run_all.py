"""Run every benchmark of this folder and print its table: ``python benchopt/run_all.py [NAME ...]``.

A table has the seconds after which a solver was within 1e-3 and 1e-6 of the best value that any of them found, relative
to that value. It is written in Markdown, to be pasted into docs/benchopt.md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

HERE = Path(__file__).parent
LEVELS = (1e-3, 1e-6)


def names() -> list[str]:
    return sorted(path.parent.name for path in HERE.glob("*/objective.py"))


def run(name: str, timeout: int, points: int) -> pd.DataFrame:
    """Run one benchmark with benchopt, and return its curves."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "curves.parquet"
        options = [
            "--no-plot",
            "--no-cache",
            "--timeout",
            str(timeout),
            "--max-runs",
            str(points),
            "--output",
            str(output),
        ]
        command = [sys.executable, "-m", "benchopt", "run", str(HERE / name), *options]
        subprocess.run(command, check=True, stdout=sys.stderr)
        return pd.read_parquet(output)


def seconds_to(curve: pd.DataFrame, value: float) -> float | None:
    """Return the time of the first point at or below a value."""
    reached = curve.loc[curve["objective_value"] <= value, "time"]
    return None if reached.empty else float(reached.min())


def parameters(name: str) -> str:
    """Return the parameters in a name of benchopt, such as ``simulated[n_features=20]``."""
    return name.partition("[")[2].rstrip("]").replace(",", ", ")


def table(curves: pd.DataFrame) -> str:
    """Return the table of one benchmark in Markdown."""
    lines = ["| problem | solver | " + " | ".join(f"{level:g}" for level in LEVELS) + " |"]
    lines.append("| --- | --- |" + " --- |" * len(LEVELS))
    for (data, objective), problem in curves.groupby(["dataset_name", "objective_name"]):
        best = problem["objective_value"].min()
        for solver, curve in problem.groupby("solver_name"):
            times = [seconds_to(curve, best + level * abs(best)) for level in LEVELS]
            cells = " | ".join("-" if time is None else f"{time:.2g} s" for time in times)
            lines.append(f"| {', '.join(map(parameters, (data, objective)))} | {solver} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks; all of them by default")
    parser.add_argument("--points", type=int, default=100, help="points on the curve of a solver")
    parser.add_argument("--timeout", type=int, default=60, help="seconds per solver and problem")
    given = parser.parse_args()
    for name in given.names or names():
        print(f"\n### {name}\n\n{table(run(name, given.timeout, given.points))}", flush=True)


if __name__ == "__main__":
    main()
