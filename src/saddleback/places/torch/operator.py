"""Matrices on a device of torch, for vectors on the host or on the device.

The vectors of a method are short compared with A: copying one to the device and back takes less time than reading A
once. The product with a vector on the device (``DeviceArray``) is again on the device.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, singledispatch
from typing import Any

import numpy as np
import torch
from scipy import sparse

from ...common.arrays import Columns, Indices, Vector
from ...common.cached import cached_property
from ...operators.above import Above
from ...operators.contract import Operator, Side, Weights, chosen, compressed_by_panels, spread
from ...operators.dense import Dense
from ...operators.identity import ScaledIdentity
from ...operators.implicit import Implicit
from ...operators.sparse import Compressed, Transposed
from ...operators.stacked import Stacked, hstack, leaves, parts_of
from ...operators.tasks import Tasks
from ...operators.traits import Traits
from ..files.operator import Streamed
from .array import DeviceArray, tensor_of
from .device import Device

_named = cache(Device)

ROWS = 1 << 27
"""Largest number of entries in a panel of rows of which a Gram matrix is computed."""

PANEL = 1 << 22
"""Largest number of entries in a panel that is converted or scaled: it fits into the cache of the device."""

LAUNCH_ENTRIES = 1 << 26
"""Entries that CUDA reads in the time that the host needs to start a product; measured."""

Tensor = torch.Tensor


class OnDevice(Operator):
    """The common part of matrices on a device: copies of vectors to the device and back."""

    def __init__(self, device: torch.device, shape: tuple[int, int], stored: int) -> None:
        self.device = device
        self.shape = shape
        cost = LAUNCH_ENTRIES if device.type == "cuda" else 0
        self.traits = Traits(stored, launch_cost=cost, device=_named(device))

    def _there(self, vector: Any) -> Tensor:
        """Return a vector as a tensor on the device."""
        return vector.tensor if isinstance(vector, DeviceArray) else tensor_of(vector, self.device)

    @staticmethod
    def _back(result: Tensor, like: Any) -> Vector:
        """Return a result on the host or on the device, wherever the vector ``like`` lies."""
        there: Any = DeviceArray(result)
        return there if isinstance(like, DeviceArray) else np.asarray(there)

    @abstractmethod
    def times_vector(self, x: Tensor) -> Tensor:
        """Return A x."""

    @abstractmethod
    def transposed_times_vector(self, y: Tensor) -> Tensor:
        """Return A' y."""

    def matvec(self, x: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        own = self if columns is None else self.part(columns)
        return chosen(self._back(own.times_vector(self._there(x)), x), rows)

    def rmatvec(self, y: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        own = self if columns is None else self.part(columns)
        y = spread(y, rows, self.shape[0])
        return self._back(own.transposed_times_vector(self._there(y)), y)

    @abstractmethod
    def part(self, columns: Any) -> OnDevice:
        """Return some columns, as a view if they are neighbours."""

    def entries(self, columns: Indices | None = None, compressed: bool = False) -> Any:
        if compressed:
            return compressed_by_panels(self, columns)
        return (self if columns is None else self.part(columns)).dense().cpu().numpy()

    @abstractmethod
    def dense(self) -> Tensor:
        """Return all columns as a dense matrix of float64, column-major."""

    @abstractmethod
    def by_columns(self) -> Tensor:
        """Return A' as a CSR tensor."""

    @abstractmethod
    def widened(self) -> OnDevice:
        """Return the matrix in float64, which makes many products faster, unless that takes too much memory."""

    @abstractmethod
    def row_panels(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield panels of rows, dense in float64, and which rows they hold."""

    def gram(self, weight: Vector | None, columns: Indices | None = None, side: Side = "columns") -> Any:
        if side == "rows":
            weight = np.ones(self.shape[1]) if weight is None else weight
            return self._back(weighted_gram(self.dense().T, self._there(weight)), weight)
        weight = np.ones(self.shape[0]) if weight is None else weight
        there = self._there(weight)
        every = columns is None or (columns.size == self.shape[1] and as_slice(columns) is not None)
        part = self if every else self.part(columns)
        first, *others = (weighted_gram(panel, there[rows]) for rows, panel in part.row_panels())
        return self._back(sum(others, first), weight)

    def pack(self, columns: Indices, single: bool = False, beside: float = 0.0) -> Operator:
        return self.part(columns)  # ``single`` is ignored: products convert float32 to float64 anyway

    @abstractmethod
    def moved(self, device: torch.device) -> OnDevice:
        """Return the matrix on another device."""


@hstack.register
def _(first: OnDevice, second: Operator) -> Operator:
    return beside([first, second]) if isinstance(second, OnDevice) else Stacked([first, *parts_of(second)])


def is_on_device(A: Operator) -> bool:
    """Return whether an operator consists of matrices on a device, side by side or above each other."""
    return all(isinstance(part, OnDevice) for part in leaves(A))


def matrices(A: Operator) -> list[OnDevice]:
    """Return the matrices side by side that make up an operator on a device."""
    parts = [in_one(part) if isinstance(part, Above) else part for part in parts_of(A)]
    return [part for part in parts if isinstance(part, OnDevice)]


def in_one(A: Above) -> OnDevice:
    """Return matrices one above the other as one matrix, dense if that takes at most twice the memory."""
    parts = [(part, own) for part, own in A.present if isinstance(part, OnDevice)]
    device = parts[0][0].device
    if A.shape[0] * A.shape[1] <= 2 * A.traits.stored:
        whole = torch.zeros(A.shape[::-1], dtype=torch.float64, device=device).T
        for part, own in parts:
            whole[own] = part.dense()
        return DenseOnDevice(whole)
    counts = torch.zeros(A.shape[0], dtype=torch.int64, device=device)
    rows = [transposed(part.by_columns()) for part, _ in parts]
    for (_, own), matrix in zip(parts, rows, strict=True):
        counts[own] = torch.diff(matrix.crow_indices()).long()
    indptr = torch.cat([counts.new_zeros(1), torch.cumsum(counts, 0)])
    indices, values = torch.cat([matrix.col_indices().long() for matrix in rows]), [matrix.values() for matrix in rows]
    return SparseOnDevice(csr(indptr, indices, torch.cat([value.double() for value in values]), A.shape), None)


def beside(matrices: Sequence[OnDevice]) -> OnDevice:
    """Return the matrices side by side as one matrix with contiguous columns."""
    if len(matrices) == 1:
        columnar = matrices[0].ordered("columns")
        assert isinstance(columnar, OnDevice)
        return columnar
    dense = [matrix.array.T for matrix in matrices if isinstance(matrix, DenseOnDevice)]
    if len(dense) == len(matrices):
        return DenseOnDevice(torch.cat(dense).T)
    return SparseOnDevice(None, stacked([matrix.by_columns() for matrix in matrices]))


def weighted_gram(matrix: Tensor, weight: Tensor) -> Tensor:
    """Return P' diag(w) P for weights that are at least 0."""
    scaled = torch.sqrt(weight)[:, None] * matrix
    return scaled.T @ scaled


def slices(shape: tuple[int, int], entries: int) -> list[slice]:
    """Return slices of the rows of a matrix with at most ``entries`` entries each, but at least one row."""
    height = max(1, entries // max(shape[1], 1))
    return [slice(first, min(first + height, shape[0])) for first in range(0, shape[0], height)]


def as_slice(columns: Any) -> slice | None:
    """Return neighbouring columns as a slice; None if they are not neighbours."""
    if isinstance(columns, slice):
        return columns
    if not isinstance(columns, np.ndarray) or columns.size == 0:
        return None
    first, last = int(columns[0]), int(columns[-1])
    neighbours = last - first + 1 == columns.size and bool(np.all(np.diff(columns) == 1))
    return slice(first, last + 1) if neighbours else None


WIDENED = 1 << 28
"""Largest number of entries of a float32 matrix of which the kernels use a float64 copy."""

FEW = 0.25
"""Largest share of nonzeros in x for which the columns are gathered before the product: that moves each three times."""


class DenseOnDevice(OnDevice):
    """A 2-D tensor of float32 or float64, in any order; products are taken in float64."""

    def __init__(self, array: Tensor) -> None:
        super().__init__(array.device, (array.shape[0], array.shape[1]), array.numel())
        self.array = array

    def matvec(self, x: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        own = self if columns is None else self.part(columns)
        if isinstance(x, np.ndarray):
            some = np.flatnonzero(x != 0)  # several times faster than flatnonzero(x)
            if some.size < FEW * x.size:
                product = own.part(some).matvec(x[some]) if some.size else np.zeros(self.shape[0])
                return chosen(product, rows)
        return chosen(self._back(own.times_vector(self._there(x)), x), rows)

    def _panels(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield panels of columns in float64 with their column range; a single panel if A is stored in float64."""
        width = max(1, PANEL // max(1, self.shape[0]))
        if self.array.dtype == torch.float64:
            width = self.shape[1]
        yield from self._narrow_panels(width)

    def _narrow_panels(self, width: int) -> Iterator[tuple[slice, Tensor]]:
        for first in range(0, self.shape[1], width):
            columns = slice(first, min(first + width, self.shape[1]))
            yield columns, self.array[:, columns].double()

    def widened(self) -> DenseOnDevice:
        small = self.array.dtype != torch.float64 and self.traits.stored <= WIDENED
        return DenseOnDevice(self.array.double()) if small else self

    def row_panels(self) -> Iterator[tuple[slice, Tensor]]:
        for rows in slices(self.shape, ROWS):
            yield rows, self.array[rows].double()

    def times_vector(self, x: Tensor) -> Tensor:
        first, *others = (torch.mv(panel, x[columns]) for columns, panel in self._panels())
        return sum(others, first)

    def transposed_times_vector(self, y: Tensor) -> Tensor:
        products = [torch.mv(panel.T, y) for _, panel in self._panels()]
        return products[0] if len(products) == 1 else torch.cat(products)

    def part(self, columns: Any) -> DenseOnDevice:
        neighbours = as_slice(columns)
        if neighbours is not None:
            return DenseOnDevice(self.array[:, neighbours])
        return DenseOnDevice(self.array.T.index_select(0, self._there(columns)).T)

    def pack(self, columns: Indices, single: bool = False, beside: float = 0.0) -> Operator:
        return DenseOnDevice(self.array.T.index_select(0, self._there(columns)).double().T)

    def dense(self) -> Tensor:
        return self.array.double()

    def by_columns(self) -> Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.array.T.to_sparse_csr()

    def _sums(self, power: float, columns: Columns | None, weights: Weights | None) -> tuple[Vector, Vector]:
        if columns is not None:
            return self.part(columns).sums(power)
        if weights is not None:
            return self._largest(*weights) if power == np.inf else self._weighted_sums(power, *weights)
        of_columns, of_rows = (
            torch.linalg.vector_norm(self.array, power, dim=axis, dtype=torch.float64) ** max(power, 1)
            for axis in (0, 1)
        )
        return of_columns.cpu().numpy(), of_rows.cpu().numpy()

    def _weighted_sums(self, power: float, columns: Vector | None, rows: Vector | None) -> tuple[Vector, Vector]:
        if power == 2 and columns is None and rows is not None and self.array.dtype == torch.float64:
            there = self._there(rows)
            if bool((there == there[:1]).all()):  # equal weights need no copy of the entries
                return self._back(there[0] * torch.linalg.vector_norm(self.array, dim=0) ** 2, rows), np.empty(0)
        of_columns, of_rows = [], torch.zeros(self.shape[0], dtype=torch.float64, device=self.device)
        for own, panel in self._narrow_panels(max(1, PANEL // self.shape[0])):
            some = panel.abs() if power == 1 else torch.square(panel)
            if rows is not None:
                of_columns.append(torch.mv(some.T, self._there(rows)))
            if columns is not None:
                of_rows = of_rows + torch.mv(some, self._there(columns)[own])
        nothing = np.empty(0)
        down = nothing if rows is None else self._back(torch.cat(of_columns), rows)
        return down, nothing if columns is None else self._back(of_rows, columns)

    def _largest(self, columns: Vector | None, rows: Vector | None) -> tuple[Vector, Vector]:
        by_column, by_row = self._there(columns), self._there(rows)
        of_columns, of_rows = [], torch.zeros_like(by_row)
        for own, panel in self._narrow_panels(max(1, PANEL // self.shape[0])):
            scaled = panel.abs() * by_row[:, None] * by_column[own]
            of_columns.append(scaled.amax(0))
            of_rows = torch.maximum(of_rows, scaled.amax(1))
        return torch.cat(of_columns).cpu().numpy(), of_rows.cpu().numpy()

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        kept = self.part(columns).array
        return DenseOnDevice(kept if rows.size == self.shape[0] else kept.T.index_select(1, self._there(rows)).T)

    def moved(self, device: torch.device) -> DenseOnDevice:
        return DenseOnDevice(self.array.to(device))

    def ordered(self, by: Side) -> Operator:
        return self if by == "rows" or self.array.stride(0) == 1 else DenseOnDevice(self.array.T.contiguous().T)


class SparseOnDevice(OnDevice):
    """A sparse matrix of float32 or float64, stored by rows, by columns, or both once a product needs both."""

    def __init__(self, rows: Tensor | None, columns: Tensor | None) -> None:
        known = rows if rows is not None else columns
        assert known is not None
        if rows is not None:
            self.rows = rows
        if columns is not None:
            self.columns = columns
        shape = (known.shape[0], known.shape[1])
        super().__init__(known.device, shape if rows is not None else shape[::-1], known.values().numel())

    @cached_property
    def rows(self) -> Tensor:
        """A as a CSR tensor."""
        return transposed(self.columns)

    @cached_property
    def columns(self) -> Tensor:
        """A' as a CSR tensor."""
        return transposed(self.rows)

    def row_panels(self) -> Iterator[tuple[slice, Tensor]]:
        indptr, indices, values = parts_of_csr(self.rows)
        for rows in slices(self.shape, ROWS):
            first, last = int(indptr[rows.start]), int(indptr[rows.stop])
            start = indptr[rows.start : rows.stop + 1] - first
            panel = csr(start, indices[first:last], values[first:last].double(), (len(start) - 1, self.shape[1]))
            yield rows, panel.to_dense()

    def times_vector(self, x: Tensor) -> Tensor:
        return in_float64(self.rows) @ x

    def transposed_times_vector(self, y: Tensor) -> Tensor:
        return in_float64(self.columns) @ y

    def part(self, columns: Any) -> SparseOnDevice:
        places = np.arange(self.shape[1])[columns] if isinstance(columns, slice) else columns
        return SparseOnDevice(None, selected(self.columns, self._there(places)))

    def dense(self) -> Tensor:
        return in_float64(self.columns).to_dense().T

    def by_columns(self) -> Tensor:
        return self.columns

    def widened(self) -> SparseOnDevice:
        if self.columns.dtype == torch.float64 or self.traits.stored > WIDENED:
            return self
        return SparseOnDevice(in_float64(self.rows), in_float64(self.columns))

    def _mapped(self, change: Any) -> SparseOnDevice:
        """Return the matrix with the same pattern and changed values."""
        return SparseOnDevice(None, with_values(self.columns, change(self.columns.values().double())))

    def _sums(self, power: float, columns: Columns | None, weights: Weights | None) -> tuple[Vector, Vector]:
        if columns is not None:
            return self.part(columns).sums(power)
        if power == np.inf:
            assert weights is not None
            return self._largest(*weights)
        some = self._mapped(lambda values: values.abs() ** power if power else (values != 0).double())
        by_column, by_row = weights or (np.ones(self.shape[1]), np.ones(self.shape[0]))
        of_columns = np.empty(0) if by_row is None else some.rmatvec(by_row)
        return of_columns, np.empty(0) if by_column is None else some.matvec(by_column)

    def _largest(self, columns: Vector | None, rows: Vector | None) -> tuple[Vector, Vector]:
        column, row = row_of_entries(self.columns), self.columns.col_indices().long()
        scaled = self.columns.values().abs() * self._there(columns)[column] * self._there(rows)[row]
        of_columns, of_rows = (torch.zeros(size, dtype=torch.float64, device=self.device) for size in self.shape[::-1])
        of_columns.scatter_reduce_(0, column, scaled, "amax")
        of_rows.scatter_reduce_(0, row, scaled, "amax")
        return of_columns.cpu().numpy(), of_rows.cpu().numpy()

    def entries(self, columns: Indices | None = None, compressed: bool = False) -> Any:
        if not compressed:
            return super().entries(columns)
        some = self.columns if columns is None else self.part(columns).columns
        indptr, indices, data = (part.cpu().numpy() for part in parts_of_csr(some))
        return sparse.csc_matrix((data.astype(np.float64), indices, indptr), shape=some.shape[::-1])

    def moved(self, device: torch.device) -> SparseOnDevice:
        return SparseOnDevice(None, self.columns.to(device))

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        kept: SparseOnDevice = self if columns.size == self.shape[1] else self.part(columns)
        return kept if rows.size == self.shape[0] else SparseOnDevice(selected(kept.rows, self._there(rows)), None)


def csr(indptr: Any, indices: Any, values: Any, shape: tuple[int, int]) -> Tensor:
    """Return a CSR tensor, without checks of its parts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that CSR tensors are in beta state
        return torch.sparse_csr_tensor(indptr, indices, values, shape, check_invariants=False)


def parts_of_csr(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the three arrays of a CSR tensor."""
    return matrix.crow_indices(), matrix.col_indices(), matrix.values()


def with_values(matrix: Tensor, values: Tensor) -> Tensor:
    """Return a CSR tensor with the same pattern and other values."""
    return csr(matrix.crow_indices(), matrix.col_indices(), values, (matrix.shape[0], matrix.shape[1]))


def in_float64(matrix: Tensor) -> Tensor:
    """Return a CSR tensor in float64."""
    return matrix if matrix.dtype == torch.float64 else with_values(matrix, matrix.values().double())


def row_of_entries(matrix: Tensor) -> Tensor:
    """Return the row index of each entry of a CSR tensor."""
    indptr = matrix.crow_indices().long()
    return torch.repeat_interleave(torch.arange(len(indptr) - 1, device=indptr.device), torch.diff(indptr))


def transposed(matrix: Tensor) -> Tensor:
    """Return the transpose of a CSR tensor as a CSR tensor."""
    indices = matrix.col_indices().long()
    order = torch.argsort(indices, stable=True)
    counts = torch.bincount(indices, minlength=matrix.shape[1])
    indptr = torch.cat([counts.new_zeros(1), torch.cumsum(counts, 0)])
    places = row_of_entries(matrix)[order]
    kind = matrix.col_indices().dtype
    return csr(indptr.to(kind), places.to(kind), matrix.values()[order], (matrix.shape[1], matrix.shape[0]))


def stacked(matrices: Sequence[Tensor]) -> Tensor:
    """Return CSR tensors one above the other."""
    counts = torch.cat([torch.diff(matrix.crow_indices()).long() for matrix in matrices])
    indptr = torch.cat([counts.new_zeros(1), torch.cumsum(counts, 0)])
    indices = torch.cat([matrix.col_indices().long() for matrix in matrices])
    values = torch.cat([matrix.values().double() for matrix in matrices])
    return csr(indptr, indices, values, (len(counts), matrices[0].shape[1]))


def selected(matrix: Tensor, rows: Tensor) -> Tensor:
    """Return some rows of a CSR tensor."""
    indptr, indices, values = parts_of_csr(matrix)
    first, counts = indptr[rows].long(), torch.diff(indptr)[rows].long()
    ends = torch.cumsum(counts, 0)
    begin = torch.repeat_interleave(first - (ends - counts), counts)
    entries = begin + torch.arange(len(begin), device=begin.device)
    start = torch.cat([ends.new_zeros(1), ends]).to(indptr.dtype)
    return csr(start, indices[entries], values[entries], (len(rows), matrix.shape[1]))


def dense_on_device(array: Any, device: torch.device) -> DenseOnDevice:
    """Return a numpy array on a device, in the same memory order."""
    if array.strides[0] == array.itemsize:
        return DenseOnDevice(tensor_of(array.T, device).T)
    return DenseOnDevice(tensor_of(array, device))


def sparse_on_device(matrix: Any, device: torch.device) -> SparseOnDevice:
    """Return a CSR or CSC matrix of scipy on a device."""
    indptr, indices, values = (tensor_of(part, device) for part in (matrix.indptr, matrix.indices, matrix.data))
    if matrix.format == "csr":
        return SparseOnDevice(csr(indptr, indices, values, matrix.shape), None)
    return SparseOnDevice(None, csr(indptr, indices, values, matrix.shape[::-1]))


def to_device(A: Operator, device: Device) -> Operator:
    """Return an operator with its entries on a device, and with the sums and products that are already known."""
    there = _moved(A, device)
    for known in ("_squares", "first_adjoint"):
        if known in vars(A):
            setattr(there, known, getattr(A, known))
    return there


@singledispatch
def _moved(A: Operator, device: Device) -> Operator:
    raise TypeError("A cannot be moved to a device: it is a LinearOperator, or spread over the processes of comm")


@_moved.register
def _(A: Streamed, device: Device) -> Operator:
    raise TypeError("A is streamed from its file, and cannot be moved to a device: leave device out, or load A")


@_moved.register
def _(A: Dense, device: Device) -> Operator:
    return dense_on_device(A.array, device.device)


@_moved.register(Compressed)
@_moved.register(Transposed)
def _(A: Compressed | Transposed, device: Device) -> Operator:
    return sparse_on_device(A.matrix, device.device)


@_moved.register
def _(A: Implicit, device: Device) -> Operator:
    there = sparse_on_device(A.compressed.matrix, device.device)
    there.traits = replace(there.traits, norm=A.traits.norm)
    return there


@_moved.register
def _(A: OnDevice, device: Device) -> Operator:
    return A if A.device == device.device else A.moved(device.device)


@_moved.register
def _(A: ScaledIdentity, device: Device) -> Operator:
    return ScaledIdentity(A.shape[0], A.scale, device)


@_moved.register
def _(A: Stacked, device: Device) -> Operator:
    return Stacked([to_device(part, device) for part in A.parts])


@_moved.register
def _(A: Above, device: Device) -> Operator:
    return A.each(lambda part: to_device(part, device))


@_moved.register
def _(A: Tasks, device: Device) -> Operator:
    return Tasks(to_device(A.single, device), A.tasks)


def from_tensor(source: Tensor, name: str) -> OnDevice:
    """Return the operator of a tensor passed as A; raise if it is not finite, real and two-dimensional."""
    if source.is_complex():
        raise TypeError(f"{name} has dtype {source.dtype}: expected real numbers, float32 or float64")
    if source.ndim == 1 and source.layout == torch.strided:
        source = source[:, None]
    if source.ndim != 2:
        raise ValueError(f"{name} has {source.ndim} dimensions: expected a matrix")
    if 0 in source.shape:
        raise ValueError(f"{name} is empty, with shape {tuple(source.shape)}: expected at least one row and one column")
    source = source.detach()
    if source.dtype not in (torch.float32, torch.float64):
        source = source.double()
    found = _of_layout(source, name)
    if not np.all(np.isfinite(found.sums(2)[0])) and not bool(_values(source).isfinite().all()):
        raise ValueError(f"{name} has values that are NaN or infinite: expected finite numbers")
    return found


def _of_layout(source: Tensor, name: str) -> OnDevice:
    if source.layout == torch.strided:
        return DenseOnDevice(source if 1 in source.stride() else source.T.contiguous().T)
    if source.layout == torch.sparse_coo:
        source = source.coalesce().to_sparse_csr()
    shape = (source.shape[0], source.shape[1])
    if source.layout == torch.sparse_csr:
        return SparseOnDevice(csr(*parts_of_csr(source), shape), None)
    if source.layout == torch.sparse_csc:
        return SparseOnDevice(None, csr(source.ccol_indices(), source.row_indices(), source.values(), shape[::-1]))
    raise TypeError(f"{name} has the layout {source.layout}: expected a dense, COO, CSR or CSC tensor")


def _values(source: Tensor) -> Tensor:
    return (
        source
        if source.layout == torch.strided
        else source.coalesce().values()
        if source.is_sparse
        else source.values()
    )
