"""What ``saddleback fit`` does: a model for tables in files, and its coefficients by name."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer

from .estimators import SparseClassifier, SparseRegressor
from .estimators.objective import CLASSIFICATION, PENALTIES, REGRESSION, Choice

LOSSES: Mapping[str, Choice] = {name: own for name, own in {**REGRESSION, **CLASSIFICATION}.items() if name != "sqrt"}
"""The losses of tables in files: all that are sums over rows."""

PENALTIES_OF_FILES: Mapping[str, Choice] = {
    name or "none": own for name, own in PENALTIES.items() if "groups" not in own.reads
}
"""The penalties that need no groups, for which the command has no option."""

SHOWN = 20
"""Largest number of coefficients that are printed, the largest first."""

ENDINGS = (".csv", ".json")


@dataclass(frozen=True)
class Fit:
    """The arguments of the command."""

    files: Sequence[str]
    target: str
    weights: str | None
    columns: Sequence[str] | None
    loss: str
    penalty: str
    alpha: float
    parameters: Mapping[str, float | None]
    tol: float
    time_limit: float | None

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

    def fitted(self, comm: Any, progress: bool) -> Any:
        """Return the fitted model."""
        self.check()
        shared: dict[str, Any] = {name: value for name, value in self.parameters.items() if value is not None}
        shared |= {
            "loss": self.loss,
            "penalty": None if self.penalty == "none" else self.penalty,
            "alpha": self.alpha,
            "tol": self.tol,
            "time_limit": self.time_limit,
            "verbose": progress,
            "comm": comm,
        }
        model: Any = SparseClassifier(**shared) if self.loss in CLASSIFICATION else SparseRegressor(**shared)
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
        "readings": [int(result.passes) for result in results],
        "seconds": sum(result.seconds for result in results),
        "classes": [str(label) for label in getattr(model, "classes_", [])],
        "intercept": np.asarray(model.intercept_).tolist(),
        "coefficients": coefficients,
    }


def print_model(model: Any) -> None:
    """Print the certificate of a fitted model, and its largest coefficients."""
    content = told(model)
    lines = {
        "status": ", ".join(content["status"]),
        "objective": ", ".join(f"{value:.10g}" for value in content["objective"]),
        "relative gap": ", ".join(f"{value:.2e}" for value in content["relative_gap"]),
        "readings": ", ".join(map(str, content["readings"])),
        "seconds": f"{content['seconds']:.2f}",
    }
    for name, value in lines.items():
        typer.echo(f"{name:<22}{value}")
    for said in content["message"]:
        typer.echo(said)
    typer.echo(f"{'intercept':<22}" + " ".join(f"{entry:.6g}" for entry in np.atleast_1d(content["intercept"])))
    nonzero = {name: value for name, value in content["coefficients"].items() if np.any(value)}
    typer.echo(f"{len(nonzero)} of {len(content['coefficients'])} coefficients are not 0, the largest first:")
    for name, value in sorted(nonzero.items(), key=lambda item: -np.max(np.abs(item[1])))[:SHOWN]:
        typer.echo(f"  {name:<30}" + " ".join(f"{entry: .6g}" for entry in np.atleast_1d(value)))


def check_table(path: Path) -> None:
    """Raise if coefficients cannot be written to a file."""
    if path.suffix not in ENDINGS:
        raise ValueError(f"--out {path}: expected a file that ends in {' or '.join(ENDINGS)}")
    if not path.resolve().parent.is_dir():
        raise ValueError(f"--out {path}: there is no folder {path.resolve().parent}")


def write_table(path: Path, model: Any) -> None:
    """Write the intercept and the coefficients by name; one column per class if there are more than two."""
    content = told(model)
    if path.suffix == ".json":
        path.write_text(json.dumps(content, indent=2))
        return
    table = {"intercept": content["intercept"], **content["coefficients"]}
    count = np.atleast_1d(content["intercept"]).size
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["name", *(["coefficient"] if count == 1 else content["classes"])])
        for name, value in table.items():
            writer.writerow([name, *np.atleast_1d(value).tolist()])
