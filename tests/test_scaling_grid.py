"""The default options reach the tolerance on problems in all kinds of units, without tuning."""

from __future__ import annotations

from dataclasses import replace

import pytest

from saddleback.bench import scaling_grid as grid

SLICE = 8

SLOW = {77}
"""Seed of a quantile regression with alpha = 1e-5 alpha_max, which needs more than 10,000 passes."""


def test_the_grid_has_the_documented_cases():
    cases = grid.cases()
    assert len(cases) == 200
    assert len({case.seed for case in cases}) == 200
    for name, largest in (("rows", 3), ("columns", 3), ("b", 3), ("lam", 3)):
        assert max(abs(getattr(scaling, name)) for scaling in grid.SCALINGS) == largest
    assert {case.family.name for case in grid.cases(every=SLICE)} == {family.name for family in grid.FAMILIES}


def test_a_part_of_the_grid():
    rows = list(grid.rows(every=SLICE))
    assert len(rows) == 25
    assert [row.message for row in rows if row.status != "OPTIMAL"] == []
    assert all(row.error <= row.tol for row in rows)


@pytest.mark.slow
def test_the_whole_grid():
    failed = [row for row in grid.rows() if row.status != "OPTIMAL"]
    assert {row.seed for row in failed} <= SLOW
    assert all(row.status == "MAX_PASSES" and row.error <= 1e-3 for row in failed)


def test_the_table_names_failures_and_outliers():
    usual = grid.run(grid.cases()[0])
    failed = replace(usual, status="MAX_PASSES", error=0.5, message="Too slow.")
    slow = replace(usual, passes=100 * usual.passes, seed=77)
    text = grid.table([usual] * 5 + [failed, slow])
    assert "failed, squared + l1, seed 0: error 5.0e-01. Too slow." in text
    assert "slow, squared + l1, seed 77: 100 times the median; as it is; lambda" in text
    assert text.count("failed, ") == 1
    assert text.count("slow, ") == 1
