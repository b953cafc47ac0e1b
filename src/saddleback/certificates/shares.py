r"""The share of each term in the objective and in the gap.

With z = -A'y the gap is a sum of terms that are not negative, by the inequality of Fenchel and Young:

.. math::

    P(x) - D(y) = \sum_j \left[ f_j(x_j) + f_j^*(z_j) - \langle x_j, z_j \rangle \right] +
    \sum_r \left[ g_r(u_r) + g_r^*(y_r) - \langle u_r, y_r \rangle \right].

A term with a large share is the one that is not yet optimal.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..functions.calculus import parts_of
from ..functions.contract import Convex
from ..problem import Problem
from ..result import Share
from .certificate import Gap


def shares(problem: Problem, gap: Gap) -> dict[str, Share]:
    """Return the share of each penalty and each loss, by name; no shares for a problem with a single loss."""
    if not problem.has_rows:
        return {}
    found = {}
    for j, (term, (function, own)) in enumerate(zip(problem.terms, _penalties(problem), strict=True)):
        name = f"penalty[{j}]" if problem.is_list else "penalty"
        excess = function.excess(gap.x[own], None, gap.slope.part(own))
        found[name] = Share(term.name, excess.value.high, excess.gap + excess.missed, 0.0)
    known = {(own.start, own.stop): function for function, own in parts_of(problem.model.g)}
    for r, (term, shape, own) in enumerate(zip(problem.losses, problem.y_shapes, problem.rows, strict=True)):
        function = known.get((own.start, own.stop)) or term.bind(shape)  # the latter if terms were joined into one
        radius = None if gap.radius is None else gap.radius[own]
        excess = function.conjugate().excess(gap.y[own], radius, gap.image.part(own))
        found[f"loss[{r}]"] = Share(term.name, excess.conjugate.high, excess.gap + excess.missed, excess.infeasibility)
    return found


def _penalties(problem: Problem) -> Sequence[tuple[Convex, slice]]:
    """Return the penalties of the model, each with its columns.

    With a function ``shard``, the terms of the problem are those of one process; its model has the columns of all.
    """
    f = problem.model.f
    return parts_of(f) if len(problem.terms) > 1 else [(f, slice(0, problem.model.A.shape[1]))]
