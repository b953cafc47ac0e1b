"""Groups of features by the names of their columns, and weights by the names of groups or columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from ..common.arrays import Indices
from ..functions.group import partition

SHOWN = 5
"""Largest number of names in a message."""


def by_index(groups: Any, names: Sequence[str] | None, n_features: int) -> Any:
    """Return groups as lists of indices if they are given by name, and unchanged otherwise.

    Parameters
    ----------
    groups : a dict from the name of a group to its columns, a list of lists of columns, or a list with one label per
        column, which puts columns with the same label into one group. Columns are names or indices. Groups come in the
        order of the dict, of the list, or of the first occurrence of their label.
    names : names of the columns of X; None if it has none.
    n_features : number of columns.
    """
    if isinstance(groups, Mapping):
        groups = list(groups.values())
    elif isinstance(groups, str) or not isinstance(groups, Iterable) or getattr(groups, "ndim", 1) == 0:
        return groups
    else:
        groups = list(groups)
        if groups and all(isinstance(label, str) for label in groups):
            return _by_label(groups, n_features)
    members = [_members(group) for group in groups]
    if not any(isinstance(column, str) for group in members for column in group):
        if overlapping(groups):
            _check_covered(members, [str(i) for i in range(n_features)])
        return groups
    if names is None:
        raise ValueError(
            "groups holds names of columns, but X has none: pass a DataFrame whose column names are all strings, or "
            "groups of indices"
        )
    place = {name: i for i, name in enumerate(names)}
    indices = [[_index(column, place) for column in group] for group in members]
    _check_covered(indices, list(names))
    return indices


def overlapping(groups: Any) -> bool:
    """Return whether groups are lists of indices, some of which are in several lists."""
    if isinstance(groups, str) or not isinstance(groups, Iterable) or any(np.ndim(group) == 0 for group in groups):
        return False
    counts = Counter(column for group in groups for column in {*np.asarray(group).tolist()})
    return max(counts.values(), default=0) > 1


def named(groups: Any, names: Sequence[str] | None, n_features: int) -> list[tuple[str, Indices]]:
    """Return every group with a name for pictures; an empty list if no group has several features."""
    columns = list(partition(by_index(groups, names, n_features), n_features))
    if all(own.size == 1 for own in columns):
        return []
    known = group_names(groups)
    titles = [
        str(names[own[0]]) if names is not None and own.size == 1 else f"group {i}" for i, own in enumerate(columns)
    ]
    return list(zip(titles if known is None else map(str, known), columns, strict=True))


def group_names(groups: Any) -> list[Any] | None:
    """Return the names of the groups in their order: keys of a dict, or distinct labels; None if they have none."""
    if isinstance(groups, Mapping):
        return list(groups)
    if isinstance(groups, Iterable) and all(isinstance(label, str) for label in groups):
        return list(dict.fromkeys(groups))
    return None


def in_order(weights: Any, owners: str, names: Sequence[Any] | None) -> Any:
    """Return weights that are given by name as a list in the order of these names, and others unchanged.

    Parameters
    ----------
    weights : a dict with one weight per name, or anything else.
    owners : what is weighed, for messages: "groups" or "columns of X".
    names : names of the owners; None if they have none.
    """
    if not isinstance(weights, Mapping):
        return weights
    if names is None:
        raise ValueError(f"weights is a dict, but the {owners} have no names: pass a list of weights in their order")
    names = list(names)
    unknown = [name for name in weights if name not in names]
    missing = [name for name in names if name not in weights]
    if unknown or missing:
        wrong = f"weights for {shown(unknown)}" if unknown else f"no weight for {shown(missing)}"
        raise ValueError(f"weights has {wrong}: expected one weight for each of the {owners}, {shown(names)}")
    return [weights[name] for name in names]


def _by_label(labels: list[str], n_features: int) -> list[list[int]]:
    if len(labels) != n_features:
        raise ValueError(
            f"groups has {len(labels)} labels, but X has {n_features} columns: expected one label per column, or a "
            "list of lists of column names"
        )
    groups: dict[str, list[int]] = {}
    for i, label in enumerate(labels):
        groups.setdefault(label, []).append(i)
    return list(groups.values())


def _members(group: Any) -> list[Any]:
    return [group] if isinstance(group, str) or not isinstance(group, Iterable) else list(group)


def _index(column: Any, place: Mapping[str, int]) -> Any:
    if not isinstance(column, str):
        return column
    if column not in place:
        of_lower = {name.lower(): name for name in place}
        close = get_close_matches(column.lower(), of_lower, n=1)
        hint = f"did you mean {of_lower[close[0]]!r}?" if close else f"the columns are {shown(list(place))}"
        raise ValueError(f"groups has the column {column!r}, which X does not have: {hint}")
    return place[column]


def _check_covered(groups: list[list[Any]], names: list[str]) -> None:
    """Raise if a column is in no group, or twice in one, with its name."""
    missing = [name for i, name in enumerate(names) if i not in {column for group in groups for column in group}]
    if missing:
        raise ValueError(f"groups has no group for {shown(missing)}: every column must be in a group")
    repeated = [names[i] for group in groups for i, count in Counter(group).items() if count > 1]
    if repeated:
        raise ValueError(f"groups has {shown(repeated)} more than once in a group: expected each column once")


def shown(names: Sequence[Any]) -> str:
    """Return the first few names for a message."""
    return ", ".join(map(repr, names[:SHOWN])) + (", ..." if len(names) > SHOWN else "")
