"""Matrices on a device of torch, under vectors that stay on the host or lie on the device too.

The vectors of a method are short beside A: to send one there and back takes less than to read A once. A vector that
already lies on the device (``DeviceArray``) is answered by one.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse

from ...common.arrays import Columns, Indices, Vector
from ...common.cached import cached_property
from ...operators.contract import Operator
from ...operators.traits import Traits
from .array import DeviceArray, tensor_of

if TYPE_CHECKING:
    from .device import Device

ROWS = 1 << 27
"""Entries of a panel of rows that is multiplied with itself."""

PANEL = 1 << 22
"""Entries of a panel that is converted or scaled on the way: what stays in the cache of the device."""

LAUNCH_ENTRIES = 1 << 26
"""Entries that CUDA reads in the time that the host takes between two products of any size: measured."""

Tensor = torch.Tensor


class OnDevice(Operator):
    """What matrices on a device have in common: the way of vectors there and back."""

    def __init__(self, device: torch.device, shape: tuple[int, int], stored: int) -> None:
        self.device = device
        self.shape = shape
        self.traits = Traits(stored, launch_cost=LAUNCH_ENTRIES if device.type == "cuda" else 0)

    def _there(self, vector: Any) -> Tensor:
        """Return a vector as a tensor on the device."""
        return vector.tensor if isinstance(vector, DeviceArray) else tensor_of(vector, self.device)

    @staticmethod
    def _back(result: Tensor, like: Any) -> Vector:
        """Return a result where the vector lies that it was made from."""
        there: Any = DeviceArray(result)
        return there if isinstance(like, DeviceArray) else np.asarray(there)

    @abstractmethod
    def times_vector(self, x: Tensor) -> Tensor:
        """Return A x."""

    @abstractmethod
    def transposed_times_vector(self, y: Tensor) -> Tensor:
        """Return A' y."""

    def matvec(self, x: Vector) -> Vector:
        return self._back(self.times_vector(self._there(x)), x)

    def rmatvec(self, y: Vector) -> Vector:
        return self._back(self.transposed_times_vector(self._there(y)), y)

    @abstractmethod
    def part(self, columns: Any) -> OnDevice:
        """Return some columns, as a view where they are neighbours."""

    def columns_matvec(self, columns: Columns, x: Vector) -> Vector:
        return self.part(columns).matvec(x)

    def columns_rmatvec(self, columns: Columns, y: Vector) -> Vector:
        return self.part(columns).rmatvec(y)

    def dense_columns(self, columns: Indices) -> Vector:
        dense: Vector = self.part(columns).dense().cpu().numpy()
        return dense

    @abstractmethod
    def dense(self) -> Tensor:
        """Return all columns as a dense matrix of float64, column-major."""

    @abstractmethod
    def by_columns(self) -> Tensor:
        """Return A' as a CSR tensor."""

    @abstractmethod
    def widened(self) -> OnDevice:
        """Return the matrix in float64, for many products, where that does not take too much memory."""

    def place(self, vector: Vector) -> Vector:
        there: Any = DeviceArray(self._there(vector))
        placed: Vector = there
        return placed

    @abstractmethod
    def row_panels(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield panels of rows, dense in float64, and which rows they hold."""

    def gram(self, columns: Indices, weight: Vector) -> Vector:
        there = self._there(weight)
        every = columns.size == self.shape[1] and as_slice(columns) is not None
        part = self if every else self.part(columns)
        first, *others = (weighted_gram(panel, there[rows]) for rows, panel in part.row_panels())
        return self._back(sum(others, first), weight)

    def outer(self, weight: Vector) -> Vector:
        return self._back(weighted_gram(self.dense().T, self._there(weight)), weight)

    def pack(self, columns: Indices, single: bool) -> Operator:
        # in float64 whatever is asked for: products of float32 are converted on the way
        return self.part(columns)

    def tensors(self) -> list[OnDevice]:
        return [self]

    def beside(self, other: Operator) -> Operator:
        return beside([self, other]) if isinstance(other, OnDevice) else super().beside(other)

    def _placed(self, device: Device) -> Operator:
        return self if self.device == device.device else self._moved(device.device)

    @abstractmethod
    def _moved(self, device: torch.device) -> OnDevice:
        """Return the matrix on another device."""


def beside(matrices: Sequence[OnDevice]) -> OnDevice:
    """Return matrices side by side as one, whose columns are contiguous."""
    if len(matrices) == 1:
        columnar = matrices[0].columnar()
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
    """Return slices of the rows of a matrix that hold about so many entries each."""
    height = max(1, entries // max(shape[1], 1))
    return [slice(first, min(first + height, shape[0])) for first in range(0, shape[0], height)]


def as_slice(columns: Any) -> slice | None:
    """Return neighbouring columns as a slice, None where they are no neighbours."""
    if isinstance(columns, slice):
        return columns
    if not isinstance(columns, np.ndarray) or columns.size == 0:
        return None
    first, last = int(columns[0]), int(columns[-1])
    neighbours = last - first + 1 == columns.size and bool(np.all(np.diff(columns) == 1))
    return slice(first, last + 1) if neighbours else None


WIDENED = 1 << 28
"""Entries up to which the kernels work on a copy in float64 of what is stored in float32."""

FEW = 0.25
"""Share of x that is not 0 up to which its columns are gathered first: that moves them three times."""


class DenseOnDevice(OnDevice):
    """A 2-D tensor of float32 or float64, in any order; products are taken in float64."""

    def __init__(self, array: Tensor) -> None:
        super().__init__(array.device, (array.shape[0], array.shape[1]), array.numel())
        self.array = array

    def matvec(self, x: Vector) -> Vector:
        if isinstance(x, np.ndarray):
            columns = np.flatnonzero(x != 0)  # numpy takes several times as long to find numbers
            if columns.size < FEW * x.size:
                return self.part(columns).matvec(x[columns]) if columns.size else np.zeros(self.shape[0])
        return super().matvec(x)

    def _panels(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield panels of columns in float64, and which columns they hold: all of them where nothing is converted."""
        width = max(1, PANEL // self.shape[0])
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

    def pack(self, columns: Indices, single: bool) -> Operator:
        return DenseOnDevice(self.array.T.index_select(0, self._there(columns)).double().T)

    def dense(self) -> Tensor:
        return self.array.double()

    def by_columns(self) -> Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.array.T.to_sparse_csr()

    def sums(self, power: int) -> tuple[Vector, Vector]:
        of_columns, of_rows = (
            torch.linalg.vector_norm(self.array, power, dim=axis, dtype=torch.float64) ** max(power, 1)
            for axis in (0, 1)
        )
        return of_columns.cpu().numpy(), of_rows.cpu().numpy()

    def squares_rmatvec(self, y: Vector) -> Vector:
        there = self._there(y)
        if self.array.dtype == torch.float64 and bool((there == there[:1]).all()):  # nothing to be made on the way
            return self._back(there[0] * torch.linalg.vector_norm(self.array, dim=0) ** 2, y)
        panels = self._narrow_panels(max(1, PANEL // self.shape[0]))
        return self._back(torch.cat([torch.mv(torch.square(panel).T, there) for _, panel in panels]), y)

    def largest(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        by_column, by_row = self._there(columns), self._there(rows)
        of_columns, of_rows = [], torch.zeros_like(by_row)
        for own, panel in self._narrow_panels(max(1, PANEL // self.shape[0])):
            scaled = panel.abs() * by_row[:, None] * by_column[own]
            of_columns.append(scaled.amax(0))
            of_rows = torch.maximum(of_rows, scaled.amax(1))
        return torch.cat(of_columns).cpu().numpy(), of_rows.cpu().numpy()

    def absolute_products(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        by_column, by_row = self._there(columns), self._there(rows)
        of_columns, of_rows = [], torch.zeros_like(by_row)
        for own, panel in self._narrow_panels(max(1, PANEL // self.shape[0])):
            of_columns.append(torch.mv(panel.abs().T, by_row))
            of_rows += torch.mv(panel.abs(), by_column[own])
        return torch.cat(of_columns).cpu().numpy(), of_rows.cpu().numpy()

    def block_row_sums(self, columns: Columns) -> Vector:
        return self.part(columns).sums(1)[1]

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        kept = self.part(columns).array
        return DenseOnDevice(kept if rows.size == self.shape[0] else kept.T.index_select(1, self._there(rows)).T)

    def _moved(self, device: torch.device) -> DenseOnDevice:
        return DenseOnDevice(self.array.to(device))

    def columnar(self) -> Operator:
        return self if self.array.stride(0) == 1 else DenseOnDevice(self.array.T.contiguous().T)


class SparseOnDevice(OnDevice):
    """A sparse matrix of float32 or float64 by rows, and by columns where a product needs them."""

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
        indptr, indices, values = parts_of(self.rows)
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
        """Return the matrix with other values in the same places."""
        return SparseOnDevice(None, with_values(self.columns, change(self.columns.values().double())))

    def sums(self, power: int) -> tuple[Vector, Vector]:
        ones = np.ones(self.shape[0]), np.ones(self.shape[1])
        powers = self._mapped(lambda values: values.abs() ** power if power else (values != 0).double())
        return powers.rmatvec(ones[0]), powers.matvec(ones[1])

    def squares_rmatvec(self, y: Vector) -> Vector:
        return self._mapped(torch.square).rmatvec(y)

    def largest(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        column, row = row_of_entries(self.columns), self.columns.col_indices().long()
        scaled = self.columns.values().abs() * self._there(columns)[column] * self._there(rows)[row]
        of_columns, of_rows = (torch.zeros(size, dtype=torch.float64, device=self.device) for size in self.shape[::-1])
        of_columns.scatter_reduce_(0, column, scaled, "amax")
        of_rows.scatter_reduce_(0, row, scaled, "amax")
        return of_columns.cpu().numpy(), of_rows.cpu().numpy()

    def absolute_products(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        absolute = self._mapped(torch.abs)
        return absolute.rmatvec(rows), absolute.matvec(columns)

    def block_row_sums(self, columns: Columns) -> Vector:
        return self.part(columns).sums(1)[1]

    def compressed(self) -> Any:
        indptr, indices, data = (part.cpu().numpy() for part in parts_of(self.columns))
        return sparse.csc_matrix((data.astype(np.float64), indices, indptr), shape=self.shape)

    def _moved(self, device: torch.device) -> SparseOnDevice:
        return SparseOnDevice(None, self.columns.to(device))

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        kept: SparseOnDevice = self if columns.size == self.shape[1] else self.part(columns)
        return kept if rows.size == self.shape[0] else SparseOnDevice(selected(kept.rows, self._there(rows)), None)


def csr(indptr: Any, indices: Any, values: Any, shape: tuple[int, int]) -> Tensor:
    """Return a CSR tensor whose parts are known to be valid."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that such tensors are in beta state
        return torch.sparse_csr_tensor(indptr, indices, values, shape, check_invariants=False)


def parts_of(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the three arrays of a CSR tensor."""
    return matrix.crow_indices(), matrix.col_indices(), matrix.values()


def with_values(matrix: Tensor, values: Tensor) -> Tensor:
    """Return a CSR tensor with other values in the same places."""
    return csr(matrix.crow_indices(), matrix.col_indices(), values, (matrix.shape[0], matrix.shape[1]))


def in_float64(matrix: Tensor) -> Tensor:
    """Return a CSR tensor in float64."""
    return matrix if matrix.dtype == torch.float64 else with_values(matrix, matrix.values().double())


def row_of_entries(matrix: Tensor) -> Tensor:
    """Return the row of a CSR tensor in which each of its entries stands."""
    indptr = matrix.crow_indices().long()
    return torch.repeat_interleave(torch.arange(len(indptr) - 1, device=indptr.device), torch.diff(indptr))


def transposed(matrix: Tensor) -> Tensor:
    """Return the transpose of a CSR tensor, as one itself."""
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
    indptr, indices, values = parts_of(matrix)
    first, counts = indptr[rows].long(), torch.diff(indptr)[rows].long()
    ends = torch.cumsum(counts, 0)
    begin = torch.repeat_interleave(first - (ends - counts), counts)
    entries = begin + torch.arange(len(begin), device=begin.device)
    start = torch.cat([ends.new_zeros(1), ends]).to(indptr.dtype)
    return csr(start, indices[entries], values[entries], (len(rows), matrix.shape[1]))


def dense_on_device(array: Any, device: torch.device) -> DenseOnDevice:
    """Return a numpy array on a device, in the order that it has."""
    if array.strides[0] == array.itemsize:
        return DenseOnDevice(tensor_of(array.T, device).T)
    return DenseOnDevice(tensor_of(array, device))


def sparse_on_device(matrix: Any, device: torch.device) -> SparseOnDevice:
    """Return a CSR or CSC matrix of scipy on a device."""
    indptr, indices, values = (tensor_of(part, device) for part in (matrix.indptr, matrix.indices, matrix.data))
    if matrix.format == "csr":
        return SparseOnDevice(csr(indptr, indices, values, matrix.shape), None)
    return SparseOnDevice(None, csr(indptr, indices, values, matrix.shape[::-1]))


def from_tensor(source: Tensor, name: str) -> OnDevice:
    """Return a tensor that the user gave for A, or raise where it is not finite, real and two-dimensional."""
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
    if not np.all(np.isfinite(found.squares[0])) and not bool(_values(source).isfinite().all()):
        raise ValueError(f"{name} has values that are NaN or infinite: expected finite numbers")
    return found


def _of_layout(source: Tensor, name: str) -> OnDevice:
    if source.layout == torch.strided:
        return DenseOnDevice(source if 1 in source.stride() else source.T.contiguous().T)
    if source.layout == torch.sparse_coo:
        source = source.coalesce().to_sparse_csr()
    shape = (source.shape[0], source.shape[1])
    if source.layout == torch.sparse_csr:
        return SparseOnDevice(csr(*parts_of(source), shape), None)
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
