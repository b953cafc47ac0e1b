"""The methods by the names that ``solve`` accepts, each with the layers that belong around it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from .acceleration import Finish, Restarted, WorkingSet
from .linear_program import as_linear_program
from .methods import (
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
    Descent,
    DiagonalPDHG,
    Highs,
    Method,
    PublishedSPBCD,
    PureCD,
)
from .problem import Model
from .steps import has_long_rows

METHODS: dict[str, type[Any]] = {
    cls.name: cls
    for cls in (
        SPBCD,
        Descent,
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
        FOBOS,
        OSGA,
        Highs,
    )
}

LAYERS: dict[str, type[Any]] = {"restarts": Restarted, "working_set": WorkingSet, "finish": Finish}
"""What can be put around a method that has room for it."""


def methods() -> list[str]:
    """Return the names accepted by ``solve(method=...)``."""
    return ["auto", *METHODS, "finish"]


def resolve(name: str, options: dict[str, Any], model: Model, drawn: int | None) -> str:
    """Return which method "auto" stands for, any other name as it is.

    That is "alternating" where y can be eliminated and all blocks are identities, "descent" where it can be eliminated
    and no long rows make it worth having, "r2hpdhg" for a linear program, and "sp-bcd" for all others, or where
    something was asked for that only the block method has.
    """
    if name == "descent" and drawn is not None:
        raise ValueError(
            f"blocks_per_iteration={drawn}: method='descent' takes its blocks in turn; leave it at 'auto', or use "
            "method='sp-bcd'"
        )
    if name != "auto":
        return name
    if drawn is None and _takes(Alternating, options) and Alternating().missing(model) is None:
        return Alternating.name
    if drawn is None and _takes(Descent, options) and Descent().missing(model) is None and not has_long_rows(model):
        return Descent.name
    if drawn is None and _takes(R2HPDHG, options) and as_linear_program(model) is not None:
        return R2HPDHG.name
    return SPBCD.name


def _takes(cls: type[Any], options: dict[str, Any]) -> bool:
    return {*_own(cls), *_of_layers(cls)}.issuperset(options)


def _own(cls: type[Any]) -> list[str]:
    return [field.name for field in fields(cls)]


def _of_layers(cls: type[Any]) -> list[str]:
    return [option for layer in cls.layers for option in (layer, *LAYERS[layer].options)]


def make(name: str, options: dict[str, Any], of_solve: Sequence[str] = ()) -> Method[Any]:
    """Return the method of that name with its options and layers, or raise with the nearest name that exists.

    "finish" is the block method that goes to its finish at once. ``of_solve`` are names that ``solve`` itself takes,
    for the message where an option is none of the method's.
    """
    if name == "finish":
        if options.get("finish", True) is not True:
            raise ValueError(f"finish={options['finish']!r} with method='finish': leave it out, or use method='sp-bcd'")
        name, options = "sp-bcd", {**options, "finish": True}
    if not isinstance(name, str) or name not in METHODS:
        raise ValueError(f"method={name!r} is not known{_nearest(name, methods())}: expected one of {methods()}")
    cls = METHODS[name]
    own, of_layers = _own(cls), _of_layers(cls)
    for option in options:
        if option not in (*own, *of_layers):
            known = [*own, *of_layers]
            others = f"solve has {', '.join(of_solve)}; " if of_solve else ""
            raise TypeError(
                f"{option!r} is not an option of solve or of {cls.name}{_nearest(option, [*known, *of_solve])}: "
                f"{others}{cls.name} has {', '.join(known) or 'none'}"
            )
    method: Method[Any] = cls(**{option: options[option] for option in own if option in options})
    for layer in cls.layers:
        choice = options.get(layer, "auto")
        if choice is not True and choice is not False and choice != "auto":
            raise ValueError(f"{layer}={choice!r}: expected 'auto', True or False")
        around = LAYERS[layer]
        chosen = {option: options[option] for option in around.options if option in options}
        if choice is not False:
            method = around.around(method, choice is True, chosen)
        elif chosen:
            raise ValueError(f"{layer}=False leaves {', '.join(chosen)} without a meaning: leave one of them out")
    return method


def refuse(method: Method[Any], model: Model, drawn: int | None) -> None:
    """Raise where a method cannot treat a problem, or cannot draw as many blocks as it was asked to."""
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
"""What other libraries call the options of ``solve``."""


def _nearest(name: object, known: list[str]) -> str:
    close = difflib.get_close_matches(ELSEWHERE.get(str(name), str(name)), known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
