"""Checks of the user's arguments: each error names the argument, what was found and what was expected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..places.torch import on_host
from .arrays import Indices, Vector

LARGEST = 1e120
"""Largest size of a number in the data: A, b, the weights and the parameters of losses. Objectives are squares of them,
and Newton's systems products of two, which then stay within the range of float64. What is divided by, the columns of A
and the weights of samples, is 0 or at least one over it."""

LARGEST_PRODUCT = LARGEST**2
"""Largest size of numbers that are compared with A'y, a product of data: alpha and c."""

SQUARABLE = 1e150
"""Largest size of x and y, and of bounds on them: larger ones have squares, or sums of squares, that overflow."""


class ProbeError(ValueError):
    """A function or an operator of the user breaks an identity that it has to satisfy."""


def distinct_names(where: str, names: Iterable[str]) -> None:
    """Raise if two features have the same name, as a column ``city=Paris`` and the category ``Paris`` of ``city``."""
    name, count = max(Counter(names).items(), key=lambda item: item[1])
    if count > 1:
        raise ValueError(
            f"{where}: {count} features have the name {name!r}, by which they cannot be told apart (a category b of a "
            "column a has the name 'a=b'): rename a column, or leave one out"
        )


def rounding_of(dtype: np.dtype[Any]) -> float:
    """Return the relative rounding of numbers of a type: that of float32 or float16, or of float64 for all others."""
    return float(np.finfo(dtype).eps) if dtype.kind == "f" and dtype.itemsize < 8 else float(np.finfo(np.float64).eps)


def real(name: str, value: ArrayLike) -> Vector:
    """Return a float64 copy of value, or raise if it is complex, of object type, or empty."""
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


def finite(name: str, value: ArrayLike, largest: float = LARGEST) -> Vector:
    """Return value as float64, or raise if it has entries that are NaN, infinite or larger in size than allowed."""
    return _finite(name, real(name, value), largest)


class Lent(np.ndarray[Any, Any]):
    """An array whose owner does not change it as long as a function holds it."""


def data(name: str, value: ArrayLike) -> NDArray[Any]:
    """Return a ``Lent`` or unchangeable array without a copy, and any other array as ``finite`` does."""
    array = _real(name, value)
    constant = array.dtype in (np.float32, np.float64) and (isinstance(value, Lent) or _unchangeable(array))
    return _finite(name, array if constant else array.astype(np.float64))


def _unchangeable(array: Any) -> bool:
    """Return whether neither an array nor the arrays of which it is a view can be written to, as with a memory map."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return True


def in_range(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return an array of real numbers as it is, or raise if one is not finite or too large to be computed with."""
    return _finite(name, array)


def _finite(name: str, array: NDArray[Any], largest: float = LARGEST) -> NDArray[Any]:
    with np.errstate(invalid="ignore"):
        low, high = float(array.min()), float(array.max())  # NaN if one of them is; needs no temporary
    if not (low >= -largest and high <= largest):
        _raise_first(name, array, np.isfinite(array), "finite numbers")
        _raise_first(name, array, np.abs(array) <= largest, f"{_at_most(largest)}; change the units")
    return array


def _at_most(largest: float) -> str:
    return f"numbers of at most {largest:.0e} in size, which can be computed with"


def _raise_first(name: str, array: NDArray[Any], right: NDArray[np.bool_], expected: str) -> None:
    """Raise an error for the first entry that is not right, if there is one."""
    wrong = np.argwhere(~right)
    if len(wrong):
        where = f" at index {wrong[0].tolist()}" if array.ndim else ""
        raise ValueError(f"{name} has the value {array[tuple(wrong[0])]}{where}: expected {expected}")


def nonnegative(name: str, value: ArrayLike) -> Vector:
    """Return value as float64, or raise if it is negative or not finite."""
    array = finite(name, value)
    if np.any(array < 0):
        raise ValueError(f"{name} has the value {array.min()}: expected numbers that are at least 0")
    return array


def positive(name: str, value: ArrayLike) -> Vector:
    """Return value as float64, or raise if it is not positive, not finite, or so small that 1 / value overflows."""
    array = finite(name, value)
    _raise_first(name, array, array >= 1 / LARGEST, f"positive numbers, of at least {1 / LARGEST:.0e}")
    return array


