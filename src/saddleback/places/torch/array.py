"""Torch tensors that support numpy's protocols, so that code written in numpy runs on a device.

A ``DeviceArray`` implements numpy's functions (``__array_ufunc__`` of NEP 13, ``__array_function__`` of NEP 18) with
those of torch. Only the functions in the tables below are supported: those that the functions, the certificate and the
methods of this library use. Any other raises a ``TypeError`` that names it. Numpy arrays that are combined with a
device array are moved to its device. Only ``float``, ``bool`` and ``np.asarray`` copy data back to the host.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

DTYPES: dict[torch.dtype, np.dtype[Any]] = {
    torch.float64: np.dtype(np.float64),
    torch.float32: np.dtype(np.float32),
    torch.int64: np.dtype(np.int64),
    torch.int32: np.dtype(np.int32),
    torch.bool: np.dtype(np.bool_),
}
TORCH_DTYPES = {numpy: of_torch for of_torch, numpy in DTYPES.items()}


class DeviceArray(NDArrayOperatorsMixin):
    """A tensor that numpy's functions accept."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: tuple[Any, ...] = (), where: Any = True
    ) -> Any:
        device = self.tensor.device
        if method == "reduceat" and ufunc in SEGMENTS:
            values, start = inputs
            return DeviceArray(SEGMENTS[ufunc](operand(values, device), index(start, device)))
        if method != "__call__" or ufunc not in UFUNCS or not all(isinstance(target, DeviceArray) for target in out):
            return NotImplemented
        operands = [operand(value, device) for value in inputs]
        if not out:
            return DeviceArray(UFUNCS[ufunc](*operands))
        target = out[0].tensor
        if where is True and ufunc in IN_PLACE and isinstance(operands[0], torch.Tensor):
            IN_PLACE[ufunc](*operands, out=target)
        else:
            result = UFUNCS[ufunc](*operands)
            target.copy_(result if where is True else torch.where(where.tensor, result, target))
        return out[0]

    def __array_function__(
        self, function: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        compute = FUNCTIONS.get(function)
        return NotImplemented if compute is None else compute(*args, **kwargs)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.tensor.cpu().numpy().astype(dtype or self.dtype, copy=False)

    # the most frequent operators bypass numpy's dispatch, which takes as long as they do

    def __add__(self, other: Any) -> Any:
        known = plain(other)
        return super().__add__(other) if known is None else DeviceArray(self.tensor + known)

    def __sub__(self, other: Any) -> Any:
        known = plain(other)
        return super().__sub__(other) if known is None else DeviceArray(self.tensor - known)

    def __mul__(self, other: Any) -> Any:
        known = plain(other)
        return super().__mul__(other) if known is None else DeviceArray(self.tensor * known)

    def __rmul__(self, other: Any) -> Any:
        known = plain(other)
        return super().__rmul__(other) if known is None else DeviceArray(self.tensor * known)

    # --- what arrays have -----------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return tuple(self.tensor.shape)

    @property
    def size(self) -> int:
        """Number of entries."""
        return self.tensor.numel()

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.tensor.ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the entries, as a type of numpy."""
        return DTYPES[self.tensor.dtype]

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes between neighbours along each axis; (0,) for a single value."""
        return tuple(step * self.tensor.element_size() for step in self.tensor.stride())

    @property
    def T(self) -> DeviceArray:
        """The transpose."""
        return DeviceArray(self.tensor.T)

    def __len__(self) -> int:
        return len(self.tensor)

    def __float__(self) -> float:
        return float(self.tensor)

    def __bool__(self) -> bool:
        return bool(self.tensor)

    def __getitem__(self, key: Any) -> DeviceArray:
        parts = key if isinstance(key, tuple) else (key,)
        backwards = [axis for axis, part in enumerate(parts) if isinstance(part, slice) and part.step == -1]
        if backwards:  # torch has no views with negative steps
            return DeviceArray(self.tensor.flip(backwards))
        return DeviceArray(self.tensor[index(key, self.tensor.device)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.tensor[index(key, self.tensor.device)] = operand(value, self.tensor.device)

    def __repr__(self) -> str:
        return f"DeviceArray({self.tensor!r})"

    def copy(self) -> DeviceArray:
        """Return a copy."""
        return DeviceArray(self.tensor.clone())

    def reshape(self, *shape: Any, order: str = "C") -> DeviceArray:
        """Return the same entries in another shape."""
        return DeviceArray(self.tensor.reshape(*shape))

    def ravel(self) -> DeviceArray:
        """Return the entries as a vector."""
        return DeviceArray(self.tensor.reshape(-1))

    def astype(self, dtype: Any) -> DeviceArray:
        """Return the entries in another type."""
        return DeviceArray(self.tensor.to(TORCH_DTYPES[np.dtype(dtype)]))

    def sum(self, axis: int | None = None) -> DeviceArray:
        """Return the sum."""
        return DeviceArray(self.tensor.sum() if axis is None else self.tensor.sum(axis))

    def cholesky_solve(self, right: Any) -> DeviceArray:
        """Return the solution of the system whose Cholesky factor this is."""
        column = operand(right, self.tensor.device)[:, None]
        return DeviceArray(torch.cholesky_solve(column, self.tensor)[:, 0])

    def any(self) -> bool:
        """Return whether an entry is not 0."""
        return bool(self.tensor.any())

    def all(self) -> bool:
        """Return whether no entry is 0."""
        return bool(self.tensor.all())

    def nonzero(self) -> tuple[DeviceArray, ...]:
        """Return where entries are not 0, an array of indices per axis."""
        return tuple(DeviceArray(places) for places in torch.nonzero(self.tensor, as_tuple=True))

    def max(self, axis: int | None = None) -> DeviceArray:
        """Return the largest entry."""
        return DeviceArray(self.tensor.max() if axis is None else self.tensor.amax(axis))

    def min(self) -> DeviceArray:
        """Return the smallest entry."""
        return DeviceArray(self.tensor.min())


# --- arguments ------------------------------------------------------------------------------------------------------


def tensor_of(array: Any, device: torch.device) -> torch.Tensor:
    """Return a numpy array as a tensor on a device; an array of stride 0 stays a single value."""
    array = np.asarray(array)
    if array.size == 1 or (array.size and not any(array.strides)):
        return torch.full(
            (1,) * array.ndim, array.flat[0].item(), dtype=TORCH_DTYPES[array.dtype], device=device
        ).expand(array.shape)
    readable = array if array.flags.writeable and min(array.strides, default=0) >= 0 else array.copy()
    return torch.from_numpy(readable).to(device)


def operand(value: Any, device: torch.device) -> Any:
    """Return an operand for torch: a tensor on the device, or a number."""
    if isinstance(value, DeviceArray):
        return value.tensor
    if isinstance(value, np.ndarray):
        return value.item() if value.ndim == 0 else tensor_of(value, device)
    return value.item() if isinstance(value, np.generic) else value


def plain(value: Any) -> Any:
    """Return an operand that torch accepts without conversion; None for any other."""
    if isinstance(value, DeviceArray):
        return value.tensor
    return value if type(value) is float else None


def index(key: Any, device: torch.device) -> Any:
    """Return an index in a form that torch accepts."""
    if isinstance(key, tuple):
        return tuple(index(part, device) for part in key)
    if isinstance(key, np.ndarray):
        return tensor_of(key, device)
    return operand(key, device)


def some_device(values: Iterable[Any]) -> torch.device:
    """Return the device of the device array among some values."""
    return next(value.tensor.device for value in values if isinstance(value, DeviceArray))


def tensors(*values: Any) -> list[torch.Tensor]:
    """Return all operands of a function as tensors; numbers become tensors on the device, without a transfer."""
    known = next(value for value in values if isinstance(value, torch.Tensor))
    return [
        value if isinstance(value, torch.Tensor) else torch.full((), value, dtype=known.dtype, device=known.device)
        for value in values
    ]


# --- element by element ---------------------------------------------------------------------------------------------


def _maximum(a: Any, b: Any) -> torch.Tensor:
    return torch.maximum(*tensors(a, b))


def _minimum(a: Any, b: Any) -> torch.Tensor:
    return torch.minimum(*tensors(a, b))


def _hypot(a: Any, b: Any) -> torch.Tensor:
    return torch.hypot(*tensors(a, b))


def _logaddexp(a: Any, b: Any) -> torch.Tensor:
    return torch.logaddexp(*tensors(a, b))


UFUNCS: dict[np.ufunc, Callable[..., torch.Tensor]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.divide: operator.truediv,
    np.power: operator.pow,
    np.matmul: operator.matmul,
    np.negative: operator.neg,
    np.absolute: torch.abs,
    np.sign: torch.sign,
    np.sqrt: torch.sqrt,
    np.square: torch.square,
    np.exp: torch.exp,
    np.log: torch.log,
    np.log1p: torch.log1p,
    np.maximum: _maximum,
    np.minimum: _minimum,
    np.logaddexp: _logaddexp,
    np.hypot: _hypot,
    np.equal: operator.eq,
    np.not_equal: operator.ne,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.bitwise_and: operator.and_,
    np.bitwise_or: operator.or_,
    np.invert: operator.invert,
    np.isfinite: torch.isfinite,
    np.isinf: torch.isinf,
    np.isnan: torch.isnan,
}


IN_PLACE: dict[np.ufunc, Callable[..., torch.Tensor]] = {
    np.add: torch.add,
    np.subtract: torch.sub,
    np.multiply: torch.mul,
    np.divide: torch.div,
    np.negative: torch.neg,
}


def _segments(how: str) -> Callable[..., torch.Tensor]:
    def reduce(values: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
        ends = torch.cat([start[1:], torch.full((1,), len(values), dtype=start.dtype, device=start.device)])
        return torch.segment_reduce(values, how, lengths=ends - start, unsafe=True)

    return reduce


SEGMENTS: dict[np.ufunc, Callable[..., torch.Tensor]] = {np.add: _segments("sum"), np.maximum: _segments("max")}


# --- functions ------------------------------------------------------------------------------------------------------

FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {}


def implements(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function as the implementation of a function of numpy."""

    def note(answer: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONS[function] = answer
        return answer

    return note


for _numpy, _name in (
    (np.sum, "sum"),
    (np.ravel, "ravel"),
    (np.reshape, "reshape"),
    (np.copy, "copy"),
    (np.max, "max"),
    (np.min, "min"),
):
    FUNCTIONS[_numpy] = operator.methodcaller(_name) if _name != "reshape" else DeviceArray.reshape


@implements(np.any)
def _any(a: DeviceArray) -> DeviceArray:
    return DeviceArray(torch.any(a.tensor != 0))


@implements(np.all)
def _all(a: DeviceArray) -> DeviceArray:
    return DeviceArray(torch.all(a.tensor != 0))


@implements(np.clip)
def _clip(a: Any, low: Any, high: Any, out: DeviceArray | None = None) -> DeviceArray:
    device = some_device((a, low, high))
    a, low, high = (operand(value, device) for value in (a, low, high))
    numbers = not (isinstance(low, torch.Tensor) or isinstance(high, torch.Tensor))
    a, low, high = (a, low, high) if numbers else tensors(a, low, high)
    return DeviceArray(torch.clamp(a, low, high, out=None if out is None else out.tensor))


@implements(np.where)
def _where(condition: Any, a: Any, b: Any) -> DeviceArray:
    device = some_device((condition, a, b))
    if isinstance(a, float) and isinstance(b, float):  # two plain numbers would get torch's default precision
        a = torch.full((), a, dtype=torch.float64, device=operand(condition, device).device)
    return DeviceArray(torch.where(*(operand(value, device) for value in (condition, a, b))))


@implements(np.isneginf)
def _isneginf(a: DeviceArray) -> DeviceArray:
    return DeviceArray(torch.isneginf(a.tensor))


@implements(np.array_equal)
def _array_equal(a: Any, b: Any) -> bool:
    device = some_device((a, b))
    return bool(torch.equal(*(tensor_of(v, device) if isinstance(v, np.ndarray) else v.tensor for v in (a, b))))


@implements(np.count_nonzero)
def _count_nonzero(a: DeviceArray) -> int:
    return int(torch.count_nonzero(a.tensor))


@implements(np.flatnonzero)
def _flatnonzero(a: DeviceArray) -> DeviceArray:
    return DeviceArray(torch.nonzero(a.tensor.reshape(-1)).reshape(-1))


@implements(np.repeat)
def _repeat(a: DeviceArray, repeats: Any) -> DeviceArray:
    return DeviceArray(torch.repeat_interleave(a.tensor, operand(repeats, a.tensor.device)))


@implements(np.broadcast_to)
def _broadcast_to(a: DeviceArray, shape: Any) -> DeviceArray:
    return DeviceArray(torch.broadcast_to(a.tensor, shape))


@implements(np.concatenate)
def _concatenate(arrays: Iterable[Any]) -> DeviceArray:
    return _join(arrays, 0)


@implements(np.hstack)
def _hstack(arrays: Iterable[Any]) -> DeviceArray:
    return _join(arrays, -1)


def _join(arrays: Iterable[Any], axis: int) -> DeviceArray:
    arrays = list(arrays)
    device = some_device(arrays)
    parts = (tensor_of(a, device) if isinstance(a, np.ndarray) else a.tensor for a in arrays)
    return DeviceArray(torch.cat(list(parts), axis))


@implements(np.append)
def _append(a: DeviceArray, value: Any) -> DeviceArray:
    return DeviceArray(torch.cat([a.tensor, a.tensor.new_full((1,), value)]))


@implements(np.diff)
def _diff(a: DeviceArray) -> DeviceArray:
    return DeviceArray(torch.diff(a.tensor))


@implements(np.split)
def _split(a: DeviceArray, places: Any) -> list[DeviceArray]:
    ends = [0, *(int(place) for place in places), len(a)]
    return [a[first:last] for first, last in pairwise(ends)]


@implements(np.empty_like)
def _empty_like(a: DeviceArray, shape: Any = None) -> DeviceArray:
    return DeviceArray(a.tensor.new_empty(a.tensor.shape if shape is None else shape))


@implements(np.zeros_like)
def _zeros_like(a: DeviceArray, shape: Any = None) -> DeviceArray:
    return DeviceArray(a.tensor.new_zeros(a.tensor.shape if shape is None else shape))


@implements(np.ones_like)
def _ones_like(a: DeviceArray) -> DeviceArray:
    return DeviceArray(a.tensor.new_ones(a.tensor.shape))


@implements(np.full_like)
def _full_like(a: DeviceArray, value: Any) -> DeviceArray:
    value = operand(value, a.tensor.device)
    filled = torch.empty_like(a.tensor)
    return DeviceArray(filled.copy_(value) if isinstance(value, torch.Tensor) else filled.fill_(value))


@implements(np.outer)
def _outer(a: DeviceArray, b: DeviceArray) -> DeviceArray:
    return DeviceArray(torch.outer(a.tensor, b.tensor))


@implements(np.diagonal)
def _diagonal(a: DeviceArray) -> DeviceArray:
    return DeviceArray(torch.diagonal(a.tensor))


@implements(np.diag)
def _diag(a: DeviceArray) -> DeviceArray:
    return DeviceArray(torch.diag(a.tensor))


@implements(np.bincount)
def _bincount(a: DeviceArray, weights: DeviceArray, minlength: int) -> DeviceArray:
    return DeviceArray(torch.bincount(a.tensor, weights.tensor, minlength))


@implements(np.diag_indices_from)
def _diag_indices_from(a: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    along = DeviceArray(torch.arange(len(a), device=a.tensor.device))
    return along, along


# --- linear algebra -------------------------------------------------------------------------------------------------


@implements(np.linalg.norm)
def _norm(a: DeviceArray) -> DeviceArray:
    return DeviceArray(torch.linalg.vector_norm(a.tensor))


@implements(np.linalg.qr)
def _qr(a: DeviceArray, mode: str = "reduced") -> Any:
    left, triangle = torch.linalg.qr(a.tensor, mode=mode)
    return DeviceArray(triangle) if mode == "r" else (DeviceArray(left), DeviceArray(triangle))


@implements(np.linalg.svd)
def _svd(a: DeviceArray, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    if not compute_uv:
        return DeviceArray(torch.linalg.svdvals(a.tensor))
    return tuple(DeviceArray(part) for part in torch.linalg.svd(a.tensor, full_matrices=full_matrices))


@implements(np.linalg.eigh)
def _eigh(a: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    values, vectors = torch.linalg.eigh(a.tensor)
    return DeviceArray(values), DeviceArray(vectors)


@implements(np.linalg.eigvalsh)
def _eigvalsh(a: DeviceArray) -> DeviceArray:
    return DeviceArray(torch.linalg.eigvalsh(a.tensor))


@implements(np.linalg.cholesky)
def _cholesky(a: DeviceArray) -> DeviceArray:
    factor, failed = torch.linalg.cholesky_ex(a.tensor)
    if failed:
        raise np.linalg.LinAlgError("Matrix is not positive definite")
    return DeviceArray(factor)
