"""All cases of the benchmark."""

from __future__ import annotations

from .kinked_cases import KINKED
from .smooth_cases import SMOOTH

CASES = {case.name: case for case in (*SMOOTH, *KINKED)}
"""In the order of the tables."""
