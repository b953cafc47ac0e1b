"""Comparison of two commits: whether their results agree in all bits, and which of the two is faster."""
