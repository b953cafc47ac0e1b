"""The compiled kernels."""
