"""Columns of A in files, read in panels."""
