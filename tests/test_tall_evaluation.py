"""One evaluation of rows: the compiled core against the numpy code that specifies it."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from scipy import sparse

import saddleback as sb
from saddleback.functions.traits import is_smooth
from saddleback.machine.threads import limited
from saddleback.tall.columns import Columns
from saddleback.tall.evaluation import Evaluate, Evaluation, bound
from saddleback.tall.frame import Frame
from saddleback.tall.rows import ArrayRows, Chunk
from saddleback.tall.survey import BadEntry, Sample

LOSSES: dict[str, Any] = {
    "squared": sb.Squared,
    "absolute": sb.Absolute,
    "quantile": lambda target, sample_weight: sb.Pinball(target, 0.3, sample_weight),
    "huber": lambda target, sample_weight: sb.Huber(target, 0.7, sample_weight),
    "insensitive": lambda target, sample_weight: sb.EpsilonInsensitive(target, 0.4, sample_weight),
    "hinge": lambda target, sample_weight: sb.Hinge(np.sign(target), sample_weight),
    "squared hinge": lambda target, sample_weight: sb.SquaredHinge(np.sign(target), sample_weight),
    "logistic": lambda target, sample_weight: sb.Logistic(np.sign(target), sample_weight),
    "multiple": lambda target, sample_weight: 0.25 * sb.Huber(target, 0.7, sample_weight),
}
SHAPES = st.tuples(st.one_of(st.integers(1, 40), st.sampled_from([1021, 1024, 1025, 3000])), st.integers(1, 9))


def laid_out(X: np.ndarray, how: str) -> Any:
    """Return the same matrix in another order of memory."""
    if how == "every other row":
        larger = np.full((2 * X.shape[0], X.shape[1] + 1), np.nan, X.dtype)
        larger[::2, 1:] = X
        return larger[::2, 1:]
    if how == "rows of columns":
        larger = np.full((X.shape[0] + 3, X.shape[1]), np.nan, X.dtype, order="F")
        larger[1:-2] = X
        return larger[1:-2]
    if how == "columns apart":
        return Columns([X[:, j].copy() for j in range(X.shape[1])])
    if how == "every other column":
        return np.repeat(X, 2, axis=1)[:, ::2]
    return np.array(X, order="F" if how == "columns" else "C")


LAYOUTS = ["rows", "columns", "columns apart", "every other row", "rows of columns", "every other column"]


def example(seed: int, rows: int, columns: int, weighted: bool = False, intercept: bool = True) -> tuple[Chunk, Frame]:
    """Return random rows with a centre far from 0, some of weight 0, and their columns."""
    draw = np.random.default_rng(seed)
    X = draw.standard_normal((rows, columns)) * draw.uniform(0.5, 2.0, columns) + 3.0
    target = X[:, 0] - 3.0 + draw.standard_t(3, rows)
    weight = draw.integers(0, 4, rows) * draw.uniform(0.5, 1.0, rows) if weighted else None
    spread = np.append(draw.uniform(0.5, 2.0, columns), [1.0] * intercept)
    centre = draw.normal(3.0, 0.1, columns) if intercept else np.zeros(columns)
    return Chunk(0, 0, X, target, weight), Frame(centre, spread, intercept)


def assert_equal(found: Evaluation, expected: Evaluation, terms: float) -> None:
    """Compare sums, whose terms add up to ``terms`` in size, and the rows that were kept."""
    close = partial(np.testing.assert_allclose, rtol=1e-11)
    for name in ("value", "tangents", "lowest", "pull", "diagonal", "curvature", "squares", "rise"):
        close(getattr(found, name), getattr(expected, name), atol=1e-12 * terms)
    assert found.kept_rows == expected.kept_rows
    for (rows, y), (others, expected_y) in zip(found.kept, expected.kept, strict=True):
        np.testing.assert_array_equal(rows.X, others.X)
        np.testing.assert_array_equal(rows.target, others.target)
        close(y, expected_y, atol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
@examples(25)
@given(
    shape=SHAPES,
    seed=st.integers(0, 2**31),
    single=st.booleans(),
    layout=st.sampled_from(LAYOUTS),
    weighted=st.booleans(),
    intercept=st.booleans(),
    width=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_the_compiled_core_computes_what_the_numpy_code_says(
    name, shape, seed, single, layout, weighted, intercept, width
):
    chunk, frame = example(seed, *shape, weighted=weighted, intercept=intercept)
    X = laid_out(chunk.X.astype(np.float32 if single else np.float64), layout)
    chunk = Chunk(0, 0, X, chunk.target, chunk.weight)
    smooth = is_smooth(bound(LOSSES[name], chunk))
    x = np.random.default_rng(seed + 1).normal(0.0, 0.3, frame.size)
    evaluate = Evaluate(LOSSES[name], frame, x, smooth, Sample(0.2, seed) if smooth else None, width)
    chosen = evaluate.sample.keep(chunk) if evaluate.sample else None
    found, expected = evaluate._compiled(chunk, chosen), evaluate._in_blocks(chunk, chosen)
    assert found is not None
    assert_equal(found, expected, terms=30.0 * len(chunk))


@pytest.mark.parametrize("name", ["quantile", "huber", "logistic"])
def test_rows_have_the_same_bits_at_any_number_of_threads(name, monkeypatch):
    monkeypatch.setattr("saddleback.tall.rows.CHUNK_BYTES", 1 << 17)
    chunk, frame = example(3, 20_000, 6, weighted=True)
    rows = ArrayRows(chunk.X, chunk.target, chunk.weight)
    assert len(rows.lengths) > 5
    curved = name != "quantile"
    evaluate = Evaluate(LOSSES[name], frame, np.full(7, 0.1), curved, Sample(0.1, 0) if curved else None, 0.2)
    bits = set()
    for threads in (1, 2, 3):
        with limited(threads):
            at = rows.read(evaluate)
        kept = [array.tobytes() for part, y in at.kept for array in (part.X, y)]
        bits.add((at.value, at.tangents, at.rise, at.pull.tobytes(), at.curvature.tobytes(), *kept))
    assert len(bits) == 1


@pytest.mark.parametrize("name", ["huber", "logistic", "squared"])
def test_a_sample_gives_the_curvature_of_all_rows(name):
    chunk, frame = example(4, 20_000, 5, weighted=True)
    chunk.X[:, 3] = frame.centre[3]
    chunk.X[[7, 8], 3] += 1.0  # a rare event, which a sample need not contain
    x = np.full(6, 0.1)
    exact = Evaluate(LOSSES[name], frame, x, True, Sample(1.0, 0))(chunk)
    np.testing.assert_allclose(exact.curvature_of_sample(LOSSES[name], frame, x), exact.curvature, rtol=1e-11)
    found = Evaluate(LOSSES[name], frame, x, False, Sample(0.2, 0))(chunk)
    assert found.curvature.size == 0
    estimated = found.curvature_of_sample(LOSSES[name], frame, x)
    np.testing.assert_allclose(np.diag(estimated), np.diag(exact.curvature), rtol=1e-12)
    # after a step with the estimate, this share of the distance from the minimum is left
    assert np.abs(np.linalg.eigvals(np.eye(6) - np.linalg.solve(estimated, exact.curvature))).max() < 0.1


def test_a_tile_that_is_not_full_counts_no_other_rows():
    chunk, frame = example(5, 2500, 3)
    evaluate = Evaluate(sb.Absolute, frame, np.full(4, 0.2), False, None, 0.5)
    whole, ends = evaluate(chunk), [0, 1, 700, 1023, 2500]
    parts = [evaluate(chunk.part(slice(a, b))) for a, b in pairwise(ends)]
    total = parts[0] + parts[1] + parts[2] + parts[3]
    np.testing.assert_allclose(total.value, whole.value, rtol=1e-13)
    np.testing.assert_allclose(total.pull, whole.pull, rtol=1e-11)
    assert total.kept_rows == whole.kept_rows


def test_a_large_margin_of_the_logistic_loss_neither_overflows_nor_loses_digits():
    z = np.array([-1e150, -800.0, -40.0, -1e-9, 0.0, 1e-9, 40.0, 700.0, 1e150])
    chunk, frame = Chunk(0, 0, z[:, None], np.ones(9)), Frame(np.zeros(1), np.ones(1), False)
    evaluate = Evaluate(LOSSES["logistic"], frame, np.ones(1), False, Sample(1.0, 0))
    for row in range(9):
        part = chunk.part(slice(row, row + 1))
        found, expected = evaluate._compiled(part, np.array([0])), evaluate._in_blocks(part, np.array([0]))
        assert found is not None
        np.testing.assert_allclose(found.value, expected.value, rtol=1e-15, atol=1e-307)
        np.testing.assert_allclose(found.kept[0][1], expected.kept[0][1], rtol=1e-15, atol=1e-307)


def test_what_the_core_does_not_know_is_left_to_numpy():
    chunk, frame = example(7, 50, 3)
    by_rows = sparse.csr_array(chunk.X)
    counts = Chunk(0, 0, chunk.X, np.arange(50.0))
    x = np.zeros(4)
    assert Evaluate(sb.Squared, frame, x, False)._compiled(Chunk(0, 0, by_rows, chunk.target), None) is None
    assert Evaluate(sb.Poisson, frame, x, False)._compiled(counts, None) is None
    assert np.isfinite(Evaluate(sb.Poisson, frame, x, False)(counts).value)


def test_the_core_refuses_what_does_not_fit():
    chunk, frame = example(9, 20, 2)
    evaluate = Evaluate(sb.Absolute, frame, np.zeros(3), False)
    with pytest.raises(ValueError, match="must be sorted, and exist"):
        evaluate._compiled(chunk, np.array([3, 20]))
    with pytest.raises(ValueError, match="x and leverage"):
        Evaluate(sb.Absolute, frame, np.zeros(2), False)._compiled(chunk, None)
    with pytest.raises(ValueError, match="has data of shape"):
        Evaluate(lambda target, sample_weight: sb.Absolute(target[1:]), frame, np.zeros(3), False)(chunk)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_entry_that_is_not_finite_is_named(bad):
    chunk, frame = example(11, 2000, 3)
    chunk.X[1500, 1] = bad
    with pytest.raises(BadEntry) as raised:
        Evaluate(sb.Absolute, frame, np.full(4, 0.1), False)(chunk)
    assert (raised.value.row, raised.value.column) == (1500, 1)
