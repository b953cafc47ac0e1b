"""The command line: ``saddleback demo``, ``solve``, ``fit``, ``reproduce`` and ``bench``.

Exit codes: 0 for a certified solution, 1 if a run ended without one, 2 for bad input, 3 if it is proved that there is
no solution.
"""

from __future__ import annotations

import json
import math
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, NoReturn

import numpy as np
import typer

import saddleback as sb

from .bench import runner
from .bench.case import Settings
from .bench.report import Row, ratio_rows
from .common.outputs import check_outputs, replacing, replacing_text
from .datasets import make_group_hinge, make_lasso
from .fit_command import LOSSES, PENALTIES_OF_FILES, Fit, check_report, check_table, print_model, told, write_table
from .io.problem_files import check_ending, read_together, write_solution
from .places.mpi.communicator import communicator_of, world
from .reproduce import EXPERIMENTS
from .reproduce import runner as reproduction
from .reproduce.experiment import Settings as ReproduceSettings
from .reproduce.tables import print_table
from .result import ray_support

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown"
)

PICTURE = "saddleback-demo.png"

Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"saddleback {sb.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Large, non-smooth, separable convex optimisation with a certificate on every result."""


# --- demo -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Example:
    """A problem of the demonstration."""

    name: str
    size: str
    problem: sb.Problem
    tol: float


def examples() -> Iterator[Example]:
    """Yield the problems of the demonstration; each is made when it is needed."""
    sites = make_group_hinge(5000)
    yield Example(
        "group hinge",
        "5000 x 2604, sparse",
        sb.Problem(sb.GroupL2(3e-3, sites.groups), sites.A, sb.Hinge(sites.labels, scale=1 / 5000)),
        1e-4,
    )
    data = make_lasso(1000, 5000, 500)
    yield Example(
        "Lasso",
        "1000 x 5000, dense",
        sb.Problem(sb.L1(data.alpha), data.A, sb.Squared(data.b)),
        1e-6,
    )


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help=f"Folder for the picture, {PICTURE}.")] = Path("."),
    as_json: Json = False,
) -> None:
    """Solve a group-hinge classifier and a Lasso on generated data, certify both, and draw their errors."""
    with _input_errors():
        out.mkdir(parents=True, exist_ok=True)
    runs: list[tuple[Example, sb.Result]] = []
    for example in examples():
        if not as_json:
            typer.echo(f"{example.name} ({example.size}), to a certified {example.tol:.0e}")
        runs.append((example, sb.solve(example.problem, tol=example.tol, progress=not as_json)))
    picture = _draw(runs, out / PICTURE)
    if as_json:
        summaries = [{"name": example.name, "size": example.size, **_summary(result)} for example, result in runs]
        _print_json({"runs": summaries, "picture": None if picture is None else str(picture)})
    else:
        _print_table(runs)
        if picture is None:
            typer.echo("No picture was drawn: pictures need matplotlib (pip install 'saddleback[plot]').")
        else:
            typer.echo(f"The certified gaps on the way are drawn in {picture}.")
    _exit_by_status(*(result for _, result in runs))


