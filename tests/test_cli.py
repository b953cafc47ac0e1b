"""The command line, run as a separate program."""

from __future__ import annotations

import json
import re
import sys

import numpy as np
import pytest
from test_files import MAXIMISE, write_mps
from typer.testing import CliRunner

import saddleback as sb
from saddleback.cli import app


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def lasso(tmp_path):
    """A file with a Lasso whose solution is (2, 0, 0)."""
    path = tmp_path / "lasso.npz"
    np.savez(path, A=np.eye(3), b=np.array([3.0, -0.5, 1.0]), alpha=1.0)
    return path


def test_version():
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout == f"saddleback {sb.__version__}\n"


def test_demo(tmp_path):
    result = run("demo", "--out", tmp_path / "new")
    assert result.exit_code == 0
    assert result.stdout.count("OPTIMAL") == 2
    assert (tmp_path / "new" / "saddleback-demo.png").read_bytes().startswith(b"\x89PNG")


def test_demo_without_matplotlib_prints_json_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("demo", "--json", "--out", tmp_path)
    assert result.exit_code == 0
    content = json.loads(result.stdout)
    assert content["picture"] is None
    assert [entry["status"] for entry in content["runs"]] == ["OPTIMAL", "OPTIMAL"]
    assert [entry["name"] for entry in content["runs"]] == ["group hinge", "Lasso"]


def test_solve_prints_the_certificate_and_writes_the_solution(lasso, tmp_path):
    out = tmp_path / "solution"
    result = run("solve", lasso, "--tol", "1e-9", "--out", out)
    assert result.exit_code == 0
    for word in ("OPTIMAL", "objective", "gap", "infeasibility", "passes", "seconds", "descent"):
        assert word in result.stdout
    with np.load(out) as solution:
        np.testing.assert_allclose(solution["x"], [2.0, 0.0, 0.0], atol=1e-4)
        np.testing.assert_allclose(solution["y"], [-1.0, 0.5, -1.0], atol=1e-4)


def test_stdout_has_nothing_but_json(lasso):
    result = run("solve", lasso, "--json", "--progress")
    content = json.loads(result.stdout)
    assert result.exit_code == 0
    assert content["objective"] == pytest.approx(3.125)
    assert content["certificate"]["relative_gap"] <= 1e-6
    assert {"status", "message", "method", "passes", "seconds", "out"} <= set(content)


