"""Checks of what a user hands in: each error names the argument, what was found and what was expected."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..places.torch import on_host
from .arrays import Vector

SQUARABLE = 1e150
"""Numbers beyond this have squares, or sums of squares, that overflow: nothing is known of what is made of them."""


class ProbeError(ValueError):
    """A function or an operator of the user's own breaks an identity that it has to satisfy."""


def rounding_of(dtype: np.dtype[Any]) -> float:
    """Return the relative rounding of numbers of a type: float32 and less have their own, all others float64's."""
    return float(np.finfo(dtype).eps) if dtype.kind == "f" and dtype.itemsize < 8 else float(np.finfo(np.float64).eps)


def real(name: str, value: ArrayLike) -> Vector:
    """Return a float64 copy of value, or raise where it is complex, of object type, or empty."""
    return _real(name, value).astype(np.float64)


def unmasked(name: str, value: Any) -> Any:
    """Return value, or raise if it is a masked array with masked entries: numpy would drop the mask silently."""
    if np.ma.is_masked(value):
        where = np.argwhere(np.atleast_1d(np.ma.getmaskarray(value)))[0].tolist()
        raise ValueError(
            f"{name} is a masked array, masked at index {where}: expected no missing entries; leave them out, "
            "fill them with .filled(value), or give their samples the weight 0"
        )
    return np.ma.getdata(value) if isinstance(value, np.ma.MaskedArray) else value


def _real(name: str, value: ArrayLike) -> NDArray[Any]:
    value = unmasked(name, value)
    try:
        array = np.asarray(on_host(value))
    except ValueError:
        raise ValueError(f"{name} is not an array: its rows have different lengths") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} has dtype {array.dtype}: expected real numbers; convert it with astype(float) first")
    if array.size == 0:
        raise ValueError(f"{name} is empty: expected at least one value")
    return array


def finite(name: str, value: ArrayLike) -> Vector:
    """Return value as float64, or raise where it has NaN or infinite entries."""
    return _finite(name, real(name, value))


class Lent(np.ndarray[Any, Any]):
    """An array whose owner does not change it as long as a function has it."""


def data(name: str, value: ArrayLike) -> NDArray[Any]:
    """Return an array that is lent or that nobody can change itself, and any other as ``finite`` does."""
    array = _real(name, value)
    constant = array.dtype in (np.float32, np.float64) and (isinstance(value, Lent) or _unchangeable(array))
    return _finite(name, array if constant else array.astype(np.float64))


def _unchangeable(array: Any) -> bool:
    """Return whether neither an array nor one that it is a view of can be written to, as with a memory map."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return True


def _finite(name: str, array: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum(dtype=np.float64)  # it is finite if they all are, and needs no temporary
    if not np.isfinite(total) and not np.all(np.isfinite(array)):
        bad = np.argwhere(~np.isfinite(np.atleast_1d(array)))[0]
        found = np.atleast_1d(array)[tuple(bad)]
        raise ValueError(f"{name} has the value {found} at index {bad.tolist()}: expected finite numbers")
    return array


def nonnegative(name: str, value: ArrayLike) -> Vector:
    """Return value as float64, or raise where it is not finite or negative."""
    array = finite(name, value)
    if np.any(array < 0):
        raise ValueError(f"{name} has the value {array.min()}: expected numbers that are at least 0")
    return array


def scalar(name: str, value: float, low: float = 0.0, high: float = np.inf) -> float:
    """Return value as a float, or raise where it is not a finite number in [low, high]."""
    array = finite(name, value)
    if array.ndim != 0:
        raise ValueError(f"{name} has shape {array.shape}: expected a single number")
    if not low <= array <= high:
        expected = f"between {low} and {high}" if np.isfinite(high) else f"at least {low}"
        raise ValueError(f"{name}={value} is out of range: expected a number {expected}")
    return float(array)


def multiple(name: str, factor: float) -> float:
    """Return a factor of a convex function, or raise if it is negative: the multiple would not be convex."""
    if not 0 <= factor < np.inf:
        raise ValueError(f"{factor:g} * {name}: expected a finite factor that is at least 0, for a convex multiple")
    return factor


def positive_multiple(name: str, factor: float) -> None:
    """Raise if a factor of a constraint is not positive. Positive multiples of an indicator are the indicator."""
    if not 0 < factor < np.inf:
        raise ValueError(f"{factor:g} * {name}: expected a positive factor, which leaves a constraint as it is")


def shown(value: object, most: int = 60) -> str:
    """Return a value as a message shows it: in one line, and cut if it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= most else f"{text[:most]}..."


def number(name: str, value: Any) -> float:
    """Return the value of an option as a float, or raise if it is not a single real number."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name}={shown(value)}: expected a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name}={shown(value)}: expected a number of at most 1.8e308") from None


def one_of(name: str, value: Any, *allowed: Any) -> None:
    """Raise if the value of an option is not one of those that are allowed.

    Arrays, tensors and data frames do not compare to a single truth value, so that types are compared first.
    """
    plain = value.item() if isinstance(value, np.generic) else value
    if not any(isinstance(plain, type(each)) and plain == each for each in allowed):
        *others, last = map(repr, allowed)
        raise ValueError(f"{name}={shown(value)}: expected {', '.join(others)} or {last}")


def bounds(lower: ArrayLike, upper: ArrayLike) -> tuple[Vector, Vector]:
    """Return a lower and an upper bound, which may be infinite, or raise where they cross or are NaN."""
    low, high = real("lower", lower), real("upper", upper)
    for name, array in (("lower", low), ("upper", high)):
        if np.any(np.isnan(array)):
            raise ValueError(f"{name} contains NaN: expected numbers, -inf or inf")
    if np.any(low == np.inf) or np.any(high == -np.inf):
        raise ValueError("lower must be below +inf and upper above -inf: no number lies between such bounds")
    try:
        crossing = np.argwhere(np.atleast_1d(np.less(high, low)))
    except ValueError:
        raise ValueError(f"lower has shape {low.shape} and upper {high.shape}: expected the same") from None
    if crossing.size:
        raise ValueError(f"lower exceeds upper at index {crossing[0].tolist()}: expected lower <= upper everywhere")
    return low, high
