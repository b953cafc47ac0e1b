"""A case from a seed: a problem, options, and the outcomes that are allowed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

import saddleback as sb

from .hard import draw as draw_hard
from .problems import Drawn, Units, draw

METHODS = [
    *("sp-bcd", "descent", "alternating", "sp-bcd-published", "pure-cd", "pdhg", "pdhg-diagonal", "r2hpdhg", "spdc"),
    *("admm", "gs-admm", "pdmm", "ista", "fista", "fobos", "osga", "highs", "finish"),
]

KINDS = {
    "units": 0.2,
    "plain": 0.42,
    "scaled": 0.1,
    "extreme": 0.06,
    "wrong": 0.08,
    "malformed": 0.06,
    "resumed": 0.04,
    "threads": 0.04,
}
"""The kinds of cases, and the share of each.

``units`` are problems that are hard to certify, of ``hard.py``. They, ``plain`` problems and those in other units
(``scaled``, 1e-12 to 1e12) must be solved, and are solved again in units of 2^-40 to 2^40 per row and column.
``extreme`` units (up to 1e300), ``wrong`` arguments and ``malformed`` sparse matrices may be rejected by an error that
names an argument. ``resumed`` cases continue from a checkpoint and ``threads`` cases run with one and with three
threads; both must give the same bits.
"""

TIME_LIMIT = 3.0


@dataclass
class Case:
    """A problem and the options of its solve."""

    seed: int
    kind: str
    drawn: Drawn
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """A description of the case in one line."""
        return f"{self.kind}: {self.drawn.name} / {_short(self.options)}"

    @property
    def may_refuse(self) -> bool:
        """Whether an error that names an argument is an allowed outcome."""
        if "torch" in self.drawn.name and any(kind in self.drawn.name for kind in ("LinearOperator", "Streamed")):
            return True  # products of a LinearOperator are computed on the host
        plain = {"tol", "max_passes", "time_limit", "seed", "threads", "x0", "y0", "check_every"}
        return self.kind in ("extreme", "wrong", "malformed") or not plain.issuperset(self.options)


def _short(options: dict[str, Any]) -> str:
    return ", ".join(f"{name}={repr(value)[:40]}" for name, value in options.items())


def case(seed: int) -> Case:
    """Return the case of a seed."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(list(KINDS), p=np.array(list(KINDS.values())) / sum(KINDS.values())))
    reach = {"scaled": 12, "extreme": 300}.get(kind, 0)
    powers = rng.uniform(-reach, reach, 3) * (rng.random(3) < 0.6)
    with np.errstate(all="ignore"):
        hard = kind == "units"
        drawn = draw_hard(rng) if hard else draw(rng, Units(*(float(10.0**power) for power in powers)))
    made = Case(seed, kind, drawn, options(rng, drawn))
    if kind == "wrong":
        spoil(rng, made)
    if kind == "malformed":
        malform(rng, made)
    if kind in ("resumed", "threads"):
        made.options.pop("time_limit", None)
        made.options["max_passes"] = min(made.options["max_passes"], 100)
    return made


def options(rng: np.random.Generator, drawn: Drawn) -> dict[str, Any]:
    """Return options of ``solve``; in half of the cases only limits."""
    tol = float(rng.choice([1e-2, 1e-4, 1e-6, 1e-6, 1e-8, 1e-10, 1e-12, 0.0]))
    found: dict[str, Any] = {"tol": tol, "max_passes": 60 if tol < 1e-6 else 150, "time_limit": TIME_LIMIT}
    if rng.random() < 0.03:
        found["time_limit"] = float(rng.choice([1e-6, 1e-3, 0.02]))
    if rng.random() < 0.5:
        return found
    chosen: dict[str, Any] = {
        "method": str(rng.choice(METHODS)),
        "seed": int(rng.integers(1000)),
        "threads": int(rng.integers(1, 4)),
        "blocks_per_iteration": int(rng.integers(1, 4)),
        "x0": start(rng, drawn),
        "y0": rng.standard_normal(drawn.y_shape),
        "eliminate": bool(rng.random() < 0.5),
        "check_every": float(rng.choice([0.5, 3.0, 1000.0])),
        "working_set": bool(rng.random() < 0.7),
        "restarts": bool(rng.random() < 0.5),
        "finish": bool(rng.random() < 0.5),
        "backend": str(rng.choice(["numpy", "native"])),
        "dual": str(rng.choice(["eager", "lazy"])),
    }
    shares = {"method": 0.45, "seed": 0.3, "threads": 0.2, "x0": 0.2, "y0": 0.15, "finish": 0.2}
    return found | {name: value for name, value in chosen.items() if rng.random() < shares.get(name, 0.1)}


def start(rng: np.random.Generator, drawn: Drawn) -> Any:
    """Return a point to start from, in the shape of the problem."""
    blocks = [x + rng.standard_normal(x.shape) * (rng.random() < 0.5) for x in drawn.inside]
    return blocks if drawn.is_list else blocks[0]


class Odd:
    """An object that is no valid argument."""


class CallbackError(Exception):
    """An error of the user's callback, which has to reach the user unchanged."""


def calling(junk: Any) -> Any:
    """Return a callback that calls an object, with errors that differ from those of the library."""

    def callback(info: Any) -> Any:
        try:
            return junk(info)
        except Exception as error:
            raise CallbackError from error

    return callback


