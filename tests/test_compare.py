"""``make compare`` covers the whole library and detects a change of one bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import saddleback as sb
from compare import bits
from compare.cases import CASES
from compare.exceptions import EXCEPTIONS
from compare.outcomes import ERROR, MISSING
from compare.worker import flat, found
from saddleback import estimators

PROBLEM = sb.Problem(sb.L1(1.0), np.eye(2), sb.Squared(np.ones(2)))
RESULT = {"x": np.array([1.0, -2.0]), "passes": np.array(8.5), "status": np.array("OPTIMAL"), "seconds": np.array(0.1)}


def test_every_method_has_a_case():
    assert [name for name in sb.methods() if name != "auto" and f"method {name}" not in CASES] == []


def test_every_function_of_the_catalogue_is_in_a_problem():
    source = "".join(path.read_text() for path in Path(bits.__file__).parent.glob("*.py"))
    terms = [name for name in sb.__all__ if hasattr(getattr(sb, name), "bind")]
    assert len(terms) > 15
    assert [name for name in terms if f"sb.{name}(" not in source] == []


def test_every_estimator_has_a_case():
    public = [name for name in estimators.__all__ if hasattr(getattr(estimators, name), "fit")]
    source = Path(bits.__file__).with_name("cases.py").read_text()
    assert [name for name in public if f"estimators.{name}(" not in source] == []


def test_a_case_finds_the_same_bits_again():
    case = CASES["method sp-bcd K"]
    assert bits.judge(case.name, found(case), found(case)).kind == bits.SAME


@pytest.mark.parametrize(
    "change",
    [
        {"x": np.array([1.0, np.nextafter(-2.0, 0.0)])},
        {"x": np.array([1.0, -2.0, 0.0])},
        {"x": np.array([1.0, -2.0], dtype=np.float32)},
        {"passes": np.array(9.0)},
        {"status": np.array("MAX_PASSES")},
        {"y": np.array([0.0])},
    ],
)
def test_a_change_is_detected(change):
    verdict = bits.judge("case", RESULT, RESULT | change)
    assert verdict.kind == bits.DIFFERS
    assert next(iter(change)) in verdict.details
    assert not bits.report([verdict])


@pytest.mark.parametrize(
    "call",
    [lambda: sb.Newer(1.0), lambda: estimators.Newer(), lambda: sb.solve(PROBLEM, method="newer")],
)
def test_new_features_are_skipped(call):
    with pytest.raises((AttributeError, ValueError)) as refused:
        call()
    old = {ERROR: np.asarray(f"{type(refused.value).__name__}: {refused.value}")}
    assert bits.judge("case", old, RESULT).kind == bits.SKIPPED
    assert bits.judge("case", RESULT, old).kind == bits.FAILED


def test_the_clock_is_not_compared():
    assert bits.judge("case", RESULT, RESULT | {"seconds": np.array(7.0)}).kind == bits.SAME


def test_zeros_of_both_signs_differ():
    assert bits.judge("case", {"x": np.array([0.0, 1.0])}, {"x": np.array([-0.0, 1.0])}).kind == bits.DIFFERS


def test_errors_fail_unless_a_package_is_missing_on_both_sides():
    missing = {ERROR: np.array(f"{MISSING} torch")}
    assert bits.judge("case", missing, missing).kind == bits.SKIPPED
    assert bits.judge("case", missing, RESULT).kind == bits.FAILED
    assert bits.judge("case", {ERROR: np.array("ValueError")}, {ERROR: np.array("ValueError")}).kind == bits.FAILED
    assert not bits.report([bits.Verdict("case", bits.FAILED)])


def test_an_exception_with_a_reason_does_not_fail(monkeypatch):
    monkeypatch.setitem(bits.EXCEPTIONS, "case", "another order of sums")
    verdict = bits.judge("case", RESULT, RESULT | {"passes": np.array(9.0)})
    assert (verdict.kind, "another order of sums" in verdict.details) == (bits.EXPECTED, True)
    assert bits.report([verdict])


def test_every_exception_is_a_case_with_a_reason():
    assert set(EXCEPTIONS) <= set(CASES)
    assert all(EXCEPTIONS.values())


def test_results_are_flattened():
    result = sb.solve(sb.Problem([sb.L1(0.1), sb.Zero()], [np.eye(3), np.ones((3, 1))], sb.Squared(np.ones(3))))
    assert set(dict(flat({"first": [result]}))) == {
        f"first.0.{part}"
        for part in ("x.0", "x.1", "y", "passes", "status", "method", "certificate.0", "certificate.1")
    }
