"""``solve``: how it stops, what it returns, and that the same seed gives the same bits."""

from __future__ import annotations

import json
import pickle
import signal
import threading
import time
from importlib import import_module

import numpy as np
import pytest
from scipy import sparse

import saddleback as sb


@pytest.fixture
def lasso(rng):
    A = rng.standard_normal((40, 60))
    return sb.Problem(sb.L1(2.0), A, sb.Squared(A[:, :4].sum(axis=1) + 0.1 * rng.standard_normal(40)))


@pytest.fixture
def hard(rng):
    """A quantile regression that takes thousands of passes."""
    A = rng.standard_normal((200, 60))
    return sb.Problem(sb.L1(0.5), A, sb.Pinball(rng.standard_normal(200), 0.3))


@pytest.mark.parametrize("method", ["auto", "descent", "sp-bcd", "pdhg"])
def test_optimal_means_certified(lasso, method):
    result = sb.solve(lasso, method=method)
    assert result.status is sb.Status.OPTIMAL
    assert result.relative_gap <= 1e-6
    again = sb.certify(lasso, result.x, result.y)
    for name, value in result.certificate.to_dict().items():
        assert getattr(again, name) == pytest.approx(value, rel=1e-9, abs=1e-12)
    assert result.method == ("descent" if method == "auto" else method)


def test_history_is_in_order_and_the_gap_never_grows(hard):
    history = sb.solve(hard, max_passes=300).history
    assert np.all(np.diff(history.passes) > 0)
    assert np.all(np.diff(history.seconds) >= 0)
    assert np.all(np.diff(history.relative_gap[:-1]) <= 0)
    assert history.relative_gap[-1] <= 1e-6  # moved to its kinks, within the tolerance
    assert len(history) == history.primal_value.size == history.dual_value.size
    assert np.all(history.dual_value <= history.primal_value + 1e-12)


def test_pass_limit(hard):
    result = sb.solve(hard, method="sp-bcd", finish=False, max_passes=50)  # a step of the finish is many passes
    assert result.status is sb.Status.MAX_PASSES
    assert 50 <= result.passes < 60
    assert "Raise max_passes" in result.message
    assert f"{result.relative_gap:.1e}" in result.message


def test_zero_tolerance_runs_to_the_limit(lasso):
    assert sb.solve(lasso, tol=0, max_passes=400).status is sb.Status.MAX_PASSES


def test_time_limit(hard):
    result = sb.solve(hard, tol=0, max_passes=1e9, time_limit=0.3)
    assert result.status is sb.Status.TIME_LIMIT
    assert 0.3 <= result.seconds < 3


def test_callback_sees_every_certificate_and_stops(hard):
    seen = []

    def callback(info):
        seen.append(info)
        return len(seen) == 3

    result = sb.solve(hard, method="sp-bcd", finish=False, callback=callback)
    assert result.status is sb.Status.INTERRUPTED
    assert len(seen) == len(result.history) == 3
    seen_values, values = ((c.primal_value, c.dual_value) for c in (seen[-1].certificate, result.certificate))
    assert seen_values == pytest.approx(values, rel=1e-11)  # the last one has its own product A x
    assert np.array_equal(seen[-1].x, result.x)


def test_certificates_have_the_chosen_frequency_and_their_work_is_counted(hard):
    infos = []
    sb.solve(hard, "pdhg", tol=0, max_passes=100, check_every=2, callback=infos.append)
    own = np.array([info.passes - info.judging_passes for info in infos])
    np.testing.assert_allclose(np.diff(own)[:-1], 2.0)
    assert infos[-1].passes > own[-1] + 5
    assert all(info.seconds >= info.judging_seconds > 0 for info in infos)
    with pytest.raises(ValueError, match="check_every=0: expected a finite number above 0"):
        sb.solve(hard, check_every=0)


def test_callback_that_returns_nothing_does_not_stop(lasso):
    assert sb.solve(lasso, callback=lambda info: None).status is sb.Status.OPTIMAL


