"""The methods by the names that ``solve`` accepts, each with the layers that belong around it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from ..common.checks import one_of, shown
from ..layers import Constraints, Fallback, Finish, Restarted, WorkingSet
from ..layers.constraints import pays as constraints_pay
from ..layers.constraints import softened
from ..layers.finish import pays_at_once
from ..linear_programs.highs import pays
from ..linear_programs.program import as_linear_program
from ..methods import (
    ADMM,
    FISTA,
    FOBOS,
    GSADMM,
    ISTA,
    OSGA,
    PDHG,
    PDMM,
    R2HPDHG,
    SPBCD,
    SPDC,
    Alternating,
    Checked,
    Descent,
    DiagonalPDHG,
    DualFISTA,
    Highs,
    Method,
    Multipliers,
    PublishedSPBCD,
    PureCD,
)
from ..methods.dual_fista import pays as dual_fista_pays
from ..methods.multipliers import pays as multipliers_pay
from ..model.model import Model
from ..steps.strengths import has_long_rows

METHODS: dict[str, type[Any]] = {
    cls.name: cls
    for cls in (
        SPBCD,
        Descent,
        Multipliers,
        Alternating,
        PublishedSPBCD,
        PureCD,
        PDHG,
        DiagonalPDHG,
        R2HPDHG,
        SPDC,
        ADMM,
        GSADMM,
        PDMM,
        ISTA,
        FISTA,
        DualFISTA,
        FOBOS,
        OSGA,
        Highs,
    )
}

LAYERS: dict[str, type[Any]] = {
    "restarts": Restarted,
    "working_set": WorkingSet,
    "constraints": Constraints,
    "fallback": Fallback,
    "finish": Finish,
}
"""The layers that can be put around a method, by the names of their options."""


def methods() -> list[str]:
    """Return the names accepted by ``solve(method=...)``."""
    return ["auto", *METHODS, "finish"]


def resolve(
    method: str | Method[Any],
    options: dict[str, Any],
    model: Model,
    drawn: int | None,
    tol: float,
    layers: bool = True,
) -> str | Method[Any]:
    """Return the method that "auto" stands for; any other method is returned unchanged.

    With a smooth loss, "auto" is "alternating" if all blocks are identities, and otherwise "descent" unless A has long
    rows; also if there are constraints beside the loss. For a linear program it is "highs" if the program is in memory
    and not too large, and "r2hpdhg" if it is not or if options are given. It is "finish" if A has sparse structure with
    which a step of the interior point costs a few passes, unless options are given or there are no ``layers``. It is
    "dual-fista" if the penalty is strongly convex and A very sparse, as for images, and few iterations are expected to
    reach ``tol``. If loss and penalty both have kinks, it is "multipliers" unless A is in a file or on several
    processes, or the penalty has groups and the loss no constraints. Otherwise, and if K or an option is given that
    only the block method has, it is "sp-bcd".
    """
    if not isinstance(method, (str, Method)):
        raise TypeError(
            f"method is {_described(method)}: expected a name from sb.methods(), or an object of a subclass of "
            "saddleback.methods.Method"
        )
    if method == "descent" and drawn is not None:
        raise ValueError(
            f"blocks_per_iteration={drawn}: method='descent' takes its blocks in turn; leave it at 'auto', or use "
            "method='sp-bcd'"
        )
    if method != "auto":
        return method
    if drawn is None and _takes(Alternating, options) and Alternating().missing(model) is None:
        return Alternating.name
    soft = layers and options.get("constraints", True) and constraints_pay(model)
    smooth = softened(model) if soft else model
    if drawn is None and _takes(Descent, options) and Descent().missing(smooth) is None and not has_long_rows(smooth):
        return Descent.name
    if drawn is None and _takes(R2HPDHG, options) and as_linear_program(model) is not None:
        return Highs.name if not options and pays(model) else R2HPDHG.name
    if drawn is None and layers and not options and pays_at_once(model):
        return "finish"
    if drawn is None and _takes(DualFISTA, options) and dual_fista_pays(model, tol):
        return DualFISTA.name
    if drawn is None and _takes(Multipliers, options) and multipliers_pay(model):
        return Multipliers.name
    return SPBCD.name


def _described(value: Any) -> str:
    if isinstance(value, type) and issubclass(value, Method):
        return f"the class {value.__name__} (pass an object of it, {value.__name__}())"
    return f"of type {type(value).__name__}"


def _takes(cls: type[Any], options: dict[str, Any]) -> bool:
    return {*_own(cls), *_of_layers(cls)}.issuperset(options)


def _own(cls: type[Any]) -> list[str]:
    return [field.name for field in fields(cls)]


def _of_layers(cls: type[Any]) -> list[str]:
    return [option for layer in cls.layers for option in (layer, *LAYERS[layer].options)]


def make(
    method: str | Method[Any], options: dict[str, Any], of_solve: Sequence[str] = (), layers: bool = True
) -> Method[Any]:
    """Return a method with its options and layers, or raise an error that suggests the nearest existing name.

    "finish" is the block method that starts its finish at once. A ``Method`` object is used as it is: its options are
    its fields. ``of_solve`` are the arguments of ``solve``, for the message about an option that the method lacks.
    """
    if method == "finish":
        if options.get("finish", True) is not True:
            raise ValueError(
                f"finish={shown(options['finish'])} with method='finish': leave it out, or use method='sp-bcd'"
            )
        method, options = "sp-bcd", {**options, "finish": True}
    cls = type(method) if isinstance(method, Method) else _named(method)
    own = [] if isinstance(method, Method) else _own(cls)
    known = [*own, *_of_layers(cls)]
    name = method.name if isinstance(method, Method) else method
    for option in options:
        if option not in known:
            hint = _owners(option) or _nearest(option, [*known, *of_solve])
            others = f"solve has {', '.join(of_solve)}; " if of_solve else ""
            raise TypeError(
                f"{option!r} is not an option of solve or of {name}{hint}: {others}{name} has "
                f"{', '.join(known) or 'none'}"
            )
    if isinstance(method, Method):
        bare = method if cls in METHODS.values() else Checked(method)
    else:
        bare = cls(**{option: options[option] for option in own if option in options})
    of_layers = {option: value for option, value in options.items() if option not in own}
    if layers:
        return _wrapped(bare, cls.layers, of_layers)
    if of_layers:
        raise ValueError(f"layers=False leaves {', '.join(of_layers)} without a meaning: leave one of them out")
    return bare


def _owners(option: str) -> str:
    """Return the methods that have an option, for a message; empty if there is none."""
    owners = [name for name, cls in METHODS.items() if option in (*_own(cls), *_of_layers(cls))]
    return f" (it is one of {', '.join(owners)})" if owners else ""


def _named(name: str) -> type[Any]:
    if name not in METHODS:
        raise ValueError(f"method={name!r} is not known{_nearest(name, methods())}: expected one of {methods()}")
    return METHODS[name]


def _wrapped(method: Method[Any], layers: Sequence[str], options: dict[str, Any]) -> Method[Any]:
    for layer in layers:
        choice = options.get(layer, "auto")
        one_of(layer, choice, "auto", True, False)
        around = LAYERS[layer]
        chosen = {option: options[option] for option in around.options if option in options}
        if choice is not False:
            method = around.around(method, choice is True, chosen)
        elif chosen:
            raise ValueError(f"{layer}=False leaves {', '.join(chosen)} without a meaning: leave one of them out")
    return method


def refuse(method: Method[Any], model: Model, drawn: int | None) -> None:
    """Raise if a method cannot treat a problem, or cannot draw the requested number of blocks."""
    missing = method.missing(model)
    if missing is not None:
        raise TypeError(f"method={method.name!r} cannot treat this problem: {missing}; use method='sp-bcd'")
    if drawn is not None and drawn < len(model.blocks) and not method.draws:
        raise ValueError(
            f"blocks_per_iteration={drawn}: {method.name} updates all {len(model.blocks)} blocks; leave it at 'auto', "
            "or use method='sp-bcd'"
        )


ELSEWHERE = {
    "max_iter": "max_passes",
    "n_jobs": "threads",
    "random_state": "seed",
    "tolerance": "tol",
    "verbose": "progress",
    "warm_start": "x0",
}
"""Names that other libraries use for the options of ``solve``."""


def _nearest(name: object, known: list[str]) -> str:
    close = difflib.get_close_matches(ELSEWHERE.get(str(name), str(name)), known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
