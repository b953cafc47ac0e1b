"""Checkpoints: a run in a file, from which it resumes with the same bits."""

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
