"""User-defined methods: the contract that they satisfy, and the errors if they violate it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from test_readme import ROOT, python_blocks

import saddleback as sb
from saddleback.methods import PDHG, Candidates, Method, State


@pytest.fixture
def problem(rng):
    A, b = rng.standard_normal((30, 20)), rng.standard_normal(30)
    return sb.Problem(sb.L1(2.0), A, sb.Absolute(b))


@dataclass(kw_only=True)
class Simple(State):
    model: object
    step: float


class ArrowHurwicz(Method):
    """PDHG with equal steps, as short as the contract allows."""

    def init(self, model, start):
        step = 0.99 / np.linalg.norm(np.array([model.A.matvec(e) for e in np.eye(model.A.shape[1])]), 2)
        return Simple(x=start.x.copy(), y=start.y.copy(), model=model, step=step)

    def advance(self, state, passes):
        f, A, g_star = state.model.f, state.model.A, state.model.g_star
        for _ in range(max(1, round(passes))):
            x = f.prox(state.x - state.step * A.rmatvec(state.y), state.step)
            state.y = g_star.prox(state.y + state.step * A.matvec(2 * x - state.x), state.step)
            state.x = x
            state.passes += 1.0
        return state

    def candidates(self, state):
        return Candidates([(state.x, None)], [(state.y, None)])


def test_a_method_with_three_functions_solves_a_problem(problem):
    result = sb.solve(problem, method=ArrowHurwicz(), tol=1e-6)
    expected = sb.solve(problem, tol=1e-9)
    assert result.status is sb.Status.OPTIMAL
    assert result.method == "ArrowHurwicz"
    assert "passes of ArrowHurwicz" in result.message
    assert result.objective == pytest.approx(expected.objective, rel=2e-6)


def test_an_object_of_the_catalogue_is_the_method_of_that_name(problem):
    options = {"primal_weight": 2.0, "extrapolation": 0.9}
    mine = sb.solve(problem, method=PDHG(**options), max_passes=40)
    named = sb.solve(problem, method="pdhg", max_passes=40, **options)
    assert np.array_equal(mine.x, named.x)
    assert mine.method == named.method == "pdhg"


class InPlace(ArrowHurwicz):
    """The same method, but it changes its arrays after offering them."""

    name = "in-place"

    def advance(self, state, passes):
        x, y = state.x, state.y
        state = super().advance(state, passes)
        x[:], y[:] = state.x, state.y
        state.x, state.y = x, y
        return state


def test_arrays_that_a_method_changes_in_place_do_not_change_the_best_point(problem):
    one, other = (sb.solve(problem, method=m(), max_passes=60) for m in (ArrowHurwicz, InPlace))
    assert np.array_equal(one.x, other.x)
    assert one.certificate == other.certificate


class NoState(ArrowHurwicz):
    def init(self, model, start):
        return start.x


class WrongShape(ArrowHurwicz):
    def init(self, model, start):
        state = super().init(model, start)
        state.y = state.y[:-1]
        return state


class Shrinks(ArrowHurwicz):
    def advance(self, state, passes):
        state = super().advance(state, passes)
        state.x = state.x[:-1]
        return state


class NoWork(ArrowHurwicz):
    def advance(self, state, passes):
        return state


class NoCandidates(ArrowHurwicz):
    def candidates(self, state):
        return state.x, state.y


class NoDual(ArrowHurwicz):
    def candidates(self, state):
        return Candidates([(state.x, None)], [])


class BareVectors(ArrowHurwicz):
    def candidates(self, state):
        return Candidates([state.x], [state.y])


class NotANumber(ArrowHurwicz):
    def candidates(self, state):
        return Candidates([(np.append(np.nan, state.x[1:]), None)], [(state.y, None)])


class InfiniteImage(ArrowHurwicz):
    def candidates(self, state):
        return Candidates([(state.x, None)], [(state.y, np.append(state.x[1:], np.inf))])


class BeginsNowhere(ArrowHurwicz):
    def init(self, model, start):
        state = super().init(model, start)
        state.y[2] = np.nan
        return state


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (NotANumber, "candidates made a primal point with the value nan at entry 0"),
        (InfiniteImage, "candidates made the image of a dual point with the value inf at entry 19"),
        (BeginsNowhere, "init made state.y with the value nan at entry 2"),
    ],
)
def test_numbers_that_are_not_finite_are_named(problem, method, said):
    with pytest.raises(ValueError, match=f"method '{method.__name__}': {said}: expected finite numbers"):
        sb.solve(problem, method=method())


class BlowsUp(ArrowHurwicz):
    def advance(self, state, passes):
        state = super().advance(state, passes)
        state.x = state.x * (np.nan if state.passes > 20 else 1.0)
        return state


def test_a_state_that_becomes_nan_has_diverged(problem):
    result = sb.solve(problem, method=BlowsUp())
    assert result.status is sb.Status.DIVERGED
    assert np.all(np.isfinite(result.x))


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (NoState, "init returned ndarray: expected a State"),
        (WrongShape, r"init made state.y a ndarray of shape \(29,\): expected a float64 array of shape \(30,\)"),
        (Shrinks, r"advance made state.x a ndarray of shape \(19,\)"),
        (NoWork, "advance left state.passes at 0"),
        (NoCandidates, "candidates returned tuple: expected Candidates"),
        (NoDual, "candidates offered no primal or no dual point"),
        (BareVectors, "has a ndarray in primal: expected pairs"),
    ],
)
def test_a_method_that_breaks_the_contract_is_named(problem, method, said):
    with pytest.raises(TypeError, match=f"method '{method.__name__}': .*{said}"):
        sb.solve(problem, method=method())


def test_an_object_that_is_not_a_method_is_named(problem):
    with pytest.raises(TypeError, match="method is of type int: expected a name"):
        sb.solve(problem, method=3)
    with pytest.raises(TypeError, match=r"the class PDHG \(pass an object of it, PDHG\(\)\)"):
        sb.solve(problem, method=PDHG)
    with pytest.raises(TypeError, match="'primal_weight' is not an option of solve or of pdhg"):
        sb.solve(problem, method=PDHG(), primal_weight=2.0)


@pytest.mark.parametrize("option", ["checkpoint", "resume"])
def test_the_state_of_an_unknown_method_is_not_written(problem, tmp_path, option):
    with pytest.raises(TypeError, match="checkpoint and resume with method='ArrowHurwicz'"):
        sb.solve(problem, method=ArrowHurwicz(), **{option: tmp_path / "run.npz"})


def test_without_layers_only_the_method_runs(problem):
    def iterates(**options):
        seen = []
        limits = {"tol": 0, "max_passes": 40, "check_every": 1}
        result = sb.solve(problem, "sp-bcd", callback=lambda info: seen.append(info.current.x), **limits, **options)
        return result, np.array(seen[:20])

    bare, xs = iterates(layers=False)
    _, same = iterates(restarts=False, working_set=False, finish=False)
    _, wrapped = iterates()
    assert bare.method == "sp-bcd"
    assert "restarts" not in bare.settings
    assert np.array_equal(xs, same)
    assert not np.array_equal(xs, wrapped)


def test_without_layers_equal_rows_are_not_merged(rng):
    A, b = np.repeat(rng.standard_normal((10, 8)), 3, axis=0), np.repeat(rng.standard_normal(10), 3)
    rows = []

    class Shape(ArrowHurwicz):
        merges_rows = True

        def init(self, model, start):
            rows.append(model.A.shape[0])
            return super().init(model, start)

    for layers in (True, False):
        sb.solve(sb.Problem(sb.L1(1.0), A, sb.Absolute(b)), method=Shape(), layers=layers, max_passes=5)
    assert rows == [10, 30]


def test_layers_and_their_options_contradict_each_other(problem):
    with pytest.raises(ValueError, match="layers=False leaves finish without a meaning"):
        sb.solve(problem, method="sp-bcd", layers=False, finish=True)
    with pytest.raises(ValueError, match="layers=False leaves finish without a meaning"):
        sb.solve(problem, method="finish", layers=False)
    with pytest.raises(ValueError, match="layers=0: expected True or False"):
        sb.solve(problem, layers=0)


def test_a_callback_receives_the_iterates(problem):
    """``info.current`` has the iterates of PDHG by its formulas, and ``info.x`` the best point so far."""
    seen, best = [], []

    def look(info):
        seen.append(info.current)
        best.append(info.x)

    sb.solve(problem, method=ArrowHurwicz(), tol=0, max_passes=60, check_every=1, callback=look)
    model = problem.model
    state = ArrowHurwicz().init(model, type("Start", (), {"x": np.zeros(20), "y": np.zeros(30)}))
    for iterate in seen:
        np.testing.assert_allclose(iterate.x, state.x, atol=1e-12)
        np.testing.assert_allclose(iterate.y, state.y, atol=1e-12)
        state = ArrowHurwicz().advance(state, 1)
    assert any(not np.array_equal(one.x, other) for one, other in zip(seen, best, strict=True))


def test_iterates_of_a_reduced_problem_have_the_shape_of_the_problem(rng):
    A = rng.standard_normal((12, 5))
    A[:, 2] = 0.0
    shapes = []

    def look(info):
        shapes.append((info.current.x.shape, info.current.y.shape))

    sb.solve(sb.Problem(sb.L1(1.0), A, sb.Absolute(np.ones(12))), "sp-bcd", callback=look, max_passes=30)
    assert set(shapes) == {((5,), (12,))}


def test_the_page_on_methods_runs(capsys):
    names = {}
    for block in python_blocks(Path(ROOT / "docs" / "methods.md").read_text(encoding="utf-8")):
        exec(block, names)
    assert names["result"].status is sb.Status.OPTIMAL
