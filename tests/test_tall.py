"""Tall problems: the certificate holds for the whole problem, and the answer is that of the solve in memory."""

from __future__ import annotations

import pickle
import re
from functools import partial

import numpy as np
import pytest
from scipy import sparse

import saddleback as sb
from saddleback.tall.evaluation import Evaluate
from saddleback.tall.frame import frame_of, weighted_gram
from saddleback.tall.rows import ArrayRows, Chunk, Rows
from saddleback.tall.survey import Look, Sample

ROWS, COLUMNS = 40_000, 6


class InChunks(Rows):
    """Rows of an array in chunks of given lengths, which count how often each is read."""

    def __init__(self, X, target, weight=None, chunks=7):
        self.X, self.target, self.weight = X, target, weight
        self.names = tuple(f"x{j}" for j in range(X.shape[1]))
        self.bounds = np.linspace(0, X.shape[0], chunks + 1).astype(int)
        self.lengths = tuple(np.diff(self.bounds).tolist())
        self.read_so_far = [0] * chunks

    def chunk(self, number):
        self.read_so_far[number] += 1
        own = slice(*self.bounds[number : number + 2])
        weight = None if self.weight is None else self.weight[own]
        return Chunk(number, int(own.start), self.X[own], self.target[own], weight)


def data(labels=False, seed=0, rows=ROWS):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, COLUMNS)) + np.arange(COLUMNS)
    target = X[:, 0] - 0.5 * X[:, 1] + (1 + 0.2 * np.abs(X[:, 2])) * rng.standard_t(3, size=rows)
    return X, np.where(target > 0.0, 1.0, -1.0) if labels else target


LOSSES = {
    "quantile": (partial(sb.Pinball, quantile=0.9), False),
    "absolute": (sb.Absolute, False),
    "epsilon": (partial(sb.EpsilonInsensitive, epsilon=0.3), False),
    "hinge": (sb.Hinge, True),
    "huber": (partial(sb.Huber, delta=0.7), False),
    "squared": (sb.Squared, False),
    "logistic": (sb.Logistic, True),
    "squared hinge": (sb.SquaredHinge, True),
}

PENALTIES = {
    "l1": sb.L1(0.01),
    "groups": sb.GroupL2(0.01, 2),
    "elastic net": sb.ElasticNet(0.02, 0.5),
    "nonnegative": sb.L1(0.01) + sb.NonNegative(),
    "none": sb.Zero(),
}


class Mean:
    """The mean of a loss over the rows of the whole problem."""

    def __init__(self, make, rows):
        self.make, self.rows = make, rows

    def __call__(self, target, sample_weight=None):
        return self.make(target, sample_weight=sample_weight, scale=1.0 / self.rows)


def whole(penalty, X, loss, intercept=True):
    if not intercept:
        return sb.Problem(penalty, X, loss)
    return sb.Problem([penalty, sb.Zero()], [X, np.ones(X.shape[0])], loss)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_answer_is_that_of_the_solve_in_memory(loss, penalty):
    make, labels = LOSSES[loss]
    X, target = data(labels)
    mean = Mean(make, ROWS)
    result = sb.solve(sb.TallProblem(PENALTIES[penalty], InChunks(X, target), mean))
    centred = X - X.mean(axis=0)
    reference = sb.solve(whole(PENALTIES[penalty], centred, mean(target)), tol=1e-8)
    assert result.status is sb.Status.OPTIMAL
    assert result.certificate.error <= 1e-6
    value = whole(PENALTIES[penalty], X, mean(target)).value(result.x)
    assert value == pytest.approx(result.objective, rel=1e-9)
    assert result.certificate.dual_value <= reference.objective * (1 + 1e-8)
    assert reference.certificate.dual_value <= value * (1 + 1e-12)
    assert value <= reference.objective * (1 + 1.1e-6)