def test_json_has_null_for_numbers_that_are_not_finite(tmp_path):
    path = tmp_path / "infeasible.npz"
    np.savez(path, A=np.ones((2, 1)), b=np.array([0.0, 1.0]), loss="Equality", penalty="Zero")
    result = run("solve", path, "--json", "--max-passes", 1)
    assert result.exit_code == 1
    json.loads(result.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_the_options_reach_the_solver(lasso):
    content = json.loads(run("solve", lasso, "--json", "--method", "pdhg", "--tol", 0, "--max-passes", 20).stdout)
    assert content["method"] == "pdhg"
    assert content["status"] == "MAX_PASSES"
    limited = json.loads(run("solve", lasso, "--json", "--tol", 0, "--max-passes", 1e9, "--time-limit", 0.05).stdout)
    assert limited["status"] == "TIME_LIMIT"


def test_a_run_resumes_from_its_checkpoint(lasso, tmp_path):
    kept = tmp_path / "run"
    stopped = run("solve", lasso, "--method", "ista", "--tol", "0", "--max-passes", "20", "--checkpoint", kept)
    assert stopped.exit_code == 1
    assert f"Pass --resume '{kept}' to continue" in stopped.stdout
    options = ("--method", "ista", "--tol", "0", "--max-passes", "40", "--resume", kept, "--json")
    again = json.loads(run("solve", lasso, *options).stdout)
    assert 40 <= again["passes"] < 60
    refused = run("solve", lasso, "--resume", kept)
    assert refused.exit_code == 2
    assert refused.stderr.startswith(f"Error: --resume '{kept}' belongs to another run, which differs in method (ista ")
    assert refused.stderr.endswith("leave --resume out to start a new run\n")
    assert refused.stderr.count("\n") == 1  # without a progress bar


def test_advice_names_options_of_the_command_line(lasso):
    limited = run("solve", lasso, "--method", "pdhg", "--tol", "1e-9", "--max-passes", "3")
    assert "Raise --max-passes, or --tol if" in limited.stdout


def test_advice_leaves_out_arguments_without_an_option(lasso, monkeypatch):
    solve = sb.solve
    monkeypatch.setattr(sb, "solve", lambda *args, **options: solve(*args, **options, callback=lambda info: True))
    result = run("solve", lasso, "--tol", 0, "--no-progress")
    assert "INTERRUPTED" in result.stdout
    assert "x0" not in result.stdout


def test_the_exit_code_is_1_without_a_certificate(lasso):
    result = run("solve", lasso, "--tol", 0, "--max-passes", 20, "--no-progress")
    assert result.exit_code == 1
    assert "MAX_PASSES" in result.stdout


@pytest.mark.parametrize("extra", [[], ["--json"]])
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.npz"], "none.npz"),
        (["{lasso}", "--method", "sp-bdc"], "sp-bcd"),
        (["{lasso}", "--tol", "-1"], "--tol -1.0: expected"),
        (["{lasso}", "--max-passes", "0"], "--max-passes 0.0: expected"),
        (["{lasso}", "--checkpoint", "no/such/folder/run"], "--checkpoint no/such/folder/run: there is no folder"),
        (["{lasso}", "--checkpoint-every", "-1"], "--checkpoint-every -1.0: expected"),
        (["{lasso}", "--out", "no/such/folder/x.npz"], "folder"),
        (["{lasso}", "--out", "x.txt"], "expected .npz for arrays or .csv"),
        (["{lasso}", "--out", "x.npz", "--checkpoint", "x.npz"], "name two files"),
        (["{lasso}", "--out", "{lasso}"], "which would be overwritten: name two files"),
        (["{lasso}", "--checkpoint", "{lasso}"], "which would be overwritten: name two files"),
        (["{lasso}", "--out", "run", "--resume", "run"], "--resume and --out are both run"),
        (["tol=5.npz"], "Error: tol=5.npz"),
        (["{lasso}", "--resume", "tol=nothing"], "--resume 'tol=nothing' is not a file"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(lasso, arguments, words, extra):
    result = run("solve", *(argument.format(lasso=lasso) for argument in arguments), *extra)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert words in result.stderr


def test_an_output_is_complete_or_as_it_was_and_never_an_input(lasso, tmp_path, monkeypatch):
    before = lasso.read_bytes()
    for other in (tmp_path / "soft.npz", tmp_path / "hard.npz"):
        (other.symlink_to if other.stem == "soft" else other.hardlink_to)(lasso)
        assert "would be overwritten" in run("solve", lasso, "--out", other).stderr
    assert lasso.read_bytes() == before
    out = tmp_path / "x.npz"
    out.write_bytes(b"of yesterday")
    out.chmod(0o600)

    def full(stream, **arrays):
        stream.write(b"half")
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", full)
        assert "no space left" in run("solve", lasso, "--out", out).stderr
    assert out.read_bytes() == b"of yesterday"
    assert not list(tmp_path.glob(".*"))
    assert run("solve", lasso, "--out", out).exit_code == 0
    assert np.load(out)["x"] == pytest.approx([2.0, 0.0, 0.0], abs=1e-4)
    assert out.stat().st_mode & 0o777 == 0o600


def test_the_objective_is_in_the_sense_of_the_file(tmp_path):
    pytest.importorskip("highspy")
    content = json.loads(run("solve", write_mps(tmp_path, MAXIMISE), "--json").stdout)
    assert content["status"] == "OPTIMAL"
    # max x + 2 y + 10 with x + y <= 4 and 3 y <= 9, x = 1, y = 3
    assert content["objective"] == pytest.approx(17.0, abs=1e-4)


def test_the_solution_of_a_linear_program_has_its_names(tmp_path):
    pytest.importorskip("highspy")
    file = write_mps(tmp_path, MAXIMISE)
    assert run("solve", file, "--method", "highs", "--out", tmp_path / "solution.csv").exit_code == 0
    lines = (tmp_path / "solution.csv").read_text().splitlines()
    assert lines[:2] == ["kind,name,value,reduced_cost,shadow_price,ray", "status,OPTIMAL,,,,"]
    table = {tuple(line.split(",")[:2]): line.split(",")[2:] for line in lines[2:]}
    values = {name: float(value) for (_, name), (value, *_) in table.items()}
    expected = {"X": 1.0, "Y": 3.0, "Z": 1.0, "LIMIT": 4.0, "FLOOR": 3.0, "FIXED": 2.0, "RANGED": 9.0}
    assert values == pytest.approx(expected, abs=1e-6)
    assert table["column", "X"][2] == table["row", "LIMIT"][1] == ""
    expected = _highs_duals(file)
    assert {name: float(table["row", name][2]) for name in expected[0]} == pytest.approx(expected[0], abs=1e-6)
    assert {name: float(table["column", name][1]) for name in expected[1]} == pytest.approx(expected[1], abs=1e-6)
    run("solve", file, "--out", tmp_path / "solution.npz")
    with np.load(tmp_path / "solution.npz") as solution:
        assert solution["status"] == "OPTIMAL"
        assert solution["shadow_prices"] == pytest.approx(list(expected[0].values()), abs=1e-4)
        assert solution["reduced_costs"] == pytest.approx(list(expected[1].values()), abs=1e-4)
        assert solution["column_names"].tolist() == ["X", "Y", "Z"]
        assert solution["row_names"].tolist() == ["LIMIT", "FLOOR", "FIXED", "RANGED"]


def _highs_duals(file):
    """Return the shadow prices and reduced costs of HiGHS by name, for a file whose dual solution is unique."""
    import highspy

    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.readModel(str(file))
    solver.run()
    lp, solution = solver.getLp(), solver.getSolution()
    return dict(zip(lp.row_names_, solution.row_dual, strict=True)), dict(
        zip(lp.col_names_, solution.col_dual, strict=True)
    )


def changed_mps(folder, old, new):
    path = write_mps(folder)
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    return path


def test_a_file_for_a_program_without_a_solution_has_no_solution(tmp_path):
    pytest.importorskip("highspy")
    file = changed_mps(tmp_path, "LIMIT        4.0", "LIMIT        0.5")
    told = run("solve", file, "--out", tmp_path / "proof.csv")
    assert told.exit_code == 3
    assert re.search(r"^ray +\d of 4 rows$", told.stdout, re.MULTILINE)
    assert not re.search(r"^(objective|relative gap)", told.stdout, re.MULTILINE)
    assert json.loads(run("solve", file, "--json").stdout)["objective"] is None
    lines = (tmp_path / "proof.csv").read_text().splitlines()
    assert lines[1].startswith("status,INFEASIBLE")
    assert all(line.split(",")[2] == "" for line in lines[2:])
    run("solve", file, "--out", tmp_path / "proof.npz")
    with np.load(tmp_path / "proof.npz") as stored:
        assert stored["status"] == "INFEASIBLE"
        assert not {"x", "y"} & set(stored.files)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nan", "line 12 has 'nan': expected a finite number"),
        ("3,0", "line 12 has '3,0': expected a finite number"),
        ("abc", "line 12 has 'abc': expected a finite number"),
        ("3.0\n    Y  ranged  4", "not defined"),
        ("3.0\n    Y  RANGED  4", 'Column "Y" has duplicate nonzero 4 in row "RANGED"'),
    ],
)
def test_entries_that_the_reader_would_skip_are_errors(tmp_path, line, words):
    pytest.importorskip("highspy")
    result = run("solve", changed_mps(tmp_path, "RANGED       3.0", f"RANGED       {line}"))
    assert result.exit_code == 2
    assert words in result.stderr


def test_a_table_without_names_has_numbers(lasso, tmp_path):
    assert run("solve", lasso, "--tol", "1e-9", "--out", tmp_path / "x.csv").exit_code == 0
    lines = (tmp_path / "x.csv").read_text().splitlines()
    assert [line.split(",")[:2] for line in lines[2:]] == [[k, str(i)] for k in ("column", "row") for i in range(3)]


@pytest.mark.parametrize(("b", "code"), [([1.0, 1.0], 0), ([0.0, 1.0], 3)])
def test_the_exit_code_says_that_there_is_no_solution(tmp_path, b, code):
    path = tmp_path / "program.npz"
    np.savez(path, A=np.ones((2, 1)), b=np.array(b), loss="Equality", penalty="Zero")
    result = run("solve", path, "--json")
    assert result.exit_code == code
    assert json.loads(result.stdout)["status"] == ("OPTIMAL" if code == 0 else "INFEASIBLE")


def test_netlib_afiro(data):
    pytest.importorskip("highspy")
    result = run("solve", data / "netlib" / "afiro.mps.gz", "--json", "--tol", 1e-4)
    assert result.exit_code == 0
    assert json.loads(result.stdout)["objective"] == pytest.approx(-464.75314286, rel=1e-3)
