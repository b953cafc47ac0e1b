"""Runs experiments and writes their results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..common.outputs import replacing_text
from . import group_lasso, lasso, rpca, steps
from .experiment import Experiment, Outcome, Runs, Say, Settings
from .figures import draw
from .tables import markdown, write_csv

EXPERIMENTS: dict[str, Experiment] = {
    "lasso": lasso.run,
    "rpca": rpca.run,
    "group-lasso": group_lasso.run,
    "steps": steps.run,
}


def run(name: str, settings: Settings, out: Path, say: Say) -> tuple[Outcome, list[Path]]:
    """Run one experiment, or all, and write a CSV and a Markdown file per table and a PNG file per picture.

    Returns the results, and the files that were written.
    """
    names = list(EXPERIMENTS) if name == "all" else [name]
    outcomes = [EXPERIMENTS[each](settings, say) for each in names]
    outcome = Outcome(
        [table for each in outcomes for table in each.tables if table.rows],
        [picture for each in outcomes for picture in each.pictures],
    )
    files = []
    for table in outcome.tables:
        files += [write_csv(table, out), out / f"{table.name}.md"]
        with replacing_text(files[-1]) as stream:
            stream.write(markdown(table) + "\n")
    for picture in outcome.pictures:
        path = draw(picture, out)
        if path is None:
            say("No picture was drawn: pictures need matplotlib (pip install 'saddleback[plot]').")
        else:
            files.append(path)
    return outcome, files


def to_dict(outcome: Outcome) -> dict[str, Any]:
    """Return the tables by name, with one record per row; a figure of several runs is a list."""

    def plain(value: Any) -> Any:
        return list(value.values) if isinstance(value, Runs) else value

    return {
        table.name: [dict(zip(table.columns, map(plain, row), strict=True)) for row in table.rows]
        for table in outcome.tables
    }