@pytest.mark.parametrize("loss", ["quantile", "logistic"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["float32", "columns first", "weights", "sparse"])
def test_every_form_of_the_data(loss, intercept, kind):
    make, labels = LOSSES[loss]
    X, target = data(labels, seed=1)
    weight = np.random.default_rng(2).integers(0, 3, ROWS).astype(float) if kind == "weights" else None
    X = {"float32": X.astype(np.float32), "columns first": np.asfortranarray(X)}.get(kind, X)
    if kind == "sparse":
        X = sparse.csr_matrix(np.where(np.abs(X - np.arange(COLUMNS)) > 1.0, X, 0.0))
    mean = Mean(make, ROWS)
    result = sb.solve(sb.TallProblem(sb.L1(0.01), InChunks(X, target, weight), mean, intercept=intercept))
    matrix = X.astype(np.float64)
    reference = sb.solve(whole(sb.L1(0.01), matrix, mean(target, weight), intercept), tol=1e-8)
    assert result.status is sb.Status.OPTIMAL
    assert result.objective == pytest.approx(reference.objective, rel=1.1e-6)
    found = result.x if intercept else [result.x]
    expected = reference.x if intercept else [reference.x]
    for own, other in zip(found, expected, strict=True):
        assert own == pytest.approx(other, abs=2e-2)


def test_few_readings_and_no_row_more_often_than_others():
    X, target = data(rows=200_000)
    rows = InChunks(X, target, chunks=11)
    result = sb.solve(sb.TallProblem(sb.L1(1e-3), rows, Mean(LOSSES["quantile"][0], 200_000)))
    assert result.settings["readings"] <= 5
    assert set(rows.read_so_far) == {result.settings["readings"]}


def test_small_data_are_solved_in_memory_and_confirmed_once():
    X, target = data(rows=500)
    rows = InChunks(X, target)
    result = sb.solve(sb.TallProblem(sb.L1(0.01), rows, Mean(sb.Absolute, 500)))
    assert result.status is sb.Status.OPTIMAL
    assert result.settings["readings"] == 2


def test_the_number_of_threads_changes_no_bit():
    X, target = data()
    problem = sb.TallProblem(sb.L1(0.01), InChunks(X, target), Mean(LOSSES["quantile"][0], ROWS))
    one, two = (sb.solve(problem, threads=threads) for threads in (1, 2))
    assert np.array_equal(one.x[0], two.x[0])
    assert one.certificate == two.certificate


def test_chunks_of_any_length_give_the_same_sums():
    X, target = data(rows=997)
    chunk = Chunk(0, 0, X, target)
    frame = frame_of(chunk, True)
    x = np.random.default_rng(3).standard_normal(frame.size)
    visit = Evaluate(partial(sb.Pinball, quantile=0.3), frame, x, False, None, 0.2)
    found = [InChunks(X, target, chunks=chunks).read(visit) for chunks in (1, 3, 997)]
    design = np.column_stack([X - X.mean(axis=0), np.ones(997)])
    loss = sb.Pinball(target, quantile=0.3).bind((997,))
    slopes = loss.subgradient(design @ x)
    for each in found:
        assert each.value == pytest.approx(loss.value(design @ x))
        assert each.pull == pytest.approx(design.T @ slopes)
        assert each.tangents == pytest.approx(loss.value(design @ x) - slopes @ design @ x)
        assert each.kept_rows == found[0].kept_rows


def test_the_tangents_are_below_the_objective():
    """At any x, the kept rows and the tangents of the others are at most the objective, and equal where it was read."""
    from saddleback.tall.reduced import reduced

    X, target = data(rows=3000)
    rows, loss = InChunks(X, target), Mean(LOSSES["quantile"][0], 3000)
    problem = sb.TallProblem(sb.L1(0.1), rows, loss)
    frame = frame_of(Chunk(0, 0, X, target), True)
    rng = np.random.default_rng(4)
    x = rng.standard_normal(frame.size)
    at = rows.read(Evaluate(loss, frame, x, False, None, 0.1))
    assert 0 < at.kept_rows < 1500
    small, _ = reduced(problem, frame, at, x, False)
    objective = whole(sb.L1(0.1), X - frame.centre, loss(target))
    for scale in (0.0, 0.1, 1.0, 10.0):
        other = x + scale * rng.standard_normal(frame.size)
        below = small.judged.value(frame.split(other)) + small.tangents.lowest
        assert below <= objective.value(frame.split(other)) * (1 + 1e-12)
        if scale == 0.0:
            assert below == pytest.approx(objective.value(frame.split(other)))


def test_weighted_gram_equals_its_definition():
    rng = np.random.default_rng(5)
    A, d = rng.standard_normal((50, 4)), rng.random(50)
    expected = A.T @ np.diag(d) @ A
    assert weighted_gram(A, d) == pytest.approx(expected)
    assert weighted_gram(sparse.csr_matrix(A), d) == pytest.approx(expected)


def test_a_sample_is_the_same_at_every_reading_and_has_the_weight_of_all_rows():
    X, target = data(rows=5000)
    rows = InChunks(X, target)
    rule = Sample(0.1, 3)
    survey = rows.survey(Look(rule))
    assert survey is rows.survey(Look(rule))
    assert sum(chunk.weight.sum() for chunk in survey.sample) == pytest.approx(5000)
    for chunk in survey.sample:
        own = rows.chunk(chunk.number)
        assert np.array_equal(own.part(rule.keep(own)).X, chunk.X)


def test_checkpoints_resume_between_readings(tmp_path):
    X, target = data(rows=200_000)
    problem = sb.TallProblem(sb.L1(1e-3), InChunks(X, target), Mean(LOSSES["quantile"][0], 200_000))
    path = tmp_path / "run.npz"
    straight = sb.solve(problem)
    stopped = sb.solve(problem, callback=lambda info: True, checkpoint=path)
    assert stopped.status is sb.Status.INTERRUPTED
    assert "resume=" in stopped.message
    resumed = sb.solve(problem, resume=path)
    assert np.array_equal(resumed.x[0], straight.x[0])
    assert resumed.certificate == straight.certificate
    assert resumed.settings["readings"] == straight.settings["readings"]
    with pytest.raises(ValueError, match="differs in the penalty"):
        sb.solve(sb.TallProblem(sb.L1(2e-3), InChunks(X, target), problem.loss), resume=path)


def test_a_start_saves_the_solution_of_the_sample_and_x0_may_be_a_result():
    X, target = data(rows=100_000)
    problem = sb.TallProblem(sb.L1(1e-3), InChunks(X, target), Mean(LOSSES["quantile"][0], 100_000))
    first = sb.solve(problem)
    for start in (first, first.x):
        again = sb.solve(problem, x0=start)
        assert again.status is sb.Status.OPTIMAL
        assert again.settings["readings"] <= first.settings["readings"]


def test_limits_end_a_run_with_the_best_point():
    X, target = data(rows=100_000)
    problem = sb.TallProblem(sb.L1(1e-3), InChunks(X, target), Mean(LOSSES["quantile"][0], 100_000))
    short = sb.solve(problem, max_passes=2, tol=1e-9)
    assert short.status is sb.Status.MAX_PASSES
    assert np.isfinite(short.certificate.gap)
    assert sb.solve(problem, time_limit=1e-3, tol=1e-12).status is sb.Status.TIME_LIMIT


@pytest.mark.parametrize(
    ("row", "column", "value", "said"),
    [
        (31_234, 2, np.nan, "column 'x2' has the value nan in row 31234"),
        (0, 0, np.inf, "column 'x0' has the value inf in row 0"),
        (0, 0, -np.inf, "column 'x0' has the value -inf in row 0: expected finite numbers"),
        (7, None, -1e200, "the target has the value -1e\\+200 in row 7: expected numbers of at most 1e\\+120 in size"),
        (39_999, None, np.nan, "the target has the value nan in row 39999"),
    ],
)
def test_an_entry_that_is_not_finite_is_named(row, column, value, said):
    X, target = data()
    if column is None:
        target[row] = value
    else:
        X[row, column] = value
    problem = sb.TallProblem(sb.L1(0.01), InChunks(X, target), sb.Absolute)
    with pytest.raises(ValueError, match=said):
        sb.solve(problem)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (-2.0, "weights of at least 0"),
        (-np.inf, "finite numbers"),
        (1e300, r"0, or weights from 1e-120 to 1e\+120"),
        (5e-324, r"0, or weights from 1e-120 to 1e\+120"),
    ],
)
def test_a_weight_that_cannot_be_used_is_named(value, expected):
    X, target = data()
    weight = np.ones(ROWS)
    weight[777] = value
    with pytest.raises(
        ValueError, match=rf"the weight has the value {re.escape(str(value))} in row 777: expected {expected}"
    ):
        sb.solve(sb.TallProblem(sb.L1(0.01), InChunks(X, target, weight), sb.Absolute))


