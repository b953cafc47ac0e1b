"""Kernels in numpy: the readable specification, which takes every problem."""