def within(name: str, value: ArrayLike, high: float) -> Vector:
    """Return value as float64, or raise if it is not between 0 and a largest number."""
    array = finite(name, value)
    _raise_first(name, array, (array >= 0) & (array <= high), f"numbers between 0 and {high:g}")
    return array


def weights(name: str, value: ArrayLike) -> Vector:
    """Return weights of samples as float64, or raise if one is negative, or so small that 1 / weight overflows."""
    array = nonnegative(name, value)
    expected = f"0 or numbers of at least {1 / LARGEST:.0e}; write 0 for a sample that does not count"
    _raise_first(name, array, (array == 0) | (array >= 1 / LARGEST), expected)
    return array


def scalar(name: str, value: float, low: float = 0.0, high: float = np.inf, largest: float = LARGEST) -> float:
    """Return value as a float, or raise if it is not a finite number in [low, high], or larger than allowed."""
    if isinstance(value, float) and low <= value <= min(high, largest):
        return float(value)
    array = finite(name, value, largest)
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
    """Return a value for a message: in one line, and cut if it is long."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python writes no integer of more than 4,300 digits
        text = f"<{type(value).__name__} with too many digits to write>"
    return text if len(text) <= most else f"{text[:most]}..."


def number(name: str, value: Any) -> float:
    """Return the value of an option as a float, or raise if it is not a single real number."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name}={shown(value)}: expected a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name}={shown(value)}: expected a number of at most 1.8e308") from None


def integer(name: str, value: Any, least: int = 1) -> int:
    """Return value as an int, or raise if it is not an integer of at least ``least``."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name}={shown(value)}: expected an integer of at least {least}")
    return int(value)


def indices(name: str, value: ArrayLike, shape: tuple[int | None, ...], n: int | None) -> tuple[Indices, int]:
    """Return a copy of an array of indices from 0 to n - 1, and n: one more than the largest of them by default.

    ``shape`` is the shape that it must have, with None for a size that may be any positive number.
    """
    array = _real(name, value)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} has dtype {array.dtype}: expected integers")
    if array.ndim != len(shape) or any(size not in (None, own) for size, own in zip(shape, array.shape, strict=True)):
        expected = "a vector" if len(shape) == 1 else f"a matrix with {shape[1]} columns"
        raise ValueError(f"{name} has shape {array.shape}: expected {expected}")
    low, high = int(array.min()), int(array.max())
    count = high + 1 if n is None else integer("n", n)
    if low < 0 or high >= count:
        raise ValueError(f"{name} has indices from {low} to {high}: expected indices from 0 to {count - 1}")
    return array.astype(np.int64), count


def one_of(name: str, value: Any, *allowed: Any) -> None:
    """Raise if the value of an option is not one of those that are allowed.

    Arrays, tensors and data frames do not compare to a single truth value, so that types are compared first.
    """
    plain = value.item() if isinstance(value, np.generic) else value
    if not any(isinstance(plain, type(each)) and plain == each for each in allowed):
        *others, last = map(repr, allowed)
        raise ValueError(f"{name}={shown(value)}: expected {', '.join(others)} or {last}")


def bounds(lower: ArrayLike, upper: ArrayLike) -> tuple[Vector, Vector]:
    """Return a lower and an upper bound, which may be infinite, or raise if they cross or are NaN."""
    low, high = real("lower", lower), real("upper", upper)
    expected = f"{_at_most(SQUARABLE)}; write inf for no bound"
    for name, array in (("lower", low), ("upper", high)):
        if np.any(np.isnan(array)):
            raise ValueError(f"{name} contains NaN: expected numbers, -inf or inf")
        _raise_first(name, array, (np.abs(array) <= SQUARABLE) | np.isinf(array), expected)
    if np.any(low == np.inf) or np.any(high == -np.inf):
        raise ValueError("lower must be below +inf and upper above -inf: no number lies between such bounds")
    try:
        crossing = np.argwhere(np.atleast_1d(np.less(high, low)))
    except ValueError:
        raise ValueError(f"lower has shape {low.shape} and upper {high.shape}: expected the same") from None
    if crossing.size:
        raise ValueError(f"lower exceeds upper at index {crossing[0].tolist()}: expected lower <= upper everywhere")
    return low, high
