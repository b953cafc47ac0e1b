"""How many threads this process may keep busy, according to its machine, its container and its environment.

The number is the smallest of those that apply:

1. the CPUs that the process may run on (``taskset``, Slurm, ``mpiexec --bind-to``);
2. the CPU quota of its control group, of version 1 or 2, and of all groups around it (Docker, Kubernetes, systemd),
   rounded up;
3. ``OMP_NUM_THREADS`` and ``OPENBLAS_NUM_THREADS``, which joblib and loky also set in the processes that they start;
4. one, inside of a thread that joblib has started, which shares the process with others.
"""

from __future__ import annotations

import math
import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath

from .._native import MOST_THREADS

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")

ROOT = Path("/")


def available(processes: int = 1, environ: Mapping[str, str] = os.environ, root: Path = ROOT) -> int:
    """Return the number of threads to use unless ``threads`` says otherwise.

    Parameters
    ----------
    processes : how many processes, this one included, share the CPUs and the quota.
    environ, root : the environment, and the folder in which ``proc`` and ``sys`` lie.
    """
    shared = [len(affine()), quota(root)]
    counts = [MOST_THREADS, *(count // processes for count in shared if count is not None)]
    of_process = named(environ)
    if in_joblib():
        is_thread = threading.current_thread() is not threading.main_thread()
        counts.append(1 if is_thread or of_process is None else of_process)
    elif of_process is not None:
        counts.append(of_process)
    return max(1, min(counts))


def affine() -> set[int]:
    """Return the CPUs that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))  # macOS and Windows


def named(environ: Mapping[str, str]) -> int | None:
    """Return the smallest number that an environment variable names, or None.

    ``OMP_NUM_THREADS`` may be a list with one number per level of nesting. What is not a positive number is ignored, as
    OpenMP and OpenBLAS do.
    """
    values = [environ.get(name, "").split(",")[0].strip() for name in VARIABLES]
    counts = [int(value) for value in values if value.isdecimal() and int(value) > 0]
    return min(counts, default=None)


def in_joblib() -> bool:
    """Return whether this is a thread or a process that joblib has started; then joblib has been imported."""
    parallel = sys.modules.get("joblib.parallel")
    return parallel is not None and bool(parallel.get_active_backend()[0].nesting_level)


@cache
def quota(root: Path = ROOT) -> int | None:
    """Return how many CPUs the control groups of this process allow, rounded up; None without a limit."""
    return min((math.ceil(share) for folder in _groups(root) for share in _shares(folder)), default=None)


def _groups(root: Path) -> Iterator[Path]:
    """Yield the control groups for CPUs that this process is in, and those around them as far as they can be seen.

    ``/proc/self/cgroup`` names a group relative to the top of its hierarchy. A container may see only a part of that,
    the one that ``/proc/self/mountinfo`` calls the root of the mount.
    """
    names: dict[str, PurePosixPath] = {}
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if not controllers or "cpu" in controllers.split(","):
            names["cgroup" if controllers else "cgroup2"] = PurePosixPath(path)
    for kind, top, place in _mounts(root):
        if kind in names:
            name = names[kind]
            inside = name.relative_to(top).parts if name.is_relative_to(top) and ".." not in name.parts else ()
            outermost = root / place.relative_to("/")
            yield from (outermost.joinpath(*inside[:depth]) for depth in range(len(inside) + 1))


def _mounts(root: Path) -> Iterator[tuple[str, PurePosixPath, PurePosixPath]]:
    """Yield the kind of each hierarchy of control groups for CPUs, which group of it is mounted, and where."""
    for line in _lines(root / "proc/self/mountinfo"):
        mount, _, system = line.partition(" - ")
        fields, (kind, _, options) = mount.split(), [*system.split(), "", "", ""][:3]
        if len(fields) > 4 and (kind == "cgroup2" or (kind == "cgroup" and "cpu" in options.split(","))):
            yield kind, PurePosixPath(_unescaped(fields[3])), PurePosixPath("/", _unescaped(fields[4]))


def _shares(folder: Path) -> Iterator[float]:
    """Yield the quota of a control group, in CPUs; nothing if it has none."""
    for texts in (
        [field for line in _lines(folder / "cpu.max") for field in line.split()],
        [field for name in ("quota", "period") for field in _lines(folder / f"cpu.cfs_{name}_us")],
    ):
        if len(texts) == 2 and all(text.isdecimal() and int(text) > 0 for text in texts):
            yield int(texts[0]) / int(texts[1])  # "max" and -1 are no limit


def _lines(file: Path) -> list[str]:
    """Return the lines of a file; none if there is no such file or it cannot be read."""
    try:
        return file.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return []


def _unescaped(field: str) -> str:
    """Return a field of mountinfo, in which blanks and backslashes are written as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=quota.cache_clear)  # a child may be moved to another group
