"""The properties that every case must have."""

from __future__ import annotations

import hashlib
import re
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import saddleback as sb

from . import twins
from .cases import TIME_LIMIT, CallbackError, Case
from .certificate import ROUNDING, UNDERFLOW, explained, feasible, judge, repaired, value
from .exact import optimum, refuted
from .functions import Real, norm

LATE = 1.0
"""Seconds of CPU time of the main thread by which a solve may exceed its time limit."""

ASSUMED = 16
"""How much weaker a bound may be if the rounding of products is assumed: it moves y and its slope."""

SHORTEST = 1e-150
"""A distance whose square underflows is smaller: the certificate of a matrix does not see it."""

DECISIVE = 2.0**-29
"""Share of the objective by which a stated bound may differ from the value that it bounds: twice 2^-30."""

LIBRARY = str(Path(sb.__file__).parent)

ARGUMENTS = re.compile(
    r"\b(A|x0|y0|x|y|b|c|penalty|loss|alpha|weights?|groups?|l1_ratio|shape|lower|upper|quantile|delta|epsilon|labels|scale"
    r"|sample_weight|method|tol|max_passes|time_limit|blocks_per_iteration|seed|threads|callback|progress|eliminate"
    r"|check_every|checkpoint|checkpoint_every|resume|comm|device|step|restarts|working_set|finish|backend|dual|bounds?"
    r"|memory|source|problem|option|term|Box|Linear|NonNegative|Nuclear|Interval|Equality|columns)\b"
)


class Failure(Exception):
    """A property that does not hold; the first word of the message is the kind of failure."""


def check(case: Case) -> str:
    """Run a case and return its outcome; raise a Failure if a property does not hold."""
    before = [_fingerprint(array) for array in case.drawn.arrays]
    with warnings.catch_warnings(record=True) as leaked:
        warnings.simplefilter("always")
        try:
            ended = _solved(case)
        except Failure:
            raise
        except Exception as error:
            ended = _refused(case, error)
    if leaked and not _documented(leaked[0]):
        first = leaked[0]
        raise Failure(f"warning {first.category.__name__}: {first.message} at {first.filename}:{first.lineno}")
    if before != [_fingerprint(array) for array in case.drawn.arrays]:
        raise Failure("modified: an array of the user has changed")
    return ended


def _documented(warning: warnings.WarningMessage) -> bool:
    return issubclass(warning.category, RuntimeWarning) and str(warning.message).startswith("checkpoint=")


def _fingerprint(array: NDArray[Any]) -> str:
    content = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
    return hashlib.sha1(content).hexdigest() + f"{array.shape} {array.strides} {array.dtype} {array.flags.writeable}"


def _refused(case: Case, error: Exception) -> str:
    """Return "refused" if an error is allowed, comes from the library and names an argument."""
    if isinstance(error, CallbackError):
        return "refused"
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    where = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}: {str(error)[:200]}"
    if not isinstance(error, (ValueError, TypeError, OSError)) or isinstance(error, np.linalg.LinAlgError):
        raise Failure(f"unnamed {where}") from error
    if not last.filename.startswith(LIBRARY) or not ARGUMENTS.search(str(error)):
        raise Failure(f"unnamed {where}") from error
    if not case.may_refuse:
        raise Failure(f"refused {where}") from error
    return "refused"


def _solved(case: Case) -> str:
    problem = case.drawn.make()
    begin = time.thread_time()
    match case.kind:
        case "resumed":
            result = _resumed(case, problem)
        case "threads":
            result = _at_any_number_of_threads(case, problem)
        case _:
            result = sb.solve(problem, **case.options)
    taken = time.thread_time() - begin
    limit = case.options.get("time_limit")
    if isinstance(limit, float) and 0 < limit <= TIME_LIMIT and taken > limit + LATE:
        raise Failure(f"late: {taken:.1f} s of processor time with time_limit={limit}")
    if not isinstance(result.status, sb.Status):
        raise Failure(f"status {result.status!r}")
    if case.kind not in ("malformed",) and not case.drawn.replacements:
        _certified(case, problem, result)
        if case.kind in ("plain", "scaled", "units"):
            _in_other_units(case, result)
    return str(result.status.name)


