"""What a notebook shows: cards of problems and results, and progress that is one output."""

from __future__ import annotations

import re
import subprocess
import sys
from types import ModuleType
from xml.etree import ElementTree

import numpy as np
import pytest

import saddleback as sb
import saddleback.estimators as se
from saddleback.common import bars
from saddleback.common.cards import Curve, card


@pytest.fixture
def problem(rng):
    A = rng.standard_normal((60, 100))
    return sb.Problem(sb.L1(1.0), A, sb.Absolute(A[:, :3].sum(axis=1) + rng.standard_normal(60)))


def texts(html):
    """Return the texts of a card, which has to be well-formed and without scripts."""
    assert "<script" not in html
    return [text.strip() for text in ElementTree.fromstring(html).itertext() if text.strip()]


def test_a_result_shows_status_bounds_sparsity_and_the_gap(problem):
    result = sb.solve(problem, method="sp-bcd")
    said, c = texts(result._repr_html_()), result.certificate
    assert said[:2] == ["Result", "OPTIMAL"]
    assert said[said.index("objective") + 1] == f"{c.primal_value:.10g}"
    assert said[said.index("lower bound") + 1] == f"{c.dual_value:.10g}"
    assert said[said.index("not 0 in x") + 1] == f"{np.count_nonzero(result.x)} of 100"
    assert said[-1] == result.message
    points = re.search(r'points="([^"]*)"', result._repr_html_()).group(1).split()
    assert len(points) == np.isfinite(result.history.error).sum()
    heights = [float(point.split(",")[1]) for point in points]
    assert heights[-1] == max(heights)  # SVG counts downwards: the last error is the smallest
    assert set(texts(c._repr_html_())) <= {*said, "Certificate"}


def test_a_proof_that_there_is_no_solution_shows_no_bounds():
    result = sb.solve(sb.Problem(sb.Box(0.0, 1.0), np.ones((1, 3)), sb.Equality([5.0])))
    said = texts(result._repr_html_())
    assert "INFEASIBLE" in said
    assert said[said.index("ray") + 1] == "1 of 1 rows"
    assert "objective" not in said


def test_a_problem_shows_every_term(problem):
    assert {"f", "L1(alpha=1.0)", "60 x 100", "100"} <= set(texts(problem._repr_html_()))
    A = np.eye(3)
    several = sb.Problem([sb.L1(1.0), sb.Zero()], [[A, None], [A, A]], [sb.Squared(np.ones(3)), sb.L1(2.0)])
    assert {"f[0]", "f[1]", "g[0]", "g[1]", "6 x 6"} <= set(texts(several._repr_html_()))


def test_a_path_shows_how_many_features_it_selects(rng):
    X = rng.standard_normal((40, 8))
    along = se.Lasso().path(X, X[:, 0], n_alphas=5)
    said = texts(along._repr_html_())
    assert said[:2] == ["Path", "5 of 5 OPTIMAL"]
    counts = np.count_nonzero(along.coefs, axis=0)
    assert said[-1] == f"features that are not 0: from {counts[0]} to {counts[-1]}"


def test_estimators_keep_the_diagram_of_scikit_learn(rng):
    X = rng.standard_normal((40, 8))
    model = se.LassoCV(n_alphas=5).fit(X, X[:, 0] + 0.1 * rng.standard_normal(40))
    assert "sk-top-container" in model._repr_html_()
    assert texts(model.result_._repr_html_())[0] == "Result"


def test_texts_are_escaped_and_shortened():
    html = card("<b>", {"a&b": "<script>" + "x" * 1000}, ("<i>", "red"), Curve([0, 1], [1, 2], '"<u>"'), "<p>")
    said = texts(html)
    assert said[0] == "<b>"
    assert max(map(len, said)) < 200
    assert 'aria-label="&quot;&lt;u&gt;&quot;"' in html


def test_a_curve_of_infinite_or_equal_values():
    assert "<svg" not in card("", {}, curve=Curve([0, 1], [np.inf, 1.0], ""))
    assert "nan" not in card("", {}, curve=Curve([0, 1, 2], [np.inf, 1.0, 1.0], "", log=True))


def test_a_bar_in_a_notebook_is_one_output_that_changes(monkeypatch):
    outputs, changes = [], []

    class Output:
        def update(self, html):
            changes.append(html)

    def display(html, display_id):
        assert display_id
        outputs.append(html)
        return Output()

    fake = ModuleType("IPython.display")
    fake.HTML, fake.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    from rich.progress import MofNCompleteColumn

    with bars.bar(MofNCompleteColumn()) as bar:
        task = bar.add_task("", total=200)
        for done in range(100):
            bar.update(task, completed=done)
        bar.advance(task, 101)
    assert len(outputs) == 1
    assert len(changes) < 50  # not one per update
    assert "200/200" in changes[-1]


NOTEBOOK = """
import nbclient, nbformat

code = '''
import numpy as np, saddleback as sb
A = np.random.default_rng(0).standard_normal((100, 200))
sb.solve(sb.Problem(sb.L1(1.0), A, sb.Absolute(A[:, 0])), method="sp-bcd", progress=True)
'''
book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
nbclient.NotebookClient(book).execute()
for output in book.cells[0].outputs:
    print(output.output_type, "certified" in output.get("data", {}).get("text/html", ""))
"""


@pytest.mark.slow
def test_progress_in_a_real_notebook():
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    done = subprocess.run([sys.executable, "-c", NOTEBOOK], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["display_data True", "execute_result True"]
