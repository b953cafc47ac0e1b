"""Kernels in numpy: the readable specification, for every problem."""
