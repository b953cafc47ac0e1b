"""The code in the documentation runs, and its links are valid."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import re
import runpy
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from optional import optional
from sklearn.isotonic import IsotonicRegression

import saddleback as sb

cp = optional("cvxpy")

ROOT = Path(__file__).resolve().parents[1]
MODULES = [module.name for module in pkgutil.walk_packages(sb.__path__, "saddleback.") if "_native" not in module.name]


def python_blocks(text):
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def test_the_readme_runs_from_top_to_bottom(capsys):
    blocks = python_blocks((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(blocks) >= 6
    names = {}
    for block in blocks:
        exec(block, names)
        assert names["result"].status is sb.Status.OPTIMAL
    assert "Result(OPTIMAL" in capsys.readouterr().out


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_the_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


WRITTEN = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("*/*.md")]
BESIDE = ["README.md", "CONTRIBUTING.md", "RELEASING.md", "SECURITY.md"]
PAGES = [*BESIDE, *sorted(path.relative_to(ROOT).as_posix() for path in WRITTEN)]
OTHERS = ("docs/index.md", "docs/development/contributing.md", "docs/development/changelog.md")
"""The landing page, and pages of the site that only include a file."""
LESSONS = [page for page in PAGES if page.startswith(("docs/install", "docs/tutorials/", "docs/coming_from/"))]


@pytest.mark.parametrize("page", PAGES)
def test_the_links_are_valid(page):
    """This covers links to files and links to headings of pages."""
    path = ROOT / page
    links = re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)\)", path.read_text(encoding="utf-8"))
    for target, anchor in links:
        file = path.parent / target if target else path
        assert file.is_file(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_the_files_and_folders_that_a_page_names_exist(page):
    names = re.findall(r"`([\w.]+/[\w./]*)`", (ROOT / page).read_text(encoding="utf-8"))
    roots = ROOT, ROOT / "src/saddleback"
    missing = [name for name in names if not any((root / name).exists() for root in roots)]
    assert {name for name in missing if not name.startswith(("out/", "build/"))} == set()  # runs create those


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/") and page not in OTHERS])
def test_a_page_begins_with_what_one_can_do_after_reading_it(page):
    opening = (ROOT / page).read_text(encoding="utf-8").split("\n\n")[1]
    assert opening.startswith("After reading this page you ")


@pytest.mark.parametrize("page", WRITTEN, ids=lambda path: path.stem)
def test_every_page_is_in_the_navigation_of_the_site(page):
    tables = {
        (other.parent / re.sub(r".*<|>", "", entry)).resolve()
        for other in WRITTEN
        for block in re.findall(r"^```{toctree}\n(.*?)^```", other.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        for entry in block.splitlines()
        if entry and not entry.startswith(":")
    }
    assert page.with_suffix("") in tables or (page.name == "index.md" and page.parent.name == "docs")


def test_the_reference_has_every_public_name():
    text = (ROOT / "docs" / "api" / "index.md").read_text(encoding="utf-8")
    for module in (
        sb,
        importlib.import_module("saddleback.estimators"),
        importlib.import_module("saddleback.datasets"),
    ):
        blocks = re.findall(rf"currentmodule:: {module.__name__}\n(.*?)```", text, flags=re.DOTALL)
        names = [name for block in blocks for name in re.findall(r"^   (\w+)$", block, flags=re.MULTILINE)]
        assert sorted(names) == sorted(module.__all__)


@pytest.mark.parametrize("page", [page for page in ["docs/index.md", *LESSONS] if page != "docs/tutorials/mpi.md"])
def test_the_code_of_tutorials_runs(page, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for block in python_blocks((ROOT / page).read_text(encoding="utf-8")):
        exec(block, names)
    result = names.get("result", getattr(names.get("model"), "result_", None))
    assert result is None or result.status is sb.Status.OPTIMAL


def test_the_program_of_the_tutorial_on_mpi_runs(tmp_path):
    beside = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    if mpiexec is None:
        pytest.skip("no mpiexec")
    (program,) = python_blocks((ROOT / "docs" / "tutorials" / "mpi.md").read_text(encoding="utf-8"))
    (tmp_path / "fit.py").write_text(program, encoding="utf-8")
    done = subprocess.run([mpiexec, "-n", "2", sys.executable, "fit.py"], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout.startswith(b"[")


def test_the_page_on_estimators_runs(capsys):
    names = {}
    for block in python_blocks((ROOT / "docs" / "estimators.md").read_text(encoding="utf-8")):
        exec(block, names)
        assert names["model"].result_.status is sb.Status.OPTIMAL
        if "same = " in block:
            assert np.array_equal(names["model"].coef_, names["same"].coef_)


def test_the_page_on_inference_runs(capsys):
    pytest.importorskip("matplotlib").use("Agg")
    names = {}
    for block in python_blocks((ROOT / "docs" / "inference.md").read_text(encoding="utf-8")):
        exec(block, names)
        assert names["model"].result_.status is sb.Status.OPTIMAL
    assert "std. error" in capsys.readouterr().out


def test_the_page_on_robust_pca_runs():
    names = {}
    for block in python_blocks((ROOT / "docs" / "robust_pca.md").read_text(encoding="utf-8")):
        exec(block, names)
    assert names["pca"].result_.status is sb.Status.OPTIMAL


def test_the_page_on_signals_runs(capsys):
    pytest.importorskip("matplotlib").use("Agg")
    names = {}
    for block in python_blocks((ROOT / "docs" / "signals.md").read_text(encoding="utf-8")):
        exec(block, names)
        assert names["model"].result_.status is sb.Status.OPTIMAL
    assert names["result"].status is sb.Status.OPTIMAL


def test_the_page_on_cvxpy_runs(capsys):
    names = {}
    blocks = python_blocks((ROOT / "docs" / "cvxpy.md").read_text(encoding="utf-8"))
    exec(blocks[0], names)
    assert names["result"].objective == pytest.approx(names["program"].value, rel=1e-5)
    exec(blocks[1], names)
    value = names["problem"].objective(names["result"].objective)
    assert value == pytest.approx(names["objective"].value, rel=1e-5)
    assert value == pytest.approx(names["program"].solve(solver="CLARABEL"), rel=1e-5)
    exec(blocks[2], names)
    assert "cannot be read" in capsys.readouterr().out


def test_the_page_on_own_code_runs(capsys):
    names = {}
    for block in python_blocks((ROOT / "docs" / "own_code.md").read_text(encoding="utf-8")):
        exec(block, names)
        assert names["result"].status is sb.Status.OPTIMAL
    assert "prox and value of Slip do not belong together" in capsys.readouterr().out


def test_the_page_on_modelling_runs():
    """Every recipe is solved, and if another library can solve it too, the results agree."""
    names, results = {}, []
    for block in python_blocks((ROOT / "docs" / "modelling.md").read_text(encoding="utf-8")):
        exec(block, names)
        results.append(names.get("result"))
    assert len(results) == 31
    assert all(result.status is sb.Status.OPTIMAL for result in results[1:])
    assert np.allclose(names["increasing"], IsotonicRegression().fit_transform(np.arange(40), names["y"]), atol=1e-3)
    x = cp.Variable(names["n"])
    differences = 0.5 * cp.norm1(cp.diff(x))
    denoised = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(x - names["noisy"]) + differences))
    for several_losses_or_prox in (results[9], results[10]):
        assert several_losses_or_prox.objective == pytest.approx(denoised.solve(solver="CLARABEL"), rel=1e-5)
    residual, sparse = names["A"] @ x - names["b"], 0.1 * cp.norm1(x)
    absolute = cp.Problem(cp.Minimize(cp.norm1(residual) + differences + sparse))
    for several_losses_or_prox in (results[11], results[12]):
        assert several_losses_or_prox.objective == pytest.approx(absolute.solve(solver="CLARABEL"), rel=1e-5)
    shares = cp.Variable(30)
    risk = 0.5 * names["gamma"] * cp.sum_squares(names["deviations"] @ shares)
    portfolio = cp.Problem(
        cp.Minimize(risk - names["mean"] @ shares), [cp.sum(shares) == 1, shares >= 0, shares <= 0.2]
    )
    assert results[14].objective == pytest.approx(portfolio.solve(solver="CLARABEL"), rel=1e-4)
    robust = 0.5 * cp.sum(cp.huber(residual, 0.5)) + 0.4 * differences + sparse
    several = cp.Problem(cp.Minimize(robust), [cp.abs(cp.sum(x)) <= 1])
    assert results[2].objective == pytest.approx(several.solve(solver="CLARABEL"), rel=1e-5)


def test_the_self_contained_examples_on_scaling_run(tmp_path, monkeypatch, capsys):
    """These are the examples that generate their data, two of them in files; those on tall data use the same files."""
    monkeypatch.chdir(tmp_path)
    blocks = python_blocks((ROOT / "docs" / "scaling.md").read_text(encoding="utf-8"))
    tall = [block for block in blocks if "costs-" in block]
    alone = [block for block in blocks if "default_rng" in block or "make_lasso" in block]
    assert (len(tall), len(alone)) == (3, 3)
    names: dict[str, object] = {}
    for block in tall:
        exec(block, names)
    for block in alone[1:]:
        exec(block, {})


EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
QUICK = ("plot_joint_quantiles", "plot_compressed_sensing")
"""Examples that the fast tests run; together the others take a minute of processor time."""


@pytest.mark.parametrize(
    "example",
    [pytest.param(path, id=path.stem, marks=() if path.stem in QUICK else pytest.mark.slow) for path in EXAMPLES],
)
def test_the_examples_draw_a_picture_in_a_minute(example, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib").use("Agg")
    plt = importlib.import_module("matplotlib.pyplot")
    plt.close("all")
    monkeypatch.setattr(plt, "show", lambda: None)
    before = time.process_time()  # which other processes do not affect
    names = runpy.run_path(str(example))
    assert time.process_time() - before < 60
    found = [getattr(value, "result_", value) for value in names.values()]
    # centred columns of a complete set of categories depend on each other up to rounding, which may be the limit
    assert all(result.status.solved for result in found if isinstance(result, sb.Result))
    assert plt.get_fignums() == [1]
    for axis in plt.gcf().axes:
        assert axis.get_xlabel() or axis.get_ylabel() or axis.get_title() or not len(axis.get_xticks())
    plt.savefig(tmp_path / "picture.png")
    plt.close("all")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_asks_a_question_and_uses_public_names(example):
    text = example.read_text(encoding="utf-8")
    title, line = ast.get_docstring(ast.parse(text)).splitlines()[:2]
    assert title.endswith("?")
    assert line == "=" * len(title)
    modules = set(re.findall(r"^(?:from|import) (saddleback[\w.]*)", text, flags=re.MULTILINE))
    assert modules <= {"saddleback", "saddleback.estimators", "saddleback.datasets"}
    assert example.name.startswith("plot_")  # what the gallery runs
    assert (example.parent / "README.rst").is_file()


def test_the_counterexample_of_the_theory_page_ends_as_it_says(capsys):
    (block,) = python_blocks((ROOT / "docs" / "theory" / "guarantees.md").read_text(encoding="utf-8"))
    exec(block, {})
    assert capsys.readouterr().out == "DIVERGED OPTIMAL\n"


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "theory").glob("*.md")), ids=lambda path: path.stem)
def test_a_page_on_theory_is_short(page):
    assert len(page.read_text(encoding="utf-8").split()) <= 2500


CERTIFYING = (
    "certificates.certificate",
    "certificates.balance",
    "common.rounded",
    "functions.excess",
    "functions.isotonic",
    "result",
)
"""Modules with thresholds that the pages on the certificate and on rounding name, each after its value."""


@pytest.mark.parametrize("page", ["certificate", "rounding"])
def test_the_thresholds_of_the_theory_pages_are_those_of_the_code(page):
    modules = [importlib.import_module(f"saddleback.{name}") for name in CERTIFYING]
    text = " ".join((ROOT / "docs" / "theory" / f"{page}.md").read_text(encoding="utf-8").split())
    named = list(re.finditer(r"\(`([A-Z]{3,})`\)", text))
    assert len(named) >= 8
    for found in named:
        before, name = text[: found.start()].rpartition(". ")[2], found[1]
        value = next(vars(module)[name] for module in modules if name in vars(module))
        if isinstance(value, tuple):
            value = 1.0 - min(value)
        power = np.log2(value)
        words = {f"{value:g}", f"2^{power:g}", f"{2.0 ** (53 + power):.0f} u", {3: "three"}.get(value, "no word")}
        assert any(word in before for word in words), f"{name} = {value:g}: {before}"
