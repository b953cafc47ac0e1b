"""Regularisation paths, and the alpha at which they begin."""