JUNK: list[Any] = [
    *(None, True, -1, 0, 0.5, 1.5, 2**63, 1e308, 3 + 0j, float("nan"), float("inf"), -float("inf")),
    *("", "auto", "norm", "1e-6", b"x", [], (), {}, [1, 2], ["a"], {"a": 1}, range(3), slice(2)),
    *(np.array(1.0), np.array([]), np.array([np.nan]), np.ones(3), np.ones((2, 2, 2)), np.ones(2, dtype=bool)),
    *(np.array(["a"]), np.array([1j]), np.array([None]), np.float32(2), np.int8(1), np.datetime64("2020")),
    *(sparse.eye(2, format="csc"), sb.L1(1.0), sb.Squared([1.0]), sb.Identity(), object(), Odd(), Odd, len),
]

OF_SOLVE = [
    *("method", "tol", "max_passes", "time_limit", "blocks_per_iteration", "seed", "threads", "callback", "progress"),
    *("x0", "y0", "eliminate", "check_every", "checkpoint", "checkpoint_every", "resume", "device", "step"),
    *("restarts", "working_set", "finish", "backend", "dual", "wrong_name"),
]
OF_PROBLEM = [
    *("penalty", "A", "loss", "alpha", "weights", "groups"),
    *("b", "labels", "scale", "sample_weight", "lower", "c"),
]


def spoil(rng: np.random.Generator, made: Case) -> None:
    """Replace an argument of ``solve``, of ``Problem`` or of a term by an invalid value."""
    junk = JUNK[rng.integers(len(JUNK))]
    if rng.random() < 0.6:
        name = str(rng.choice(OF_SOLVE))
        if name == "checkpoint" and isinstance(junk, (str, bytes)):
            junk = 3  # a name would be a file
        if name == "callback" and callable(junk):
            junk = calling(junk)
        made.options[name] = junk
        return
    name = str(rng.choice(OF_PROBLEM))
    drawn = made.drawn
    drawn.name += f" with {name}={repr(junk)[:40]}"
    drawn.replacements[name] = junk
    make = drawn.make

    def spoiled() -> sb.Problem:
        right = make()
        penalty, A, loss = right.penalty, right.A, right.loss
        n = drawn.x_shapes[0][0]
        match name:
            case "penalty":
                penalty = junk
            case "A":
                A = junk
            case "loss":
                loss = junk
            case "alpha":
                penalty, A = sb.L1(junk), A[0] if drawn.is_list else A
            case "weights":
                penalty, A = sb.L1(1.0, junk), A[0] if drawn.is_list else A
            case "groups":
                penalty, A = sb.SparseGroup(1.0, junk, 0.5), A[0] if drawn.is_list else A
            case "lower":
                penalty, A = sb.L1(1.0) + sb.Box(junk, np.ones(n)), A[0] if drawn.is_list else A
            case "c":
                penalty, A = sb.L1(1.0) + sb.Linear(junk), A[0] if drawn.is_list else A
            case "b":
                loss = sb.Huber(junk)
            case "labels":
                loss = sb.Hinge(junk)
            case "scale":
                loss = sb.Squared(np.zeros(drawn.y_shape), scale=junk)
            case _:
                loss = sb.Absolute(np.zeros(drawn.y_shape), sample_weight=junk)
        return sb.Problem(penalty, A, loss)

    drawn.make = spoiled


def malform(rng: np.random.Generator, made: Case) -> None:
    """Replace A by a sparse matrix whose arrays are inconsistent."""
    drawn = made.drawn
    m, n = int(np.prod(drawn.y_shape)), 5
    matrix = sparse.random(drawn.y_shape[0], n, 0.5, format=str(rng.choice(["csc", "csr"])), random_state=rng)
    indices, indptr = matrix.indices.copy(), matrix.indptr.copy()
    if not indices.size:
        return
    at, wrong = rng.integers(indices.size), int(rng.choice([-1, -(2**31), 2**31 - 1, m + n, 10**7]))
    point = rng.integers(indptr.size)
    damage = str(
        rng.choice(
            ["index", "indptr", "falling", "short indptr", "short indices", "short data", "float", "nan", "long"]
        )
    )
    match damage:
        case "index":
            indices[at] = wrong
            matrix.indices = indices
        case "indptr":
            indptr[point] = wrong
            matrix.indptr = indptr
        case "falling":
            matrix.indptr = indptr[::-1].copy()
        case "short indptr":
            matrix.indptr = indptr[: rng.integers(indptr.size)]
        case "short indices":
            matrix.indices = indices[:at]
        case "short data":
            matrix.data = matrix.data[:at]
        case "float":
            matrix.indices = indices.astype(float)
        case "nan":
            matrix.data[at] = rng.choice([np.nan, np.inf])
        case "long":
            matrix.indptr = np.concatenate([indptr, [wrong]]).astype(indptr.dtype)
    if rng.random() < 0.3:
        matrix.has_sorted_indices = matrix.has_canonical_format = True
    drawn.arrays += [each for each in (matrix.data, matrix.indices, matrix.indptr) if isinstance(each, np.ndarray)]
    drawn.name += f" with a malformed {matrix.format}: {damage}"
    right, is_list = drawn.make, drawn.is_list

    def malformed() -> sb.Problem:
        problem = right()
        penalty = sb.L1(0.1)
        return sb.Problem([penalty], [matrix], problem.loss) if is_list else sb.Problem(penalty, matrix, problem.loss)

    drawn.make = malformed
