"""``saddleback fit`` on CSV files: what the estimators give, and a report that needs no network."""

from __future__ import annotations

import csv
import json
import re
import sys
import warnings
from html import unescape
from time import process_time

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes
from typer.testing import CliRunner

import saddleback.estimators as se
from saddleback import fit_report
from saddleback.cli import app
from saddleback.io import csv_tables
from saddleback.io.csv_tables import read_csv


def fit(*words):
    return CliRunner().invoke(app, ["fit", *map(str, words)])


@pytest.fixture
def houses(rng, tmp_path):
    """A table with numbers, categories and weights."""
    n = 80
    frame = pd.DataFrame(
        {"city": rng.choice(["Oslo", "Paris", "Rome"], n), "area": rng.normal(5, 1, n), "rooms": rng.integers(1, 6, n)}
    )
    frame["new"] = rng.random(n) < 0.5
    frame["price"] = 2 * frame["area"] + (frame["city"] == "Paris") + rng.standard_t(3, n)
    frame["weight"] = rng.random(n)
    frame.to_csv(tmp_path / "houses.csv", index=False)
    return frame, tmp_path / "houses.csv"


def recipe_of(page):
    return unescape(re.search(r"<pre>(import pandas.*?)</pre>", page, flags=re.DOTALL).group(1))


def check(words, target, tmp_path):
    """Check that the code of the report gives the numbers that the command prints; return both and the page."""
    found = fit(*words, "--target", target, "--json", "--report", tmp_path / "out.html")
    assert found.exit_code == 0, found.output
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    names = {"__name__": "recipe"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", se.AlphaGridWarning)
        exec(recipe_of(page), names)
    content, model = json.loads(found.stdout), names["model"]
    assert content["coefficients"] == pytest.approx(model.coef_by_name_, rel=1e-6, abs=1e-9)
    assert np.ravel(content["intercept"]) == pytest.approx(np.ravel(model.intercept_), rel=1e-6)
    assert content["objective"] == pytest.approx([model.result_.objective])
    assert not re.search(r'(src|href)="(?!#)', page)  # nothing is loaded
    assert "<script" not in page
    return content, model, page


@pytest.mark.parametrize("alpha", [[], ["--alpha", "0.05"]])
def test_numbers_as_the_estimators_give_them(alpha, tmp_path):
    frame = load_diabetes(as_frame=True).frame
    frame.to_csv(tmp_path / "d.csv", index=False)
    words = [tmp_path / "d.csv", "--loss", "quantile", "--quantile", "0.9", *alpha]
    content, model, page = check(words, "target", tmp_path)
    assert isinstance(model, se.SparseRegressor if alpha else se.SparseRegressorCV)
    assert content["alpha"] == (0.05 if alpha else model.alpha_)
    assert ("on samples that a fit has not seen" in page) is not bool(alpha)
    for part in ("Certificate", "Coefficients", "Residuals against the fit", "against alpha", "<td>bmi</td>"):
        assert part in page


def test_classes_and_an_index_without_a_name(tmp_path):
    frame = load_breast_cancer(as_frame=True).frame
    columns = ["mean radius", "mean texture", "mean smoothness"]
    frame = frame[columns].assign(kind=np.where(frame["target"], "benign", "malignant"))
    frame.to_csv(tmp_path / "c.csv", sep=";")
    content, model, page = check([tmp_path / "c.csv", "--loss", "logistic", "--alpha", "0.01"], "kind", tmp_path)
    assert content["classes"] == list(model.classes_) == ["benign", "malignant"]
    assert list(content["coefficients"]) == columns
    assert "predicted malignant" in page


@pytest.mark.parametrize(
    "values", [["1,5", "2"], ["1.234,5", "12"], ["1,234", "1,234,567.5"], ["1 234", "-5 678"], ["1_000", "12_000"]]
)
def test_numbers_with_other_punctuation_are_refused(values, tmp_path):
    """They are neither categories nor classes."""
    frame = pd.DataFrame({"a": values * 20, "b": np.arange(40.0)})
    frame.to_csv(tmp_path / "comma.csv", index=False, sep=";")
    for target in ("a", "b"):
        refused = fit(tmp_path / "comma.csv", "--target", target)
        assert refused.exit_code == 2
        said = " ".join(refused.stderr.split())
        assert "column 'a' has" in said
        assert "a decimal comma or separators of thousands" in said
        assert "class" not in said
    assert fit(tmp_path / "comma.csv", "--target", "b", "--category", "a").exit_code == 0


def test_a_given_alpha_lies_within_the_path_and_was_not_chosen(houses, tmp_path):
    _, path = houses
    _, _, page = check([path, "--alpha", "1e-5"], "price", tmp_path)
    assert "The choice of alpha" not in page
    assert "Other values of alpha" in page
    model = se.SparseRegressor(alpha=1e-5)
    table = read_csv(path, "price", None, None, False, [])
    X = np.column_stack(list(table.features.values()))
    alphas = fit_report._path(model, X, table).alphas
    assert alphas[-1] < 1e-5 < alphas[0]


def test_no_penalty_has_no_alpha(houses, tmp_path):
    _, path = houses
    assert "\nalpha" not in fit(path, "--target", "price", "--penalty", "none").stdout
    content, _, page = check([path, "--penalty", "none", "--column", "area"], "price", tmp_path)
    assert content["alpha"] is None
    assert "penalty none</p>" in page
    assert "against alpha" not in page


def test_all_coefficients_are_0(houses, tmp_path):
    _, path = houses
    found = fit(path, "--target", "price", "--alpha", "1e3", "--report", tmp_path / "out.html")
    assert "All 7 coefficients are 0." in found.stdout
    assert "All 7 coefficients are 0" in (tmp_path / "out.html").read_text(encoding="utf-8")


def test_the_report_has_the_remarks_and_counts_of_the_terminal(rng, tmp_path):
    X = rng.standard_normal((60, 3))
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=X.sum(axis=1) + 5.0)  # a perfect fit: no penalty is best
    frame.to_csv(tmp_path / "exact.csv", index=False)
    found = fit(tmp_path / "exact.csv", "--target", "y", "--report", tmp_path / "out.html")
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    for said in ("This alpha is the smallest that was tried", "3 of 3"):
        assert said in found.stdout
        assert said in page
    assert "4 of 4" not in page  # with the intercept