@pytest.mark.not_on("mpi", reason="it is for the first signal that comes; test_mpi.py has one for all")
def test_ctrl_c_returns_the_best_point(hard):
    before = signal.getsignal(signal.SIGINT)
    timer = threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    try:
        result = sb.solve(hard, tol=0, max_passes=1e9, time_limit=30)
    finally:  # if a backend rejects the problem, the signal must not end the next test
        timer.cancel()
    timer.join()
    assert result.status is sb.Status.INTERRUPTED
    assert result.seconds < 10
    assert np.isfinite(result.certificate.primal_value)
    assert sb.certify(hard, result.x, result.y).relative_gap == pytest.approx(result.relative_gap)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_warm_start_continues_from_the_given_point(hard):
    cold = sb.solve(hard, tol=1e-5, max_passes=1e5)
    warm = sb.solve(hard, tol=1e-5, max_passes=1e5, x0=cold.x, y0=cold.y)
    assert cold.status is warm.status is sb.Status.OPTIMAL
    assert len(warm.history) == 1
    assert warm.passes < 0.2 * cold.passes


def test_warm_start_does_not_change_its_input(lasso):
    x0, y0 = np.ones(60), np.ones(40)
    x0.flags.writeable = y0.flags.writeable = False
    sb.solve(lasso, x0=x0, y0=y0)
    assert np.all(x0 == 1)
    assert np.all(y0 == 1)


@pytest.mark.not_on("numpy", reason="it has no threads of its own")
@pytest.mark.parametrize(
    "make",
    [
        np.asfortranarray,
        pytest.param(sparse.csc_matrix, marks=pytest.mark.not_on("cuda", reason="CUDA adds in no fixed order there")),
    ],
)
def test_same_bits_at_any_thread_count(make, rng):
    """The sizes are large enough for kernels to use several lanes."""
    A = rng.standard_normal((600, 3000)) * (rng.random((600, 3000)) < 0.5)
    problem = sb.Problem(sb.L1(20.0), make(A), sb.Squared(A[:, :20].sum(axis=1)))
    results = [sb.solve(problem, threads=threads, max_passes=60, tol=0) for threads in (1, 2, 3)]
    for other in results[1:]:
        assert np.array_equal(results[0].x, other.x)
        assert np.array_equal(results[0].y, other.y)
        assert results[0].certificate == other.certificate
        assert np.array_equal(results[0].history.relative_gap, other.history.relative_gap)


@pytest.mark.parametrize("K", [1, 2])
def test_the_clock_does_not_change_the_result(K, monkeypatch, rng):
    """The slices after which a solve checks the clock do not depend on it, so that bits do not depend on speed."""
    A = sparse.random(300, 100, 0.02, "csc", rng=rng)
    problem = sb.Problem(sb.L1(0.01), A, sb.Absolute(rng.standard_normal(300)))
    clock = time.perf_counter
    results = []
    for speed in (1.0, 1e3, 1e6):
        monkeypatch.setattr(time, "perf_counter", lambda speed=speed: speed * clock())
        results.append(sb.solve(problem, blocks_per_iteration=K, max_passes=100, tol=0))
    for result in results[1:]:
        assert result.passes == results[0].passes
        assert result.x.tobytes() == results[0].x.tobytes()
        assert result.y.tobytes() == results[0].y.tobytes()


def test_same_seed_same_bits_other_seed_other_draws(hard):
    first, second, other = (sb.solve(hard, method="sp-bcd", seed=s, max_passes=40, tol=0) for s in (1, 1, 2))
    assert np.array_equal(first.x, second.x)
    assert not np.array_equal(first.x, other.x)


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_mapped_and_read_only_data(tmp_path, order, rng):
    A = np.asarray(rng.standard_normal((50, 30)), order=order)
    np.save(tmp_path / "A.npy", A)
    mapped = np.load(tmp_path / "A.npy", mmap_mode="r")
    b = rng.standard_normal(50)
    ours = sb.solve(sb.Problem(sb.L1(1.0), mapped, sb.Squared(b)))
    plain = sb.solve(sb.Problem(sb.L1(1.0), A, sb.Squared(b)))
    assert ours.status is sb.Status.OPTIMAL
    assert np.array_equal(ours.x, plain.x)
    assert np.array_equal(np.load(tmp_path / "A.npy"), A)


def test_float32_data_is_certified_in_float64(rng):
    A = rng.standard_normal((50, 30)).astype(np.float32)
    b = rng.standard_normal(50)
    single = sb.solve(sb.Problem(sb.L1(1.0), A, sb.Squared(b)), tol=1e-10)
    double = sb.solve(sb.Problem(sb.L1(1.0), A.astype(float), sb.Squared(b)), tol=1e-10)
    assert single.status is sb.Status.OPTIMAL
    assert single.certificate.primal_value == pytest.approx(double.certificate.primal_value, rel=1e-9)


