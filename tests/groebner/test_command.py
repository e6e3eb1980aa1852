"""``alkahest groebner`` and ``alkahest solve``."""

from __future__ import annotations

import io
import json

import pytest

from alkahest.cli import entry

SYSTEM = "# vars: x, y\nx^2 + y^2 - 1\n\nx - y\n"


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*arguments, stdin=""):
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        code = entry.run(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_a_text_file_gives_a_basis_as_text_that_reads_back(run, tmp_path):
    (tmp_path / "s.txt").write_text(SYSTEM)
    code, out, err = run("groebner", "s.txt", "--order", "lex")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "# vars: x, y",
        "# field: QQ",
        "# order: lex",
        "# probabilistic, 2 polynomials",
        "x - y",
        "y**2 - 1/2",
    ]
    assert run("groebner", "-", stdin=out)[1] == out


def test_formats_convert_into_one_another(run, tmp_path):
    (tmp_path / "s.ms").write_text("x,y\n65521\nx^2+y^2-1,\nx-y\n")
    assert run("groebner", "s.ms", "-o", "s.json")[0] == 0
    data = json.loads((tmp_path / "s.json").read_text())
    assert (data["vars"], data["field"], data["order"]) == (["x", "y"], "GF(65521)", "grevlex")
    assert data["polynomials"][1] == [["1", [1, 0]], ["65520", [0, 1]]]
    assert data["report"]["ran_on_gpu"] is False
    code, out, _ = run("groebner", "s.json", "--to", "msolve")
    assert (code, out) == (0, "x,y\n65521\ny^2+32760,\nx+65520*y\n")
    (tmp_path / "back.ms").write_text(out)
    assert run("groebner", "back.ms", "--to", "msolve")[1] == out
    rational = run("groebner", "-", "--to", "msolve", stdin=SYSTEM)[1]
    assert rational == "x,y\n0\n2*y^2-1,\nx-y\n"


def test_variables_field_order_and_elimination_are_chosen_on_the_line(run):
    code, out, _ = run(
        *("groebner", "-", "--vars", "y,x", "--field", "7", "--order", "lex"), stdin="x - 3*y^2\n"
    )
    assert code == 0
    assert out.splitlines()[:3] == ["# vars: y, x", "# field: GF(7)", "# order: lex"]
    assert out.splitlines()[-1] == "y**2 + 2*x"
    code, out, _ = run("groebner", "-", "--eliminate", "t", stdin="x - t^2\ny - t^3\n")
    assert out.splitlines()[-1] == "x**3 - y**2"
    # Without a list the variables are alphabetical, numbers in them counting as numbers.
    assert run("groebner", "-", stdin="x10 + x2\n")[1].startswith("# vars: x2, x10\n")


def test_report_and_progress_go_to_standard_error(run):
    code, out, err = run("groebner", "-", "--report", "--progress", "--certify", stdin=SYSTEM)
    assert code == 0
    assert "linear algebra by" in err
    assert out.startswith("# vars")


@pytest.mark.parametrize("command", ["groebner", "solve"])
def test_a_terminal_is_told_the_round_after_a_while_and_left_clean(run, monkeypatch, command):
    from alkahest.groebner import command as module

    quiet = run(command, "-", stdin=SYSTEM)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert run(command, "-", stdin=SYSTEM) == quiet  # it was quick
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    code, out, err = run(command, "-", stdin=SYSTEM)
    assert (code, out) == quiet[:2]
    lines = err.removesuffix(quiet[2]).split("\r")
    assert "elements" in err
    assert lines[-2:] == [" " * 79, ""]
    assert all(len(line) == 79 for line in lines[1:-1])


def test_solutions_are_lines_or_boxes(run):
    code, out, err = run("solve", "-", stdin=SYSTEM)
    assert (code, out) == (0, "x = -sqrt(2)/2, y = -sqrt(2)/2\nx = sqrt(2)/2, y = sqrt(2)/2\n")
    assert err == "2 real solutions, probabilistic\n"
    text = "x^5 - x - 1\n"
    assert run("solve", "-", "--digits", "20", stdin=text)[1] == "x = 1.16730397826141868426\n"
    code, out, _ = run("solve", "-", "--domain", "complex", "--json", "--certify", stdin=text)
    data = json.loads(out)
    assert data["certainty"] == "certified"
    assert len(data["solutions"]) == 5
    assert data["solutions"][0]["values"]["x"]["im"] == ["0", "0"]
    assert run("solve", "-", stdin="(x - 1)^2\n")[1] == "x = 1  (multiplicity 2)\n"


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "said"),
    [
        (["groebner", "missing.txt"], "", 1, "E-IO-001"),
        (["groebner", "-", "--from", "json"], "{", 1, "E-IO-003"),
        (
            ["groebner", "-", "--from", "json"],
            '{"polynomials": [[["1/0", [1]]]], "vars": ["x"]}',
            1,
            "E-IO-003",
        ),
        (["groebner", "-", "--from", "msolve"], "x\n", 1, "E-IO-003"),
        (["groebner", "-", "-o", "no/such/folder.txt"], "x\n", 1, "E-IO-002"),
        (["groebner", "-"], "x + sin(y)\n", 1, "E-SOLVE-001"),
        (["groebner", "-"], "x\nx + + )\n", 2, "[E-PARSE-001] polynomial 2: "),
        (["groebner", "-", "--field", "6"], "x\n", 2, "E-SOLVE-007"),
        (["groebner", "-", "--field", "R"], "x\n", 2, "E-SOLVE-007"),
        (["groebner", "-", "--order", "revlex"], "x\n", 2, "E-SOLVE-008"),
        (["groebner", "-", "--device", "cuda"], "x\n", 1, "E-CUDA-003"),
        (["groebner", "-", "--memory", "much"], "x\n", 2, "no size"),
        (["groebner", "-"], "0.5*x\n", 1, "--exact-floats"),
        (["solve", "-"], "x*y\n", 1, "E-SOLVE-004"),
        (["solve", "-", "--field", "7"], "x\n", 2, "E-SOLVE-007"),
        (["solve", "-", "--digits", "0"], "x\n", 2, "E-INPUT-011"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(run, arguments, stdin, code, said):
    got, out, err = run(*arguments, stdin=stdin)
    assert (got, out) == (code, "")
    assert err.startswith("alkahest: error: ")
    assert said in err
