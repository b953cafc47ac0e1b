"""The program behind ``make soundness``: it runs, and it detects claims that are wrong."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz import families, twins

import saddleback as sb
import soundness

EVERY = range(0, 550, 21)
"""Seeds of problems with every penalty and every loss."""


def test_the_seeds_have_every_function() -> None:
    names = [families.drawn(seed).name.split(" / ") for seed in EVERY]
    assert {penalty for penalty, _ in names} == set(families.PENALTIES)
    assert {loss.rsplit(" ", 1)[0] for _, loss in names} == set(families.LOSSES)


@pytest.mark.parametrize("seed", EVERY)
def test_a_certificate_over_the_catalogue_does_not_depend_on_units(seed: int) -> None:
    drawn, rng = families.drawn(seed), np.random.default_rng(seed)
    m, n = drawn.A.shape
    here = drawn.problem(np.ones(m), np.ones(n), 1.0, 1.0)
    rows, columns = drawn.loss.drawn_units(rng, 40), drawn.penalty.drawn_units(rng, 40)
    there = drawn.problem(rows, columns, 2.0**30, 2.0**-20)
    result = sb.solve(here, max_passes=5)
    x, intercept = result.x if drawn.intercept else (result.x, None)
    flat = np.asarray(x).ravel() / columns
    x = flat.reshape(np.shape(x))
    y = (np.asarray(result.y).ravel() / rows * 2.0**-20).reshape(np.shape(result.y))
    found = sb.certify(there, [x, intercept / 2.0**30] if drawn.intercept else x, y)
    again = sb.certify(here, result.x, result.y)
    assert not twins.disagreement(again, found, 2.0**-20, 1e-6)


@pytest.mark.parametrize("kind", list(soundness.KINDS))
def test_a_campaign_has_no_failures(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert soundness.campaign(kind, range(4)) == 0
    assert f"{kind}: 4 cases, 0 failures" in capsys.readouterr().out


def with_a_wrong_bound(result: sb.Result) -> sb.Result:
    certificate = result.certificate
    bound = certificate.primal_value + abs(certificate.primal_value) + 1.0
    return replace(result, certificate=replace(certificate, dual_value=bound, proved=True, attained=True))


@pytest.mark.parametrize("kind", ["units", "exact"])
def test_a_wrong_bound_is_detected(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    solve = sb.solve
    monkeypatch.setattr(sb, "solve", lambda *given, **options: with_a_wrong_bound(solve(*given, **options)))
    assert soundness.campaign(kind, range(2)) == 2
    assert "seed 1: " in capsys.readouterr().out


def test_a_wrong_interval_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = sb.bounds
    monkeypatch.setattr(sb, "bounds", lambda *given: replace(bounds(*given), lower=bounds(*given).upper + 1.0))
    assert soundness.campaign("bounds", range(2)) == 2


def test_an_error_is_a_failure_with_its_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: Any) -> None:
        raise ZeroDivisionError("no reason")

    monkeypatch.setattr(sb, "bounds", fails)
    assert soundness.campaign("bounds", range(1)) == 1
    assert "ZeroDivisionError: no reason" in capsys.readouterr().out


def test_the_same_package_loses_no_problem(capsys: pytest.CaptureFixture[str]) -> None:
    assert soundness.completeness(Path(sys.executable), range(2)) == 0
    assert "2 of 2 that were OPTIMAL still are" in capsys.readouterr().out
