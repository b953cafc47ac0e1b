"""The benchmark: its protocol with simulated libraries, its certificates, one real comparison, and its document."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog
from typer.testing import CliRunner

import saddleback as sb
from saddleback.bench import data, machine, report, runner
from saddleback.bench.case import Case, Instance, Settings
from saddleback.bench.cases import CASES
from saddleback.bench.climbing import Attempt, climb, ladder
from saddleback.bench.growth import slope
from saddleback.bench.judging import Judge, problem_of
from saddleback.bench.process import Failed, Process, TimedOut
from saddleback.bench.race import Field, ratio, run_case, too_slow
from saddleback.bench.worker.linear_programs import dual_program, primal_program
from saddleback.bench.worker.peers import PEERS
from saddleback.bench.worker.task import Task
from saddleback.cli import app
from saddleback.datasets import make_group_hinge

TINY = {"m": 40, "n": 80, "nonzeros": 8}
TINY_SPARSE = {"m": 60, "n": 90, "nonzeros": 8, "column_entries": 5}

GENERATORS = {
    "lasso": lambda: data.lasso(0, **TINY),
    "correlated": lambda: data.correlated_lasso(0, **TINY, correlation=0.5),
    "sparse": lambda: data.sparse_lasso(0, m=60, n=90, column_entries=5, nonzeros=8),
    "group": lambda: data.group_lasso(0, m=40, n=60, group_size=5, nonzero_groups=3),
    "quantile": lambda: data.quantile(0, m=80, n=10, nonzeros=3, quantile=0.75, alpha=0.02, intercept=True),
    "absolute": lambda: data.two_slopes(0, kind="absolute", ratio=0.1, **TINY),
    "hinge": lambda: data.two_slopes(0, kind="hinge", ratio=0.1, **TINY),
    "pinball": lambda: data.two_slopes(0, kind="quantile", ratio=0.1, **TINY_SPARSE, quantile=0.8),
    "squared-hinge": lambda: data.two_slopes(0, kind="squared-hinge", ratio=0.1, **TINY_SPARSE),
    "svm": lambda: svm("svm", intercept=False),
    "svm-intercept": lambda: svm("svm-intercept", intercept=True),
}
KINKED = ("absolute", "hinge", "pinball", "quantile")


def svm(kind, intercept):
    task = data.two_slopes(0, kind="hinge", ratio=0.1, **TINY)
    A = np.asfortranarray(np.hstack([4 * task["A"], np.ones((task.shape[0], 1))]))
    return Task(kind, {"A": A, "labels": task["labels"], "alpha": 0.5, "intercept": intercept})


# --- the ladder -------------------------------------------------------------------------------------------------------


def test_the_ladder_goes_down_in_half_decades():
    assert ladder(1e-4) == [1e-2, 3e-3, 1e-3, 3e-4, 1e-4]


class Fake:
    """A library whose error is its tolerance times a factor, and whose solves take a second."""

    def __init__(self, factor):
        self.factor = factor
        self.asked = []

    def __call__(self, tolerance):
        self.asked.append(tolerance)
        return Attempt(tolerance, 1.0, self.factor * tolerance)


@pytest.mark.parametrize("start", range(9))
@pytest.mark.parametrize(("factor", "expected"), [(1e-9, 1e-2), (1.0, 1e-4), (30.0, 3e-6), (90.0, 1e-6)])
def test_the_loosest_tolerance_that_reaches_the_target_wins_from_any_start(factor, expected, start):
    made, outcome = climb(Fake(factor), ladder(1e-6), 1e-4, start)
    assert outcome == "reached"
    assert made.tolerance == expected


@pytest.mark.parametrize(("factor", "asked"), [(1e-3, [1e-2]), (300.0, [1e-2, 3e-7]), (1e9, [1e-2, 1e-12])])
def test_jumps_leave_out_tolerances_that_would_miss_the_target(factor, asked):
    fake = Fake(factor)
    _, outcome = climb(fake, ladder(1e-12), 1e-4, jumps=True)
    assert outcome == ("reached" if factor < 1e9 else "not reached")
    assert fake.asked == asked


def test_an_answer_without_a_bound_is_followed_by_the_next_tolerance():
    fake = Fake(np.inf)
    climb(fake, ladder(1e-4), 1e-4, jumps=True)
    assert fake.asked == ladder(1e-4)


def test_a_library_that_never_reaches_the_target_shows_its_best():
    errors = iter([3.0, 1.0, 2.0])
    made, outcome = climb(lambda tolerance: Attempt(tolerance, 1.0, next(errors)), [1e-2, 3e-3, 1e-3], 1e-4)
    assert outcome == "not reached"
    assert made == Attempt(3e-3, 1.0, 1.0)


def test_the_ladder_stops_after_its_time_limit():
    fake = Fake(1e9)
    _, outcome = climb(fake, ladder(1e-12), 1e-4, patience=2.5)
    assert outcome == "not in time"
    assert len(fake.asked) == 3


# --- tasks and certificates -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GENERATORS)
def test_a_task_is_read_back_from_its_folder(name, tmp_path):
    task = GENERATORS[name]()
    task.save(tmp_path)
    again = Task.load(tmp_path)
    assert again.kind == task.kind
    assert set(again.values) == set(task.values)
    for key, value in task.values.items():
        if sparse.issparse(value):
            assert again[key].indices.dtype == np.int32
            assert (again[key] != value).nnz == 0
        else:
            np.testing.assert_array_equal(again[key], value)
    if not sparse.issparse(task["A"]):
        assert again["A"].flags.f_contiguous


@pytest.mark.parametrize("name", [name for name in GENERATORS if name not in ("quantile", "svm", "svm-intercept")])
def test_alpha_is_a_tenth_of_alpha_max(name):
    task = GENERATORS[name]()
    m, n = task.shape
    y = problem_of(task).model.g.subgradient(np.zeros(m))

    def error(factor):
        return sb.certify(problem_of(Task(task.kind, {**task.values, "alpha": factor * task["alpha"]})), np.zeros(n), y)

    assert error(10 + 1e-9).relative_gap < 1e-8
    assert error(9).relative_gap > 1e-4


def test_correlated_columns_correlate():
    A = data.correlated_lasso(0, m=2000, n=5, nonzeros=1, correlation=0.9)["A"]
    np.testing.assert_allclose(np.linalg.norm(A, axis=0), 1.0)
    correlations = np.corrcoef(A.T)[np.triu_indices(5, 1)]
    np.testing.assert_allclose(correlations, 0.9, atol=0.03)


def test_a_sparse_matrix_has_sorted_entries_and_columns_of_norm_1():
    A = data.sparse_lasso(0, m=60, n=90, column_entries=7, nonzeros=8)["A"]
    assert A.has_canonical_format
    assert np.all(np.diff(A.indptr) == 7)
    np.testing.assert_allclose(sparse.linalg.norm(A, axis=0), 1.0)


@pytest.mark.parametrize("name", GENERATORS)
def test_the_judge_agrees_with_the_solver(name):
    task = GENERATORS[name]()
    answer = PEERS["saddleback"].solvers[task.kind](task, 1e-5)
    assert Judge(task).error(answer.x, answer.y) <= 1e-5
    assert Judge(task).error(0 * answer.x, 0 * answer.y) > 0.1
    assert Judge(task).error(np.nan * answer.x) == np.inf


def test_a_result_without_a_dual_point_is_compared_with_the_best_bound():
    task = GENERATORS["quantile"]()
    result = sb.solve(problem_of(task), tol=1e-6)
    judge = Judge(task)
    assert judge.error(result.x) == np.inf
    judge.error(result.x, result.y)
    assert judge.error(result.x) <= 1e-6
    worse = result.x + 0.1
    assert judge.error(worse) == pytest.approx(sb.certify(problem_of(task), worse, result.y).relative_gap)


def test_a_path_is_as_good_as_its_worst_point():
    task = data.lasso_path(0, **TINY, n_alphas=3, eps=0.1)
    results = [sb.solve(problem_of(task.at(alpha)), tol=1e-6) for alpha in task["alphas"]]
    x = np.column_stack([result.x for result in results])
    assert Judge(task).error(x) <= 1e-4
    x[:, 1] = 0.0
    assert Judge(task).error(x) > 1e-2


def test_nonzeros_are_counted_without_the_intercept_and_with_a_threshold_if_zeros_are_not_exact():
    task = GENERATORS["quantile"]()
    x = np.zeros(task.shape[1])
    x[[0, 3, 4, -1]] = [2.0, 1e-5, 1e-7, 50.0]
    assert Judge(task).nonzeros(x, exact=True) == 3
    assert Judge(task).nonzeros(x, exact=False) == 2
    assert Judge(task).nonzeros(0 * x, exact=False) == 0
    path = data.lasso_path(0, **TINY, n_alphas=2, eps=0.1)
    assert Judge(path).nonzeros(np.eye(80, 2) + np.eye(80, 2, -5), exact=True) == 2
    validated = data.lasso_cv(0, **TINY, n_alphas=2, folds=2)
    assert Judge(validated).nonzeros(np.append(np.eye(1, 80), 0.7), exact=True) == 1


# --- problems as linear programs --------------------------------------------------------------------------------------


def optimum(program):
    """The optimal value of a linear program, by scipy."""
    A, low, high = program["A"].tocsr(), program["row_lower"], program["row_upper"]
    equal = low == high
    rows = {"A_eq": A[equal], "b_eq": low[equal]} if equal.any() else {}
    below = {"A_ub": sparse.vstack([A, -A]), "b_ub": np.concatenate([high, -low])} if not equal.all() else {}
    found = linprog(program["c"], bounds=np.column_stack([program["lower"], program["upper"]]), **rows, **below)
    assert found.success
    return found.fun


@pytest.mark.parametrize("name", KINKED)
def test_both_linear_programs_have_the_optimum_of_the_problem(name):
    task = GENERATORS[name]()
    result = sb.solve(problem_of(task), tol=1e-9)
    assert optimum(primal_program(task)) == pytest.approx(result.objective, rel=1e-7)
    assert optimum(dual_program(task)) == pytest.approx(-result.objective, rel=1e-7)


@pytest.mark.parametrize("name", KINKED)
@pytest.mark.parametrize("peer", ["HiGHS", "HiGHS IPM"])
def test_highs_gives_a_certified_vertex(name, peer):
    pytest.importorskip("highspy", reason="HiGHS is not installed")
    task = GENERATORS[name]()
    answer = PEERS[peer].solvers[task.kind](task, 1e-7)
    judge = Judge(task)
    assert judge.error(answer.x, answer.y) <= 1e-6
    assert judge.nonzeros(answer.x, exact=True) == judge.nonzeros(answer.x, exact=False)
    assert np.count_nonzero(answer.x) <= task.shape[0]


def test_the_transposed_matrix_shares_the_entries():
    dense, compressed = GENERATORS["hinge"](), GENERATORS["pinball"]()
    for task in (dense, compressed):
        transposed = dual_program(task)["A"]
        assert transposed.format == "csr"
        assert (abs(transposed - task["A"].T)).max() == 0
    assert np.shares_memory(dual_program(dense)["A"].data, dense["A"])
    assert np.shares_memory(dual_program(compressed)["A"].data, compressed["A"].data)


# --- a race -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def field():
    libraries = Field({})
    yield libraries
    libraries.close()


def tiny(peers, *makes):
    instances = [Instance(f"seed {seed}", make) for seed, make in enumerate(makes)]
    return Case("tiny", "a tiny problem", peers, lambda settings: iter(instances), cap=60.0)


def test_a_race_against_scikit_learn(field):
    field.processes["celer"] = None  # the entry of a library that is not installed
    case = tiny(("scikit-learn", "celer"), lambda: data.lasso(0, **TINY), lambda: data.lasso(1, **TINY))
    found = run_case(case, Settings(), field, 3, lambda line: None)
    assert [instance["label"] for instance in found] == ["seed 0", "seed 1"]
    for instance in found:
        ours, theirs, absent = instance["entries"]
        assert ours["peer"] == "saddleback"
        assert ours["tolerance"] == 1e-6
        assert ours["info"]["passes"] > 0
        assert absent["outcome"] == "not installed"
        for entry in (ours, theirs):
            assert entry["outcome"] == "reached"
            assert entry["error"] <= 1e-6
            assert len(entry["seconds"]) == 3
        assert ratio(instance["entries"]) == (min(theirs["seconds"]) / min(ours["seconds"]), "scikit-learn")
    assert set(field.versions) == {"saddleback", "scikit-learn"}


def test_a_time_in_proportion_to_the_entries_tells_which_libraries_are_too_slow():
    smaller = instance(
        "small",
        entry("saddleback", 50.0),
        entry("HiGHS", 7.0, 5.0),
        entry("PDLP", 3.0),
        entry("CVXPY+Clarabel", outcome="not in time"),
        entry("celer", outcome="not installed"),
    )
    assert too_slow(smaller, 12 * smaller["stored"], 60.0) == {"CVXPY+Clarabel"}
    assert too_slow(smaller, 13 * smaller["stored"], 60.0) == {"HiGHS", "CVXPY+Clarabel"}


def test_a_library_that_is_too_slow_is_not_tried_on_the_larger_problem(field, monkeypatch):
    case = tiny(("scikit-learn",), lambda: data.lasso(0, **TINY), lambda: data.lasso(0, m=80, n=160, nonzeros=8))
    asked = []

    def slow(smaller, entries, cap):
        asked.append((smaller["stored"], entries, cap))
        return {"scikit-learn"}

    monkeypatch.setattr("saddleback.bench.race.too_slow", slow)
    first, second = run_case(replace(case, grows=True), Settings(), field, 1, lambda line: None)
    assert asked == [(40 * 80, 80 * 160, case.cap)]
    assert [row["outcome"] for row in first["entries"]] == ["reached", "reached"]
    assert [row["outcome"] for row in second["entries"]] == ["reached", "not tried"]


def test_a_process_reports_its_error_and_ends_at_the_time_limit(tmp_path):
    process = Process("scikit-learn", sys.executable)
    try:
        assert list(process.versions()) == ["scikit-learn"]
        with pytest.raises(Failed, match="KeyError"):
            process.solve(1e-3, 60.0)  # there is no task yet
        data.lasso(0, m=1500, n=3000, nonzeros=1500, alpha_ratio=1e-6).save(tmp_path)
        process.load(tmp_path)
        with pytest.raises(TimedOut):
            process.solve(1e-12, 0.05)
        assert process.child.returncode is not None
    finally:
        process.close()


@pytest.mark.skipif(importlib.util.find_spec("adelie") is not None, reason="adelie is installed here")
def test_a_library_that_is_not_installed_is_noticed(field):
    assert field.process("adelie") is None


def test_the_worker_does_not_import_saddleback():
    code = "import sys; sys.modules['saddleback'] = None; sys.path.insert(0, sys.argv[1]); import worker.main"
    subprocess.run([sys.executable, "-c", code, str(Path(runner.__file__).parent)], check=True, timeout=60)


def small_linear_program():
    rng = np.random.default_rng(0)
    A = sparse.random(12, 20, 0.4, format="csc", rng=rng)
    inside = rng.random(20)
    rows = A @ inside
    return Task(
        "lp",
        {
            "A": sparse.csc_matrix(A),
            "c": rng.standard_normal(20),
            "lower": np.zeros(20),
            "upper": np.full(20, 2.0),
            "row_lower": np.where(rng.random(12) < 0.5, rows, -np.inf),
            "row_upper": rows + 0.1,
        },
    )


def small_group_hinge():
    sites = make_group_hinge(150)
    groups = np.array(sites.groups)
    return Task("group-hinge", {"A": sites.A, "labels": sites.labels, "groups": groups, "alpha": 1e-2})


SMALL = {
    "lasso": GENERATORS["lasso"],
    "group-lasso": GENERATORS["group"],
    **{name: GENERATORS[name] for name in ("quantile", "absolute", "hinge", "squared-hinge", "svm", "svm-intercept")},
    "path": lambda: data.lasso_path(0, **TINY, n_alphas=4, eps=0.1),
    "lasso-cv": lambda: data.lasso_cv(0, m=80, n=20, nonzeros=5, n_alphas=10, folds=3),
    "lp": small_linear_program,
    "group-hinge": small_group_hinge,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SMALL)
def test_every_library_solves_the_same_problem(kind, field):
    """Each result passes the certificate of our problem, which detects a wrong scaling, weight or sign of the dual."""
    peers = [name for name, peer in PEERS.items() if kind in peer.solvers and name != "saddleback"]
    peers.sort(key=lambda name: name in ("scikit-learn", "LIBLINEAR"))  # last, because they have no dual point
    target = 1e-5 if "LIBSVM" in peers else 1e-6  # LIBSVM has its kernel matrix in float32
    case = replace(tiny(tuple(peers), SMALL[kind]), target=target)
    (found,) = run_case(case, Settings(), field, 1, lambda line: None)
    outcomes = {entry["peer"]: entry["outcome"] for entry in found["entries"]}
    assert outcomes["saddleback"] == "reached"
    assert set(outcomes.values()) <= {"reached", "not installed"}, found


@pytest.mark.parametrize("name", CASES)
def test_every_case_runs_only_libraries_that_support_it(name, request):
    folder = request.getfixturevalue("data") if CASES[name].needs_data else None
    for one in CASES[name].instances(Settings(quick=True, data=folder)):
        task = one.make()
        assert all(task.kind in PEERS[peer].solvers for peer in ("saddleback", *CASES[name].peers))


# --- the document -----------------------------------------------------------------------------------------------------


def entry(peer, *seconds, outcome="reached"):
    return {
        "peer": peer,
        "outcome": outcome,
        "seconds": list(seconds),
        "tolerance": 1e-6,
        "error": 1e-7,
        "nonzeros": 7,
        "info": {"passes": 10.0, "working_set": 5},
        "note": "",
    }


def instance(label, *entries):
    return {"label": label, "rows": 3, "columns": 4, "stored": 12, "products_seconds": 0.1, "entries": list(entries)}


MACHINE = {
    "cores": 2,
    "processor": "Some CPU",
    "memory_gb": 8,
    "system": "Linux",
    "python": "3.11.0",
    "versions": {"saddleback": "0.1.0"},
}
RACE = {
    "kind": "race",
    "about": "a problem",
    "target": 1e-6,
    "cap": 60.0,
    "quick": False,
    "repeats": 3,
    "machine": MACHINE,
    "load": 1.0,
    "instances": [
        instance("seed 0", entry("saddleback", 2.0, 1.0), entry("celer", 4.0, 5.0), entry("skglm", 8.0)),
        instance("seed 1", entry("saddleback", 1.0), entry("celer", 9.0), entry("skglm", outcome="not in time")),
    ],
}
LATE = {**RACE, "instances": [instance("seed 0", entry("saddleback", outcome="not in time"), entry("celer", 1.0))]}
UNRUN = {**RACE, "instances": [], "note": "not run: needs data"}
GROWTH = {
    "kind": "growth",
    "about": "growth",
    "quick": True,
    "machine": {**MACHINE, "cores": 64},
    "load": 5.0,
    "threads": [1, 2],
    "points": [
        {"layout": layout, "entries": entries, "seconds": [2e-9 * entries, 1e-9 * entries]}
        for entries in (1e6, 1e7)
        for layout in ("dense", "CSC")
    ],
    "doubled": [{"what": "dense, twice the rows", "ratio": 2.0}],
    "skipped": ["dense with 3e+08 entries"],
}
PASSES = {
    "kind": "passes",
    "about": "passes",
    "quick": False,
    "machine": MACHINE,
    "load": 5.0,
    "lines": [{"what": "dense: pass / products", "measured": 0.61, "bar": "<= 1.3"}],
}


def test_the_document_contains_the_results(tmp_path):
    records = {"lasso": RACE, "lp": UNRUN, "path": LATE, "passes": PASSES, "growth": GROWTH}
    report.write(tmp_path, records)
    text = (tmp_path / "benchmarks.md").read_text()
    assert "| 6.00 (4.00 to 9.00) | celer |" in text  # the geometric mean of 4 and 9
    assert "| ours not in 60 s |" in text
    assert "saddleback 1e-06 (1.0e-07), celer 1e-06 (1.0e-07)" in text
    assert "| not run: needs data |" in text
    assert "| seed 1 | 1 | 9 | not in 60 s | **9.00** |" in text
    assert "| non-zeros | saddleback | celer | skglm |" in text
    assert "| seed 1 | 7 | 7 |  |" in text
    assert "| seed 0 | 3 x 4 | 10 | 5 |  | 1.0e-07 | 100 | 1 |" in text
    assert "64 cores of Some CPU" in text
    assert "(growth)" in text
    assert "busy with other work during passes** (a load of up to 5.0)" in text
    assert "dense 1.00 on 1, dense 1.00 on 2, CSC 1.00 on 1" in text
    assert "| dense: pass / products | 0.61 | <= 1.3 |" in text
    assert text.index("fastest other / ours") < text.index("## The machine") < text.index("## lasso")
    for picture in ("bench-ratios.png", "bench-growth.png"):
        assert picture in text
        assert (tmp_path / "figures" / picture).read_bytes().startswith(b"\x89PNG")


def test_the_document_marks_libraries_without_exact_zeros_and_tells_what_failed():
    failed = {**entry("PDLP", outcome="failed"), "note": "MemoryError"}
    answers = instance("a9a", entry("saddleback", 1.0), failed, entry("CVXPY+Clarabel", outcome="not tried"))
    text = report.document({"hinge-l1": {**RACE, "instances": [answers]}})
    assert "| non-zeros (*: entries above 1e-6 of the largest) | saddleback | PDLP * | CVXPY+Clarabel * |" in text
    assert "| a9a | 1 | failed | not tried |  |" in text
    assert "Failed: PDLP on a9a: MemoryError." in text


def test_results_from_before_nonzeros_were_counted_have_no_such_table():
    old = {name: value for name, value in entry("saddleback", 1.0).items() if name != "nonzeros"}
    assert "| non-zeros" not in report.document({"lasso": {**RACE, "instances": [instance("seed 0", old)]}})


def test_a_rerun_keeps_the_other_cases(tmp_path):
    runner.keep(tmp_path, {"path": RACE, "lasso": RACE})
    runner.keep(tmp_path, {"path": LATE})
    records = json.loads((tmp_path / "benchmarks.json").read_text())
    assert list(records) == ["lasso", "path"]
    assert records == {"lasso": RACE, "path": LATE}


def test_the_slope_is_the_power():
    points = [{"layout": "dense", "entries": e, "seconds": [e**1.5]} for e in (1e3, 1e4, 1e6)]
    assert slope(points, "dense", 0) == pytest.approx(1.5)


# --- the command ------------------------------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(app, ["bench", *map(str, arguments)])


def test_the_list_has_every_case():
    assert list(json.loads(run("--list", "--json").stdout)) == list(runner.abouts())
    assert all(name in run("--list").stdout for name in runner.abouts())


def test_a_case_without_its_data_says_so(monkeypatch, tmp_path):
    monkeypatch.delenv("SADDLEBACK_DATA", raising=False)
    result = run("--case", "lp", "--json", "--out", tmp_path)
    assert result.exit_code == 0
    assert "needs the folder netlib" in json.loads(result.stdout)["lp"]["note"]
    assert "needs the folder netlib" in (tmp_path / "benchmarks.md").read_text()
    (tmp_path / "benchmarks.md").unlink()
    assert run("--report", "--out", tmp_path).exit_code == 0
    assert "needs the folder netlib" in (tmp_path / "benchmarks.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--case", "laso"], "lasso"),
        (["--repeats", "0"], "--repeats 0"),
        (["--report"], "--out"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, words):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert words in result.stderr


def test_a_system_that_does_not_tell_its_memory(monkeypatch):
    monkeypatch.setattr(os, "sysconf_names", {})
    assert machine.memory("SC_AVPHYS_PAGES") == math.inf
    assert machine.describe_machine()["memory_gb"] == "unknown"