def test_wrong_arguments_are_refused():
    X, target = data(rows=100)
    rows = ArrayRows(X, target)
    with pytest.raises(TypeError, match="the order is TallProblem"):
        sb.TallProblem(sb.Absolute(target), rows, sb.Absolute)
    with pytest.raises(TypeError, match="expected Rows"):
        sb.TallProblem(sb.L1(1.0), X, sb.Absolute)
    with pytest.raises(TypeError, match="expected a function of targets and weights"):
        sb.TallProblem(sb.L1(1.0), rows, sb.Absolute(target))
    with pytest.raises(TypeError, match="not a sum over rows"):
        sb.TallProblem(sb.L1(1.0), rows, sb.Norm2)
    with pytest.raises(ValueError, match="has no meaning for a TallProblem"):
        sb.solve(sb.TallProblem(sb.L1(1.0), rows, sb.Absolute), method="sp-bcd")
    with pytest.raises(ValueError, match="at least one of each"):
        sb.TallProblem(sb.L1(1.0), ArrayRows(X[:0], target[:0]), sb.Absolute)


def test_rows_and_results_can_be_pickled():
    X, target = data(rows=300)
    problem = sb.TallProblem(sb.L1(0.01), ArrayRows(X, target), sb.Absolute)
    result = sb.solve(pickle.loads(pickle.dumps(problem)))
    assert pickle.loads(pickle.dumps(result)).objective == result.objective
    assert result.y is None
    assert result.to_dict()["y"] is None


