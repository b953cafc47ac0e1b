"""Linear operators of which only products are known.

Their products are the user's code, and a certificate is a statement about A only if ``rmatvec`` is the adjoint of
``matvec``. So every product is tested against the others as it is made. Let r be a random vector with A r known. Then
each z = A'y has to satisfy <A r, y> = <r, z>. An error w of z changes the right side by <r, w>, which is of the size of
w for all but a negligible share of the possible r, however few entries w has. This tests the adjoint at the y of a
certificate, for one extra product in all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any

import numpy as np

from ..common.arrays import Columns, Indices, Vector, constant, length
from ..common.checks import LARGEST, ProbeError, rounding_of
from ..common.rounded import ASSUMED, Rounded
from .contract import Operator, Weights, chosen, compressed_by_panels, spread
from .stacked import leaves
from .tasks import Tasks
from .traits import Traits

UNDERFLOW = 1e-150
"""Products of vectors smaller than this have lost digits: their squares underflow."""

ACCURACY = 1e-10
"""Largest error in the test of an adjoint, relative to ||A|| ||x|| ||y||."""

MARGIN = 1e2
"""Largest error in that test in multiples of the measured rounding, if that is larger, as in float32."""

COARSEST = 1e-8
"""Largest rounding that is accepted for products in float64, which may have been computed in less precision: the
adjoint then holds to 1e-6."""

PROBE = 0.5
"""Passes that the test product takes."""

HOW_TO = "scipy.sparse.linalg.LinearOperator(shape, matvec=lambda x: A @ x, rmatvec=lambda y: A.T @ y)"
"""An example of an operator, for messages."""


class Abstract(Operator):
    """A ``scipy.sparse.linalg.LinearOperator``, of which only products are known.

    Parameters
    ----------
    operator : an object with ``shape``, ``matvec`` and ``rmatvec``.
    name : name of the argument, for messages.
    """

    def __init__(self, operator: Any, name: str = "A") -> None:
        self.operator = operator
        self.name = name
        self.shape = (int(operator.shape[0]), int(operator.shape[1]))
        self.traits = Traits(self.shape[0] * self.shape[1], splits=False, entries_known=False)
        self.forget()

    def forget(self) -> None:
        """Forget earlier products: the data of the operator may have changed."""
        self.rounding = self._norm = 0.0
        self._images: tuple[Vector, Vector] | None = None
        self._slopes: tuple[Vector, Vector] | None = None

    def matvec(self, x: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        if columns is not None:
            everywhere = np.zeros(self.shape[1])
            everywhere[columns] = x
            x = everywhere
        self._probed()
        u = self._product("matvec", x, self.shape[0])
        slopes = self._slopes  # another thread may make it None
        if slopes is not None:
            self._compare(x, u, *slopes)
        return chosen(u, rows)

    def rmatvec(self, y: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        y = spread(y, rows, self.shape[0])
        r, image = self._probed()
        z = self._product("rmatvec", y, self.shape[1])
        self._compare(r, image, y, z)
        if np.any(y):
            self._slopes = y.copy(), z.copy()
        return z if columns is None else z[columns]

    def _probed(self) -> tuple[Vector, Vector]:
        """Return the probe; it is the first product of all, so that errors of A are found before A is used."""
        return self._images or self.probe()

    def probe(self) -> tuple[Vector, Vector]:
        """Return a random vector, the same each time, and its product, against which adjoint products are tested."""
        r = np.random.default_rng(0).standard_normal(self.shape[1])
        given = r.copy()
        image = self._product("matvec", given, self.shape[0])
        if not np.array_equal(given, r):
            raise ProbeError(f"matvec of {self.name} changed the vector that it was given: it has to return a new one")
        if not np.all(np.isfinite(image)):
            raise ProbeError(f"matvec of {self.name} returned NaN or inf for a vector of random normal numbers")
        size = float(np.max(np.abs(image)) / np.max(np.abs(r)))
        if size > 0 and not 1 / LARGEST <= size <= LARGEST:
            raise ValueError(
                f"matvec of {self.name} returned numbers of size {size:.0e} for a vector of random normal numbers: "
                f"expected sizes from {1 / LARGEST:.0e} to {LARGEST:.0e}, whose squares are numbers; change the units"
            )
        self._images = r, image
        return self._images

    def _product(self, kind: str, vector: Vector, size: int) -> Vector:
        try:
            raw = np.asarray(getattr(self.operator, kind)(vector))
        except NotImplementedError:
            raise TypeError(f"{self.name} is a LinearOperator without {kind}: expected {HOW_TO}") from None
        if raw.dtype.kind not in "biuf" or raw.size != size:
            raise ProbeError(
                f"{kind} of {self.name} returned an array of shape {raw.shape} and dtype {raw.dtype}: expected {size} "
                "real numbers"
            )
        self.rounding = max(self.rounding, rounding_of(raw.dtype))
        result = np.array(raw, dtype=np.float64).ravel()  # a copy: the result may be the argument itself
        length = float(np.linalg.norm(vector))
        if length > 0:
            self._norm = max(self._norm, float(np.linalg.norm(result)) / length)
        return result

    def _compare(self, x: Vector, u: Vector, y: Vector, z: Vector) -> None:
        """Raise unless <u, y> = <x, z> up to rounding, for u = A x and z = A'y."""
        forth, back = float(u @ y), float(x @ z)
        size = self._norm * float(np.linalg.norm(x)) * float(np.linalg.norm(y))
        if not UNDERFLOW < size < np.inf or abs(forth - back) <= self.accuracy * size:
            return  # overflow and underflow are not errors of the operator
        self.measure("matvec", x, u)
        self.measure("rmatvec", y, z)
        if abs(forth - back) <= (allowed := self.accuracy) * size:
            return
        raise ProbeError(
            f"rmatvec of {self.name} is not the adjoint of matvec: <A x, y> = {forth:.9g} and <x, A'y> = {back:.9g} "
            f"for an x of length {np.linalg.norm(x):.3g} and a y of length {np.linalg.norm(y):.3g}. The difference is "
            f"{abs(forth - back):.1e}, and rounding explains {allowed * size:.1e}. Compare both with a small dense "
            f"matrix; saddleback.check({self.name}) tests them one by one. Products in half precision are too "
            "coarse: use float32 or float64"
        )

    @property
    def accuracy(self) -> float:
        """Largest error in an identity, relative to the sizes of its products."""
        return max(ACCURACY, MARGIN * self.rounding)

    def measure(self, kind: str, vector: Vector, product: Vector) -> None:
        """Measure the rounding of ``matvec`` or ``rmatvec`` at a vector: the type of the result need not show it."""
        # A(x / 3) is A x / 3 up to rounding, whether or not A is right
        missed = float(np.linalg.norm(self._product(kind, vector / 3.0, product.size) - product / 3.0))
        size = float(np.linalg.norm(product)) / 3.0
        if size > 0:
            self.rounding = max(self.rounding, min(missed / size, COARSEST))

    def matvec_rounded(self, x: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        """Return A x with sizes and errors that are assumed: nothing is known of the terms."""
        return self._assumed(self.matvec(x), x, radius)

    def rmatvec_rounded(self, y: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        """Return A'y with sizes and errors that are assumed."""
        return self._assumed(self.rmatvec(y), y, radius)

    def _assumed(self, product: Vector, vector: Vector, radius: Vector | None) -> Rounded:
        """Return a product with the sizes that it would have if all entries of A were equally large.

        The length of the product of the probe, whose entries are standard normal, estimates the Frobenius norm of A.
        It is the same in every run, unlike the largest norm of the products so far.
        """
        norm = length(self._probed()[1])
        size = np.maximum(np.abs(product), norm * length(vector) / sqrt(max(self.shape[0] * self.shape[1], 1)))
        moved = 0.0 if radius is None else norm * length(radius)
        return Rounded(product, constant(0.0, product.size), ASSUMED * size + moved, size)

    def _sums(self, power: float, columns: Columns | None, weights: Weights | None) -> tuple[Vector, Vector]:
        raise _unknown_entries(f"the sums of |A|^{power}")

    def entries(self, columns: Indices | None = None, compressed: bool = False) -> Any:
        if compressed:
            return compressed_by_panels(self, columns)
        columns = np.arange(self.shape[1]) if columns is None else columns
        return np.column_stack([self.matvec(np.ones(1), columns[i : i + 1]) for i in range(columns.size)])

    def _load(self, runs: Sequence[Indices]) -> Iterator[Operator]:
        return (self for _ in runs)  # a linear operator is one block, and so a run is all of it

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        raise _unknown_entries("single rows or columns")


def probe_passes(A: Operator) -> float:
    """Return the passes over A that the tests of its products take: one product per operator, for a single task."""
    tested = [part for part in leaves(A) if not part.traits.entries_known]
    return sum(PROBE / part.traits.tasks * part.shape[1] for part in tested) / A.shape[1]


def linear_operators(A: Operator) -> list[Abstract]:
    """Return the linear operators inside of an operator."""
    inside = (part.single if isinstance(part, Tasks) else part for part in leaves(A))
    return [operator for operator in inside if isinstance(operator, Abstract)]


def _unknown_entries(what: str) -> TypeError:
    return TypeError(f"A is a LinearOperator, whose entries are not known: {what} cannot be had; give A as an array")
