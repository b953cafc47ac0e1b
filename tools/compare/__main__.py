"""Compare the results of the working tree bit by bit with those of a commit, or with ``--time`` the run times."""

from __future__ import annotations

import argparse
import sys
import time

from . import bits, environments, times
from .environments import Side


def main() -> int:
    """Build and run both sides; return 1 if their results differ, else 0."""
    parser = argparse.ArgumentParser(prog="compare", description=__doc__)
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument("--tree", help="another commit instead of the working tree")
    parser.add_argument("--only", default="", help="run only the cases whose names contain this text")
    parser.add_argument("--time", action="store_true", help="measure times instead of bits")
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds of --time, by default 3")
    chosen = parser.parse_args()
    base = environments.commit(chosen.base)
    tree = environments.working_tree() if chosen.tree is None else environments.commit(chosen.tree)
    began = time.perf_counter()
    good = _times(base, tree, chosen.only, chosen.rounds) if chosen.time else _bits(base, tree, chosen.only)
    print(f"{base.label} and {tree.label}, {time.perf_counter() - began:.0f} s")
    return 0 if good else 1


def _bits(base: Side, tree: Side, only: str) -> bool:
    cases = {name: processes for name, processes in bits.catalogue(tree).items() if only in name}
    _check(only, cases)
    return bits.report(bits.compare(base, tree, cases))


def _times(base: Side, tree: Side, only: str, rounds: int) -> bool:
    grouped = {name: group for name, group in times.groups(tree).items() if only in name}
    _check(only, grouped)
    times.report(base, tree, grouped, times.measure(base, tree, list(grouped), rounds))
    return True


def _check(only: str, found: object) -> None:
    if not found:
        raise SystemExit(f"--only {only}: no case has a name that contains this text")


if __name__ == "__main__":
    sys.exit(main())
