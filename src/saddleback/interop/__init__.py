"""Problems of other modelling libraries."""

from __future__ import annotations


def require_cvxpy(purpose: str) -> None:
    """Raise an error that says how to install CVXPY, if it is missing."""
    try:
        import cvxpy  # noqa: F401
    except ImportError:
        raise ImportError(f"{purpose} needs CVXPY: pip install 'saddleback[cvxpy]'") from None