def _in_other_units(case: Case, result: sb.Result) -> None:
    """Compare the result with those of the same problem in other units and in rational arithmetic."""
    rng, tol = np.random.default_rng([case.seed, 1]), case.options["tol"]
    here = twins.in_float64(case.drawn.statement)
    units, storage = twins.Units.drawn(rng, here), str(rng.choice(list(twins.STORAGES)))
    problem, twin = twins.problem(here, storage), twins.problem(units.statement(here), storage)
    x, y = (
        [np.asarray(block, dtype=Real).ravel() for block in _list(result.x)],
        np.asarray(result.y, dtype=Real).ravel(),
    )
    stated = twins.certified(problem, here, x, y)
    if found := twins.disagreement(
        stated, twins.certified(twin, here, *units.point(x, y)), float(units.objective), tol
    ):
        raise Failure(f"units: the same points in other units: {found}")
    exact = optimum(here)
    if exact is not None and (found := refuted(result.status, stated, exact, tol, float(explained(here)))):
        raise Failure(f"exact: {found}")
    options = {name: value for name, value in case.options.items() if name in ("tol", "max_passes", "method")}
    try:
        other = sb.solve(twin, **options, time_limit=TIME_LIMIT)
    except Exception as error:
        _refused(case, error)
        return
    if found := twins.disagreement(stated, other.certificate, float(units.objective), tol, same_points=False):
        raise Failure(f"units: solved in other units: {found}")
    if found := twins.refuted(result, other):
        raise Failure(f"units: {found}")


def _resumed(case: Case, problem: sb.Problem) -> sb.Result:
    """Stop a run, resume it from its checkpoint, and compare it with a run without a stop."""
    whole = sb.solve(problem, **case.options)
    first = case.options | {"max_passes": case.options["max_passes"] / 3}
    rest = {name: value for name, value in case.options.items() if name not in ("x0", "y0")}
    with tempfile.TemporaryDirectory(prefix="saddleback-fuzz-") as folder:
        path = Path(folder) / "run.npz"
        sb.solve(problem, checkpoint=path, checkpoint_every=0.0, **first)
        if not path.exists():
            return whole
        again = sb.solve(problem, resume=path, **rest)
    _same_bits(whole, again, "resumed")
    return whole


def _at_any_number_of_threads(case: Case, problem: sb.Problem) -> sb.Result:
    one, three = (sb.solve(problem, **(case.options | {"threads": threads})) for threads in (1, 3))
    _same_bits(one, three, "threads")
    return three


def _same_bits(first: sb.Result, second: sb.Result, what: str) -> None:
    for name in ("x", "y"):
        a, b = (_flat(getattr(result, name)) for result in (first, second))
        if not np.array_equal(a, b):
            raise Failure(
                f"bits: {what} differ in {name} by {np.max(np.abs(a - b)):.3g}, {first.status} {second.status}"
            )


def _flat(blocks: Any) -> NDArray[np.float64]:
    return np.concatenate([np.asarray(block, dtype=float).ravel() for block in _list(blocks)])


def _list(blocks: Any) -> list[Any]:
    return list(blocks) if isinstance(blocks, (list, tuple)) else [blocks]


def _certified(case: Case, problem: sb.Problem, result: sb.Result) -> None:
    """Compare the result with the certificate of ``certificate.py``."""
    drawn, stated = case.drawn, result.certificate
    x, y = [np.asarray(block, dtype=float) for block in _list(result.x)], np.asarray(result.y, dtype=float)
    if [block.shape for block in x] != [tuple(shape) for shape in drawn.x_shapes] or y.shape != drawn.y_shape:
        raise Failure(f"shape: x {[block.shape for block in x]}, y {y.shape}")
    if not all(np.all(np.isfinite(block)) for block in (*x, y)):
        raise Failure("not-finite: x or y has NaN or inf")
    if result.status is sb.Status.INFEASIBLE and drawn.feasible:
        raise Failure("verdict: INFEASIBLE, but a feasible point is known")
    if result.status is sb.Status.UNBOUNDED and drawn.bounded:
        raise Failure("verdict: UNBOUNDED, but the objective is bounded below")
    found = judge(drawn.statement, x, y)
    rounding = found.primal_rounding + found.dual_rounding
    undecided = DECISIVE * max(abs(found.primal), abs(found.dual))  # each value is a bound that may be off by this
    _agrees("primal_value", stated.primal_value, found.primal, rounding, rounding + undecided)
    if found.off_z == 0 and found.off_y == 0:  # any other y is moved before it is evaluated
        weaker = Real(np.inf) if case.kind == "extreme" else rounding + found.scaling + undecided  # squares underflow
        spare = ASSUMED if any(drawn.statement.unknown) else 1
        _agrees("dual_value", stated.dual_value, found.dual, spare * weaker, rounding)
    _bounds_every_point(case, y, found.dual, rounding)
    if stated.dual_infeasibility == 0 and not 0 < found.off_z < SHORTEST:
        _bounds_every_point(case, y, Real(stated.dual_value), rounding)
        if not any(feasible(drawn.statement, each) for each in (y, repaired(drawn.statement, y))):
            raise Failure(f"feasible: the dual violation is {float(found.off_z):.3g}, and stated to be 0")
    if result.status is sb.Status.OPTIMAL:
        _optimal(case, x, y)
    again = sb.certify(problem, result.x, result.y)
    for name in ("primal_value", "dual_value", "primal_infeasibility", "dual_infeasibility"):
        first, second = getattr(stated, name), getattr(again, name)
        unit = abs(found.primal) + abs(found.dual) if name.endswith("value") else 1.0
        if abs(first - second) > 1e-9 * unit + rounding and not first == second:
            raise Failure(f"certify: {name} was {first!r}, and is {second!r} again")


