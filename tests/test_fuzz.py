"""Some cases of the fuzzer, cases that failed once, and tests that its oracle detects errors."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from fuzz import __main__ as fuzz
from fuzz import exact, hard, twins
from fuzz.cases import case
from fuzz.certificate import judge
from fuzz.check import Failure, check
from fuzz.functions import Real
from fuzz.problems import Units, draw

import saddleback as sb

pytest.importorskip("torch")  # cases have tensors, too

CASES = 150


def test_random_cases() -> None:
    report = fuzz.run(iter([*fuzz.kept(), *range(CASES)]))
    assert not report.failures
    assert report.ended["OPTIMAL"] > CASES / 4  # enough cases are solved


@pytest.mark.parametrize("seed", range(40))
def test_the_conjugates_of_the_oracle_bound_and_are_attained(seed: int) -> None:
    """Fenchel-Young: f(x) + f*(z) >= <x, z> for every pair, with equality where the supremum is attained."""
    rng = np.random.default_rng(seed)
    problem = draw(rng, Units()).statement
    functions: list[tuple[Any, int]] = [
        (f, A.shape[1]) for f, A in zip(problem.penalties, problem.matrices, strict=True)
    ]
    functions.append((problem.loss, problem.matrices[0].shape[0]))
    for function, size in functions:
        z = rng.standard_normal(size).astype(Real)
        conjugate = function.conjugate(z)
        inside = z - conjugate.missed
        again = function.conjugate(inside)
        assert np.abs(again.missed).max() <= 1e-12
        value = again.terms.sum()
        for x in (rng.standard_normal((20, size)) * 10.0 ** rng.uniform(-2, 1, (20, 1))).astype(Real):
            x = x - function.missed(x)
            assert function.terms(x).sum() + value >= x @ inside - 1e-12 * (1 + np.abs(x) @ np.abs(inside))


def test_domains_of_the_oracle_are_not_too_small() -> None:
    """Outside the domain of the conjugate, <x, z> - f(x) grows without bound along the violation."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        problem = draw(rng, Units()).statement
        for f, A in zip(problem.penalties, problem.matrices, strict=True):
            z = (100 * np.abs(A).max() * rng.standard_normal(A.shape[1])).astype(Real)
            missed = f.conjugate(z).missed
            if np.any(missed):
                start = f.project(np.zeros_like(z))
                values = [x @ z - f.terms(x).sum() for x in (f.project(start + t * missed) for t in (1e2, 1e4))]
                assert values[1] > values[0] + abs(values[0]) / 2


@pytest.mark.parametrize("seed", range(60))
def test_other_units_change_values_by_the_unit_of_the_objective_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    drawn = draw(rng, Units()) if seed % 2 else hard.draw(rng)
    here = twins.in_float64(drawn.statement)
    units = twins.Units.drawn(rng, here)
    x, y = [block.ravel() for block in drawn.inside], rng.standard_normal(here.matrices[0].shape[0])
    there = units.statement(here)
    one, other = judge(here, x, y), judge(there, *units.point(x, y))
    assert other.primal == pytest.approx(one.primal * units.objective, rel=1e-15)
    assert other.dual == pytest.approx(one.dual * units.objective, rel=1e-15)
    # the library states the same problem
    found = twins.certified(twins.problem(there, "F"), here, *units.point(x, y))
    assert found.primal_value == pytest.approx(float(other.primal), rel=1e-8)


def test_exact_optima_are_those_of_the_library() -> None:
    solved = 0
    for seed in range(300):
        drawn = hard.draw(np.random.default_rng(seed))
        found = exact.optimum(drawn.statement)
        if found is None:
            continue
        result = sb.solve(drawn.make(), tol=1e-9, max_passes=3000)
        certificate = result.certificate
        assert not exact.refuted(result.status, certificate, found, 1e-9)
        if result.status is sb.Status.OPTIMAL and certificate.proved and certificate.attained:
            solved += 1
            step = 1e-9 * max(1.0, abs(float(found[1])))
            for wrong in (
                certified(result, dual_value=float(found[1]) + 1e-6 * certificate.floor + step),
                certified(result, primal_value=float(found[1]) - step),
            ):
                assert exact.refuted(result.status, wrong.certificate, found, 1e-9)
    assert solved >= 5


