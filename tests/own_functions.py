"""Catalogue functions as user-defined objects: correct ones, and variants with one mistake each."""

from __future__ import annotations

import numpy as np

import saddleback as sb


class Own:
    """A catalogue term as an object with ``value``, ``prox`` and optionally ``conjugate`` and ``separable``."""

    def __init__(self, term, size, separable=False, conjugate=False, dtype=np.float64):
        self.function = term.bind(term.shape or (size,))
        self.separable = separable
        self.dtype = dtype
        self.described = f"{term!r}, separable={separable}, conjugate={conjugate}, {np.dtype(dtype)}"
        if conjugate:
            self.conjugate = self.exact_conjugate

    def __repr__(self):
        return f"{type(self).__name__}({self.described})"

    def value(self, x):
        return self.function.value(np.asarray(x, dtype=np.float64))

    def prox(self, v, step):
        return self.function.prox(v, step).astype(self.dtype)

    def exact_conjugate(self, y):
        return self.function.conjugate().value(y)


PROX_MISTAKES = ("factor", "forgotten step", "shift", "scaled", "sign", "one coordinate", "one coordinate shifted")
CONJUGATE_MISTAKES = ("zero", "factor of y", "factor", "shift", "sign", "one coordinate")


class WrongProx(Own):
    """A function with a mistake in its prox."""

    def __init__(self, rng, mistake, *arguments, **options):
        super().__init__(*arguments, **options)
        self.mistake = mistake
        self.factor = float(rng.choice([0.5, 0.9, 1.1, 2.0]))
        self.shift = float(rng.choice([-0.5, -0.1, 0.1, 0.5]))
        self.coordinate = int(rng.integers(self.function.blocks().order.size))
        self.described += f", {mistake}, {self.factor}, {self.shift}, {self.coordinate}"

    def prox(self, v, step):
        right = super().prox
        p = right(v, step)
        match self.mistake:
            case "factor":
                return right(v, self.factor * step)
            case "forgotten step":
                return right(v, np.ones_like(v) if np.ndim(step) else 1.0)
            case "shift":
                return p + self.shift
            case "scaled":
                return self.factor * p
            case "sign":
                return -p
            case "one coordinate":
                p[self.coordinate] = right(v, self.factor * step)[self.coordinate]
            case "one coordinate shifted":
                p[self.coordinate] += self.shift
        return p


class WrongConjugate(Own):
    """A function with a mistake in its conjugate."""

    def __init__(self, rng, mistake, *arguments, **options):
        super().__init__(*arguments, **options, conjugate=True)
        self.mistake = mistake
        self.factor = float(rng.choice([0.5, 0.9, 1.1, 2.0]))
        self.shift = float(rng.choice([-0.5, -0.1, 0.1, 0.5]))
        self.coordinate = int(rng.integers(self.function.blocks().order.size))
        self.described += f", {mistake}, {self.factor}, {self.shift}, {self.coordinate}"
        self.conjugate = self.wrong_conjugate

    def wrong_conjugate(self, y):
        match self.mistake:
            case "zero":
                return 0.0
            case "factor of y":
                return self.exact_conjugate(self.factor * y)
            case "factor":
                return self.factor * self.exact_conjugate(y)
            case "shift":
                return self.exact_conjugate(y) + self.shift
            case "sign":
                return self.exact_conjugate(-y)
            case _:
                y = y.copy()
                y[self.coordinate] *= self.factor
                return self.exact_conjugate(y)


def wrong_adjoints(rng, A):
    """Return adjoints of A with one mistake each, by name."""
    m, n = A.shape
    i, j, factor = rng.integers(m), rng.integers(n), rng.choice([0.5, 0.9, 1.1, 2.0])
    row, column, entry = A.copy(), A.copy(), A.copy()
    row[i] *= factor
    column[:, j] *= factor
    entry[i, j] *= factor
    return {
        "factor": lambda y: factor * (A.T @ y),
        "sign": lambda y: -(A.T @ y),
        "zero": lambda y: np.zeros(n),
        "permuted": lambda y: np.roll(A.T @ y, 1 + j) if n > 1 else 2 * (A.T @ y),
        "transposed": lambda y: A @ y if m == n else A.T @ y[::-1],
        "shifted": lambda y: A.T @ y + 0.1,
        "one row": lambda y: row.T @ y,
        "one column": lambda y: column.T @ y,
        "one entry": lambda y: entry.T @ y,
    }


def penalties(rng, n):
    """Return penalties of a variable of size n, each with a flag whether it is separable."""
    alpha, c = 10 ** rng.uniform(-1, 1), rng.standard_normal(n)
    halves = [n // 2, n - n // 2]
    return [
        (sb.L1(alpha), True),
        (sb.L1(alpha, rng.uniform(0.0, 2.0, n)), True),
        (sb.SquaredL2(alpha), True),
        (sb.ElasticNet(alpha, 0.5), True),
        (sb.GroupL2(alpha, halves), False),
        (sb.SparseGroup(alpha, halves, 0.4), False),
        (sb.Box(-alpha, 2 * alpha), True),
        (sb.NonNegative(), True),
        (sb.Linear(c) + sb.Box(-1.0, 2.0), True),
        (sb.L1(alpha) + sb.NonNegative(), True),
    ]


def losses(rng, m):
    """Return losses of m rows, each with a flag whether it is separable."""
    scale, b, labels = 10 ** rng.uniform(-1, 1), 2 * rng.standard_normal(m), rng.choice([-1.0, 1.0], m)
    return [
        (sb.Squared(b, scale=scale), True),
        (sb.Absolute(b, scale=scale), True),
        (sb.Pinball(b, 0.3, scale=scale), True),
        (sb.Huber(b, 0.4, scale=scale), True),
        (sb.EpsilonInsensitive(b, 0.2, scale=scale), True),
        (sb.Hinge(labels, scale=scale), True),
        (sb.SquaredHinge(labels, scale=scale), True),
        (sb.Logistic(labels, scale=scale), True),
        (sb.Norm2(b, scale=scale), False),
        (sb.Interval(b - 0.5, b + 0.5), True),
    ]
