"""Different penalties for different columns of X, by name or index.

A dict has the names of the penalties, each with its columns::

    {"l1": ["age", "income"], "group": {"region": ["north", "south"], "job": ["a", "b"]}, None: ["sex"]}

The columns of a penalty on groups are lists of lists, or a dict from the names of the groups to lists. "rest" stands
for all columns that are nowhere else. The name of a term of a formula stands for the features of this term.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np

from ..common.arrays import Indices
from .groups import shown
from .objective import PENALTIES, Objective, Part

REST = "rest"
"""The columns that no other penalty has."""


class Group(NamedTuple):
    """Features under one norm, or a single feature: their indices, and what names them in ``weights``."""

    columns: list[int]
    key: Any


def with_indices(
    objective: Objective, names: Sequence[str] | None, n_features: int, terms: Mapping[str, Sequence[str]]
) -> Objective:
    """Return an objective with a dict of penalties, whose columns are known by index.

    Parameters
    ----------
    objective : the objective, with a dict as its penalty.
    names : names of the columns of X; None if it has none.
    n_features : number of columns.
    terms : names of the features of every term of a formula; empty without one.
    """
    if objective.groups is not None:
        raise ValueError("groups was given, and penalty is a dict: the groups are in the dict, as {'group': [[0, 1]]}")
    groups = _Features(names, n_features, terms).of_penalties(objective.penalty)
    weights = _weights(objective.weights, groups)
    parts = [_part(name, own, weights) for name, own in groups.items() if own]
    together = [group for part in parts for group in _selected_together(part)]
    return replace(objective, parts=tuple(parts), groups=together, weights=None)


def _selected_together(part: Part) -> list[Indices]:
    """Return the groups of features that a penalty selects as a whole."""
    sizes = [1] * part.columns.size if part.groups is None or PENALTIES[part.penalty].within else part.groups
    return np.split(part.columns, np.cumsum(sizes)[:-1])


def _part(name: str | None, groups: list[Group], weights: Mapping[Any, float]) -> Part:
    """Return the penalty on some columns, with weights by the names of columns or groups."""
    columns = np.concatenate([group.columns for group in groups]).astype(np.int64)
    sizes = [len(group.columns) for group in groups]
    grouped = "groups" in PENALTIES[name].reads and (PENALTIES[name].convex or max(sizes) > 1)
    given = np.sqrt(sizes) if grouped else np.ones(columns.size)
    found = np.array([weights.get(group.key, default) for group, default in zip(groups, given, strict=True)])
    weighed = any(group.key in weights for group in groups)
    return Part(name, columns, sizes if grouped else None, found if weighed else None)


def _weights(weights: Any, groups: Mapping[Any, list[Group]]) -> Mapping[Any, float]:
    """Return the weights by the names of columns or groups, or raise if a penalty does not read one of them."""
    if weights is None:
        return {}
    if not isinstance(weights, Mapping):
        raise TypeError(
            f"weights is {type(weights).__name__}, and penalty is a dict: expected a dict with the weights of some "
            "columns or groups, as {'age': 2.0}"
        )
    readers = [group.key for name, own in groups.items() if "weights" in PENALTIES[name].reads for group in own]
    for key in weights:
        if key not in readers:
            raise ValueError(
                f"weights has {key!r}, which is no column or group of a penalty with weights: expected some of "
                f"{shown(readers)}"
            )
    return weights


class _Features:
    """The features of a model, by which the columns of a dict of penalties are found."""

    def __init__(self, names: Sequence[str] | None, n_features: int, terms: Mapping[str, Sequence[str]]) -> None:
        self.names = names
        self.n_features = n_features
        self.place = {name: i for i, name in enumerate(() if names is None else names)}
        self.terms = {term: [self.place[name] for name in own] for term, own in terms.items()}

    def of_penalties(self, penalty: Any) -> dict[Any, list[Group]]:
        """Return the columns or groups of every penalty, each column once."""
        if not penalty:
            raise ValueError("penalty is an empty dict: expected names of penalties with their columns")
        found = {name: self.of_penalty(name, given) for name, given in penalty.items() if not _is_rest(given)}
        used: dict[int, Any] = {}
        for name, groups in found.items():
            for column in (column for group in groups for column in group.columns):
                if column in used:
                    where = f"in {used[column]!r} and in {name!r}" if used[column] != name else f"twice in {name!r}"
                    raise ValueError(f"penalty has the column {self.name(column)!r} {where}: expected it once")
                used[column] = name
        left = [column for column in range(self.n_features) if column not in used]
        rest = [name for name, given in penalty.items() if _is_rest(given)]
        if len(rest) > 1:
            raise ValueError(f"penalty has {REST!r} for {shown(rest)}: expected it for one penalty")
        if left and not rest:
            raise ValueError(
                f"penalty has no penalty for {shown([self.name(column) for column in left])}: add None: [...] for "
                f"columns without a penalty, or {REST!r} in place of the columns of one penalty"
            )
        return found | {name: [self.single(column) for column in left] for name in rest}

    def of_penalty(self, name: str | None, given: Any) -> list[Group]:
        """Return the columns or groups of one penalty."""
        of_groups = "groups" in PENALTIES[name].reads
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise TypeError(f"penalty[{name!r}] is {given!r}: expected a list of columns, or {REST!r}")
        if isinstance(given, Mapping):
            groups = [Group(self.indices(own, name), key) for key, own in given.items()]
        else:
            groups = [group for own in given for group in self.groups(own, name, of_groups)]
        nested = any(len(group.columns) > 1 for group in groups) or isinstance(given, Mapping)
        if nested and not of_groups:
            raise ValueError(f"penalty[{name!r}] has groups: expected a list of columns, since it has no groups")
        if not all(group.columns for group in groups):
            raise ValueError(f"penalty[{name!r}] has an empty group: expected one column or more in each group")
        return groups

    def groups(self, given: Any, name: str | None, of_groups: bool) -> list[Group]:
        """Return what an entry of a list stands for: a column, a group of columns, or a term of a formula."""
        if isinstance(given, Iterable) and not isinstance(given, str):
            columns = self.indices(given, name)
            return [self.single(columns[0]) if len(columns) == 1 else Group(columns, None)]
        if given in self.terms and given not in self.place:
            own = self.terms[given]
            return [Group(own, given)] if of_groups else [self.single(column) for column in own]
        column = self.index(given, name)
        if of_groups and PENALTIES[name].convex:
            raise ValueError(
                f"penalty[{name!r}] has the column {given!r} outside of a group: expected a list of groups, as "
                f"[[{given!r}, ...], ...]; a group may have one column"
            )
        return [self.single(column)]

    def single(self, column: int) -> Group:
        """Return a column on its own."""
        return Group([column], self.name(column))

    def name(self, column: int) -> Any:
        """Return the name of a column in ``weights`` and in messages: its index if it has none."""
        return column if self.names is None else str(self.names[column])

    def indices(self, given: Any, name: str | None) -> list[int]:
        """Return the indices of the columns of a group; the name of a term stands for its features."""
        entries = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
        own = [self.terms[each] if each in self.terms and each not in self.place else [each] for each in entries]
        return [self.index(column, name) for columns in own for column in columns]

    def index(self, column: Any, name: str | None) -> int:
        """Return the index of a column, or raise with a hint."""
        if isinstance(column, (int, np.integer)) and not isinstance(column, bool):
            if not 0 <= column < self.n_features:
                raise ValueError(f"penalty[{name!r}] has the column {column}, but X has {self.n_features} columns")
            return int(column)
        if column in self.place:
            return self.place[column]
        if self.names is None:
            raise ValueError(
                f"penalty[{name!r}] has the column {column!r}, but the columns of X have no names: pass a DataFrame "
                "whose column names are all strings, or indices"
            )
        known = [*self.place, *self.terms]
        close = get_close_matches(str(column), known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"the columns are {shown(known)}"
        raise ValueError(f"penalty[{name!r}] has the column {column!r}, which X does not have: {hint}")


def _is_rest(given: Any) -> bool:
    return isinstance(given, str) and given == REST
