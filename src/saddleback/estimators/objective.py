r"""The objective of a linear model, by the names of its loss and its penalty.

.. math::

    \min_{w, b}\; \frac{1}{\sum_i s_i} \sum_i s_i\, \ell(x_i'w + b,\, y_i) + \text{penalty}(w)

with sample weights s, all 1 by default. The intercept b has no penalty. The loss "sqrt" is the root of the weighted
mean of the squares.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np

import saddleback as sb

from ..common.arrays import Indices, Vector
from ..common.checks import scalar, shown
from . import criteria
from .criteria import Likelihood
from .groups import overlapping


class Targets(NamedTuple):
    """The targets that a loss accepts: what they are, and whether it accepts them, given the smallest one."""

    expected: str
    accepts: Callable[[float], bool]


COUNTS = Targets("counts that are at least 0", lambda smallest: smallest >= 0)
NONNEGATIVE = Targets("targets that are at least 0", lambda smallest: smallest >= 0)
POSITIVE = Targets("targets that are greater than 0", lambda smallest: smallest > 0)


@dataclass(frozen=True)
class Choice:
    """A built-in loss or penalty as a part of a linear model.

    Attributes
    ----------
    make : the loss or penalty.
    reads : the parameters of a model that it uses.
    power_of_n : the power of n by which a loss is divided.
    targets : the targets that a loss accepts; None if it accepts all numbers.
    of_residuals : whether a loss is a function of the difference of target and linear predictor.
    variance_power : with a log link, the power of the mean to which the variance of a target is proportional; None if
        that is the parameter ``power``.
    mean_is_best : whether the constant with the least loss is the mean of the targets.
    polyhedral : whether a loss is piecewise linear.
    log_link : whether the mean of the targets is the exponential of the linear predictor.
    convex : whether a penalty is convex; others are for ``saddleback.reweighted``.
    within : whether a penalty on groups also selects single features within them.
    joint : whether one problem has the coefficients of all classes; its targets have a column of zeros and ones per
        class.
    probabilities : whether the model says how probable each class is.
    likelihood : the likelihood of a loss, for information criteria; None if it has none.
    """

    make: Callable[..., Any]
    reads: tuple[str, ...] = ()
    power_of_n: float = 1.0
    targets: Targets | None = None
    of_residuals: bool = True
    variance_power: float | None = None
    mean_is_best: bool = False
    polyhedral: bool = False
    log_link: bool = False
    convex: bool = True
    within: bool = False
    joint: bool = False
    probabilities: bool = False
    likelihood: Likelihood | None = None


def _multiclass_hinge(classes: Vector, **given: Any) -> sb.MulticlassHinge:
    return sb.MulticlassHinge(np.argmax(classes, axis=1), classes.shape[1], **given)


REGRESSION: Mapping[str, Choice] = {
    "squared": Choice(sb.Squared, mean_is_best=True, likelihood=criteria.SQUARES),
    "absolute": Choice(sb.Absolute, polyhedral=True, likelihood=criteria.LINEAR),
    "quantile": Choice(sb.Pinball, ("quantile",), polyhedral=True, likelihood=criteria.LINEAR),
    "huber": Choice(sb.Huber, ("delta",), likelihood=criteria.HUBER),
    "epsilon_insensitive": Choice(
        sb.EpsilonInsensitive, ("epsilon",), polyhedral=True, likelihood=criteria.INSENSITIVE
    ),
    "squared_epsilon_insensitive": Choice(sb.SquaredEpsilonInsensitive, ("epsilon",)),
    "smoothed_quantile": Choice(sb.SmoothedPinball, ("quantile", "delta")),
    "expectile": Choice(sb.Expectile, ("expectile",), likelihood=criteria.SQUARES),
    "sqrt": Choice(sb.Norm2, power_of_n=0.5, mean_is_best=True, likelihood=criteria.LINEAR),
    "poisson": Choice(
        sb.Poisson,
        targets=COUNTS,
        of_residuals=False,
        variance_power=1.0,
        log_link=True,
        likelihood=criteria.PLAIN,
    ),
    "gamma": Choice(
        sb.Gamma,
        targets=POSITIVE,
        of_residuals=False,
        variance_power=2.0,
        log_link=True,
        likelihood=criteria.GAMMA,
    ),
    "tweedie": Choice(sb.Tweedie, ("power",), targets=NONNEGATIVE, of_residuals=False, log_link=True),
    "kullback_leibler": Choice(sb.KullbackLeibler, targets=COUNTS, of_residuals=False, likelihood=criteria.PLAIN),
}

CLASSIFICATION: Mapping[str, Choice] = {
    "hinge": Choice(sb.Hinge, polyhedral=True),
    "squared_hinge": Choice(sb.SquaredHinge),
    "huberised_hinge": Choice(sb.HuberisedHinge, ("delta",)),
    "logistic": Choice(sb.Logistic, probabilities=True, likelihood=criteria.PLAIN),
    "multinomial": Choice(sb.Multinomial, joint=True, probabilities=True, likelihood=criteria.PLAIN),
    "multiclass_hinge": Choice(_multiclass_hinge, polyhedral=True, joint=True),
}

RIDGE = "'elasticnet' with l1_ratio=0, which is alpha / 2 times the sum of the squares"

OTHER_NAMES: Mapping[str, str] = {
    "absolute_error": "'absolute'",
    "adaptive_lasso": "'adaptive'",
    "crammer_singer": "'multiclass_hinge'",
    "enet": "'elasticnet'",
    "group_lasso": "'group'",
    "l2": RIDGE,
    "kl": "'kullback_leibler'",
    "lasso": "'l1'",
    "log_loss": "'logistic'",
    "mae": "'absolute'",
    "mse": "'squared'",
    "none": "None",
    "ridge": RIDGE,
    "slope": "sb.SLOPE with sb.solve, since no estimator has it",
    "softmax": "'multinomial'",
    "sparse_group_lasso": "'sparse_group'",
    "pinball": "'quantile'",
    "squared_error": "'squared'",
}
"""The names of losses and penalties here, by their names in other libraries."""

PENALTIES: Mapping[str | None, Choice] = {
    None: Choice(sb.Zero),
    "l1": Choice(sb.L1, ("alpha", "weights")),
    "elasticnet": Choice(sb.ElasticNet, ("alpha", "l1_ratio", "weights")),
    "group": Choice(sb.GroupL2, ("alpha", "groups", "weights")),
    "sparse_group": Choice(sb.SparseGroup, ("alpha", "groups", "l1_ratio", "weights"), within=True),
    "group_elasticnet": Choice(sb.GroupElasticNet, ("alpha", "groups", "l1_ratio", "weights")),
    "mcp": Choice(sb.MCP, ("alpha", "gamma", "groups", "weights"), convex=False),
    "scad": Choice(sb.SCAD, ("alpha", "gamma", "groups", "weights"), convex=False),
    "log_sum": Choice(sb.LogSum, ("alpha", "gamma", "groups", "weights"), convex=False),
    "adaptive": Choice(sb.Adaptive, ("alpha", "gamma", "groups", "weights"), convex=False),
}


class Part(NamedTuple):
    """A penalty on some of the features: its name, their indices, and groups and weights within them."""

    penalty: str | None
    columns: Indices
    groups: list[int] | None
    weights: Vector | None


PenaltyName = str | None | Mapping[Any, Any]
"""The name of a penalty, or a dict from such names to columns."""


@dataclass(frozen=True)
class Objective:
    """Loss and penalty of a linear model.

    ``groups=None`` is one group per feature, and ``gamma=None`` the default of the penalty. A model that chooses its
    ``l1_ratio`` has a list of them. If ``penalty`` is a dict, then ``parts`` has its penalties with the indices of
    their columns, as soon as these are known.
    """

    loss: str = "squared"
    penalty: PenaltyName = "l1"
    alpha: float = 1.0
    l1_ratio: Any = 0.5
    groups: Any = None
    weights: Any = None
    quantile: float = 0.5
    expectile: float = 0.5
    delta: float = 1.0
    epsilon: float = 0.1
    power: float = 1.5
    positive: bool = False
    lower: Any = None
    upper: Any = None
    gamma: float | None = None
    parts: tuple[Part, ...] = ()

    def check(self, losses: Mapping[str, Choice]) -> None:
        """Raise if a name is not known, and warn of a parameter that loss and penalty do not use.

        The latter is not an error, since a search may vary losses and penalties together with their parameters.
        """
        _check_name("loss", self.loss, losses)
        for name in self.penalty_names:
            _check_name("penalty", name, PENALTIES)
        for share in {"quantile", "expectile"}.intersection(self._loss.reads):
            if not 0 < scalar(share, value := getattr(self, share), high=1.0) < 1:
                raise ValueError(f"{share}={value}: expected a number strictly between 0 and 1")
        tables: tuple[tuple[str, Mapping[Any, Choice]], ...] = (("loss", losses), ("penalty", PENALTIES))
        unread = {name for _, table in tables for choice in table.values() for name in choice.reads} - {"alpha"}
        unread -= {*self._loss.reads, *self._penalty_reads}
        for parameter in fields(self):
            value = getattr(self, parameter.name)
            is_default = value is parameter.default or (np.isscalar(value) and value == parameter.default)
            if parameter.name in unread and not is_default:
                readers = [
                    f"{kind}={name!r}"
                    for kind, table in tables
                    for name, choice in table.items()
                    if parameter.name in choice.reads
                ]
                warnings.warn(
                    f"{parameter.name} was set, but neither loss={self.loss!r} nor penalty={self.penalty!r} reads it: "
                    f"it belongs to {' and '.join(readers)}",
                    UserWarning,
                    stacklevel=4,
                )

    def check_targets(self, name: str, smallest: float) -> None:
        """Raise if the loss does not accept targets, given the smallest one."""
        targets = self._loss.targets
        if targets is not None and not targets.accepts(smallest):
            raise ValueError(f"{name} has the value {smallest:g}: loss={self.loss!r} expects {targets.expected}")

    @property
    def positive_targets(self) -> bool:
        """Whether the loss refuses negative targets."""
        return self._loss.targets is not None

    @property
    def of_residuals(self) -> bool:
        """Whether the loss is a function of the difference of target and linear predictor."""
        return self._loss.of_residuals

    @property
    def variance_power(self) -> float:
        """The power of the mean to which the variance of a target is proportional, for a log link."""
        return self.power if self._loss.variance_power is None else self._loss.variance_power

    @property
    def by_columns(self) -> bool:
        """Whether different columns have different penalties."""
        return isinstance(self.penalty, Mapping)

    @property
    def penalty_names(self) -> tuple[str | None, ...]:
        """The names of the penalties: one, or those of different columns."""
        return tuple(self.penalty) if isinstance(self.penalty, Mapping) else (self.penalty,)

    @property
    def mean_is_best(self) -> bool:
        """Whether the constant with the least loss is the mean of the targets."""
        return self._loss.mean_is_best

    @property
    def log_link(self) -> bool:
        """Whether the mean of the targets is the exponential of the linear predictor."""
        return self.loss in REGRESSION and REGRESSION[self.loss].log_link

    @property
    def joint(self) -> bool:
        """Whether one problem has the coefficients of all classes."""
        return self.loss in CLASSIFICATION and CLASSIFICATION[self.loss].joint

    @property
    def probabilities(self) -> bool:
        """Whether the model says how probable each class is."""
        return self.loss in CLASSIFICATION and CLASSIFICATION[self.loss].probabilities

    @property
    def grouped(self) -> bool:
        """Whether the penalty is a sum over groups of features."""
        if self.parts:
            return any(self.of_part(part).grouped for part in self.parts)
        return "groups" in self._penalty_reads and (self.convex or self.groups is not None)

    @property
    def selects_groups(self) -> bool:
        """Whether the features of a group are selected together."""
        within = any(choice.within for choice in self._penalties) and not self.parts
        return self.grouped and self.groups is not None and not within and not self.overlapping

    @property
    def convex(self) -> bool:
        """Whether the penalty is convex."""
        return all(choice.convex for choice in self._penalties)

    @property
    def weighs_once(self) -> bool:
        """Whether a first solution gives the weights of the penalty, so that a start would change the answer."""
        return any(choice.make is sb.Adaptive for choice in self._penalties)

    @property
    def overlapping(self) -> bool:
        """Whether some feature is in several groups."""
        return self.grouped and overlapping(self.groups)

    @property
    def has_ratio(self) -> bool:
        """Whether the penalty is a mixture, of which ``l1_ratio`` is the share of the L1 norm."""
        return "l1_ratio" in self._penalty_reads

    @property
    def likelihood(self) -> Likelihood | None:
        """The likelihood of the loss; None if it has none."""
        return self._loss.likelihood

    @property
    def of_loss(self) -> dict[str, Any]:
        """The parameters of the loss by name."""
        return self._given(self._loss.reads)

    @property
    def bounded(self) -> bool:
        """Whether coefficients have bounds other than their sign."""
        return self.lower is not None or self.upper is not None

    @property
    def box(self) -> tuple[Any, Any]:
        """The bounds of the coefficients."""
        return (-np.inf if self.lower is None else self.lower), (np.inf if self.upper is None else self.upper)

    @property
    def piecewise_constant(self) -> bool:
        """Whether solutions are constant in alpha except for jumps, as those of a linear program."""
        return self._loss.polyhedral and {"l1"} <= {*self.penalty_names} <= {"l1", None}

    @property
    def drawn_loss(self) -> tuple[str, float]:
        """The name of the mean loss in a picture, and the factor with which it is drawn."""
        names = {"squared": "mean squared error", "sqrt": "root mean squared error"}
        return names.get(self.loss, f"mean {self.loss.replace('_', ' ')} loss"), 2.0 if self.loss == "squared" else 1.0

    @property
    def penalised(self) -> bool:
        """Whether there is a penalty."""
        return self.alpha > 0 and {*self.penalty_names} != {None}

    @property
    def quantile_of_loss(self) -> float | None:
        """The quantile that the loss fits: 0.5 for the absolute loss; None for losses that fit no quantile."""
        return {"absolute": 0.5, "quantile": self.quantile}.get(self.loss)

    @property
    def loss_text(self) -> str:
        """The loss with its parameters, for a summary."""
        return _described(self.loss, self._given(self._loss.reads))

    @property
    def penalty_text(self) -> str:
        """The penalty with its strength, for a summary."""
        if not self.penalised:
            return "none"
        read = [name for name in ("alpha", "l1_ratio") if name in self._penalty_reads]
        named = " and ".join("none" if name is None else name for name in self.penalty_names)
        return _described(named, self._given(tuple(read)))

    @property
    def _loss(self) -> Choice:
        return {**REGRESSION, **CLASSIFICATION}[self.loss]

    @property
    def _penalties(self) -> list[Choice]:
        return [PENALTIES[name] for name in self.penalty_names]

    @property
    def _penalty_reads(self) -> set[str]:
        return {parameter for choice in self._penalties for parameter in choice.reads}

    def of_part(self, part: Part) -> Objective:
        """Return the objective of the columns of a part."""
        low, high = (None if bound is None else bound[part.columns] for bound in (self.lower, self.upper))
        return replace(
            self, penalty=part.penalty, groups=part.groups, weights=part.weights, lower=low, upper=high, parts=()
        )

    def loss_term(self, target: Vector, weight: Vector | None, total: float) -> Any:
        """Return the loss over samples, divided by the sum of their weights."""
        if weight is not None and target.ndim == 2 and not self.joint:
            weight = np.repeat(weight[:, None], target.shape[1], axis=1)
        return self._loss.make(target, sample_weight=weight, scale=total**-self._loss.power_of_n, **self.of_loss)

    def penalty_term(self) -> Any:
        """Return the penalty on the coefficients, without the parts that ``further_terms`` returns."""
        if self.parts:
            return sb.ByColumns([(self.of_part(part).penalty_term(), part.columns) for part in self.parts])
        (choice,) = self._penalties
        given = self._given(choice.reads)
        if given.get("groups", 1) is None and self.convex:
            given["groups"] = 1
        if given.get("gamma", 0) is None:
            del given["gamma"]
        if self.overlapping and not self.convex:
            raise ValueError(f"groups overlap: expected groups without common columns for penalty={self.penalty!r}")
        if self.overlapping:
            share = given.get("l1_ratio", 0.0)
            penalty: Any = sb.L1(self.alpha * share) if share else sb.Zero()
        else:
            penalty = choice.make(**given)
        if self.bounded and not self.grouped:
            penalty = penalty + sb.Box(*self.box)
        return penalty + sb.NonNegative() if self.positive else penalty

    def further_terms(self, shape: tuple[int, ...]) -> list[tuple[Any, Any]]:
        """Return the parts of the penalty that need a matrix, with this matrix, for coefficients of some shape.

        These are the norms of overlapping groups, and bounds beside a group penalty.
        """
        terms: list[tuple[Any, Any]] = []
        if self.overlapping:
            sizes, weight = [len(group) for group in self.groups], self.alpha
            if self.has_ratio:
                weight *= 1.0 - self.l1_ratio
            columns = np.concatenate([np.asarray(group) for group in self.groups])
            terms.append((sb.Repeat(columns, shape[0]), sb.GroupL2(weight, sizes, self.weights)))
        if self.bounded and self.grouped:
            low, high = (
                np.array(np.broadcast_to(np.asarray(bound, dtype=float).T, shape[::-1]).T) for bound in self.box
            )
            for part in self.parts:
                if not self.of_part(part).grouped:  # its penalty has the bounds
                    low[part.columns], high[part.columns] = -np.inf, np.inf
            terms.append((sb.Identity(), sb.Interval(low, high)))
        return terms

    def _given(self, names: tuple[str, ...]) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}


def _described(function: str, parameters: Mapping[str, Any]) -> str:
    given = ", ".join(f"{name}={float(value):.6g}" for name, value in parameters.items() if np.ndim(value) == 0)
    return f"{function} ({given})" if given else function


def _check_name(argument: str, found: Any, known: Mapping[Any, Choice]) -> None:
    if not isinstance(found, str) and not (found is None and None in known):
        several = ", or a dict from such names to columns, as {'l1': ['a', 'b'], None: ['c']}"
        allowed = f"{list(known)}{several * (argument == 'penalty')}"
        raise TypeError(f"{argument}={shown(found)}: expected one of {allowed}")
    if found not in known:
        hint = _hint(argument, found, known)
        raise ValueError(f"{argument}={found!r} is not known{hint}: expected one of {list(known)}")


def _hint(argument: str, found: Any, known: Mapping[Any, Choice]) -> str:
    """Return a hint on what an unknown name probably means."""
    if argument == "loss" and found in REGRESSION:
        return " to classifiers (it is a loss of SparseRegressor)"
    if argument == "loss" and found in CLASSIFICATION:
        return " to regressors (it is a loss of SparseClassifier)"
    name = str(found).lower().replace("-", "_").replace(" ", "_")
    close = get_close_matches(name, [str(own) for own in known], n=1)
    meant = OTHER_NAMES.get(name, repr(close[0]) if close else "")
    return f" (did you mean {meant}?)" if meant else ""
