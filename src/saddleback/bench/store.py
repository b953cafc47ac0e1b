"""The results of a run, as JSON beside the document, so that single cases can be run again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Say = Callable[[str], None]
"""Takes a line about what was just found."""

Records = dict[str, dict[str, Any]]
"""By name of the case: what it is, on which machine it ran, and what was found."""


def load(path: Path) -> Records:
    """Return the records of a file, none where there is no file."""
    return json.loads(path.read_text()) if path.exists() else {}


def save(path: Path, records: Records) -> None:
    """Write the records to a file."""
    path.write_text(json.dumps(records, indent=1) + "\n")
