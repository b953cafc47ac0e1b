"""The default number of threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import joblib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples

import saddleback as sb
from saddleback.estimators import SparseRegressor, SparseRegressorCV
from saddleback.machine import cpus

V1_MOUNT = "30 25 0:26 {top} {place} rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct"
V2_MOUNT = "29 23 0:26 {top} {place} rw,nosuid,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate"


def machine(folder: Path, cgroup: str, mounts: list[str], files: dict[str, str]) -> Path:
    """Return a folder that imitates /proc and /sys of a machine."""
    everything = {"proc/self/cgroup": cgroup, "proc/self/mountinfo": "\n".join(mounts), **files}
    for name, text in everything.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    return folder


def v1(quota: int, period: int, at: str = "sys/fs/cgroup/cpu") -> dict[str, str]:
    return {f"{at}/cpu.cfs_quota_us": str(quota), f"{at}/cpu.cfs_period_us": str(period)}


V1 = V1_MOUNT.format(top="/", place="/sys/fs/cgroup/cpu")
V2 = V2_MOUNT.format(top="/", place="/sys/fs/cgroup")


@pytest.mark.parametrize(
    ("cgroup", "mounts", "files", "expected"),
    [
        ("0::/", [V2], {"sys/fs/cgroup/cpu.max": "max 100000"}, None),
        ("0::/", [V2], {"sys/fs/cgroup/cpu.max": "200000 100000"}, 2),
        ("0::/", [V2], {"sys/fs/cgroup/cpu.max": "250000 100000"}, 3),
        ("0::/", [V2], {"sys/fs/cgroup/cpu.max": "10000 100000"}, 1),
        ("4:cpu,cpuacct:/\n0::/", [V1], v1(-1, 100000), None),
        ("4:cpu,cpuacct:/\n0::/", [V1], v1(150000, 50000), 3),
        ("4:memory:/\n0::/", [V1], v1(150000, 50000), None),
        # a service inside a slice: the strictest limit counts
        (
            "0::/app.slice/job.service",
            [V2],
            {
                "sys/fs/cgroup/app.slice/cpu.max": "200000 100000",
                "sys/fs/cgroup/app.slice/job.service/cpu.max": "max 1",
            },
            2,
        ),
        (
            "1:cpu:/outer/inner",
            [V1],
            v1(400000, 100000, "sys/fs/cgroup/cpu/outer") | v1(100000, 100000, "sys/fs/cgroup/cpu/outer/inner"),
            1,
        ),
        # a container that sees its own group as the root, under the name that it has on the host
        ("1:cpu:/docker/abc", [V1_MOUNT.format(top="/docker/abc", place="/sys/fs/cgroup/cpu")], v1(100000, 100000), 1),
        # a group outside the mounted part of the hierarchy
        ("0::/../other", [V2], {"sys/fs/cgroup/cpu.max": "300000 100000"}, 3),
        # a mount point with a space in its name
        (
            "0::/",
            [V2_MOUNT.format(top="/", place="/sys/the\\040groups")],
            {"sys/the groups/cpu.max": "100000 50000"},
            2,
        ),
        # both versions, as systemd mounts them for old programs
        (
            "5:cpu:/a\n0::/",
            [V2_MOUNT.format(top="/", place="/sys/unified"), V1],
            v1(100000, 100000, "sys/fs/cgroup/cpu/a"),
            1,
        ),
        ("", [], {}, None),
    ],
)
def test_the_quota_of_a_container(tmp_path, cgroup, mounts, files, expected):
    root = machine(tmp_path, cgroup, mounts, files)
    assert cpus.quota(root) == expected
    assert cpus.available(environ={}, root=root) == min(len(cpus.affine()), expected or 1_000_000)


@examples(30)
@given(cgroup=st.text(), mount=st.text(), quota=st.text())
def test_files_of_another_format_are_ignored(tmp_path_factory, cgroup, mount, quota):
    root = machine(tmp_path_factory.mktemp("root"), cgroup, [mount], {"sys/fs/cgroup/cpu.max": quota})
    assert cpus.quota(root) is None


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, 8),
        ({"OMP_NUM_THREADS": "3"}, 3),
        ({"OPENBLAS_NUM_THREADS": "2"}, 2),
        ({"OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "5"}, 4),
        ({"OMP_NUM_THREADS": "2,4,1"}, 2),
        ({"OMP_NUM_THREADS": "64"}, 8),
        ({"OMP_NUM_THREADS": "0", "OPENBLAS_NUM_THREADS": "-1"}, 8),
        ({"OMP_NUM_THREADS": "many"}, 8),
    ],
)
def test_the_environment(monkeypatch, tmp_path, environ, expected):
    monkeypatch.setattr(cpus, "affine", lambda: set(range(8)))
    assert cpus.available(environ=environ, root=tmp_path) == expected


def test_processes_that_share_their_cpus(monkeypatch, tmp_path):
    monkeypatch.setattr(cpus, "affine", lambda: set(range(8)))
    root = machine(tmp_path, "0::/", [V2], {"sys/fs/cgroup/cpu.max": "600000 100000"})
    assert cpus.available(2, environ={}, root=root) == 3
    assert cpus.available(2, environ={"OMP_NUM_THREADS": "2"}, root=root) == 2  # one value per process
    assert cpus.available(16, environ={}, root=root) == 1


def _count() -> int:
    return cpus.available(environ={})


def test_a_thread_of_joblib_has_one(monkeypatch):
    monkeypatch.setattr(cpus, "affine", lambda: set(range(8)))
    assert cpus.available(environ={}) == 8
    found = joblib.Parallel(n_jobs=2, backend="threading")(joblib.delayed(_count)() for _ in range(4))
    assert found == [1] * 4
    assert joblib.Parallel(n_jobs=1)(joblib.delayed(_count)() for _ in range(2)) == [8, 8]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs a system with affinity")
def test_affinity_joblib_and_the_environment_reach_a_solve():
    """A callback in a fresh process reads the thread limit of its solve."""
    program = """
