"""The measures of ``make measure-house``."""

from __future__ import annotations

from pathlib import Path

import pytest

import house
from compare.environments import ROOT

MODULE = '''"""A module."""

# a comment
class Operator:
    """A class."""

    shape: tuple[int, int]
    """An attribute."""
    stored = 0
    _hidden = 1

    def matvec(self, x):  # type: ignore[override]
        """Return

        A x."""
        return isinstance(x, (list, RunState))

    @property
    def room(self):
        return (
            1,  # not empty

        )


class RunState:
    settings: dict[str, int]
    errors: list[int]

    def advance(self):
        self.settings["n"] = "a\\nb"
'''


@pytest.fixture
def source():
    modules = [house.Module(Path(path), MODULE) for path in ("operators/one.py", "flat.py", "methods/two.py")]
    return house.Source(modules, ["// a comment\n#include <x>\n\nint f() { /* of\nlines */\n  return 1; }  // end\n"])


def test_counts(source):
    counted = {name: count(source) for name, (count, _) in house.MEASURES.items()}
    assert counted == {
        "public members of a function": "not found",
        "public members of an operator, traits included": 4,
        "public members of a place": "not found",
        "public members of the kernels that places make": "not found",
        "modules in no folder": 1,
        "longest body of a function, lines of code": "3 (operators/one.py:room)",
        "isinstance on a state": 3,
        "uses of .settings in methods and layers": 1,
        "dictionaries in states": 1,
        "type: ignore[override]": 3,
        "lines of Python with code": 3 * 16,
        "lines of C++ with code": 3,
    }


def test_every_measure_finds_something_in_this_tree():
    source = house.Source.read(ROOT)
    assert [name for name, (count, _) in house.MEASURES.items() if count(source) == "not found"] == []
    assert house.python_lines(source) > 10_000
    assert house.native_lines(source) > 1_000
