"""Runs the requested cases one after the other, and stores the results."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import growth, passes, report, store
from .case import Case, Settings
from .cases import CASES
from .machine import describe_machine
from .race import Field, run_case
from .store import Records, Say

ADELIE = Path(".venv-adelie/bin/python")
"""Where ``make bench`` installs adelie, which needs another version of numpy than the other libraries."""


STUDIES = {"passes": passes, "growth": growth}
"""Cases without other libraries: modules with a description and a function ``measure``."""


def abouts() -> dict[str, str]:
    """Return the names of all cases, in order, with a description of each."""
    return {
        **{name: case.about for name, case in CASES.items()},
        **{name: study.ABOUT for name, study in STUDIES.items()},
    }


def chosen(asked: Sequence[str], quick: bool) -> list[str]:
    """Return the cases to run: the requested ones or, without a request, all that are not too slow for a quick run."""
    unknown = [name for name in asked if name not in abouts()]
    if unknown:
        raise ValueError(f"--case {unknown[0]}: expected one of {', '.join(abouts())}")
    return list(asked) or [name for name in abouts() if not (quick and name in CASES and CASES[name].slow)]


def run(
    asked: Sequence[str],
    settings: Settings,
    repeats: int,
    out: Path | None,
    say: Say,
    adelie: Path = ADELIE,
) -> Records:
    """Run cases and return their records; with ``out``, update the records and the document in that folder.

    Every case is written as soon as it is done, so that a run that is stopped loses only its last case.
    """
    if repeats < 1:
        raise ValueError(f"--repeats {repeats}: expected at least 1")
    found: Records = {}
    field = Field({"adelie": str(adelie)} if adelie.exists() else {})
    try:
        for name in chosen(asked, settings.quick):
            say(f"{name}: {abouts()[name]}")
            if name in CASES:
                record = _race(CASES[name], settings, field, repeats, say)
            else:
                record = {"kind": name, **STUDIES[name].measure(settings.quick, say)}
            machine = describe_machine()
            machine["versions"] |= field.versions
            kept = {"about": abouts()[name], "quick": settings.quick, "machine": machine, "load": os.getloadavg()[0]}
            found[name] = record | kept
            if out is not None:
                keep(out, found)
    finally:
        field.close()
    return found


def keep(out: Path, found: Records) -> None:
    """Add records to those in a folder, in the order of the cases, and write the document again."""
    records = store.load(out / "benchmarks.json") | found
    ordered = {name: records[name] for name in abouts() if name in records}
    store.save(out / "benchmarks.json", ordered)
    report.write(out, ordered)


def _race(case: Case, settings: Settings, field: Field, repeats: int, say: Say) -> dict[str, Any]:
    record: dict[str, Any] = {
        "kind": "race",
        "target": case.target,
        "cap": case.cap,
        "repeats": repeats,
        "instances": [],
    }
    missing = [name for name in case.needs_data if settings.data is None or not (settings.data / name).is_dir()]
    if missing:
        folders = "the folder" if len(missing) == 1 else "the folders"
        record["note"] = f"not run: needs {folders} {', '.join(missing)} of real data, --data"
        say(record["note"])
    else:
        record["instances"] = run_case(case, settings, field, repeats, say)
    return record
