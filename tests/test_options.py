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
    "an integer that Python does not write": 10**5000,
    "a masked array": np.ma.masked_array([1.0, 2.0], [True, False]),
}

OPTIONS = [
    ("extrapolation", {"method": "pdhg"}, KINKED),
    ("alpha", {"method": "pdhg-diagonal"}, KINKED),
    ("momentum", {"method": "fista"}, SMOOTH),
    ("smoothing", {"method": "fista"}, KINKED),
    ("step", {"method": "fista"}, SMOOTH),
    ("step", {"method": "sp-bcd"}, KINKED),
    ("rho", {"method": "admm"}, KINKED),
    ("primal_weight", {"method": "pdhg"}, KINKED),
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
@pytest.mark.parametrize(
    ("option", "others", "problem"), OPTIONS, ids=[f"{option} of {other.get('method')}" for option, other, _ in OPTIONS]
)
def test_a_bad_value_is_named(option, others, problem, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some options name files
    with pytest.raises((TypeError, ValueError), match=rf"^{option}\b") as caught:
        sb.solve(problem, **others, **{option: value})
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("option", "method", "form"),
    [("rho", "admm", 0), ("primal_weight", "pdhg", 0), ("step", "fobos", 0), ("step", "sp-bcd", 1)],
    ids=["rho", "primal_weight", "step", "strengths"],
)
def test_integers_of_any_size_are_numbers(option, method, form):
    """Arrays of integers end at 2^64."""
    whole, real = ((value, 1.0) if form else value for value in (2**70, 2.0**70))
    found, expected = (sb.solve(KINKED, method, max_passes=20, **{option: value}) for value in (whole, real))
    assert np.array_equal(found.x, expected.x)
    assert found.objective == expected.objective


STRENGTHS = {
    "text": "abc",
    "complex": 1j,
    "none": None,
    "bool": True,
    "list": [1, "a"],
    "long": 10**400,
    "5k": 10**5000,
}


@pytest.mark.parametrize("strength", STRENGTHS.values(), ids=STRENGTHS)
def test_a_strength_that_is_no_number_is_named(strength):
    with pytest.raises((TypeError, ValueError), match=r"^step: dual_strength=.*: expected a") as caught:
        sb.solve(KINKED, "sp-bcd", step=(1.0, strength))
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "value", [value for name, value in JUNK.items() if name != "text"], ids=[name for name in JUNK if name != "text"]
)
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


@pytest.mark.parametrize(
    ("parameter", "sign"), [("time_limit", 1), ("time_limit", -1), ("max_iter", -1), ("n_jobs", 1)]
)
def test_a_long_integer_as_a_limit_of_an_estimator_is_named(parameter, sign):
    with pytest.raises(ValueError, match=f"^{parameter}=.*: expected"):
        Lasso(**{parameter: sign * 10**5000}).fit(A, b)


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
