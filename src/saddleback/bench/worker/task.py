"""A problem as plain values, which a folder of files carries from one process to another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

SPARSE_PARTS = ("data", "indices", "indptr")


@dataclass(frozen=True)
class Task:
    """A problem of a kind, with its data by name.

    Attributes
    ----------
    kind : "lasso", "group-lasso" and so on; ``judging`` defines the objective of each kind.
    values : arrays, a CSC matrix, and numbers.
    """

    kind: str
    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of A."""
        rows, columns = self.values["A"].shape
        return rows, columns

    def at(self, alpha: float) -> Task:
        """Return the Lasso at one alpha of a path."""
        return Task("lasso", {"A": self["A"], "b": self["b"], "alpha": alpha})

    def save(self, folder: Path) -> None:
        """Write every value to a separate file; dense arrays keep their memory order."""
        numbers, matrices = {}, {}
        for name, value in self.values.items():
            if sparse.issparse(value):
                matrices[name] = value.shape
                for part in SPARSE_PARTS:
                    np.save(folder / f"{name}.{part}.npy", getattr(value, part))
            elif isinstance(value, np.ndarray):
                np.save(folder / f"{name}.npy", value)
            else:
                numbers[name] = value
        header = {"kind": self.kind, "numbers": numbers, "sparse": matrices}
        (folder / "task.json").write_text(json.dumps(header))

    @classmethod
    def load(cls, folder: Path) -> Task:
        """Read what ``save`` wrote."""
        header = json.loads((folder / "task.json").read_text())
        values: dict[str, Any] = dict(header["numbers"])
        for path in folder.glob("*.npy"):
            name, _, part = path.stem.partition(".")
            if not part:
                values[name] = np.load(path)
        for name, shape in header["sparse"].items():
            parts = tuple(np.load(folder / f"{name}.{part}.npy") for part in SPARSE_PARTS)
            values[name] = sparse.csc_matrix(parts, shape=tuple(shape))
        return cls(header["kind"], values)
