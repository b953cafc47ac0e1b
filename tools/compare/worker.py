"""One side of the comparison: run cases by name and write the results of each case to a file."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import saddleback as sb

from .cases import CASES, Case
from .outcomes import BEGUN, ERROR, MISSING


def flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the results of a case as arrays, each with a name."""
    if isinstance(value, sb.Result):
        value = {
            "x": value.x, "y": value.y, "passes": value.passes, "status": value.status.name, "method": value.method,
            "certificate": [value.certificate.primal_value, value.certificate.dual_value],
        }  # fmt: skip
    if isinstance(value, dict):
        items: Any = value.items()
    elif isinstance(value, (list, tuple)):
        items = ((str(index), each) for index, each in enumerate(value))
    else:
        yield name, np.asarray(value)
        return
    for key, each in items:
        yield from flat(each, f"{name}.{key}" if name else str(key))


def found(case: Case) -> dict[str, Any]:
    """Return the results of a case, or an error message."""
    try:
        if case.needs:
            import_module(case.needs)
    except (ImportError, RuntimeError) as error:  # mpi4py raises RuntimeError if there is no MPI
        return {ERROR: np.asarray(f"{MISSING} {case.needs}: {error}")}
    try:
        with tempfile.TemporaryDirectory() as folder:
            return dict(flat(case.run(Path(folder))))
    except Exception:
        return {ERROR: np.asarray(traceback.format_exc(limit=-2))}


def first_process() -> bool:
    """Return whether this is the first process, which writes the files."""
    return os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")) == "0"


def main(folder: Path, names: list[str]) -> None:
    """Run cases and write one file per case; with several processes only the first one writes."""
    (folder / BEGUN).touch()
    if find_spec("torch") and any(CASES[name].needs == "torch" for name in names):
        import torch

        torch.set_num_threads(1)  # more threads would only wait for each other
    warnings.simplefilter("ignore")
    for name in names:
        began = time.perf_counter()
        arrays = found(CASES[name])
        arrays["seconds"] = np.asarray(time.perf_counter() - began)
        if first_process():
            partial = folder / "partial.npz"
            np.savez(partial, **arrays)
            os.replace(partial, folder / f"{name}.npz")


if __name__ == "__main__":
    if len(sys.argv) == 1:  # list the cases
        print(json.dumps({case.name: case.processes for case in CASES.values()}))
    else:
        main(Path(sys.argv[1]), sys.argv[2:])
