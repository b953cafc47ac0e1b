r"""Functions as data, which the kernels, Newton's method, interior points and linear programs read.

A built-in function is a sum of atoms, each over neighbouring coordinates. A consumer reads the atoms in one ``match``.
A function without a normal form, or with an atom that a consumer does not know, is treated by numpy code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..common.arrays import Vector, constant
from ..common.cached import cached_property


class PiecewiseParameters(NamedTuple):
    """Parameters of the family in ``piecewise.py``, one value per coordinate."""

    left: Vector
    right: Vector
    quadratic: Vector
    lower: Vector
    upper: Vector

    @classmethod
    def zero(cls, size: int) -> PiecewiseParameters:
        """Return the parameters of the function 0."""
        none = constant(0.0, size)
        return cls(none, none, none, constant(-np.inf, size), constant(np.inf, size))

    def contiguous(self) -> PiecewiseParameters:
        """Return the parameters as contiguous arrays, as the kernels need them."""
        return PiecewiseParameters(*(np.ascontiguousarray(parameter, dtype=np.float64) for parameter in self))


@dataclass(frozen=True)
class Piecewise:
    """A member of the family in ``piecewise.py``."""

    parameters: PiecewiseParameters


@dataclass(frozen=True)
class GroupNorm:
    """The norm of each block times its weight, plus a member of that family."""

    parameters: PiecewiseParameters
    weight: Vector


@dataclass(frozen=True)
class LogisticEntropy:
    """The conjugate of the logistic loss (``logistic.py``)."""

    labels: Vector
    weight: Vector


@dataclass(frozen=True)
class CompiledProx:
    """Address of a compiled prox, ``double (double v, double step[, void *data])``, the same for each coordinate.

    In the normal form of a conjugate it is the prox of the function itself: Moreau's identity gives that of the
    conjugate.
    """

    size: int
    address: int
    data: int
    takes_data: bool


Atom = Piecewise | GroupNorm | LogisticEntropy | CompiledProx


@dataclass(frozen=True)
class NormalForm:
    """The atoms of a function in order. Each atom acts on a range of neighbouring coordinates."""

    atoms: tuple[Atom, ...]

    @cached_property
    def parameters(self) -> PiecewiseParameters:
        """The piecewise part of all coordinates, in contiguous arrays; 0 for atoms without one."""
        own = [_parameters(atom).contiguous() for atom in self.atoms]
        return own[0] if len(own) == 1 else PiecewiseParameters(*map(np.concatenate, zip(*own, strict=True)))

    @cached_property
    def group_weight(self) -> Vector:
        """The weight of the norm of each block; 0 for none."""
        own = [_group_weight(atom) for atom in self.atoms]
        return own[0] if len(own) == 1 else np.concatenate(own)

    def compiled_proxes(self) -> Iterator[tuple[slice, CompiledProx]]:
        """Yield the coordinates with a compiled prox, and that prox."""
        first = 0
        for atom in self.atoms:
            size = _size(atom)
            if isinstance(atom, CompiledProx):
                yield slice(first, first + size), atom
            first += size

    def made_of(self, kind: type[Atom]) -> NDArray[np.bool_]:
        """Return which coordinates belong to atoms of a kind."""
        return np.concatenate([np.full(_size(atom), isinstance(atom, kind)) for atom in self.atoms])

    @cached_property
    def closed(self) -> bool:
        """Whether all atoms are formulas, and none a compiled prox."""
        return not any(isinstance(atom, CompiledProx) for atom in self.atoms)


def _size(atom: Atom) -> int:
    match atom:
        case Piecewise(parameters) | GroupNorm(parameters, _):
            return parameters.left.size
        case LogisticEntropy(labels, _):
            return labels.size
        case CompiledProx(size):
            return size


def _parameters(atom: Atom) -> PiecewiseParameters:
    return atom.parameters if isinstance(atom, Piecewise | GroupNorm) else PiecewiseParameters.zero(_size(atom))


def _group_weight(atom: Atom) -> Vector:
    return atom.weight if isinstance(atom, GroupNorm) else np.zeros(_size(atom))
