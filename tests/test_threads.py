"""Simultaneous solves, in threads and in forked processes, do not disturb each other."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

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


@pytest.mark.parametrize("method", ["auto", "sp-bcd", "finish"])
def test_the_same_bits_while_another_thread_solves(method):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 450))
    problem = sb.Problem(sb.L1(4.0), X, sb.Absolute(X[:, :5].sum(axis=1) + rng.standard_t(3, 400)))

    def bits(threads: int) -> bytes:
        options = {} if method == "finish" else {"finish": False, "max_passes": 200}
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
        with ThreadPoolExecutor(1) as pool:  # a thread that does not own the limit
            pool.submit(sb.solve, problem, callback=lambda info: seen.append(blas_threads())).result()
        assert blas_threads() == found
    assert seen
    assert all(each == {1} for each in seen)


needs_tasks = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs the list of threads of Linux")


@needs_tasks
def test_solves_with_different_limits_share_their_threads():
    """In a fresh process, the pool is as large as the largest limit, also if two solves run at once."""
    program = """
import os
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import saddleback as sb

rng = np.random.default_rng(0)
problem = sb.Problem(sb.L1(0.5), rng.standard_normal((400, 300)), sb.Absolute(rng.standard_normal(400)))

def count():
    return len(os.listdir("/proc/self/task"))

def bits(threads):
    return sb.solve(problem, threads=threads, max_passes=50, finish=False).x.tobytes()

found = {bits(1)}
before = count()
for threads in (3, 2, *range(2, 9), 2, 5):
    found.add(bits(threads))
    assert before < count(), count()
assert count() == before + 7, (before, count())
with ThreadPoolExecutor(2) as pool:
    found |= set(pool.map(bits, [2, 8, 3, 7, 4, 6, 5, 2]))
    assert count() <= before + 7 + 2, (before, count())
assert len(found) == 1
"""
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}  # computations outside the solves have no helpers
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, env=environ)


@needs_tasks
def test_a_solve_wakes_no_more_helpers_than_its_limit_allows():
    """In a fresh process, a solve with a smaller limit does not wake the other workers of the pool."""
    program = """
import time
from pathlib import Path
import numpy as np
import saddleback as sb

rng = np.random.default_rng(0)
problem = sb.Problem(sb.L1(0.5), rng.standard_normal((400, 300)), sb.Absolute(rng.standard_normal(400)))

def solve(threads):
    sb.solve(problem, threads=threads, max_passes=50, finish=False)
    time.sleep(0.1)  # until all workers sleep

def pauses():
    lines = {task.name: (task / "status").read_text().splitlines() for task in Path("/proc/self/task").iterdir()}
    return {(name, line) for name in lines for line in lines[name] if "ctxt_switches" in line}

def woken(threads):
    before = pauses()
    solve(threads)
    return len({name for name, _ in pauses() - before})

solve(6)
assert 1 < woken(6) <= 6
for threads in (1, 2, 3):
    solve(threads)  # the workers that are not needed go where they are left alone
    assert woken(threads) <= threads, (threads, woken(threads))
assert 3 < woken(6) <= 6
"""
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, env=environ)


@pytest.mark.parametrize("threads", [1025, 10**6, 2**31, 10**30, -1, 2.0])
def test_an_invalid_number_of_threads_is_rejected(threads):
    problem = lasso()
    with pytest.raises(ValueError, match=r"threads=.*: expected None or an integer from 1 to 1024"):
        sb.solve(problem, threads=threads)
    with pytest.raises(ValueError, match=r"threads=.*: expected None or an integer from 1 to 1024"):
        sb.path(sb.L1(1.0), problem.A, sb.Squared(np.ones(400)), threads=threads)


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
def test_a_child_that_was_forked_during_other_solves_can_solve():
    quiet = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING]
    assert subprocess.run(quiet, timeout=120, check=False).returncode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_callback_that_forks():
    """Both processes continue the current solve, and both restore the thread limits."""
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
    """Return a problem with equality constraints and free variables, for which the whole matrix is factored."""
    A = rng.standard_normal((120, 300))
    return sb.Problem(sb.L1(1.0, weights=np.arange(300) % 3 > 0), A, sb.Equality(A @ (rng.random(300) < 0.1)))


@pytest.mark.parametrize("make", [quantile, hinge, group_hinge, linear_program, constrained])
def test_the_same_bits_at_any_number_of_threads_with_a_finish(make):
    problem = make(np.random.default_rng(0))
    results = [sb.solve(problem, method="finish", tol=1e-7, threads=threads) for threads in (1, 2, 3)]
    assert results[0].status is sb.Status.OPTIMAL
    assert results[0].settings["finish_steps"] > 0
    assert len({result.x.tobytes() + result.y.tobytes() for result in results}) == 1
