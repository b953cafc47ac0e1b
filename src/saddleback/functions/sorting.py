r"""Sort and pool: the proximal maps of all functions of sorted entries.

With :math:`c_1 \le \dots \le c_n` and the entries of x in the same order, :math:`x_{(1)} \le \dots \le x_{(n)}`, the
minimiser of

.. math::

    \sum_i c_i x_{(i)} + \tfrac12 \|x - v\|^2

has the order of v, since exchanging two entries that do not would lower the square and keep the sum. In that order it
is the non-decreasing vector nearest to :math:`v_{(i)} - c_i`: an isotonic regression. This is found by pooling: entries
are added one after the other, and as long as the last level is below the one before it, both become their mean. Under
absolute values, x has the signs of v, and levels below 0 become 0 (Bogdan, van den Berg, Sabatti, Su and Candes, 2015).

The functions here are the specification of those of the same names in the compiled core, which take a time proportional
to n after the sort.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _native
from ..common.arrays import Indices, Vector


def pool(v: Vector, weight: Vector) -> Vector:
    """Return the non-decreasing x that minimises sum_i w_i (x_i - v_i)^2.

    Parameters
    ----------
    v : the vector.
    weight : one positive value per entry, or a single one.
    """
    levels: list[tuple[float, float, int]] = []  # the mean of each level, its weight and its number of entries
    for mean, mass in np.broadcast(v, weight):
        size = 1
        while levels and levels[-1][0] > mean:
            below, other, count = levels.pop()
            mean = below + (mean - below) * (mass / (other + mass))
            mass, size = other + mass, size + count
        levels.append((mean, mass, size))
    return np.repeat([mean for mean, _, _ in levels], [size for _, _, size in levels])


def sort_and_pool(v: Vector, taken: Vector, absolute: bool) -> Vector:
    """Return the minimiser at the top of this module.

    Parameters
    ----------
    v : the vector.
    taken : c, in non-decreasing order.
    absolute : whether the sum is over the sorted absolute values of x.
    """
    key = np.abs(v) if absolute else v
    order = np.argsort(key, kind="stable")
    x = np.empty_like(v)
    x[order] = pool(key[order] - taken, np.ones(1))
    return np.copysign(np.maximum(x, 0.0), v) if absolute else x


def shrink_sorted(v: Any, taken: Vector, absolute: bool) -> Vector:
    """Return the same from the compiled core, for a vector on the host or a device; the result is on the host."""
    return _native.sort_and_pool(np.ascontiguousarray(v, dtype=np.float64), taken, absolute)


def ranked(values: Vector, by: Any) -> Vector:
    """Return values with the order of ``by``: the k-th value at the place of its k-th smallest entry."""
    result = np.empty_like(values)
    result[np.argsort(np.asarray(by), kind="stable")] = values
    return result


def largest_sums(v: Any) -> Vector:
    """Return the sums of the largest entry, of the two largest, and so on."""
    sums: Vector = np.cumsum(np.sort(np.asarray(v))[::-1])
    return sums


def tied(v: Vector) -> tuple[Indices, Indices]:
    """Return the order of v, and where each run of equal entries begins in it."""
    order = np.argsort(v, kind="stable")
    return order, np.concatenate([[0], np.flatnonzero(np.diff(v[order])) + 1])
