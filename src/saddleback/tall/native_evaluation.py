"""One evaluation of dense rows by the compiled core; ``evaluation.py`` contains the same in numpy.

Some thirty calls of numpy per block of rows take several times as long as reading the rows, and mostly hold the lock of
the interpreter. The core reads a chunk once and holds no lock, so that two threads take half of the time.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..common.arrays import Indices, Vector
from ..functions import Logistic, Loss
from ..functions.losses import SeparableLoss
from ..machine.blas_threads import single_threaded
from ..machine.tiled_blas import tiled
from ..model.model import RESOLVED
from .columns import Columns
from .frame import Frame


class RowSums(NamedTuple):
    """Sums over rows, as those of ``Evaluation``; the rows that are close to a kink, and the y of the rows to keep."""

    value: float
    tangents: float
    rise: float
    squares: Vector
    pull: Vector
    diagonal: Vector
    curvature: NDArray[np.float64]
    near: Indices
    y: Vector


def readable(X: Any) -> bool:
    """Return whether the core can read rows: float32 or float64 numbers, in any order of memory or by columns."""
    if isinstance(X, Columns):
        return all(map(readable, X.parts))
    return isinstance(X, np.ndarray) and X.dtype in (np.float32, np.float64) and X.flags.aligned


def evaluate_rows(
    loss: Loss, X: Any, frame: Frame, x: Vector, curved: bool, chosen: Indices | None, width: float
) -> RowSums | None:
    """Return the sums over all rows at x, or None if the core does not know the loss.

    Parameters
    ----------
    loss : the loss of these rows.
    X : the rows, which the core can read.
    frame : the columns of x.
    x : the point.
    curved : whether to add up the curvature.
    chosen : the rows to keep.
    width : without such rows, how far from a kink rows are kept, relative to their leverage.
    """
    if not (loss.shape is None or loss.shape == X.shape[:1]) or (curved and not tiled()):
        return None
    numbers: list[Any]
    if isinstance(loss, SeparableLoss) and type(loss).bind is SeparableLoss.bind:
        kernel, numbers = _native.evaluate_piecewise_rows, list(loss.dual())
    elif type(loss) is Logistic:
        kernel, numbers = _native.evaluate_logistic_rows, [loss.labels]
    else:
        return None
    weight = loss.scale if loss.sample_weight is None else loss.scale * loss.sample_weight
    parts = X.parts if isinstance(X, Columns) else [X]
    with single_threaded() if curved else nullcontext():
        found = RowSums(*kernel(
            parts, [_by_row(number, X) for number in numbers], _by_row(weight, X), frame.centre, frame.intercept, x,
            frame.square_factors, width, RESOLVED, chosen, curved,
        ))  # fmt: skip
    size = frame.size if curved else 0
    return found._replace(curvature=found.curvature.reshape(size, size))


def _by_row(number: Any, X: Any) -> NDArray[Any]:
    """Return one number per row; a single one takes no memory."""
    array = np.asarray(number)
    return np.broadcast_to(array if array.dtype == np.float32 else array.astype(np.float64, copy=False), X.shape[:1])