def test_equal_rows_on_a_kink_are_merged():
    """A fifth of all rows is on the kink, far more than may be kept, but few of them differ."""
    rng = np.random.default_rng(6)
    rows = 60_000
    X = rng.integers(0, 3, (rows, 2)).astype(float)
    target = X[:, 0] + rng.integers(-2, 3, rows)
    loss = Mean(sb.Absolute, rows)
    problem = sb.TallProblem(sb.L1(1e-3), InChunks(X, target), loss, memory=2e6)
    assert problem.rows_in_memory < rows / 10
    result = sb.solve(problem)
    reference = sb.solve(whole(sb.L1(1e-3), X, loss(target)), tol=1e-8)
    assert result.status is sb.Status.OPTIMAL
    assert result.objective == pytest.approx(reference.objective, rel=1.1e-6)


def test_a_perfect_fit_has_the_objective_0():
    X, _ = data(rows=50_000)
    result = sb.solve(sb.TallProblem(sb.Zero(), InChunks(X, X @ np.arange(1.0, 7.0) + 2.0), Mean(sb.Absolute, 50_000)))
    assert result.status is sb.Status.OPTIMAL
    assert result.x[0] == pytest.approx(np.arange(1.0, 7.0))
    assert result.objective < 1e-10


def test_counts_are_fitted_by_newton_steps():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((ROWS, 3))
    counts = rng.poisson(np.exp(0.5 * X[:, 0] + 0.2)).astype(float)
    loss = Mean(sb.Poisson, ROWS)
    result = sb.solve(sb.TallProblem(sb.L1(1e-2), InChunks(X, counts), loss))
    reference = sb.solve(whole(sb.L1(1e-2), X, loss(counts)), tol=1e-8)
    assert result.status is sb.Status.OPTIMAL
    assert result.objective == pytest.approx(reference.objective, rel=1.1e-6)


