"""Solves at the same time, in threads and in processes that were forked, do not disturb each other."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import saddleback as sb
from saddleback import _native


def blas_threads() -> set[int]:
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def lasso() -> sb.Problem:
    rng = np.random.default_rng(0)
    return sb.Problem(sb.L1(1.0), rng.standard_normal((400, 900)), sb.Squared(rng.standard_normal(400)))


def test_the_same_bits_in_another_thread():
    problem = lasso()

    def bits() -> bytes:
        return sb.solve(problem, tol=1e-8, threads=1, finish=False).x.tobytes()

    here = bits()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(bits).result() == here


@pytest.mark.parametrize("finish", [False, True])
def test_the_same_bits_while_another_thread_solves(finish):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 450))
    problem = sb.Problem(sb.L1(4.0), X, sb.Absolute(X[:, :5].sum(axis=1) + rng.standard_t(3, 400)))
    method = "finish" if finish else "auto"

    def bits(threads: int) -> bytes:
        options = {} if finish else {"finish": False, "max_passes": 200}
        return sb.solve(problem, method=method, tol=1e-6, threads=threads, **options).x.tobytes()

    alone = bits(1)
    with ThreadPoolExecutor(3) as pool:
        assert set(pool.map(bits, [2, 1, 2, 3, 1, 2])) == {alone}


def test_a_solve_keeps_its_limit_while_others_begin_and_end():
    problem, inside, go_on, seen = lasso(), threading.Event(), threading.Event(), []

    def wait(info: sb.Info) -> None:
        inside.set()
        go_on.wait(30)
        seen.append((_native.thread_limit(), blas_threads()))

    before = blas_threads()
    slow = threading.Thread(target=sb.solve, args=(problem,), kwargs={"callback": wait, "threads": 3})
    slow.start()
    inside.wait(30)
    sb.solve(problem, threads=2, max_passes=1)
    go_on.set()
    slow.join()
    assert set(map(str, seen)) == {str((3, {1}))}
    assert blas_threads() == before


def test_the_limit_of_a_user_is_restored():
    problem, seen = lasso(), []
    with threadpool_limits(2, user_api="blas"):
        found = blas_threads()
        with ThreadPoolExecutor(1) as pool:  # another thread than the one that owns the limit
            pool.submit(sb.solve, problem, callback=lambda info: seen.append(blas_threads())).result()
        assert blas_threads() == found
    assert seen
    assert all(each == {1} for each in seen)


FORKING = """
import os, sys, threading, time
import numpy as np
import saddleback as sb
from threadpoolctl import threadpool_info, threadpool_limits

rng = np.random.default_rng(0)
problem = sb.Problem(sb.L1(2.0), rng.standard_normal((60, 90)), sb.Absolute(rng.standard_normal(60)))
going = True
threadpool_limits(2, user_api="blas")

def solve_on():
    count = 0
    while going:
        count += 1
        sb.solve(problem, threads=1 + count % 4)

def in_child():
    sb.solve(problem, threads=2)
    found = {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}
    os._exit(0 if found <= {2} else 3)

others = [threading.Thread(target=solve_on) for _ in range(3)]
for thread in others:
    thread.start()
for _ in range(12):
    time.sleep(0.01)
    child = os.fork()
    if child == 0:
        in_child()
    end = time.monotonic() + 20
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > end:
            os.kill(child, 9)
            os._exit(4)
        time.sleep(0.01)
    if status:
        os._exit(5)
going = False
for thread in others:
    thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_was_forked_beside_solving_threads_solves():
    quiet = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING]
    assert subprocess.run(quiet, timeout=120, check=False).returncode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_callback_that_forks():
    """Both processes go on with the solve that they are in, and both restore the limits that they found."""
    program = """
import os
import numpy as np
import saddleback as sb
from threadpoolctl import threadpool_info, threadpool_limits

threadpool_limits(2, user_api="blas")
children = []
def fork(info):
    if not children:
        children.append(os.fork())
rng = np.random.default_rng(0)
sb.solve(sb.Problem(sb.L1(2.0), rng.standard_normal((60, 90)), sb.Absolute(rng.standard_normal(60))), callback=fork)
found = {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}
assert found <= {2}, found
if children[0] == 0:
    os._exit(0)
assert os.waitpid(children[0], 0)[1] == 0
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


def quantile(rng: np.random.Generator) -> sb.Problem:
    A = rng.standard_normal((1500, 320))
    return sb.Problem(sb.L1(8.0), A, sb.Pinball(A[:, :8].sum(axis=1) + rng.standard_t(3, 1500), 0.8))


def hinge(rng: np.random.Generator) -> sb.Problem:
    A = rng.standard_normal((500, 420))
    return sb.Problem(sb.L1(2.0), A, sb.Hinge(np.sign(A[:, :20].sum(axis=1) + rng.standard_normal(500))))


def group_hinge(rng: np.random.Generator) -> sb.Problem:
    A = rng.standard_normal((600, 400))
    labels = np.sign(A[:, :20].sum(axis=1) + rng.standard_normal(600))
    return sb.Problem(sb.GroupL2(1.0, [np.arange(a, a + 8) for a in range(0, 400, 8)]), A, sb.Hinge(labels))


def linear_program(rng: np.random.Generator) -> sb.Problem:
    A = rng.standard_normal((300, 700))
    return sb.Problem(sb.Linear(rng.random(700)) + sb.Box(0, np.inf), A, sb.Interval(A @ rng.random(700) - 1.0, np.inf))


def constrained(rng: np.random.Generator) -> sb.Problem:
    """Equality constraints and free variables: the matrix is factored as a whole."""
    A = rng.standard_normal((120, 300))
    return sb.Problem(sb.L1(1.0, weights=np.arange(300) % 3 > 0), A, sb.Equality(A @ (rng.random(300) < 0.1)))


@pytest.mark.parametrize("make", [quantile, hinge, group_hinge, linear_program, constrained])
def test_the_same_bits_at_any_number_of_threads_with_a_finish(make):
    problem = make(np.random.default_rng(0))
    results = [sb.solve(problem, method="finish", tol=1e-7, threads=threads) for threads in (1, 2, 3)]
    assert results[0].status is sb.Status.OPTIMAL
    assert results[0].settings["finish_steps"] > 0
    assert len({result.x.tobytes() + result.y.tobytes() for result in results}) == 1