@cache
def solved_seed() -> int:
    """Return the seed of a simple case that ends OPTIMAL with nonzero x and a nonzero lower bound."""
    for seed in range(CASES):
        drawn = case(seed)
        if (
            drawn.kind == "plain"
            and drawn.options["tol"] >= 1e-6
            and "Squared" in drawn.drawn.name
            and check(drawn) == "OPTIMAL"
        ):
            result = sb.solve(drawn.drawn.make(), **drawn.options)
            if result.certificate.dual_value > 1e-3 and not drawn.drawn.is_list and np.any(result.x):
                return seed
    raise AssertionError("no such case")


def certified(result: sb.Result, **values: float) -> sb.Result:
    return replace(result, certificate=replace(result.certificate, **values))


WRONG: dict[str, tuple[str, Any]] = {
    "objective": ("primal_value", lambda r: certified(r, primal_value=1.001 * r.certificate.primal_value)),
    "lower bound": ("bound|dual_value", lambda r: certified(r, dual_value=1e9)),
    "x": ("primal_value", lambda r: replace(r, x=r.x + 0.1)),
    "nan": ("not-finite", lambda r: replace(r, x=r.x * np.nan)),
    "infeasible": ("verdict", lambda r: replace(r, status=sb.Status.INFEASIBLE)),
    "unbounded": ("verdict", lambda r: replace(r, status=sb.Status.UNBOUNDED)),
}


@pytest.mark.parametrize("what", list(WRONG))
def test_the_oracle_detects_a_wrong_result(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (kind, spoil), drawn, solve = WRONG[what], case(solved_seed()), sb.solve
    monkeypatch.setattr(sb, "solve", lambda *args, **options: spoil(solve(*args, **options)))
    with pytest.raises(Failure, match=f"^({kind})"):
        check(drawn)


def test_the_oracle_detects_a_point_that_is_not_optimal(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, solve = case(solved_seed()), sb.solve

    def spoiled(problem: sb.Problem, **options: Any) -> sb.Result:
        result = solve(problem, **options)
        return replace(result, x=1.5 * result.x, certificate=sb.certify(problem, 1.5 * result.x, result.y))

    monkeypatch.setattr(sb, "solve", spoiled)
    with pytest.raises(Failure, match=r"^optimal: gap"):
        check(drawn)


@pytest.mark.parametrize("name", ["relative_gap", "primal_infeasibility", "dual_value", "proved"])
def test_the_oracle_detects_a_certificate_that_depends_on_units(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, judged = case(solved_seed()), twins.certified
    calls = []

    def spoiled(*given: Any) -> sb.Certificate:
        calls.append(given)
        found = judged(*given)
        return found if len(calls) == 1 else replace(found, **{name: getattr(found, name) - 1})

    monkeypatch.setattr(twins, "certified", spoiled)
    with pytest.raises(Failure, match=r"^units: the same points in other units"):
        check(drawn)


@pytest.mark.parametrize(
    ("kind", "instead", "patience"), [("crash", "os.abort()", 60.0), ("hang", "time.sleep(60)", 2.0)]
)
def test_the_fuzzer_detects_a_process_that_dies_or_hangs(
    kind: str, instead: str, patience: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = f"import os, time, fuzz.__main__ as f; f.check = lambda case: {instead}; f.work('plain')"
    monkeypatch.setattr(fuzz, "WORKER", ["-c", program])
    monkeypatch.setattr(fuzz, "HANG", patience)
    seeds = [seed for seed in range(20) if case(seed).kind == "plain"][:1]
    assert fuzz.run(iter(seeds)).ended == {kind: 1}
