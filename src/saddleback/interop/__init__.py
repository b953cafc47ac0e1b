"""Problems of other modelling libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .reading import CvxpyProblem


def from_cvxpy(problem: Any) -> CvxpyProblem:
    r"""Read a problem of CVXPY that has the form :math:`\min_x \sum_j f_j(x_j) + \sum_r g_r(A_r x)`.

    The objective is a sum of atoms with weights, each a function of the catalogue of an affine expression; constraints
    are affine, or bounds on absolute values. Atoms and bounds on single variables become penalties, and all others
    become losses, each with its rows of A. Parameters have their present values.

    Parameters
    ----------
    problem : cvxpy.Problem
        A convex problem. A maximisation becomes the minimisation of the negative objective.

    Returns
    -------
    CvxpyProblem
        A ``Problem`` whose x is a list in the order of ``problem.variables()``, matrices in row-major order. Its method
        ``assign(x)`` writes x into the variables, and ``objective(value)`` states a value in the sense of CVXPY.

    Raises
    ------
    ValueError
        If the problem has another form. The message names the expression.

    Examples
    --------
    >>> import cvxpy as cp, numpy as np, saddleback as sb
    >>> x = cp.Variable(3)
    >>> lasso = cp.Problem(cp.Minimize(cp.sum_squares(x - [3.0, -0.5, 1.0]) / 2 + cp.norm1(x)))
    >>> problem = sb.from_cvxpy(lasso)
    >>> result = sb.solve(problem, tol=1e-12)
    >>> problem.assign(result.x)
    >>> bool(np.allclose(x.value, [2.0, 0.0, 0.0], atol=1e-5))
    True
    """
    require_cvxpy("from_cvxpy")
    from .reading import read

    return read(problem)


def require_cvxpy(purpose: str) -> None:
    """Raise an error that says how to install CVXPY, if it is missing."""
    try:
        import cvxpy  # noqa: F401
    except ImportError:
        raise ImportError(f"{purpose} needs CVXPY: pip install 'saddleback[cvxpy]'") from None