def test_result_pickles_and_becomes_json(lasso):
    result = sb.solve(lasso)
    copy = pickle.loads(pickle.dumps(result))
    assert np.array_equal(copy.x, result.x)
    assert copy.certificate == result.certificate
    assert copy.status is result.status
    data = json.loads(json.dumps(result.to_dict()))
    assert data["status"] == "OPTIMAL"
    assert data["certificate"]["relative_gap"] == result.relative_gap
    assert len(data["history"]["passes"]) == len(result.history)


def test_plot_draws_the_error(lasso):
    import matplotlib as mpl

    mpl.use("Agg")
    result = sb.solve(lasso)
    axes = result.plot()
    assert [axis.get_xlabel() for axis in axes] == ["work (passes over the columns)", "time (seconds)"]
    assert np.allclose(axes[0].lines[0].get_ydata(), np.maximum(result.history.error, 1e-16))
    assert result.plot(axes) is axes


def test_plot_takes_one_axis_and_a_label(lasso):
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib.figure import Figure

    axis = Figure().subplots()
    result = sb.solve(lasso)
    assert result.plot(axis, label="mine") is axis
    assert result.plot(ax=axis, label="again") is axis
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["mine", "again"]
    for wrong in ([axis] * 3, [], [[axis]]):
        with pytest.raises(ValueError, match=r"ax=.*: expected one matplotlib axis, or up to 2 of them"):
            result.plot(ax=wrong)


def test_plot_does_not_show_an_infeasible_start_as_solved(rng):
    """At the start of this linear program the gap is 0, although the point is far from feasible."""
    A, x = rng.standard_normal((20, 30)), rng.random(30)
    problem = sb.Problem(sb.Linear(np.zeros(30)) + sb.NonNegative(), A, sb.Equality(A @ x))
    axes = sb.solve(problem, method="pdhg", max_passes=50).plot()
    assert axes[0].lines[0].get_ydata()[0] > 1e-2


def test_plot_marks_where_the_finish_begins(rng):
    A, b = rng.standard_normal((300, 30)), rng.standard_normal(300)
    result = sb.solve(sb.Problem(sb.L1(1.0), A, sb.Absolute(b)), "sp-bcd", tol=1e-8)
    assert result.method == "sp-bcd + finish"
    mark = result.plot()[0].lines[1]
    assert mark.get_xdata()[0] == result.history.finish_begins


@pytest.mark.not_on("mpi", reason="the first process shows it for all")
def test_progress_bar_shows_the_objective(lasso, capsys):
    result = sb.solve(lasso, progress=True)
    assert f"{result.certificate.primal_value:.8g}" in capsys.readouterr().err


def test_penalty_above_alpha_max_needs_no_iteration(rng):
    A, b = rng.standard_normal((20, 10)), rng.standard_normal(20)
    result = sb.solve(sb.Problem(sb.L1(1.001 * np.abs(A.T @ b).max()), A, sb.Squared(b)), tol=1e-12)
    assert result.status is sb.Status.OPTIMAL
    assert len(result.history) == 1
    assert np.all(result.x == 0)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"method": "sp-bdc"}, ValueError, "did you mean 'sp-bcd'"),
        ({"backand": "numpy"}, TypeError, "did you mean 'backend'"),
        ({"max_pass": 3}, TypeError, r"did you mean 'max_passes'\?\): solve has method, tol, max_passes"),
        ({"method": "pdhg", "step": "l1"}, TypeError, "not an option"),
        ({"backend": "cuda"}, ValueError, "backend='cuda'"),
        ({"blocks_per_iteration": 0}, ValueError, "1 to 60"),
        ({"blocks_per_iteration": 61}, ValueError, "1 to 60"),
        ({"blocks_per_iteration": 1.5}, TypeError, "1 to 60"),
        ({"method": "pdhg", "blocks_per_iteration": 3}, ValueError, "all 60 blocks"),
        ({"method": "sp-bcd-published", "sigma_rule": "mean"}, ValueError, "'literal' or 'skip'"),
        ({"tol": -1}, ValueError, "tol=-1"),
        ({"tol": np.nan}, ValueError, "tol=nan"),
        ({"max_passes": 0}, ValueError, "max_passes=0"),
        ({"time_limit": 0}, ValueError, "time_limit=0"),
        ({"seed": -1}, ValueError, "seed=-1"),
        ({"threads": 0}, ValueError, "threads=0"),
        ({"x0": np.zeros(3)}, ValueError, "x0 has shape"),
        ({"y0": np.full(40, np.nan)}, ValueError, "y0 has entries"),
        ({"x0": np.zeros(60, dtype=complex)}, TypeError, "x0 has dtype"),
        ({"x0": [np.zeros(59), 1.0]}, ValueError, r"x0 is a list that makes no array: expected shape \(60,\)"),
    ],
)
def test_bad_arguments(lasso, options, error, match):
    with pytest.raises(error, match=match):
        sb.solve(lasso, **options)