def test_names_that_matplotlib_takes_for_formulas_are_drawn(houses, tmp_path):
    frame, _ = houses
    path, names = tmp_path / "names.csv", {"area": r"$\frac{$", "price": "a$b$c", "rooms": r"$\$"}
    frame["city"] = "$" + frame["city"]
    frame.rename(columns=names).to_csv(path, index=False)
    check([path, "--alpha", "0.01"], "a$b$c", tmp_path)
    of_classes = ["--loss", "logistic", "--alpha", "0.01", "--report", tmp_path / "out.html"]
    assert fit(path, "--target", "city", *of_classes).exit_code == 0


def test_a_report_that_fails_does_not_lose_the_fit(houses, tmp_path, monkeypatch):
    def failing(*args):
        raise ValueError("no picture")

    monkeypatch.setattr(fit_report.pictures, "label", failing)
    out, report = tmp_path / "out.json", tmp_path / "r.html"
    found = fit(houses[1], "--target", "price", "--alpha", "0.1", "--out", out, "--report", report)
    assert found.exit_code == 2
    assert "OPTIMAL" in found.stdout
    assert "no picture" in found.stderr
    assert json.loads(out.read_text())["status"] == ["OPTIMAL"]
    assert not report.exists()


def test_a_table_that_cannot_be_written_does_not_lose_the_fit(houses, tmp_path, monkeypatch):
    def failing(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", failing)
    found = fit(houses[1], "--target", "price", "--alpha", "0.1", "--out", tmp_path / "out.csv")
    assert found.exit_code == 2
    assert "OPTIMAL" in found.stdout
    assert "No space left" in found.stderr
    assert not list(tmp_path.glob("*out.csv*"))


def test_names_that_spreadsheets_take_for_formulas_are_texts(houses, tmp_path):
    frame, _ = houses
    path, out = tmp_path / "names.csv", tmp_path / "out.csv"
    frame.rename(columns={"area": "=cmd|' /C calc'!A1", "rooms": "@SUM(A1)"}).to_csv(path, index=False)
    assert fit(path, "--target", "price", "--alpha", "0.1", "--out", out).exit_code == 0
    with out.open(newline="") as stream:
        names = [row[0] for row in csv.reader(stream)]
    assert "'=cmd|' /C calc'!A1" in names
    assert not any(name.startswith(("=", "+", "-", "@")) for name in names)


def test_categories_and_weights(houses, tmp_path):
    _, path = houses
    words = [path, "--weights", "weight", "--alpha", "0.02", "--loss", "absolute", "--category", "rooms"]
    content, _, page = check(words, "price", tmp_path)
    assert list(content["coefficients"])[:5] == ["area", "new", "city=Oslo", "city=Paris", "city=Rome"]
    assert "rooms=3" in content["coefficients"]
    assert "3 categories: Oslo, Paris, Rome" in page


@pytest.mark.parametrize("option", ["--out", "--report"])
def test_the_data_are_not_overwritten(houses, option, tmp_path, monkeypatch):
    _, path = houses
    monkeypatch.chdir(tmp_path)
    named = path if option == "--out" else tmp_path / "page.html"
    if option == "--report":
        named.symlink_to(path)
    before = path.read_bytes()
    found = fit("houses.csv", "--target", "price", "--alpha", "0.1", option, named)
    assert found.exit_code == 2
    assert "would be overwritten" in " ".join(found.stderr.split())
    assert path.read_bytes() == before


def test_outputs_have_different_names(houses, tmp_path):
    (tmp_path / "page.html").touch()
    (tmp_path / "table.json").symlink_to(tmp_path / "page.html")
    words = ["--out", tmp_path / "table.json", "--report", tmp_path / "page.html"]
    found = fit(houses[1], "--target", "price", "--alpha", "0.1", *words)
    assert found.exit_code == 2
    assert "name two files" in " ".join(found.stderr.split())


def test_a_column_named_as_a_category_is_refused(houses, tmp_path):
    """One of the two would be dropped, and the certificate be that of another model."""
    frame, _ = houses
    path = tmp_path / "twins.csv"
    frame.assign(**{"city=Paris": frame["area"]}).to_csv(path, index=False)
    refused = fit(path, "--target", "price", "--alpha", "0.1")
    assert refused.exit_code == 2
    assert "2 features have the name 'city=Paris'" in " ".join(refused.stderr.split())
    frame.assign(**{"a=b": frame["city"], "a": "b=" + frame["city"]}).to_csv(path, index=False)
    assert "'a=b=Oslo'" in fit(path, "--target", "price", "--alpha", "0.1").stderr
    kept = ["--column", "city=Paris", "--column", "area"]
    frame.assign(**{"city=Paris": frame["area"]}).to_csv(path, index=False)
    assert fit(path, "--target", "price", "--alpha", "0.1", *kept).exit_code == 0


WRITTEN = st.text(st.sampled_from('a1,"\n\r e.+-_\t'), max_size=30)
NUMBERS = st.one_of(
    st.floats().map(repr),
    st.integers().map(str),
    st.text(st.sampled_from("0123456789.eE+-_ infaNTrue\t\u0661\xa0"), max_size=12),
)


def both(monkeypatch, path):
    """Return what the two readers of CSV files make of a file: its names and texts, or None for a mistake."""
    monkeypatch.setattr(csv_tables, "LEAST_BYTES", 0)
    names, by_arrow, _ = csv_tables._read(path)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pyarrow", None)
        other, by_csv, _ = csv_tables._read(path)
    assert names == other
    return by_arrow, by_csv


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(written=WRITTEN)
def test_both_readers_find_the_same_texts(written, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    path = tmp_path / "any.csv"
    path.write_bytes(written.encode())
    try:
        by_arrow, by_csv = both(monkeypatch, path)
    except ValueError:
        return
    assert [column.texts for column in by_arrow] == [column.texts for column in by_csv]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(NUMBERS, min_size=1, max_size=5))
def test_both_readers_find_the_same_numbers(texts, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    path = tmp_path / "any.csv"
    pd.DataFrame({"a": texts, "b": "x"}).to_csv(path, index=False, quoting=csv.QUOTE_ALL)
    (one, _), (other, _) = both(monkeypatch, path)
    assert not isinstance(one.column, list)  # Arrow has read it
    assert (one.plain is None) is (other.plain is None)
    if one.plain is not None and other.plain is not None:
        np.testing.assert_array_equal(one.plain, other.plain)
        assert np.isfinite(one.plain).all()


def test_a_file_that_arrow_takes_for_wrong_is_told_by_row(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(csv_tables, "LEAST_BYTES", 0)
    for text, said in {
        "a,b\n1,2\n3\n": "has 1 values in row 2 below the names: expected 2",
        "a,b\n": "has no rows below the line of names",
        "\n": "is empty",
        'a,b\n1,"' + "2" * 200_000: r"cannot be read from line 2 on .*is a quotation mark there not closed",
        'a,b\n1,"' + "2" * 200_000 + '"\n': r"cannot be read from line 2 on",
    }.items():
        (tmp_path / "wrong.csv").write_text(text)
        with pytest.raises(ValueError, match=said):
            read_csv(tmp_path / "wrong.csv", "a", None, None, False, [])


def test_an_unclosed_quotation_mark_in_a_large_file_is_one_line(houses, tmp_path):
    text = houses[1].read_text() * 50
    (tmp_path / "open.csv").write_text(text[:100] + '"' + text[100:])
    found = fit(tmp_path / "open.csv", "--target", "price")
    assert found.exit_code == 2
    assert found.stderr.startswith("Error: ")
    assert "open.csv" in found.stderr


@pytest.mark.parametrize("kind", ["tall", "wide"])
def test_a_file_is_read_in_time_that_grows_as_it_does(kind, tmp_path, monkeypatch):
    shape = (3, 30_000) if kind == "wide" else (3000, 30)
    frame = pd.DataFrame(np.ones(shape)).rename(columns=str)
    frame.to_csv(tmp_path / "large.csv", index=False)
    begun = process_time()
    table = read_csv(tmp_path / "large.csv", "0", None, None, False, [])
    assert len(table.features) == shape[1] - 1
    assert process_time() - begun < 20.0  # with a square of the columns, minutes


def test_alpha_that_cannot_be_chosen_is_asked_for(houses, tmp_path):
    frame, _ = houses
    few, one = tmp_path / "few.csv", tmp_path / "one.csv"
    frame.head(4).to_csv(few, index=False)
    frame.assign(weight=np.arange(80) == 7).to_csv(one, index=False)
    for words in ([few, "--column", "area"], [one, "--weights", "weight"]):
        found = fit(*words, "--target", "price")
        assert found.exit_code == 2
        said = " ".join(found.stderr.split())
        assert said.startswith("Error: --alpha is missing, and cannot be chosen: ")
        assert "cv" not in said
        assert fit(*words, "--target", "price", "--alpha", "0.1").exit_code == 0


@pytest.mark.parametrize("value", ["1e308", "-1e308", "1e200"])
def test_numbers_that_cannot_be_computed_with_are_named(value, houses, tmp_path):
    frame, _ = houses
    path = tmp_path / "large.csv"
    for name in ("area", "price", "weight"):
        changed = frame.astype({name: object})
        changed.loc[7, name] = value
        changed.to_csv(path, index=False)
        found = fit(path, "--target", "price", "--weights", "weight", "--alpha", "0.1")
        assert found.exit_code == 2
        said = " ".join(found.stderr.split())
        assert f"column '{name}' has the value" in said
        assert "expected numbers of at most 1e+120 in size" in said


def test_class_labels_that_are_no_integers_are_texts(tmp_path):
    for labels in (["--5", "+3"], [str(10**30), "7"], ["1" * 5000, "2"], ["\u0661", "2"]):
        pd.DataFrame({"y": labels * 20, "x": np.arange(40.0)}).to_csv(tmp_path / "labels.csv", index=False)
        found = fit(tmp_path / "labels.csv", "--target", "y", "--loss", "logistic", "--alpha", "0.1", "--json")
        assert found.exit_code == 0, found.output
        assert json.loads(found.stdout)["classes"] == sorted(labels)
    pd.DataFrame({"y": ["+5", " 3"] * 20, "x": np.arange(40.0)}).to_csv(tmp_path / "labels.csv", index=False)
    table = read_csv(tmp_path / "labels.csv", "y", None, None, True, [])
    assert set(table.target.values.tolist()) == {3, 5}


@pytest.mark.parametrize("words", ["--column price", "--weights price", "--column area --column area"])
def test_a_column_has_one_use(houses, words):
    found = fit(houses[1], "--target", "price", *words.split())
    assert found.exit_code == 2
    assert "is given twice" in found.stderr


def test_what_is_refused(houses, tmp_path):
    frame, path = houses
    damaged = tmp_path / "damaged.csv"

    def said(table, *words):
        table.to_csv(damaged, index=False)
        refused = fit(damaged, "--target", "price", *words)
        assert refused.exit_code == 2
        return refused.stderr.replace("\n", " ")

    holes = frame.astype({"rooms": float})
    holes.loc[3:5, "rooms"] = np.nan
    holes.loc[5:6, "city"] = None
    assert "missing values in 4 of 80 rows, by column: city (2), rooms (3)" in said(holes).replace(
        "rooms (3), city (2)", "city (2), rooms (3)"
    )
    odd = frame.astype({"area": str})
    odd.loc[7, "area"] = "?"
    assert "column 'area' has 79 numbers and 1 other values, such as '?'" in said(odd)
    assert "for classes use a loss of a classifier" in said(frame.assign(price="high"))
    assert "did you mean 'area'?" in said(frame, "--column", "areas")
    keys = pd.concat([frame] * 2).assign(key=[f"k{i}" for i in range(160)])
    assert "which are names rather than categories" in said(keys)
    refused = fit(path, "--target", "price", "--report", tmp_path / "out.pdf")
    assert "expected a file that ends in .html" in refused.stderr.replace("\n", " ")
