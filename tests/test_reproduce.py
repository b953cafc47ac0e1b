"""The experiments: traces record the iterations of the methods, and tables contain the recorded results."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from test_cli import run

import saddleback as sb
from saddleback.datasets import interactions, load_memset, make_lasso
from saddleback.reproduce import EXPERIMENTS, group_lasso, lasso, rpca, steps
from saddleback.reproduce.experiment import Contender, Curve, Panel, Picture, Runs, Table
from saddleback.reproduce.figures import draw, line_styles
from saddleback.reproduce.search import best_of
from saddleback.reproduce.tables import column_parts, markdown, print_table, text, write_csv
from saddleback.reproduce.trace import certified_optimum, trace


@pytest.fixture(scope="module")
def problem():
    data = make_lasso(40, 100, 10)
    return sb.Problem(sb.L1(data.alpha), data.A, sb.Squared(data.b))


def test_a_trace_counts_the_iterations_of_the_method_and_nothing_else(problem):
    found = trace(problem, Contender("ISTA", "ista"), budget=10)
    np.testing.assert_allclose(found.passes, np.arange(11))
    # the Lipschitz constant belongs to the set-up
    assert found.setup > 0
    assert np.all(np.diff(found.seconds) >= 0)


def test_the_frequency_of_records_does_not_change_the_run(problem):
    often, seldom = (trace(problem, Contender("FISTA", "fista"), 20, every) for every in (1.0, 5.0))
    np.testing.assert_allclose(seldom.objective, often.objective[::5])


def test_the_objective_falls_to_the_certified_optimum(problem):
    optimum = certified_optimum(problem)
    found = trace(problem, Contender("repaired", "sp-bcd", {"finish": False}, 10), 200)
    assert optimum.error <= 1e-9
    assert found.suboptimality(optimum.value)[-1] < 1e-8
    assert found.passes_until(found.suboptimality(optimum.value), 1e-3) < found.passes_until(
        found.suboptimality(optimum.value), 1e-6
    )
    assert found.after(0, found.objective) > found.after(50, found.objective)


def test_a_run_that_diverges_says_so():
    from saddleback.reproduce.counterexamples import lasso_c1

    assert trace(lasso_c1(), Contender("published", "sp-bcd-published", {}, 1), 1000).diverged


def test_the_search_chooses_the_best_value_and_lists_all(problem):
    optimum = certified_optimum(problem)
    said = []
    chosen, tried = best_of(
        Contender("ADMM", "admm", search=("rho", (0.001, 1.0, 1000.0))),
        lambda each: trace(problem, each, 30),
        lambda found: found.suboptimality(optimum.value)[-1],
        said.append,
    )
    assert chosen.options == {"rho": 1.0}
    assert chosen.search is None
    assert [value for value, _ in tried] == [0.001, 1.0, 1000.0]
    assert len(said) == 3


def test_tables_have_means_for_readers_and_all_runs_in_the_file(tmp_path):
    table = Table("t", "T", ("method", "passes"), [["a", Runs([1.0, 3.0])], ["b", None], ["c", float("inf")]])
    assert [text(entry) for _, entry in table.rows] == ["2 ± 1.41", "-", "∞"]
    assert "| a | 2 ± 1.41 |" in markdown(table)
    with write_csv(table, tmp_path).open() as file:
        assert list(csv.reader(file)) == [["method", "passes"], ["a", "1.0 3.0"], ["b", ""], ["c", "inf"]]


def test_every_contender_is_accepted_by_its_problem(problem):
    """An unknown option, or a method that cannot treat the problem, would raise an error."""
    small = lasso.Size(40, 100, 10, 5, 1.0)
    for row in lasso.contenders(small):
        assert not trace(problem, row, 2).diverged
    data, _ = group_lasso.sites(group_lasso.Settings(quick=True))
    hinge = group_lasso.problem_of(data, 1e-4)
    for row in group_lasso.contenders(data.labels.size):
        if row.blocks != 1:
            assert not trace(hinge, row, 2, 2).diverged


def test_memset_reads_the_original_format(tmp_path):
    (tmp_path / "memset").mkdir()
    (tmp_path / "memset" / "train5_hs").write_text("> 5\nCAGAAGT\n> 5\naagaagt\n")
    (tmp_path / "memset" / "train0_5_hs").write_text("> 0\nTTTTTTT\n> 0\nGGGGGGG\n> 0\nCCCCCCC\n")
    data = load_memset(tmp_path)
    np.testing.assert_array_equal(data.sites[:2], [[1, 0, 2, 0, 0, 2, 3], [0, 0, 2, 0, 0, 2, 3]])
    np.testing.assert_array_equal(data.labels, [1, 1, -1, -1])
    assert (interactions(data.sites)[0] != data.A).nnz == 0
    assert load_memset(tmp_path, sites=1).labels.size == 2
    with pytest.raises(ValueError, match="sites=3: expected a number from 1 to 2"):
        load_memset(tmp_path, sites=3)


def test_memset_says_what_is_missing(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"train5_hs: no such file; expected the original MEMset"):
        load_memset(tmp_path)
    monkeypatch.delenv("SADDLEBACK_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="SADDLEBACK_DATA is not set"):
        load_memset()


def test_the_command_writes_tables_and_figures(tmp_path, monkeypatch):
    monkeypatch.setattr(lasso, "QUICK", (lasso.Size(40, 100, 10, 5, 5.0),))
    monkeypatch.setattr(lasso, "REGULARISATION", (0.1, 1.0))
    result = run("reproduce", "lasso", "--quick", "--json", "--out", tmp_path / "new")
    assert result.exit_code == 0
    rows = json.loads(result.stdout)["lasso-40x100"]
    assert [row["method"] for row in rows][:2] == ["ISTA", "FISTA"]
    assert rows[0]["paper: passes"] == 100
    assert {path.name for path in (tmp_path / "new").iterdir()} == {
        *(f"{name}.{kind}" for name in ("lasso-40x100", "lasso-search", "lasso-optima") for kind in ("csv", "md")),
        "lasso.png",
    }


def test_robust_pca_on_a_small_problem(tmp_path, monkeypatch):
    monkeypatch.setattr(rpca, "QUICK", (30, 75, 2))
    monkeypatch.setattr(rpca, "MOST", 60)
    monkeypatch.setattr(rpca, "RHO", (1.0,))
    result = run("reproduce", "rpca", "--quick", "--json", "--out", tmp_path)
    assert result.exit_code == 0
    rows = {row["method"]: row for row in json.loads(result.stdout)["rpca"]}
    assert rows["SP-BCD1, sigma = 1"]["iterations"] == [None]
    assert rows["GSADMM"]["iterations"][0] < 40
    assert rows["GSADMM"]["residual"][0] < 1e-3


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [(["everything"], "expected one of lasso, rpca, group-lasso, steps, or all"), (["lasso", "--runs", 0], "--runs 0")],
)
def test_bad_arguments(arguments, complaint, tmp_path):
    result = run("reproduce", *arguments, "--out", tmp_path)
    assert result.exit_code == 2
    assert complaint in result.output


def test_all_experiments_are_listed():
    assert list(EXPERIMENTS) == ["lasso", "rpca", "group-lasso", "steps"]
    assert [proved for _, proved in steps.rules(1)] == ["no", "no", "yes", "yes", "yes", "yes"]


LABELS = ["ADMM", "PDMM1", "PDMM2", "repaired, K = 1", "repaired, K = 2", *(f"SP-BCD, K = {K}" for K in range(1, 7))]


def picture(labels):
    decades = np.arange(1.0, 20.0)
    curves = [Curve(label, decades, np.exp(-number * decades)) for number, label in enumerate(labels, 1)]
    return Picture("curves", [[Panel("a problem", across, "error", curves) for across in ("passes", "seconds")]])


@pytest.mark.parametrize("labels", [LABELS, ["default of saddleback", *map(str, "abcdefghijklmnopqrs")]])
def test_no_two_curves_look_alike(labels):
    styles = line_styles(picture(labels))
    assert list(styles) == labels
    assert len({str(style) for style in styles.values()}) == len(labels)


def test_variants_of_a_method_share_a_colour():
    styles = line_styles(picture(LABELS))
    assert styles["PDMM1"]["color"] == styles["PDMM2"]["color"] != styles["ADMM"]["color"]


def test_the_legend_covers_no_curve(tmp_path, monkeypatch):
    figures = []
    matplotlib_figure = pytest.importorskip("matplotlib.figure")
    made = matplotlib_figure.Figure

    def remembered(**arguments):
        figures.append(made(**arguments))
        return figures[-1]

    monkeypatch.setattr(matplotlib_figure, "Figure", remembered)
    assert draw(picture(LABELS), tmp_path).is_file()
    (figure,) = figures
    (legend,) = figure.legends
    assert [entry.get_text() for entry in legend.get_texts()] == LABELS
    assert all(axes.get_legend() is None for axes in figure.axes)
    assert not any(legend.get_window_extent().overlaps(axes.get_window_extent()) for axes in figure.axes)
    assert [axes.get_xscale() for axes in figure.axes] == ["linear", "log"]


@pytest.mark.parametrize("width", [40, 80, 120, 180])
def test_wide_tables_are_shown_in_parts(width):
    headings = ["method", *(f"a heading of column {number}" for number in range(10))]
    table = Table("wide", "A wide table", headings, [[f"method {row}", *([row / 3] * 10)] for row in range(3)])
    parts = column_parts(table, width)
    assert (len(parts) == 1) == (width >= 120)
    assert sorted({column for part in parts for column in part}) == list(range(11))
    assert sum(map(len, parts)) == 10 + len(parts)
    assert all(part[0] == 0 for part in parts)
    entries = [[*table.columns[column].split(), *(text(row[column]) for row in table.rows)] for column in range(11)]
    for part in parts:
        assert len(part) == 2 or 1 + sum(3 + max(map(len, entries[column])) for column in part) <= width


def test_no_word_of_a_table_is_broken_in_a_file_or_a_pipe(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    headings = ["application", *(f"published, restarted {number}" for number in range(10))]
    print_table(Table("wide", "A wide table", headings, [["classification", *([0.5] * 10)]]))
    shown = capsys.readouterr().out
    for word in ("application", "published,", "restarted", "classification"):
        assert word in shown


def test_each_part_of_a_table_identifies_its_rows():
    rows = [[alpha, method, 1.0, 2.0] for alpha in ("1e-04", "1e-05") for method in ("ADMM", "PDCP")]
    parts = column_parts(Table("two keys", "", ["alpha", "method", "passes", "seconds"], rows), 30)
    assert parts == [[0, 1, 2], [0, 1, 3]]
