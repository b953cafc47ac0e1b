"""The results of a run, as JSON next to the document, so that single cases can be run again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..common.outputs import replacing_text

Say = Callable[[str], None]
"""Prints a line about the latest result."""

Records = dict[str, dict[str, Any]]
"""By name of the case: its description, the machine on which it ran, and the results."""


def load(path: Path) -> Records:
    """Return the records of a file; none if there is no file."""
    return json.loads(path.read_text()) if path.exists() else {}


def save(path: Path, records: Records) -> None:
    """Write the records to a file."""
    with replacing_text(path) as stream:
        stream.write(json.dumps(records, indent=1) + "\n")
