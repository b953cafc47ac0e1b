"""The MEMset Donor sites of Yeo and Burge (2003), from the original files."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .splice import GroupHingeData, interactions

FOLDER = "memset"
TRUE, FALSE = "train5_hs", "train0_5_hs"


def load_memset(data: Path | str | None = None, sites: int | None = None) -> GroupHingeData:
    """Return the balanced training set: all true donor sites and as many false ones, one-hot to third order.

    The false sites are drawn without replacement by ``numpy.random.default_rng(0)``, so that they are always the same.

    Parameters
    ----------
    data : str or Path, optional
        Folder with ``memset/train5_hs`` and ``memset/train0_5_hs``; by default the one that the environment variable
        SADDLEBACK_DATA names. Without these files, ``make_group_hinge`` simulates data of the same structure.
    sites : int, optional
        How many sites of each kind to take, the first ones; all 8,415 by default.

    Returns
    -------
    GroupHingeData
        Matrix, labels, groups and sites.
    """
    named = os.environ.get("SADDLEBACK_DATA") if data is None else data
    if not named:
        raise FileNotFoundError(
            "data=None, and SADDLEBACK_DATA is not set: expected the folder with the original MEMset files; "
            "make_group_hinge simulates such data"
        )
    folder = Path(named) / FOLDER
    true, false = _read_sites(folder / TRUE), _read_sites(folder / FALSE)
    false = false[np.random.default_rng(0).choice(len(false), len(true), replace=False)]
    kept = len(true) if sites is None else sites
    if not 1 <= kept <= len(true):
        raise ValueError(f"sites={sites}: expected a number from 1 to {len(true)}, the true sites")
    chosen = np.concatenate([true[:kept], false[:kept]])
    A, groups = interactions(chosen)
    return GroupHingeData(A, np.repeat([1.0, -1.0], kept), groups, chosen)


def _read_sites(path: Path) -> NDArray[np.int64]:
    """Return the sites of a file, which has a line with ">" and the kind, then a line of bases, for each."""
    if not path.is_file():
        raise FileNotFoundError(
            f"{path}: no such file; expected the original MEMset Donor training files {TRUE} and {FALSE} in a folder "
            f"{FOLDER!r} of the data folder (--data or SADDLEBACK_DATA); make_group_hinge simulates such data"
        )
    lines = (line.strip().upper() for line in path.read_text().splitlines())
    return np.array([["ACGT".index(base) for base in line] for line in lines if line and not line.startswith(">")])
