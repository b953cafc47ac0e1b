r"""A user's function: any object with ``value(x)`` and ``prox(v, step)``.

Two optional attributes make the solver faster or the certificate sharper:

``separable = True``
    The function is a sum over coordinates, and its prox takes an array of steps. Every coordinate becomes a block.
``conjugate(y)``
    The exact value of the conjugate, infinite outside its domain. Without it the certificate uses pairs from the prox:
    :math:`p = \mathrm{prox}(x + s y)` has the subgradient :math:`y' = (x + s y - p) / s`, at which
    :math:`f^*(y') = \langle p, y' \rangle - f(p)`. The distance of y' from y is reported as dual infeasibility.

``prox`` may be a ``scipy.LowLevelCallable`` with the signature ``double (double v, double step)`` or
``double (double v, double step, void *data)``. It then acts on single coordinates and runs inside the compiled kernels.
``value`` may be one too, with ``double (double x)`` or ``double (double x, void *data)``.

``probes.py`` tests all of these.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..common.arrays import Blocks, Indices, Step, Vector, multiple
from ..common.checks import ProbeError
from .calculus import BlockSum, Tilted
from .conjugates import Conjugate
from .contract import Convex, Domain, Ray
from .domains import KnownByValue
from .normal_form import CompiledProx, NormalForm
from .terms import Term
from .traits import KnownByProx


class UserTerm(Term):
    """Adapter that makes a term of a user's object."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self.compiled = low_level(source.prox, 2)
        value = low_level(source.value, 1)
        self.value_of: Callable[[Vector], float] = source.value if value is None else coordinatewise_sum(value)
        self.fully_compiled = self.compiled is not None and value is not None
        self.prox_of: Callable[[Vector, Step], Any]
        self.prox_of = source.prox if self.compiled is None else coordinatewise(self.compiled)
        self.separable = self.compiled is not None or bool(getattr(source, "separable", False))

    @property
    def name(self) -> str:
        return type(self.source).__name__

    def __repr__(self) -> str:
        has_own = any("__repr__" in vars(cls) for cls in type(self.source).__mro__[:-1])
        return repr(self.source) if has_own else self.name

    def bind(self, shape: tuple[int, ...]) -> Convex:
        return UserFunction(self, shape)


def as_term(source: Any, name: str) -> Term:
    """Return a built-in term unchanged and a user's object as a ``UserTerm``; raise if it is neither."""
    if isinstance(source, Term):
        return source
    missing = [method for method in ("value", "prox") if not hasattr(source, method)]
    if missing or isinstance(source, type):
        short = repr(source) if isinstance(source, (str, type)) else f"of type {type(source).__name__}"
        raise TypeError(
            f"{name} is {short}: expected a function of the catalogue, or an object with value(x) and prox(v, step)"
            + (f"; {' and '.join(missing)} missing" if missing else "; this is a class, make an instance of it")
        )
    return UserTerm(source)


class UserFunction(Convex):
    """A user's function of a variable of known shape."""

    def __init__(self, term: UserTerm, shape: tuple[int, ...]) -> None:
        self.term = term
        self.shape = shape
        self.size = int(np.prod(shape))
        self.diagonal_steps = term.separable
        self.given_conjugate: Callable[[Vector], float] | None = getattr(term.source, "conjugate", None)
        self.constrained = False  # whether an infinite value has been seen

    def blocks(self) -> Blocks:
        return Blocks.scalars(self.size) if self.term.separable else Blocks.single(self.size)

    @property
    def domain(self) -> Domain:
        return KnownByValue(self.size, self.finite_value)

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        found = self.term.value_of(multiple(x, factor).reshape(self.shape))
        if found is None or np.ndim(found) > 0:
            kind = "None" if found is None else f"an array of shape {np.shape(found)}"
            raise ProbeError(f"value of {self.term.name} returned {kind}: expected one number; is a sum missing?")
        return float(found)

    def prox(self, v: Vector, step: Step, blocks: Indices | None = None) -> Vector:
        if blocks is None or not self.diagonal_steps or blocks.size == v.size == self.size:
            return np.array(self.raw_prox(v, step), dtype=np.float64).ravel()  # a copy: the user may keep the array
        # the object may hold one parameter per coordinate, so it always gets all coordinates
        everywhere, steps = np.zeros(self.size), np.ones(self.size)
        everywhere[blocks], steps[blocks] = v, step
        return self.prox(everywhere, steps)[blocks]

    def raw_prox(self, v: Vector, step: Step) -> NDArray[Any]:
        """Return the result of the user's prox in its precision; the prox gets a copy of v, which it may overwrite."""
        step = np.broadcast_to(step, v.shape).reshape(self.shape) if self.diagonal_steps else float(np.max(step))
        result = np.asarray(self.term.prox_of(np.array(v).reshape(self.shape), step))
        if result.shape != self.shape or result.dtype.kind not in "biuf":
            raise ProbeError(
                f"prox of {type(self.term.source).__name__} returned shape {result.shape} and dtype {result.dtype}: "
                f"expected real numbers of shape {self.shape}"
            )
        return result

    def recession(self, direction: Vector) -> Ray:
        return Ray(0.0, direction)

    def conjugate(self) -> UserConjugate:
        return UserConjugate(self)

    @staticmethod
    def step_near(y: Vector, x: Vector) -> float:
        """Return the step with which the prox finds a subgradient near y at a point near x."""
        return (1.0 + float(np.linalg.norm(x))) / (1.0 + float(np.linalg.norm(y)))

    def normal_form(self) -> NormalForm | None:
        if self.term.compiled is None:
            return None
        return NormalForm((CompiledProx(self.size, *self.term.compiled),))