def _agrees(name: str, stated: float, found: Real, below: Real, above: Real) -> None:
    if not np.isfinite(stated) and not np.isfinite(float(found)):
        return
    if not -below - UNDERFLOW <= Real(stated) - found <= above + UNDERFLOW:
        allowed = f"expected {-float(below):.2g} to {float(above):.2g} more"
        raise Failure(f"{name}: stated {stated!r}, found {float(found)!r}, {allowed}")


def _bounds_every_point(case: Case, y: NDArray[np.float64], dual: Real, rounding: Real) -> None:
    """Compare the lower bound with points of the domain, up to the product of y with their violation."""
    statement = case.drawn.statement
    z = [-(A.T @ y.ravel().astype(Real)) for A in statement.matrices]
    zero = [penalty.project(np.zeros_like(part)) for penalty, part in zip(statement.penalties, z, strict=True)]
    for x in (zero, [block.ravel().astype(Real) for block in case.drawn.inside]):
        primal, missed = value(statement, x)
        outside = [penalty.conjugate(part).missed for penalty, part in zip(statement.penalties, z, strict=True)]
        off_y = statement.loss.conjugate(y.ravel().astype(Real)).missed
        u = np.sum([A @ part for A, part in zip(statement.matrices, x, strict=True)], axis=0)
        hidden = np.abs(y.ravel() @ missed) + np.abs(off_y @ (u - missed))
        hidden += np.sum([np.abs(off @ part) for off, part in zip(outside, x, strict=True)])
        size = rounding + 1e-12 * (abs(primal) + abs(y.ravel()) @ np.abs(u)) + UNDERFLOW
        # in float64, the type of a bound: values beyond its range are inf on both sides
        if float(dual) > float(primal + hidden + size):
            raise Failure(f"bound: dual value {float(dual)!r} above the objective {float(primal)!r} of another point")


def _optimal(case: Case, x: list[NDArray[np.float64]], y: NDArray[np.float64]) -> None:
    """Check the definition of OPTIMAL, for y or for the point to which a certificate may move it."""
    if case.options["tol"] == 0:
        raise Failure("optimal: tol=0 ended OPTIMAL")
    missing = _missing(case, x, y)
    if missing and _missing(case, x, repaired(case.drawn.statement, y)):
        raise Failure(f"optimal: {missing}")


def _missing(case: Case, x: list[NDArray[np.float64]], y: NDArray[Any]) -> str:
    """Return the reasons why a pair of points is not optimal; empty if it is."""
    tol, statement = case.options["tol"] * (1 + 1e-6), case.drawn.statement
    found = judge(statement, x, y)
    rounding = found.primal_rounding + found.dual_rounding
    gap = abs(found.primal - found.dual)
    scale = max(abs(found.primal), abs(found.dual), found.floor)
    nothing = max(abs(found.primal), abs(found.dual)) <= found.explained + rounding
    if not nothing and not gap <= (tol + DECISIVE) * scale + rounding:
        return f"gap {float(gap / scale):.3g} with tol={case.options['tol']}, P {float(found.primal)!r}"
    # nothing is proved of a nuclear norm under identities, where the length of all rows stands for the single ones
    together = re.fullmatch(r".*Nuclear.* / (Identity ?)+[\dx ]+ / .*", case.drawn.name) is not None
    apart = found.off_u / (1 + norm(np.concatenate([part.ravel() for part in x])))
    if not min(found.primal_infeasibility, apart if together else np.inf) <= tol + ROUNDING:
        return f"primal infeasibility {float(found.primal_infeasibility):.3g} with tol={case.options['tol']}"
    if not found.dual_infeasibility <= tol + ROUNDING and not found.off_z < SHORTEST:
        return f"dual infeasibility {float(found.dual_infeasibility):.3g} with tol={case.options['tol']}"
    # the ends of the domain of g* are rounded products, such as scale * delta, and y may lie on them
    if not found.off_y <= ROUNDING * norm(y.ravel()):
        return f"y is {float(found.off_y):.3g} outside of the domain of the conjugate"
    return ""


def kind_of(failure: Failure) -> str:
    """Return the kind of a failure."""
    return str(failure).split(":")[0].split()[0]
