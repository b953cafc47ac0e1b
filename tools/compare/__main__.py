"""Compare the working tree with a commit: the bits of its answers, or with ``--time`` how long they take."""

from __future__ import annotations

import argparse
import sys
import time

from . import bits, environments, times
from .environments import Side


def main() -> int:
    """Build both sides, run them side by side, and return 1 if answers differ."""
    parser = argparse.ArgumentParser(prog="compare", description=__doc__)
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument("--tree", help="another commit in the place of the working tree")
    parser.add_argument("--only", default="", help="run the cases whose names have this in them")
    parser.add_argument("--time", action="store_true", help="measure times instead of bits")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of --time, by default 3")
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
        raise SystemExit(f"--only {only}: no case has that in its name")


if __name__ == "__main__":
    sys.exit(main())
