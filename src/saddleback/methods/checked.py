"""Checks of the contract of a method at every call, for methods from outside the library.

A mistake in a new method is reported with the call that made it, instead of as a failure of the loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..certificates.candidates import Candidates
from ..common.arrays import Vector
from ..model.model import Model
from .contract import Layer, Start, State


@dataclass(frozen=True)
class Checked(Layer[State]):
    """A method whose states and candidates are checked before the loop sees them."""

    def init(self, model: Model, start: Start) -> State:
        state = self._checked(self.method.init(model, start), "init", model.A.shape)
        for name in ("x", "y"):
            self._check_finite("init", f"state.{name}", getattr(state, name))
        return state

    def advance(self, state: State, passes: float) -> State:
        before, shape = state.passes, (state.y.size, state.x.size)
        state = self._checked(self.method.advance(state, passes), "advance", shape)
        if not state.passes > before:
            raise self._error(
                "advance",
                f"left state.passes at {before:g}: expected it to count the work done, 1 for a visit of every column "
                "and 0.5 for a product with A or A' alone",
            )
        return state

    def candidates(self, state: State) -> Candidates:
        offered = self.method.candidates(state)
        if not isinstance(offered, Candidates):
            raise self._error("candidates", f"returned {type(offered).__name__}: expected Candidates(primal, dual)")
        if not offered.primal or not offered.dual:
            raise self._error("candidates", "offered no primal or no dual point: expected at least one of each")
        sizes = state.x.size, state.y.size
        # copies: the loop keeps the best of them, and the method may change its arrays in place
        return offered._replace(
            primal=[self._copied("primal", pair, sizes) for pair in offered.primal],
            dual=[self._copied("dual", pair, sizes[::-1]) for pair in offered.dual],
        )

    def adapt(self, state: State, error: float) -> State:
        return self._checked(self.method.adapt(state, error), "adapt", (state.y.size, state.x.size))

    def _checked(self, state: Any, call: str, shape: tuple[int, int]) -> State:
        if not isinstance(state, State):
            raise self._error(call, f"returned {type(state).__name__}: expected a State")
        for name, size in (("x", shape[1]), ("y", shape[0])):
            self._check_vector(call, f"state.{name}", getattr(state, name), size)
        return state

    def _copied(self, side: str, pair: Any, sizes: tuple[int, int]) -> tuple[Vector, Vector | None]:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise self._error(
                "candidates", f"has a {type(pair).__name__} in {side}: expected pairs (point, image or None)"
            )
        point, image = pair
        self._check_vector("candidates", f"a {side} point", point, sizes[0])
        self._check_finite("candidates", f"a {side} point", point)
        if image is not None:
            self._check_vector("candidates", f"the image of a {side} point", image, sizes[1])
            self._check_finite("candidates", f"the image of a {side} point", image)
        return point.copy(), None if image is None else image.copy()

    def _check_vector(self, call: str, what: str, vector: Any, size: int) -> None:
        if not hasattr(vector, "dtype") or np.shape(vector) != (size,) or vector.dtype != np.float64:
            kind = f"{type(vector).__name__} of shape {np.shape(vector)}"
            raise self._error(call, f"made {what} a {kind}: expected a float64 array of shape ({size},)")

    def _check_finite(self, call: str, what: str, vector: Vector) -> None:
        """Raise for NaN and infinities; not called after ``advance``, where they mean the status DIVERGED."""
        if not np.all(np.isfinite(vector)):
            entry = int(np.flatnonzero(~np.isfinite(vector))[0])
            raise ValueError(
                f"method {self.name!r}: {call} made {what} with the value {vector[entry]} at entry {entry}: expected "
                "finite numbers"
            )

    def _error(self, call: str, found: str) -> TypeError:
        return TypeError(f"method {self.name!r}: {call} {found}")
