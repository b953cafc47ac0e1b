"""Measure how large and complex the source is, with a limit per measure: ``python -m house [COMMIT]``.

Everything is read from the source text, so that any commit can be measured. If a commit is given, its column comes
first.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tempfile
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from compare.environments import ROOT, extract

Function = ast.FunctionDef | ast.AsyncFunctionDef

CONTRACTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "function": (("functions",), ("Function", "Restrictable", "Convex", "Domain")),
    "operator": (("operators",), ("Operator", "Traits")),
    "place": (("places",), ("Place",)),
    "kernel": (
        ("places", "backends"),
        (
            "Sweeper",
            "PureSweeper",
            "Descender",
            "BlockKernel",
            "PureCDKernel",
            "DescentKernel",
            "LocalDescentKernel",
        ),
    ),
}
"""The folders and classes that form each contract; those that a commit does not have are skipped."""

ALGORITHMS = ("methods", "layers", "acceleration", "interior")
"""Folders in which a dictionary would be the memory of an algorithm."""

NO_CODE = (
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
)  # fmt: skip


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


@cache
def _code_lines(text: str) -> frozenset[int]:
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(_parsed(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(_lines(node))
    return frozenset(lines)


def _lines(first: ast.stmt, last: ast.stmt | None = None) -> range:
    """Return the line numbers of a statement, or of all statements from one to another."""
    end = (last or first).end_lineno
    assert end is not None
    return range(first.lineno, end + 1)


@dataclass(frozen=True)
class Module:
    """A Python file: its path relative to the package, and its text."""

    path: Path
    text: str

    @property
    def tree(self) -> ast.Module:
        """The syntax tree of the file."""
        return _parsed(self.text)

    @property
    def code(self) -> frozenset[int]:
        """The numbers of the lines with code; blank lines, comments and docstrings do not count."""
        return _code_lines(self.text)

    def within(self, *folders: str) -> bool:
        """Return whether the file lies in one of these folders of the package."""
        return self.path.parts[0] in folders


@dataclass(frozen=True)
class Source:
    """The package and the compiled core of one commit."""

    modules: Sequence[Module]
    native: Sequence[str]

    @classmethod
    def read(cls, root: Path) -> Source:
        """Read a source tree."""
        package = root / "src" / "saddleback"
        modules = [Module(path.relative_to(package), path.read_text()) for path in sorted(package.rglob("*.py"))]
        native = [path.read_text() for path in sorted((root / "native").rglob("*")) if path.suffix in (".hpp", ".cpp")]
        return cls(modules, native)

    def classes(self, *folders: str) -> Iterator[ast.ClassDef]:
        """Yield the classes of some folders."""
        for module in self.modules:
            if module.within(*folders):
                yield from (node for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef))


def members(node: ast.ClassDef) -> set[str]:
    """Return the public methods, properties and attributes that a class declares."""
    names: set[str] = set()
    for statement in node.body:
        if isinstance(statement, Function):
            names.add(statement.name)
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            names.add(statement.target.id)
        elif isinstance(statement, ast.Assign):
            names.update(target.id for target in statement.targets if isinstance(target, ast.Name))
    return {name for name in names if not name.startswith("_")}


def contract(kind: str) -> Callable[[Source], int | str]:
    """Return a function that counts the public members of a contract."""
    folders, names = CONTRACTS[kind]

    def count(source: Source) -> int | str:
        found = [node for node in source.classes(*folders) if node.name in names]
        return len(set().union(*map(members, found))) if found else "not found"

    return count


def flat_modules(source: Source) -> int:
    """Count the modules that lie in no folder of the package."""
    return sum(len(module.path.parts) == 1 and module.path.name != "__init__.py" for module in source.modules)


def longest_function(source: Source) -> str:
    """Return the largest number of lines of code in the body of a function, and its location."""
    lengths = [
        (len(module.code.intersection(_lines(node.body[0], node.body[-1]))), f"{module.path}:{node.name}")
        for module in source.modules
        for node in ast.walk(module.tree)
        if isinstance(node, Function)
    ]
    length, where = max(lengths)
    return f"{length} ({where})"


def states_asked(source: Source) -> int:
    """Count ``isinstance`` on a state."""
    calls = (
        node
        for module in source.modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"
    )
    return sum(bool(re.search(r"State\b", ast.unparse(call.args[1]))) for call in calls)


def settings_used(source: Source) -> int:
    """Count uses of an attribute ``settings`` in methods and layers."""
    return sum(
        isinstance(node, ast.Attribute) and node.attr == "settings"
        for module in source.modules
        if module.within(*ALGORITHMS)
        for node in ast.walk(module.tree)
    )


def dictionaries_in_states(source: Source) -> int:
    """Count the attributes of states that are dictionaries."""
    return sum(
        isinstance(statement, ast.AnnAssign) and ast.unparse(statement.annotation).startswith(("dict[", "Dict["))
        for node in source.classes(*ALGORITHMS)
        if node.name.endswith("State")
        for statement in node.body
    )


def overrides_ignored(source: Source) -> int:
    """Count ``type: ignore[override]``."""
    return sum(len(re.findall(r"type: ignore\[[^\]]*override", module.text)) for module in source.modules)


def python_lines(source: Source) -> int:
    """Count lines of Python with code."""
    return sum(len(module.code) for module in source.modules)


def native_lines(source: Source) -> int:
    """Count lines of C++ that are neither blank nor comments."""
    bare = (re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL) for text in source.native)
    return sum(bool(line.strip()) for text in bare for line in text.splitlines())


MEASURES: dict[str, tuple[Callable[[Source], int | str], str]] = {
    "public members of a function": (contract("function"), "15"),
    "public members of an operator, traits included": (contract("operator"), "25"),
    "public members of a place": (contract("place"), "5"),
    "public members of the kernels that places make": (contract("kernel"), ""),
    "modules in no folder": (flat_modules, "6"),
    "longest body of a function, lines of code": (longest_function, "60"),
    "isinstance on a state": (states_asked, "0"),
    "uses of .settings in methods and layers": (settings_used, "0"),
    "dictionaries in states": (dictionaries_in_states, "0"),
    "type: ignore[override]": (overrides_ignored, "3"),
    "lines of Python with code": (python_lines, "90% of before"),
    "lines of C++ with code": (native_lines, "90% of before"),
}


def main(commit: str | None) -> None:
    """Print the table."""
    columns = {"tree": Source.read(ROOT)}
    if commit is not None:
        with tempfile.TemporaryDirectory() as folder:
            extract(commit, Path(folder))
            columns = {commit: Source.read(Path(folder)), **columns}
    rows = [("", *columns, "at most")]
    rows += [
        (name, *(str(count(source)) for source in columns.values()), bar) for name, (count, bar) in MEASURES.items()
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
