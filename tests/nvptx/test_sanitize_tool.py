"""How ``tools/sanitize.py`` judges what compute-sanitizer prints."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "sanitize.py"


@pytest.fixture(scope="module")
def sanitize() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sanitize", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["sanitize"] = module
    spec.loader.exec_module(module)
    return module


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


def test_without_the_sanitizer_the_tool_fails(
    sanitize: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sanitize, "find_sanitizer", lambda: None)
    assert sanitize.main([]) == 1
    assert "compute-sanitizer is not on the path" in capsys.readouterr().err
