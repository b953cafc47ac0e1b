"""A description of the machine."""

from __future__ import annotations

import math
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any


def describe_machine() -> dict[str, Any]:
    """Return cores, processor, memory and system, and the versions of saddleback, numpy and scipy."""
    size = memory("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "memory_gb": round(size / 1e9) if math.isfinite(size) else "unknown",
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in ("saddleback", "numpy", "scipy")},
    }


def memory(pages: str) -> float:
    """Return the bytes of SC_PHYS_PAGES or SC_AVPHYS_PAGES, the memory or what is free of it; infinite if unknown."""
    if pages not in getattr(os, "sysconf_names", {}):  # Windows knows neither, macOS not the second
        return math.inf
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf(pages))


def _processor() -> str:
    """Return the model of the processor, or its architecture if the system does not tell the model."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
