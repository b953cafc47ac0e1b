"""Checkpoints: a run on disk, from which it goes on as if nothing had happened."""

from .fingerprint import compare, described, fingerprint
from .graph import Known
from .writer import Checkpoint, CheckpointWriter, going_on, restore, writable

__all__ = [
    "Checkpoint",
    "CheckpointWriter",
    "Known",
    "compare",
    "described",
    "fingerprint",
    "going_on",
    "restore",
    "writable",
]
