"""What ``saddleback fit`` does: a model for tables in files, and its coefficients by name."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from .common.outputs import as_text, replacing_text
from .engine.clock import Clock
from .estimators import SparseClassifier, SparseClassifierCV, SparseRegressor, SparseRegressorCV
from .estimators.cross_validation import FoldsError
from .estimators.objective import CLASSIFICATION, PENALTIES, REGRESSION, Choice
from .fit_report import page, remarks
from .io.csv_tables import CsvTable, read_csv

LOSSES: Mapping[str, Choice] = {name: own for name, own in {**REGRESSION, **CLASSIFICATION}.items() if name != "sqrt"}
"""The losses of tables in files: all that are sums over rows."""

PENALTIES_OF_FILES: Mapping[str, Choice] = {
    name or "none": own for name, own in PENALTIES.items() if "groups" not in own.reads
}
"""The penalties that need no groups, for which the command has no option."""

SHOWN = 20
"""Largest number of coefficients that are printed, the largest first."""

ENDINGS = (".csv", ".json")

CSV = (".csv", ".tsv", ".txt")
"""Endings of files whose rows are text, and are read into memory."""

ALPHA = 0.01
"""The default weight of the penalty for files that are not read into memory."""

GRID = {"eps": 1e-3, "n_alphas": 50}
"""The values of alpha that cross-validation compares; more than in the estimators, since nobody adapts them."""

MOST_VALUES = 20_000_000
"""Most values of X for which alpha is chosen by cross-validation, which takes up to some minutes."""


@dataclass(frozen=True)
class Fit:
    """The arguments of the command."""

    files: Sequence[str]
    target: str
    weights: str | None
    columns: Sequence[str] | None
    loss: str
    penalty: str
    alpha: float | None
    parameters: Mapping[str, float | None]
    tol: float
    time_limit: float | None
    categories: Sequence[str] = ()

    def check(self) -> None:
        """Raise if a name is not known, or loss and penalty do not use a parameter that was given."""
        for option, found, known in (("loss", self.loss, LOSSES), ("penalty", self.penalty, PENALTIES_OF_FILES)):
            if found not in known:
                raise ValueError(f"--{option} {found}: expected one of {', '.join(known)}")
        for name, value in self.parameters.items():
            if value is not None and name not in {*LOSSES[self.loss].reads, *PENALTIES_OF_FILES[self.penalty].reads}:
                tables = {"loss": LOSSES, "penalty": PENALTIES_OF_FILES}
                readers = [f"--{of} {own}" for of, table in tables.items() for own in table if name in table[own].reads]
                raise ValueError(
                    f"--{name.replace('_', '-')} {value:g} has no meaning for --loss {self.loss} and --penalty "
                    f"{self.penalty}: it belongs to {' and '.join(readers)}"
                )

    @property
    def of_text(self) -> bool:
        """Whether the data are a CSV file."""
        return any(Path(file).suffix.lower() in CSV for file in self.files)

    @property
    def chooses(self) -> bool:
        """Whether alpha is chosen by cross-validation."""
        return self.of_text and self.alpha is None and self.penalty != "none"

    def given(self) -> dict[str, Any]:
        """Return the parameters of the model that were given."""
        given: dict[str, Any] = {"loss": self.loss, "penalty": None if self.penalty == "none" else self.penalty}
        given |= {name: value for name, value in self.parameters.items() if value is not None}
        if self.chooses:
            given |= GRID
        elif self.penalty != "none":
            given["alpha"] = ALPHA if self.alpha is None else self.alpha
        return given | {"tol": self.tol} | ({} if self.time_limit is None else {"time_limit": self.time_limit})

    def model(self) -> type:
        """Return the class of the model."""
        if self.loss in CLASSIFICATION:
            return SparseClassifierCV if self.chooses else SparseClassifier
        return SparseRegressorCV if self.chooses else SparseRegressor

    def clock(self) -> Clock:
        """Return the clock of the command, which begins with the reading of a CSV file."""
        self.check()
        clock: Clock = self.model()(**self.given())._clock()
        return clock

    def table(self, comm: Any) -> CsvTable:
        """Return the columns of a CSV file."""
        if len(self.files) > 1:
            raise ValueError(f"FILES are {' '.join(self.files)}: expected one CSV file, or files of Parquet or Arrow")
        if comm is not None and comm.size > 1:
            raise ValueError(f"{self.files[0]}: a CSV file is read by one process; run the command without mpiexec")
        classes = self.loss in CLASSIFICATION
        path = Path(self.files[0])
        return read_csv(path, self.target, self.weights, self.columns, classes, self.categories)

    def fitted_to(self, table: CsvTable, X: Any, clock: Clock) -> Any:
        """Return the model fitted to the features X of a CSV file, in what is left of the time."""
        if self.chooses and X.size > MOST_VALUES:
            raise ValueError(
                f"--alpha is missing, and cross-validation on {X.shape[0]} rows and {X.shape[1]} features would take "
                "long: pass --alpha, as found on a part of the rows"
            )
        weight = None if table.weights is None else table.weights.values
        model = self.model()(**self.given()).set_params(time_limit=clock.share())
        try:
            model.fit(X, table.target.values, sample_weight=weight)
        except FoldsError as error:
            raise ValueError(f"--alpha is missing, and cannot be chosen: {error.reason}; pass --alpha") from None
        model.feature_names_in_ = np.array(list(table.features), dtype=object)
        if hasattr(model, "path_"):
            model.path_ = replace(model.path_, feature_names=list(table.features))
        return model

    def recipe(self, table: CsvTable) -> str:
        """Return Python code that fits the same model to a CSV file."""
        options = "".join([f", sep={table.separator!r}"] * (table.separator != ",") + [", index_col=0"] * table.indexed)
        if self.categories:
            options += f", dtype={dict.fromkeys(self.categories, 'str')!r}"
        model = self.model().__name__
        used = [column.name for column in table.columns]
        weight = "" if table.weights is None else f", sample_weight=table[{table.weights.name!r}]"
        given = ", ".join(f"{name}={value!r}" for name, value in self.given().items())
        return "\n".join(
            [
                "import pandas as pd",
                f"from saddleback.estimators import {model}",
                "",
                f"table = pd.read_csv({str(table.path)!r}{options})",
                f"X = pd.get_dummies(table[{used!r}], prefix_sep='=', dtype=float)",
                f"model = {model}({given})",
                f"model.fit(X, table[{table.target.name!r}]{weight})",
                "print(model.intercept_, model.coef_by_name_)",
                "model.result_  # the certificate",
            ]
        )

    def report(self, model: Any, table: CsvTable, X: Any, command: Sequence[str]) -> str:
        """Return the report as HTML."""
        return page(model, table, X, self.recipe(table), command)

    def fitted(self, comm: Any, progress: bool) -> Any:
        """Return the model fitted to Parquet or Arrow files."""
        self.check()
        if self.categories:
            raise ValueError("--category is for CSV files: columns of other files have their types")
        model: Any = self.model()(**self.given(), verbose=progress, comm=comm)
        files = [*self.files] if len(self.files) > 1 else self.files[0]
        return model.fit_files(files, self.target, self.weights, list(self.columns) if self.columns else None)


def told(model: Any) -> dict[str, Any]:
    """Return a fitted model as plain values."""
    results = model.result_ if isinstance(model.result_, list) else [model.result_]
    coefficients = {name: np.asarray(value).tolist() for name, value in model.coef_by_name_.items()}
    return {
        "status": [result.status.name for result in results],
        "message": [result.message for result in results],
        "objective": [result.objective for result in results],
        "relative_gap": [result.relative_gap for result in results],
        "alpha": None if model.penalty is None else getattr(model, "alpha_", getattr(model, "alpha", None)),
        _work(model): [int(result.passes) for result in results],
        "seconds": sum(result.seconds for result in results),
        "classes": [str(label) for label in getattr(model, "classes_", [])],
        "intercept": np.asarray(model.intercept_).tolist(),
        "coefficients": coefficients,
    }


def _work(model: Any) -> str:
    """Return what the passes of a fit are: readings of files, or passes over data in memory."""
    result = model.result_[0] if isinstance(model.result_, list) else model.result_
    return "readings" if result.method == "readings" else "passes"


def print_model(model: Any) -> None:
    """Print the certificate of a fitted model, and its largest coefficients."""
    content = told(model)
    lines = {
        "status": ", ".join(content["status"]),
        "objective": ", ".join(f"{value:.10g}" for value in content["objective"]),
        "relative gap": ", ".join(f"{value:.2e}" for value in content["relative_gap"]),
        _work(model): ", ".join(map(str, content[_work(model)])),
        "seconds": f"{content['seconds']:.2f}",
    }
    if content["alpha"] is not None:
        lines["alpha"] = f"{content['alpha']:.6g}" + " by cross-validation" * hasattr(model, "alpha_")
    for name, value in lines.items():
        typer.echo(f"{name:<22}{value}")
    for said in [*content["message"], *remarks(model)]:
        typer.echo(said)
    typer.echo(f"{'intercept':<22}" + " ".join(f"{entry:.6g}" for entry in np.atleast_1d(content["intercept"])))
    nonzero = {name: value for name, value in content["coefficients"].items() if np.any(value)}
    count = len(content["coefficients"])
    some = f"{len(nonzero)} of {count} coefficients are not 0, the largest first:"
    typer.echo(some if nonzero else f"All {count} coefficients are 0.")
    for name, value in sorted(nonzero.items(), key=lambda item: -np.max(np.abs(item[1])))[:SHOWN]:
        typer.echo(f"  {name:<30}" + " ".join(f"{entry: .6g}" for entry in np.atleast_1d(value)))


def check_table(path: Path | None) -> None:
    """Raise if coefficients cannot be written to a file of this name."""
    if path is not None and path.suffix not in ENDINGS:
        raise ValueError(f"--out {path}: expected a file that ends in {' or '.join(ENDINGS)}")


def check_report(path: Path | None, asked: Fit) -> None:
    """Raise if a report cannot be written to a file of this name."""
    if path is None:
        return
    if not asked.of_text:
        raise ValueError(f"--report {path}: expected a CSV file, since other files are not read into memory")
    if path.suffix != ".html":
        raise ValueError(f"--report {path}: expected a file that ends in .html")


def write_table(path: Path, model: Any) -> None:
    """Write the intercept and the coefficients by name; one column per class if there are more than two."""
    content = told(model)
    if path.suffix == ".json":
        with replacing_text(path) as stream:
            json.dump(content, stream, indent=2)
        return
    table = {"intercept": content["intercept"], **content["coefficients"]}
    count = np.atleast_1d(content["intercept"]).size
    with replacing_text(path) as stream:
        writer = csv.writer(stream)
        writer.writerow(["name", *(["coefficient"] if count == 1 else map(as_text, content["classes"]))])
        for name, value in table.items():
            writer.writerow([as_text(name), *np.atleast_1d(value).tolist()])