def test_little_memory_needs_more_readings_but_no_other_answer():
    X, target = data(rows=200_000)
    loss = Mean(LOSSES["quantile"][0], 200_000)
    results = [sb.solve(sb.TallProblem(sb.L1(1e-3), InChunks(X, target), loss, memory=memory)) for memory in (3e6, 1e9)]
    assert all(result.status is sb.Status.OPTIMAL for result in results)
    assert results[0].objective == pytest.approx(results[1].objective, rel=2e-6)


def test_the_bound_of_counts_is_below_the_minimum_at_any_tolerance():
    """The loss of a count above e has a negative minimum."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((ROWS, 2))
    counts = rng.poisson(np.exp(3.0 + 0.3 * X[:, 0])).astype(float)
    minimum = sb.solve(whole(sb.L1(400.0), X, sb.Poisson(counts)), tol=1e-8).certificate
    for options in ({"tol": 0.3}, {"tol": 1e-9, "max_passes": 2}):
        found = sb.solve(sb.TallProblem(sb.L1(400.0), InChunks(X, counts), sb.Poisson), **options).certificate
        assert found.dual_value <= minimum.primal_value + 1e-8 * abs(minimum.primal_value)
        assert found.primal_value >= minimum.dual_value - 1e-8 * abs(minimum.dual_value)


def test_a_start_outside_of_the_domain_is_moved_into_it():
    X, target = data()
    problem = sb.TallProblem(sb.NonNegative(), InChunks(X, target), Mean(sb.Absolute, ROWS))
    result = sb.solve(problem, x0=[np.full(COLUMNS, -1.0), [0.0]])
    assert result.status is sb.Status.OPTIMAL
    assert np.all(result.x[0] >= 0)
    with pytest.raises(ValueError, match="x0 has 2 coefficients: expected one per column, 6"):
        sb.solve(problem, x0=[[1.0, 2.0], [0.0]])
    with pytest.raises(ValueError, match="y0 has no meaning"):
        sb.solve(problem, y0=np.zeros(ROWS))


@pytest.mark.parametrize("name", ["huber", "logistic"])
def test_rare_rows_that_a_sample_misses_do_not_spoil_newton_steps(name):
    """Without them a column equals the intercept, so that the curvature of the sample says nothing about it."""
    loss, labels = LOSSES[name]
    X, target = data(labels, rows=60_000)
    sample = sb.TallProblem(sb.L1(0.1), InChunks(X, target, chunks=1), loss).sample(seed=0)
    missed = np.setdiff1d(np.arange(60_000), sample.keep(Chunk(0, 0, X, target)))[:6]
    X[:, 5] = 1.0
    X[missed, 5] = 0.0
    target[missed] *= [1, -1, 1, -1, 1, -1]
    rows = InChunks(sparse.csr_array(X), target, chunks=1)
    result = sb.solve(sb.TallProblem(sb.L1(0.1), rows, loss), seed=0)
    assert result.status is sb.Status.OPTIMAL
    assert result.passes <= 7


@pytest.mark.parametrize("name", [pytest.param("quantile", marks=pytest.mark.slow), "huber"])
def test_a_rare_category_without_a_penalty(name):
    """Its rows are kept, since the sample has none of them; all categories together equal the intercept."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, ROWS)
    codes[[5, 7000]] = 3
    X = sparse.csr_array((np.ones(ROWS), (np.arange(ROWS), codes)), shape=(ROWS, 4))
    target = 0.1 * codes + rng.standard_t(3, ROWS)
    loss, _ = LOSSES[name]
    result = sb.solve(sb.TallProblem(sb.Zero(), InChunks(X, target), loss))
    assert result.status is sb.Status.OPTIMAL
    assert result.passes <= 7
    expected = sb.solve(sb.Problem([sb.Zero(), sb.Zero()], [X, np.ones(ROWS)], loss(target)), tol=1e-8)
    np.testing.assert_allclose(result.objective, expected.objective, rtol=2e-6)
    assert np.max(np.abs(np.concatenate(result.x))) < 100.0
