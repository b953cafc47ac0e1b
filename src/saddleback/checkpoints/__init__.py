"""Checkpoints: a run on disk, from which it goes on as if nothing had happened."""

from .fingerprint import compare, described, fingerprint
from .graph import Known
from .keeper import Keeper, restore, writable

__all__ = ["Keeper", "Known", "compare", "described", "fingerprint", "restore", "writable"]
