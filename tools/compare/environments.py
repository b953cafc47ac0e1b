"""Environments with the package of one commit and the other packages, which all commits share."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "compare"


@dataclass(frozen=True)
class Side:
    """One of the two sides of a comparison: its label and its interpreter."""

    label: str
    python: Path

    def command(self, module: str, *arguments: str) -> list[str]:
        """Return the command that runs a module of this program with the package of this side."""
        return [str(self.python), "-m", f"{__package__}.{module}", *arguments]


def environment() -> dict[str, str]:
    """Return the environment variables of a process of either side."""
    libraries = [str(prefix / "lib") for prefix in mpi_prefixes()]
    return os.environ | {
        "PYTHONPATH": str(ROOT / "tools"),
        "LD_LIBRARY_PATH": os.pathsep.join([*libraries, os.environ.get("LD_LIBRARY_PATH", "")]),
    }


def mpi_prefixes() -> list[Path]:
    """Return the prefixes in which pip has installed MPI: mpi4py searches only that of the interpreter."""
    prefixes = [Path(path).parents[2] for path in sys.path if "site-packages" in path]
    return [prefix for prefix in prefixes if any((prefix / "lib").glob("libmpi.so*"))]


def mpiexec(processes: int) -> list[str]:
    """Return the words that start a command on several processes; an empty list if there is no MPI."""
    beside = [str(prefix / "bin" / "mpiexec") for prefix in mpi_prefixes()]
    found = next(filter(os.path.exists, beside), None) or shutil.which("mpiexec")
    return [found, "-n", str(processes)] if found and processes > 1 else []


def working_tree() -> Side:
    """Build the working tree, with changes that are not committed."""
    return _built("tree", ROOT, FOLDER / "tree")


def commit(name: str) -> Side:
    """Build a commit, unless an earlier call has built it."""
    sha = _git("rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}")[:12]
    folder = FOLDER / sha
    if (folder / "ready").exists():
        return Side(sha, _interpreter(folder))
    source = folder / "source"
    extract(sha, source)
    side = _built(sha, source, folder)
    (folder / "ready").touch()
    return side


def extract(name: str, folder: Path) -> None:
    """Write the files of a commit to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    archive = subprocess.Popen(["git", "-C", str(ROOT), "archive", name], stdout=subprocess.PIPE)
    with tarfile.open(fileobj=archive.stdout, mode="r|") as files:
        files.extractall(folder, filter="data")
    if archive.wait() != 0:
        raise SystemExit(f"git archive {name} failed")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"git {shlex.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


def _interpreter(folder: Path) -> Path:
    return folder / "venv" / "bin" / "python"


def _built(label: str, source: Path, folder: Path) -> Side:
    """Install a source tree into a folder, with an interpreter that finds it before all other packages.

    Both sides are built in this way, so that they differ only in their source.
    """
    python = _interpreter(folder)
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    # entries of sys.path rather than .pth files: the latter would import the editable install of the working tree
    paths = [str(folder / "site"), *(path for path in sys.path if "site-packages" in path)]
    (library,) = (folder / "venv" / "lib").glob("python3*/site-packages")
    (library / "packages.pth").write_text("\n".join(paths) + "\n")
    options = shlex.split(os.environ.get("PIP_OPTIONS", ""))
    if find_spec("scikit_build_core") and find_spec("nanobind"):
        options.append("--no-build-isolation")
    print(f"building {label} ...", file=sys.stderr, flush=True)
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target", str(folder / "site"),
         *options, "-C", f"build-dir={folder / 'build'}", str(source)],
        check=True,
    )  # fmt: skip
    return Side(label, python)
