"""What the user reads on standard error."""

from __future__ import annotations

import warnings

import pytest

from alkahest.cli import messages
from alkahest.errors import (
    AlkahestError,
    CodegenError,
    CudaError,
    InputError,
    IoError,
    ParseError,
    PluginLoadWarning,
    SolverError,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ParseError("E-PARSE-001", ""), 2),
        (InputError("E-INPUT-011", ""), 2),
        (CodegenError("E-JIT-009", ""), 2),
        (CodegenError("E-JIT-010", ""), 2),
        (CudaError("E-CUDA-002", ""), 2),
        (SolverError("E-SOLVE-008", ""), 2),
        (CodegenError("E-JIT-004", ""), 1),
        (CudaError("E-CUDA-003", ""), 1),
        (InputError("E-INPUT-002", ""), 1),
        (IoError("E-IO-004", ""), 1),
    ],
)
def test_the_exit_code_tells_a_wrong_command_from_a_failed_job(
    error: AlkahestError, code: int
) -> None:
    assert messages.exit_code(error) == code


def test_an_error_is_one_line_then_its_notes_then_the_remedy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = IoError("E-IO-001", "two\nlines", remediation="do\nthis")
    error.add_note("  x\n  ^")
    assert messages.show_alkahest_error(error) == 1
    assert capsys.readouterr().err == (
        "alkahest: error: [E-IO-001] two lines\n  x\n  ^\nhint: do this\n"
    )


@pytest.mark.parametrize(
    ("text", "span", "pointed"),
    [
        ("a + b", (4, 5), "b"),
        ("a +", (3, 3), ""),
        ("x" * 200 + "!" + "y" * 200, (200, 201), "!"),
        ("a\t+\nb", (4, 5), "b"),
    ],
)
def test_carets_stand_under_what_they_point_at(
    text: str, span: tuple[int, int], pointed: str
) -> None:
    shown, carets = messages.pointing_at(text, span).split("\n")
    start = carets.index("^")
    assert shown[start : start + carets.count("^")] == pointed
    assert len(shown) < 120


def test_a_warning_is_one_line_without_a_source_position(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with messages.warnings_as_lines():
        warnings.warn("plugin 'p' is\nbroken", PluginLoadWarning, stacklevel=1)
    assert capsys.readouterr().err == "alkahest: warning: plugin 'p' is broken\n"
