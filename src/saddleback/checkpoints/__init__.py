"""Checkpoints: a run on disk, from which it goes on as if nothing had happened."""

from .fingerprint import compare, described, fingerprint
from .graph import Known
from .writer import Keeper, Kept, going_on, restore, writable

__all__ = ["Keeper", "Kept", "Known", "compare", "described", "fingerprint", "going_on", "restore", "writable"]