def _print_table(runs: list[tuple[Example, sb.Result]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Certificates: every optimum lies between dual and primal value")
    table.add_column("problem", no_wrap=True)
    for heading in ("status", "primal", "dual", "gap", "passes", "seconds"):
        table.add_column(heading, justify="right")
    for example, result in runs:
        c = result.certificate
        table.add_row(
            example.name,
            result.status.name,
            f"{c.primal_value:.7g}",
            f"{c.dual_value:.7g}",
            f"{c.relative_gap:.1e}",
            f"{result.passes:.0f}",
            f"{result.seconds:.2f}",
        )
    Console().print(table)


def _draw(runs: list[tuple[Example, sb.Result]], path: Path) -> Path | None:
    """Draw the certified gaps against the work and return where, or None without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for example, result in runs:
        gap = result.history.relative_gap
        # the first bound may be infinite, which a logarithmic axis cannot show
        shown = np.isfinite(gap) & (gap > 0)
        axes.loglog(result.history.passes[shown], gap[shown], marker=".", label=example.name)
    axes.set_xlabel("passes over the columns")
    axes.set_ylabel("certified relative gap")
    axes.grid(alpha=0.3)
    axes.legend()
    with replacing(path) as stream:
        figure.savefig(stream, format="png", dpi=150)
    return path


# --- solve ------------------------------------------------------------------------------------------------------------


@app.command()
def solve(
    file: Annotated[Path, typer.Argument(help="A problem: .npz, .mps or .mps.gz.", show_default=False)],
    tol: Annotated[
        float, typer.Option(help="Largest error of an optimal certificate; with 0 a run ends at a limit.")
    ] = 1e-6,
    max_passes: Annotated[float, typer.Option(help="Most work, in passes over the columns.")] = 10_000,
    time_limit: Annotated[float | None, typer.Option(help="Most wall time, in seconds.", show_default="none")] = None,
    method: Annotated[str, typer.Option(help=f"One of {', '.join(sb.methods())}.")] = "auto",
    out: Annotated[
        Path | None, typer.Option(help="Where to write x and y: .npz, or .csv with names.", show_default="nowhere")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="File to store the run in, for --resume.", show_default="nowhere")
    ] = None,
    checkpoint_every: Annotated[float, typer.Option(help="Seconds between checkpoints.")] = 60.0,
    resume: Annotated[
        Path | None, typer.Option(help="File of --checkpoint to continue from.", show_default="none")
    ] = None,
    as_json: Json = False,
    progress: Annotated[bool, typer.Option(help="Show a progress bar.")] = True,
) -> None:
    """Solve the problem in a file and certify the answer.

    Under mpiexec, as in mpiexec -n 4 saddleback solve FILE, the processes solve it together, and each reads its own
    columns of an .npz file.

    An .npz file has a matrix A (or what scipy.sparse.save_npz writes), the names of a loss and a penalty (Squared
    and L1 by default) and their arguments by name: np.savez("lasso.npz", A=A, b=b, alpha=0.1).

    An .mps file is a linear program. The objective is printed in its own sense; x and y are those of the
    minimisation.

    The exit code is 0 for a certified solution, 1 without one, 2 for bad input, and 3 if it is proved that there is
    none.
    """
    with _input_errors():
        comm = world()
    aloud = comm is None or comm.rank == 0
    with _input_errors(aloud), communicator_of(comm) as team:
        if team.rank == 0:
            check_ending(out)
            check_outputs({"--out": out, "--checkpoint": checkpoint}, {"FILE": [file]})
            check_outputs({"--out": out}, {"--resume": [] if resume is None else [resume]})
        loaded = read_together(file, team)
    with _input_errors(aloud, _as_typed):
        result = sb.solve(
            loaded,
            method,
            tol,
            max_passes,
            time_limit,
            progress=progress and not as_json,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            resume=resume,
            comm=comm,
        )
    if out is not None:
        with _input_errors(aloud):
            write_solution(out, loaded, result, team)
    result = replace(result, message=_as_typed(result.message, advice=True))
    objective = loaded.objective(result.objective) if result.ray is None else None
    if team.rank > 0:
        _exit_by_status(result)
    if as_json:
        summary = {"file": str(file), **_summary(result), "objective": objective}
        _print_json({**summary, "out": None if out is None else str(out)})
    else:
        _print_result(result, objective)
    _exit_by_status(result)


ARGUMENTS = [name for name in signature(sb.solve).parameters if name in signature(solve).parameters]
OTHERS = [name for name in signature(sb.solve).parameters if name not in ARGUMENTS]
"""Arguments of ``saddleback.solve`` that are options of the command line too, and those that are not."""

BARE = [name for name in ARGUMENTS if name == "tol" or "_" in name]
"""Names that are not English words, which can be replaced anywhere in a message."""


def _as_typed(text: str, advice: bool = False) -> str:
    """Return a message of the library with the names of the command line: ``tol=0`` becomes ``--tol 0``.

    Sentences of advice on arguments that are no options of the command line are left out.
    """
    if advice:
        sentences = re.split(r"(?<=\.) (?=[A-Z])", text)
        text = " ".join(each for each in sentences if not re.search(rf"\b({'|'.join(OTHERS)})=", each))
    text = re.sub(rf"(?<![\w/.'-])({'|'.join(ARGUMENTS)})= ?", lambda found: f"{_flag(found[1])} ", text)
    return re.sub(rf"(?<![\w/.'-])({'|'.join(BARE)})(?![\w/'=-])", lambda found: _flag(found[1]), text)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _print_result(result: sb.Result, objective: float | None) -> None:
    c = result.certificate
    if objective is None:
        figures = {"ray": ray_support(result)}
    else:
        figures = {
            "objective": f"{objective:.10g}",
            "relative gap": f"{c.relative_gap:.2e}",
            "primal infeasibility": f"{c.primal_infeasibility:.2e}",
            "dual infeasibility": f"{c.dual_infeasibility:.2e}",
        }
    lines = {
        "status": result.status.name,
        **figures,
        "passes": f"{result.passes:.0f}",
        "seconds": f"{result.seconds:.2f}",
        "method": result.method,
    }
    for name, value in lines.items():
        typer.echo(f"{name:<22}{value}")
    typer.echo(result.message)


# --- fit -------------------------------------------------------------------------------------------------------------


@app.command()
def fit(
    files: Annotated[
        list[str],
        typer.Argument(help="A CSV file; or Parquet or Arrow files, folders or patterns.", show_default=False),
    ],
    target: Annotated[str, typer.Option(help="Name of the column with the targets.", show_default=False)],
    loss: Annotated[str, typer.Option(help=f"One of {', '.join(LOSSES)}.")] = "squared",
    quantile: Annotated[float | None, typer.Option(help="The quantile of loss quantile.", show_default="0.5")] = None,
    expectile: Annotated[
        float | None, typer.Option(help="The expectile of loss expectile.", show_default="0.5")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Residual up to which loss huber is quadratic.", show_default="1")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Residual up to which loss epsilon_insensitive is 0.", show_default="0.1")
    ] = None,
    power: Annotated[
        float | None, typer.Option(help="The power of loss tweedie, between 1 and 2.", show_default="1.5")
    ] = None,
    penalty: Annotated[str, typer.Option(help=f"One of {', '.join(PENALTIES_OF_FILES)}.")] = "l1",
    alpha: Annotated[
        float | None,
        typer.Option(help="Weight of the penalty.", show_default="by cross-validation for a CSV file, otherwise 0.01"),
    ] = None,
    l1_ratio: Annotated[
        float | None, typer.Option(help="Share of the L1 norm in penalty elasticnet.", show_default="0.5")
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="Name of the column with the weights of the rows.", show_default="none")
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="A column to use; may be repeated.", show_default="all others")
    ] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(help="A column of a CSV file whose numbers are categories; may be repeated.", show_default="none"),
    ] = None,
    tol: Annotated[
        float, typer.Option(help="Largest error of an optimal certificate; with 0 a run ends at a limit.")
    ] = 1e-6,
    time_limit: Annotated[float | None, typer.Option(help="Most wall time, in seconds.", show_default="none")] = None,
    report: Annotated[
        Path | None, typer.Option(help="Where to write a page on the fit to a CSV file: .html.", show_default="nowhere")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where to write the coefficients: .csv or .json.", show_default="nowhere")
    ] = None,
    as_json: Json = False,
    progress: Annotated[bool, typer.Option(help="Show the readings.")] = True,
) -> None:
    """Fit a linear model to a CSV file, or to tables in files that are read a few times and need not fit into memory.

    Columns of text or categories become one feature per value. Under mpiexec the processes share the reading.

    The exit code is 0 for a certified solution, 1 without one, and 2 for bad input.
    """
    with _input_errors():
        comm = world()
    aloud = comm is None or comm.rank == 0
    parameters = {
        "quantile": quantile,
        "expectile": expectile,
        "delta": delta,
        "epsilon": epsilon,
        "power": power,
        "l1_ratio": l1_ratio,
    }
    asked = Fit(files, target, weights, column, loss, penalty, alpha, parameters, tol, time_limit, category or [])
    with _input_errors(aloud), _quiet_warnings():
        check_table(out)
        check_report(report, asked)
        check_outputs({"--out": out, "--report": report}, {"FILES": files})
        if asked.of_text:
            clock = asked.clock()
            table = asked.table(comm)
            X = np.column_stack(list(table.features.values()))
            model = asked.fitted_to(table, X, clock)
        else:
            model = asked.fitted(comm, progress and not as_json)
    results = model.result_ if isinstance(model.result_, list) else [model.result_]
    if aloud and as_json:
        _print_json(
            told(model)
            | {name: None if path is None else str(path) for name, path in (("out", out), ("report", report))}
        )
    elif aloud:
        print_model(model)
    if aloud and out is not None:  # after printing, so that a full disk does not lose the fit
        with _input_errors():
            write_table(out, model)
    if report is not None:  # last, so that no error in a picture loses the fit
        with _input_errors(), _quiet_warnings():
            page = asked.report(model.set_params(time_limit=clock.share()), table, X, ["saddleback", *sys.argv[1:]])
            with replacing_text(report) as stream:
                stream.write(page)
    if report is not None and not as_json:
        typer.echo(f"The report is {report}.")
    _exit_by_status(*results)


@contextmanager
def _quiet_warnings() -> Iterator[None]:
    """Leave out the warning of a fit that ended without a certificate: its message is printed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# --- reproduce --------------------------------------------------------------------------------------------------------


@app.command()
def reproduce(
    experiment: Annotated[str, typer.Argument(help=f"One of {', '.join(EXPERIMENTS)}, or all.", show_default=False)],
    quick: Annotated[bool, typer.Option(help="Small sizes and one run: everything in minutes.")] = False,
    runs: Annotated[int, typer.Option(help="Runs, each with its own seed; one with --quick.")] = 10,
    data: Annotated[
        Path | None, typer.Option(help="Folder with real data; simulated without.", envvar="SADDLEBACK_DATA")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for a CSV of every table and a PNG of every figure.")] = Path("."),
    as_json: Json = False,
) -> None:
    """Repeat the experiments of the paper that the method comes from, next to the figures that it printed.

    On one core, as in the paper. The full size of rpca takes hours, the others up to an hour.
    """
    with _input_errors():
        if experiment != "all" and experiment not in EXPERIMENTS:
            raise ValueError(f"experiment {experiment!r}: expected one of {', '.join(EXPERIMENTS)}, or all")
        if runs < 1:
            raise ValueError(f"--runs {runs}: expected at least 1")
        out.mkdir(parents=True, exist_ok=True)
        say = (lambda line: None) if as_json else typer.echo
        outcome, files = reproduction.run(experiment, ReproduceSettings(quick, 1 if quick else runs, data), out, say)
    if as_json:
        _print_json(reproduction.to_dict(outcome))
        return
    for table in outcome.tables:
        print_table(table)
    typer.echo(f"Written to {out.resolve()}: {', '.join(path.name for path in files)}")


# --- bench ------------------------------------------------------------------------------------------------------------


@app.command()
def bench(
    case: Annotated[list[str] | None, typer.Option(help="A case to run; may be repeated.", show_default="all")] = None,
    list_cases: Annotated[bool, typer.Option("--list", help="List the cases and stop.")] = False,
    quick: Annotated[bool, typer.Option(help="Small sizes, one problem per case: to see that it runs.")] = False,
    repeats: Annotated[int, typer.Option(help="Timed solves per library; the best counts.")] = 3,
    data: Annotated[Path | None, typer.Option(help="Folder with real data.", envvar="SADDLEBACK_DATA")] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for benchmarks.md, benchmarks.json and figures/; results of other cases stay."),
    ] = None,
    report_only: Annotated[bool, typer.Option("--report", help="Only write the document in --out again.")] = False,
    adelie: Annotated[Path, typer.Option(help="Python interpreter with adelie.")] = runner.ADELIE,
    as_json: Json = False,
) -> None:
    """Compare with other libraries, to the same certified accuracy on the same data, and time our passes.

    Libraries that are not installed are listed as such: pip install 'saddleback[bench]' has all but adelie.
    """
    if list_cases:
        _print_cases(as_json)
        raise typer.Exit
    with _input_errors():
        if report_only and out is None:
            raise ValueError("--report: expected --out with the folder of benchmarks.json")
        if out is not None:
            (out / "figures").mkdir(parents=True, exist_ok=True)
        if report_only and out is not None:
            runner.keep(out, {})
            raise typer.Exit
        say = (lambda line: None) if as_json else typer.echo
        records = runner.run(case or [], Settings(quick, data), repeats, out, say, adelie)
    if as_json:
        _print_json(records)
    elif rows := ratio_rows(records):
        _print_ratios(rows)


def _print_cases(as_json: bool) -> None:
    abouts = runner.abouts()
    if as_json:
        _print_json(abouts)
    else:
        for name, about in abouts.items():
            typer.echo(f"{name:<22}{about}")


def _print_ratios(rows: list[Row]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Time of the fastest other library, divided by ours")
    for heading in ("case", "ratio", "fastest other"):
        table.add_column(heading)
    for row in rows:
        table.add_row(row.case, row.ratio, row.fastest)
    Console().print(table)


# --- all --------------------------------------------------------------------------------------------------------------


def _summary(result: sb.Result) -> dict[str, Any]:
    """Return the summary of a result, without points and history."""
    everything = result.to_dict()
    return {name: everything[name] for name in everything if name not in ("x", "y", "history")}


def _print_json(content: Any) -> None:
    typer.echo(json.dumps(_plain(content), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    """Return a value with None in place of the infinities and NaN that JSON does not have."""
    match value:
        case dict():
            return {key: _plain(entry) for key, entry in value.items()}
        case list() | tuple():
            return [_plain(entry) for entry in value]
        case float() if not math.isfinite(value):
            return None
    return value


EXIT_CODES = {sb.Status.OPTIMAL: 0, sb.Status.ROUNDING_LIMIT: 0, sb.Status.INFEASIBLE: 3, sb.Status.UNBOUNDED: 3}


def _exit_by_status(*results: sb.Result) -> NoReturn:
    raise typer.Exit(max(EXIT_CODES.get(result.status, 1) for result in results))


@contextmanager
def _input_errors(aloud: bool = True, told: Callable[[str], str] = str) -> Iterator[None]:
    """Turn errors of bad input into one line, printed by one process, and exit code 2."""
    try:
        yield
    except (ValueError, TypeError, ImportError, OSError, MemoryError) as error:
        if aloud:
            typer.echo(f"Error: {told(str(error))}", err=True)
        raise typer.Exit(2) from None
