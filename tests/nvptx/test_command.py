"""``alkahest ptx``."""

from __future__ import annotations

from pathlib import Path

import pytest

from alkahest.cli import main


def test_the_kernel_is_printed_for_the_target_that_was_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["ptx", "x*y + 1", "--target", "sm_90"]) == 0
    printed = capsys.readouterr().out
    assert ".target sm_90" in printed
    assert ".visible .entry" in printed


def test_the_inputs_are_the_symbols_in_the_order_given(capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for inputs in (["--inputs", "y,x"], ["--inputs", "x,y"], []):
        assert main(["ptx", "x - y", *inputs]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] != texts[1]
    assert texts[1] == texts[2]


def test_a_file_is_written_complete_or_not_at_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "kernel.ptx"
    assert main(["ptx", "sqrt(x)", "x + 1", "--dtype", "float32", "-o", str(out)]) == 0
    assert ".f32" in out.read_text()
    assert list(tmp_path.iterdir()) == [out]
    assert main(["ptx", "x", "-o", str(tmp_path / "absent" / "kernel.ptx")]) == 1
    assert "[E-IO-002]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "shown"),
    [
        (["x +"], 2, "[E-PARSE-001]"),
        (["x + y", "--inputs", "x"], 2, "unbound symbol 'y'"),
        (["x", "--target", "sm_10"], 2, "'sm_10'"),
        (["x", "--dtype", "int8"], 2, "invalid choice: 'int8'"),
        ([], 2, "the following arguments are required: EXPR"),
    ],
)
def test_a_mistake_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, shown: str
) -> None:
    assert main(["ptx", *arguments]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert shown in printed.err.splitlines()[0]
    assert "Traceback" not in printed.err


def test_the_place_of_a_mistake_is_pointed_at(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ptx", "x + * y"]) == 2
    _, text, carets, *_ = capsys.readouterr().err.splitlines()
    assert carets.index("^") == text.index("*")
