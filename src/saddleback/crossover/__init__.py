"""Sparse answers: from any solution to one on a face of lowest dimension."""

from .crossing import Crossing, Work, cross

__all__ = ["Crossing", "Work", "cross"]
