"""Compare the working tree with a commit: ``python -m compare COMMIT`` for bits, ``--time`` for times."""

from __future__ import annotations

import argparse
import sys
import time

from . import bits, environments
from .cases import CASES


def main() -> int:
    """Build both sides, run them side by side, and return 1 if answers differ."""
    parser = argparse.ArgumentParser(prog="compare", description=__doc__)
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument("--tree", help="another commit in the place of the working tree")
    parser.add_argument("--only", help="run the cases whose names have this in them")
    parser.add_argument("--list", action="store_true", help="print the names of the cases and end")
    chosen = parser.parse_args()
    names = [name for name in CASES if chosen.only is None or chosen.only in name]
    if chosen.list:
        print("\n".join(names))
        return 0
    if not names:
        parser.error(f"--only {chosen.only}: no case has that in its name; --list prints them")
    base = environments.commit(chosen.base)
    tree = environments.working_tree() if chosen.tree is None else environments.commit(chosen.tree)
    began = time.perf_counter()
    good = bits.report(bits.compare(base, tree, names))
    print(f"{base.label} and {tree.label}, {time.perf_counter() - began:.0f} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
