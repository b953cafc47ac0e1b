"""Run all cases on both sides and compare their results bit by bit."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .environments import Side, environment, mpiexec
from .exceptions import EXCEPTIONS
from .outcomes import BEGUN, ERROR, MISSING

SAME, DIFFERS, FAILED, SKIPPED, EXPECTED = "same", "differs", "error", "skipped", "differs, expected"
LONGEST = 300.0
"""Time limit for the cases of one side, in seconds."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of the comparison of one case, with details in one line."""

    name: str
    kind: str
    details: str = ""


def catalogue(side: Side) -> dict[str, int]:
    """Return the names of the cases, each with its number of processes."""
    listed = subprocess.run(side.command("worker"), env=environment(), capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        raise SystemExit(f"{side.label} does not run:\n{listed.stderr}")
    cases: dict[str, int] = json.loads(listed.stdout)
    return cases


def run(side: Side, cases: Mapping[str, int], folder: Path) -> None:
    """Run cases on one side. If the process dies, its current case gets an error and a new process runs the rest."""
    for processes in sorted(set(cases.values())):
        remaining = [name for name in cases if cases[name] == processes]
        while remaining:
            command = [*mpiexec(processes), *side.command("worker", str(folder), *remaining)]
            ended = _ended(command, folder / "output.txt")
            remaining = [name for name in remaining if not (folder / f"{name}.npz").exists()]
            if remaining:
                output = (folder / "output.txt").read_text()[-1000:]
                if not (folder / BEGUN).exists():
                    raise SystemExit(f"{side.label} does not run: {ended}\n{output}")
                np.savez(folder / f"{remaining.pop(0)}.npz", error=np.asarray(f"{ended}\n{output}"))


def _ended(command: list[str], output: Path) -> str:
    """Run a command and say how it ended."""
    with output.open("w") as file:
        try:
            done = subprocess.run(
                command, env=environment(), stdout=file, stderr=subprocess.STDOUT, timeout=LONGEST, check=False
            )
        except subprocess.TimeoutExpired:
            return f"no answer after {LONGEST:.0f} s"
    return f"the process ended with code {done.returncode}"


def compare(base: Side, tree: Side, cases: Mapping[str, int]) -> list[Verdict]:
    """Run cases on both sides at the same time, and compare their results."""
    with tempfile.TemporaryDirectory() as temporary:
        folders = [Path(temporary) / kind for kind in ("base", "tree")]
        for folder in folders:
            folder.mkdir()
        with ThreadPoolExecutor() as pool:
            for future in [pool.submit(run, side, cases, at) for side, at in zip((base, tree), folders, strict=True)]:
                future.result()
        return [judge(name, *(_read(folder / f"{name}.npz") for folder in folders)) for name in cases]


def _read(path: Path) -> dict[str, Any]:
    with np.load(path) as file:
        return dict(file)


NEW = r"module 'saddleback[\w.]*' has no attribute|method='[\w-]+' is not known"
"""Error messages of an older commit for the name of a new function, estimator or method."""


def judge(name: str, base: dict[str, Any], tree: dict[str, Any]) -> Verdict:
    """Compare the results of both sides in one case."""
    errors = {label: str(arrays[ERROR]) for label, arrays in (("base", base), ("tree", tree)) if ERROR in arrays}
    if errors:
        if "tree" not in errors and re.search(NEW, errors["base"]):
            return Verdict(name, SKIPPED, "new in the tree")
        missing = all(error.startswith(MISSING) for error in errors.values()) and len(errors) == 2
        said = "; ".join(f"{label}: {error.strip().splitlines()[-1]}" for label, error in errors.items())
        return Verdict(name, SKIPPED if missing else FAILED, said)
    differences = [_difference(key, base.get(key), tree.get(key)) for key in sorted(base.keys() | tree.keys())]
    details = "; ".join(difference for difference in differences if difference)
    if not details:
        return Verdict(name, SAME)
    if name not in EXCEPTIONS:
        return Verdict(name, DIFFERS, details)
    return Verdict(name, EXPECTED, f"{details} ({EXCEPTIONS[name]})")


def _difference(key: str, base: Any, tree: Any) -> str:
    """Describe how two arrays differ; return an empty string if all bits agree."""
    if key == "seconds":
        return ""
    if base is None or tree is None:
        return f"{key} exists only in {'tree' if base is None else 'base'}"
    if base.dtype == tree.dtype and base.shape == tree.shape and base.tobytes() == tree.tobytes():
        return ""
    if base.size == tree.size == 1:
        return f"{key} {base} -> {tree}"
    if base.dtype != tree.dtype or base.shape != tree.shape or base.dtype.kind != "f":
        return f"{key} {base.dtype}{base.shape} -> {tree.dtype}{tree.shape}"
    with np.errstate(invalid="ignore"):
        return f"{key} by {np.nanmax(np.abs(tree - base)):.1e} of {np.nanmax(np.abs(base)):.1e}"


def report(verdicts: Sequence[Verdict]) -> bool:
    """Print the cases that differ and the counts; return whether all differences are expected and no case failed."""
    width = max(len(verdict.name) for verdict in verdicts)
    for verdict in verdicts:
        if verdict.kind != SAME:
            print(f"{verdict.name:<{width}}  {verdict.kind}: {verdict.details}")
    kinds = [verdict.kind for verdict in verdicts]
    counts = {kind: kinds.count(kind) for kind in (SAME, EXPECTED, DIFFERS, FAILED, SKIPPED)}
    print(", ".join(f"{count} {kind}" for kind, count in counts.items() if count))
    return not counts[DIFFERS] and not counts[FAILED]
