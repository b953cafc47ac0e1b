"""Ctrl-C: a solve returns its best point, and no interrupt is lost, whenever it comes."""

from __future__ import annotations

import signal
import threading
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import saddleback as sb
import saddleback.estimators as se
from saddleback.engine.interrupts import Interrupts
from saddleback.engine.session import Session
from saddleback.places.mpi.communicator import SERIAL

pytestmark = pytest.mark.not_on("mpi", reason="it is for the first signal that comes; test_mpi.py has one for all")

TOL = 1e-6


@pytest.fixture(autouse=True)
def restored(monkeypatch):
    """Clear signals after each test, and check that the handler is the same as before."""
    monkeypatch.setattr(Interrupts, "_last", -float("inf"))
    before = signal.getsignal(signal.SIGINT)
    yield
    assert signal.getsignal(signal.SIGINT) is before


def press() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.fixture
def data(rng):
    A = rng.standard_normal((30, 50))
    return A, A[:, :3].sum(axis=1) + 0.1 * rng.standard_normal(30)


@pytest.fixture
def lasso(data):
    return sb.Problem(sb.L1(1.0), data[0], sb.Squared(data[1]))


def at_the_end(info: sb.Info) -> None:
    """Press Ctrl-C when the solve is about to end by itself."""
    if info.certificate.error <= TOL:
        press()


def test_ctrl_c_in_the_last_slice_is_reported(lasso):
    result = sb.solve(lasso, tol=TOL, callback=at_the_end)
    assert result.status is sb.Status.INTERRUPTED
    assert result.certificate.error <= TOL
    assert sb.Status.OPTIMAL.value in result.message
    assert np.array_equal(result.x, sb.solve(lasso, tol=TOL).x)


def test_ctrl_c_at_a_limit_or_during_a_proof_is_reported(lasso):
    assert sb.solve(lasso, tol=0, max_passes=5, callback=lambda info: press()).status is sb.Status.INTERRUPTED
    Interrupts._last = -float("inf")
    empty = sb.Problem(sb.Box(0.0, 1.0), np.eye(2), sb.Equality([5.0, 5.0]))

    def once(info: sb.Info, pressed: list[Any] = []) -> None:  # noqa: B006
        if not pressed:
            pressed.append(press())

    assert sb.solve(empty, callback=once).status is sb.Status.INTERRUPTED


def test_a_path_ends_with_a_solve_that_was_about_to_end(data):
    results = sb.path(sb.L1(1.0), data[0], sb.Squared(data[1]), n_alphas=5, tol=TOL, callback=at_the_end)
    assert [result.status for result in results] == [sb.Status.INTERRUPTED]


def test_a_path_that_is_interrupted_between_two_solves_keeps_its_results(data, monkeypatch):
    module = import_module("saddleback.paths.path")
    start = module._start

    def pressed(*args: Any) -> Any:
        if len(args[0]) == 2:
            press()
        return start(*args)

    monkeypatch.setattr(module, "_start", pressed)
    results = sb.path(sb.L1(1.0), data[0], sb.Squared(data[1]), n_alphas=6, tol=TOL)
    assert [result.status.name for result in results] == ["OPTIMAL", "OPTIMAL", "INTERRUPTED"]


@pytest.mark.parametrize("at", [3, 7])
def test_cross_validation_ends_with_a_solve_that_was_about_to_end(at, data, monkeypatch):
    """This holds in the path over all rows, and in the path of a fold."""
    calls = []

    class Pressed(Session):
        def solve(self, *args: Any, **told: Any) -> sb.Result:
            calls.append(None)
            self.options = replace(self.options, callback=lambda info: press() if len(calls) == at else None)
            return super().solve(*args, **told)

    monkeypatch.setattr(import_module("saddleback.paths.path"), "Session", Pressed)
    with pytest.raises(KeyboardInterrupt):
        se.LassoCV(n_alphas=4, cv=2).fit(*data)
    assert len(calls) == at


def test_a_loop_over_short_solves_can_be_left(lasso):
    """Each Ctrl-C comes during another solve, and the loop ignores the status of the solves."""

    def loop() -> None:
        for _ in range(50):
            sb.solve(lasso, tol=TOL, callback=at_the_end)

    with pytest.raises(KeyboardInterrupt):
        loop()


def test_ctrl_c_twice_raises_at_once(lasso):
    def twice(info: sb.Info) -> None:
        press()
        press()

    with pytest.raises(KeyboardInterrupt):
        sb.solve(lasso, callback=twice)


def test_an_interrupt_that_no_solve_has_handled_is_raised():
    with pytest.raises(KeyboardInterrupt), Interrupts(SERIAL):
        press()
    Interrupts._last = -float("inf")
    with Interrupts(SERIAL) as outer:
        press()
        assert outer.requested
        with Interrupts(SERIAL) as inner:
            assert inner.requested


def test_an_error_is_not_hidden_by_ctrl_c(lasso):
    def fail(info: sb.Info) -> None:
        press()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        sb.solve(lasso, callback=fail)


def test_other_threads_and_handlers_are_not_changed(lasso):
    found: list[sb.Result] = []
    thread = threading.Thread(target=lambda: found.append(sb.solve(lasso)))
    thread.start()
    thread.join()
    assert found[0].status is sb.Status.OPTIMAL
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        result = sb.solve(lasso, tol=TOL, callback=at_the_end)
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.status is sb.Status.OPTIMAL
    assert heard
