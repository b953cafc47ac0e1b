"""Runs experiments and keeps what they find."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def run(name: str, settings: Settings, out: Path, say: Say) -> Outcome:
    """Run one experiment, or all, and write a CSV and Markdown for every table and a PNG for every picture."""
    names = list(EXPERIMENTS) if name == "all" else [name]
    outcomes = [EXPERIMENTS[each](settings, say) for each in names]
    outcome = Outcome(
        [table for each in outcomes for table in each.tables if table.rows],
        [picture for each in outcomes for picture in each.pictures],
    )
    for table in outcome.tables:
        write_csv(table, out)
        (out / f"{table.name}.md").write_text(markdown(table) + "\n")
    for picture in outcome.pictures:
        if draw(picture, out) is None:
            say("No picture was drawn: that needs matplotlib (pip install 'saddleback[plot]').")
    return outcome


def to_dict(outcome: Outcome) -> dict[str, Any]:
    """Return the tables by name, one record a row; a figure of several runs is a list."""

    def plain(value: Any) -> Any:
        return list(value.values) if isinstance(value, Runs) else value

    return {
        table.name: [dict(zip(table.columns, map(plain, row), strict=True)) for row in table.rows]
        for table in outcome.tables
    }