class UserConjugate(Conjugate[UserFunction], KnownByProx):
    """The conjugate of a user's function: the user's ``conjugate``, or values from its prox."""

    @property
    def domain(self) -> Domain:
        return KnownByValue(self.of.size, None if self.of.given_conjugate is None else self.finite_value)

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        if self.of.given_conjugate is None:
            source = self.of.term.source
            raise TypeError(f"{source!r} has no conjugate(y): add one, or use the certificate of a solve")
        return float(self.of.given_conjugate(multiple(x, factor).reshape(self.of.shape)))

    def near(self, x: Vector, subgradient: Vector) -> tuple[Vector, float]:
        if self.of.given_conjugate is not None and np.isfinite(value := self.finite_value(x)):
            return x, value
        step = self.of.step_near(x, subgradient)
        v = subgradient + step * x
        point = self.of.prox(v, step)
        known = (v - point) / step
        return known, float(point @ known) - self.of.finite_value(point)

    def recession(self, direction: Vector) -> Ray:
        return Ray(0.0, direction)

    def normal_form(self) -> NormalForm | None:
        return self.of.normal_form()


def user_functions(function: Convex) -> list[tuple[UserFunction, slice, Vector | float]]:
    """Return the user's functions inside a function, each with its coordinates and the linear term added to it."""
    if isinstance(function, UserFunction):
        return [(function, slice(None), 0.0)]
    if isinstance(function, Tilted):
        return [(own, where, linear + function.linear[where]) for own, where, linear in user_functions(function.base)]
    if not isinstance(function, BlockSum):
        return []
    return [
        (own, slice(*(first + end for end in where.indices(size)[:2])), linear)
        for part, first, size in zip(function.functions, function.start[:-1].tolist(), function.sizes, strict=True)
        for own, where, linear in user_functions(part)
    ]


class Compiled(NamedTuple):
    """Address of a compiled function of one or two numbers, and of its data."""

    address: int
    data: int
    takes_data: bool


def low_level(function: Any, arguments: int) -> Compiled | None:
    """Return the address behind a ``scipy.LowLevelCallable``, or None for any other callable."""
    signature = getattr(function, "signature", None)
    if not isinstance(function, tuple) or signature is None:
        return None
    plain = "double (" + ", ".join(["double"] * arguments) + ")"
    with_data = plain[:-1] + ", void *)"
    if signature not in (plain, with_data):
        raise ValueError(f"LowLevelCallable has the signature {signature!r}: expected {plain!r} or {with_data!r}")
    capsule = tuple.__getitem__(function, 0)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    context = ctypes.pythonapi.PyCapsule_GetContext
    context.restype, context.argtypes = ctypes.c_void_p, [ctypes.py_object]
    return Compiled(pointer(capsule, signature.encode()), context(capsule) or 0, signature == with_data)


def coordinatewise(function: Compiled) -> Callable[[Vector, Step], Vector]:
    """Return a compiled ``double (double, double)`` as a function of arrays."""
    call = _python_callable(function, 2)
    return np.vectorize(call, otypes=[np.float64])


def coordinatewise_sum(function: Compiled) -> Callable[[Vector], float]:
    """Return the sum of a compiled ``double (double)`` over an array."""
    call = _python_callable(function, 1)
    return lambda x: float(sum(call(value) for value in x.ravel()))


def _python_callable(function: Compiled, arguments: int) -> Callable[..., float]:
    doubles = [ctypes.c_double] * arguments
    if not function.takes_data:
        return ctypes.CFUNCTYPE(ctypes.c_double, *doubles)(function.address)
    call = ctypes.CFUNCTYPE(ctypes.c_double, *doubles, ctypes.c_void_p)(function.address)
    return lambda *values: float(call(*values, function.data))
