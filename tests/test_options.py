"""For any invalid value of an option, the error names the option and shows the value in one line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import saddleback as sb
from saddleback.estimators import Lasso

rng = np.random.default_rng(0)
A, b = rng.standard_normal((12, 6)), rng.standard_normal(12)
SMOOTH = sb.Problem(sb.L1(0.1), A, sb.Squared(b))
KINKED = sb.Problem(sb.L1(0.1), A, sb.Absolute(b))

JUNK = {
    "text": "abc",
    "an array": np.arange(3.0),
    "a table": pd.DataFrame({"a": [1, 2]}),
    "a list": [1, 2],
    "a complex number": 1j,
    "an object": object(),
    "a long integer": 10**400,
    "a masked array": np.ma.masked_array([1.0, 2.0], [True, False]),
}

OPTIONS = [
    ("extrapolation", {"method": "pdhg"}, KINKED),
    ("alpha", {"method": "pdhg-diagonal"}, KINKED),
    ("momentum", {"method": "fista"}, SMOOTH),
    ("smoothing", {"method": "fista"}, KINKED),
    ("primal_regularisation", {"method": "spdc"}, KINKED),
    ("sigma_rule", {"method": "sp-bcd-published"}, KINKED),
    ("finish", {"method": "sp-bcd"}, KINKED),
    ("working_set", {"method": "sp-bcd"}, KINKED),
    ("restarts", {"method": "sp-bcd"}, KINKED),
    ("backend", {"method": "sp-bcd"}, KINKED),
    ("dual", {"method": "sp-bcd"}, KINKED),
    ("method", {}, KINKED),
    ("eliminate", {}, KINKED),
    ("progress", {}, KINKED),
    ("layers", {}, KINKED),
    ("tol", {}, KINKED),
    ("max_passes", {}, KINKED),
    ("time_limit", {}, KINKED),
    ("checkpoint_every", {}, KINKED),
    ("threads", {}, KINKED),
]


@pytest.mark.parametrize("value", JUNK.values(), ids=JUNK)
@pytest.mark.parametrize(("option", "others", "problem"), OPTIONS, ids=[option for option, _, _ in OPTIONS])
def test_a_bad_value_is_named(option, others, problem, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some options name files
    with pytest.raises((TypeError, ValueError), match=rf"^{option}\b") as caught:
        sb.solve(problem, **others, **{option: value})
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("value", [value for name, value in JUNK.items() if name != "text"])
def test_a_bad_name_of_a_checkpoint_is_named(value):
    with pytest.raises(TypeError, match=r"^resume\b"):
        sb.solve(KINKED, resume=value)


@pytest.mark.parametrize("scale", [1e308, 1e-320, 0.0, np.inf, np.nan, "1", np.ones(3), 10**400])
def test_the_scale_of_an_identity_has_a_square(scale):
    with pytest.raises((TypeError, ValueError), match=r"^scale="):
        sb.Identity(scale)


@pytest.mark.parametrize("n_alphas", [0, 2**63, 10**12, 2.5, np.arange(3), "3"])
def test_the_length_of_a_path_is_bounded(n_alphas):
    with pytest.raises(ValueError, match=r"^n_alphas="):
        sb.path(sb.L1(1.0), A, sb.Squared(b), n_alphas=n_alphas)


def test_groups_may_be_an_array_without_dimensions():
    assert sb.Problem(sb.GroupL2(1.0, np.array(3)), A, sb.Squared(b)).n_blocks == 2
    for groups, words in ((np.array(4), "does not divide"), (np.array(3.0), "expected an int"), (np.array("a"), "int")):
        with pytest.raises(ValueError, match=f"groups=.*{words}"):
            sb.Problem(sb.GroupL2(1.0, groups), A, sb.Squared(b))


# --- masked arrays ----------------------------------------------------------------------------------------------------

MASKED = {
    "b": lambda masked: sb.Squared(masked(b)),
    "A": lambda masked: sb.Problem(sb.L1(0.1), masked(A), sb.Squared(b)),
    "sample_weight": lambda masked: sb.Squared(b, sample_weight=masked(np.ones(12))),
    "x0": lambda masked: sb.solve(KINKED, x0=masked(np.zeros(6))),
    "X": lambda masked: Lasso().fit(masked(A), b),
    "y": lambda masked: Lasso().fit(A, masked(b)),
}


@pytest.mark.parametrize(("name", "use"), MASKED.items(), ids=MASKED)
def test_masked_entries_are_rejected(name, use):
    def masked(values):
        hidden = np.zeros(values.shape, dtype=bool)
        hidden.flat[2] = True
        return np.ma.masked_array(values, hidden)

    with pytest.raises(ValueError, match=f"^{name} is a masked array, masked at index"):
        use(masked)
    use(lambda values: np.ma.masked_array(values, False))
