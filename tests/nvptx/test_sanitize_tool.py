"""How ``tools/sanitize.py`` judges what compute-sanitizer prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import scripts


@pytest.fixture(scope="module")
def sanitize() -> ModuleType:
    return scripts.tool("sanitize")


PASSED = "....\n36 passed, 748 deselected in 20.00s\n"
CLEAN = "========= COMPUTE-SANITIZER\n" + PASSED + "========= ERROR SUMMARY: 0 errors\n"
RACES = PASSED + "========= RACECHECK SUMMARY: {} hazards displayed ({} errors, 0 warnings)\n"


def test_passed_tests_with_a_clean_summary_pass(sanitize: ModuleType) -> None:
    verdict = sanitize.judge("memcheck", CLEAN, 0)
    assert verdict.passed
    assert "1 summaries, 0 errors; 36 passed" in str(verdict)
    assert sanitize.judge("racecheck", RACES.format(0, 0), 0).passed


@pytest.mark.parametrize(
    ("output", "code"),
    [
        (PASSED, 0),  # the sanitizer watched nothing
        (CLEAN, 1),  # a test failed
        (CLEAN.replace("0 errors", "1 error"), 0),
        (CLEAN + "========= ERROR SUMMARY: 3 errors\n", 0),  # another process
        ("========= ERROR SUMMARY: 0 errors\n", 0),  # no test ran
        (RACES.format(2, 2), 0),
        ("", 0),
    ],
)
def test_anything_else_fails(sanitize: ModuleType, output: str, code: int) -> None:
    assert not sanitize.judge("memcheck", output, code).passed


def test_a_tool_that_misses_a_planted_fault_fails(sanitize: ModuleType) -> None:
    assert sanitize.judge_fault("memcheck", "========= ERROR SUMMARY: 272 errors\n").passed
    assert not sanitize.judge_fault("memcheck", "========= ERROR SUMMARY: 0 errors\n").passed
    assert not sanitize.judge_fault("memcheck", "").passed


def test_memcheck_alone_leaves_failed_calls_of_the_driver_to_the_tests(
    sanitize: ModuleType, tmp_path: Path
) -> None:
    """The sanitizer here is one that prints how it was started."""
    program = tmp_path / "compute-sanitizer"
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    for tool in sanitize.TOOLS:
        shown, code = sanitize.run(str(program), tool, ["-c", "pass"])
        assert code == 0
        assert shown.startswith(f"--tool {tool} --target-processes all ")
        assert shown.endswith(f" {sys.executable} -c pass\n")
        assert ("--report-api-errors no" in shown) == (tool == "memcheck")


def test_without_the_sanitizer_the_tool_fails(
    sanitize: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sanitize, "find_sanitizer", lambda: None)
    assert sanitize.main([]) == 1
    assert "compute-sanitizer is not on the path" in capsys.readouterr().err


def test_the_selection_has_complex_kernels_and_every_shape(sanitize: ModuleType) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", *sanitize.SELECTION],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        cwd=sanitize.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for part in (
        "test_complex.py::test_complex_operations_agree_with_the_reference[mul-complex64]",
        "test_complex.py::test_complex_operations_agree_with_the_reference[tanh-complex128]",
        "test_shapes.py::test_a_kernel_of_every_shape_gives_the_right_values[strided-complex64]",
        "test_shapes.py::test_a_kernel_of_every_shape_gives_the_right_values[in place-float64]",
        "test_shapes.py::test_columns_of_other_dtypes_are_converted_by_the_kernel[3-int8]",
        "test_shapes.py::test_addresses_of_many_columns_come_in_a_table[complex128]",
        "test_shapes.py::test_near_and_far_arguments_are_computed_in_every_mode[float64-fast]",
        "test_host_arrays.py::",
    ):
        assert part in done.stdout
    assert "test_huge.py" not in done.stdout