def test_solve_needs_a_problem():
    with pytest.raises(TypeError, match="expected a saddleback"):
        sb.solve("lasso")


def test_methods_are_listed(lasso):
    assert {"auto", "sp-bcd", "sp-bcd-published", "pdhg"} <= set(sb.methods())


def test_version():
    assert sb.__version__.count(".") == 2


def test_overlapping_solves_restore_the_number_of_threads(lasso):
    from saddleback import _native

    before = _native.set_threads(2)
    inside, go_on = threading.Event(), threading.Event()

    def wait(info):
        inside.set()
        go_on.wait(10)

    other = threading.Thread(target=sb.solve, args=(lasso,), kwargs={"callback": wait, "threads": 1})
    other.start()
    inside.wait(10)
    sb.solve(lasso, threads=1)
    go_on.set()
    other.join()
    assert _native.set_threads(before) == 2


@pytest.mark.parametrize("options", [{"tol": "1e-3"}, {"max_passes": None}, {"time_limit": "1"}, {"callback": 3}])
def test_arguments_of_the_wrong_type_are_named(lasso, options):
    with pytest.raises(TypeError, match=next(iter(options))):
        sb.solve(lasso, **options)


def test_a_run_that_diverges_before_its_first_certificate(rng, device, monkeypatch):
    monkeypatch.setattr(import_module("saddleback.methods.contract"), "HUGE", 0.01)
    X = rng.standard_normal((8, 6))
    result = sb.solve(sb.Problem(sb.L1(0.1), sb.Identity(), sb.Squared(X)), device=device)
    assert result.status is sb.Status.DIVERGED
    assert np.all(result.x == 0)
    assert result.certificate.primal_value == pytest.approx(0.5 * np.sum(X**2))


@pytest.mark.parametrize("scale", [1e-30, 1e30, 1e100])
@pytest.mark.parametrize("method", ["auto", "sp-bcd", "pdhg"])
def test_large_data_do_not_diverge(rng, method, scale):
    A, b = rng.standard_normal((30, 10)), rng.standard_normal(30)
    expected = sb.solve(sb.Problem(sb.L1(1.0), A, sb.Squared(b)), tol=1e-8).x
    targets = sb.solve(sb.Problem(sb.L1(scale), A, sb.Squared(scale * b)), method, tol=1e-6)
    assert targets.status is sb.Status.OPTIMAL
    np.testing.assert_allclose(targets.x / scale, expected, atol=1e-3)
    entries = sb.solve(sb.Problem(sb.L1(1.0 / scale), A / scale, sb.Absolute(b)), method, max_passes=1000)
    assert entries.status is not sb.Status.DIVERGED


def test_a_certificate_that_is_not_a_number_proves_nothing():
    certificate = sb.Certificate(1.0, 1.0, 0.0, 0.0, float("nan"), 0.0)
    assert certificate.error == np.inf


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_second_solve_of_a_problem_has_the_same_bits(order, rng):
    """Properties that the first solve caches in the problem must not depend on the layout of A."""
    penalty, A = sb.L1(0.1) + sb.NonNegative(), rng.standard_normal((30, 40)).copy(order)
    problem = sb.Problem(penalty, A, sb.Absolute(rng.standard_normal(30)))
    first, second = sb.solve(problem, finish=True), sb.solve(problem, finish=True)
    assert first.passes == second.passes
    assert np.array_equal(first.x, second.x)
    assert np.array_equal(first.y, second.y)