import os, joblib, numpy as np, saddleback as sb
from saddleback import _native

def seen(**options):
    found = []
    note = lambda info: found.append(_native.thread_limit())
    sb.solve(sb.Problem(sb.L1(0.1), np.eye(3), sb.Squared(np.ones(3))), callback=note, **options)
    return found[0]

everything = len(os.sched_getaffinity(0))
assert seen() == everything, seen()
assert seen(threads=7) == 7
assert joblib.Parallel(n_jobs=2)(joblib.delayed(seen)() for _ in range(2)) == [max(1, everything // 2)] * 2
os.environ["OPENBLAS_NUM_THREADS"] = "1"
assert seen() == 1
del os.environ["OPENBLAS_NUM_THREADS"]
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
assert seen() == 1
"""
    environ = {name: value for name, value in os.environ.items() if name not in cpus.VARIABLES}
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120, env=environ)


@pytest.mark.parametrize(("n_jobs", "expected"), [(None, 8), (1, 1), (3, 3), (-1, 8), (-3, 6), (-20, 1)])
def test_n_jobs_of_an_estimator(monkeypatch, n_jobs, expected):
    monkeypatch.setattr(cpus, "affine", lambda: set(range(8)))
    for name in cpus.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(cpus, "quota", lambda root: None)
    seen, solve = [], sb.solve

    def noting(problem: sb.Problem, **options: object) -> sb.Result:
        seen.append(options["threads"])
        return solve(problem, **options)

    monkeypatch.setattr(sb, "solve", noting)
    SparseRegressor(alpha=0.1, n_jobs=n_jobs).fit([[1.0], [2.0], [4.0]], [1.0, 2.0, 3.0])
    assert (seen[0] or cpus.available()) == expected


@pytest.mark.parametrize("n_jobs", [0, 10**6, 2.5, "all"])
@pytest.mark.parametrize("model", [SparseRegressor, SparseRegressorCV])
def test_an_error_for_n_jobs_out_of_range_names_n_jobs(model, n_jobs):
    with pytest.raises(ValueError, match=rf"^n_jobs={n_jobs!r}: expected None, a number from 1 to 1024, or -1"):
        model(n_jobs=n_jobs).fit([[1.0], [2.0], [4.0]], [1.0, 2.0, 3.0])
