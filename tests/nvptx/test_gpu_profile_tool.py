"""How ``tools/gpu_profile.py`` reads the profiler; the profiler here is a script."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
import scripts

MACHINE = {"device": "Device 9", "driver": "1.2", "date": "2026-01-02 03:04 UTC"}
UNITS = ["", "", "ns", "%", "%", "%", "%", "register/thread"]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return scripts.tool("gpu_profile")


def profiler(folder: Path, tool: ModuleType, kernels: list[list[str]], code: int = 0) -> str:
    """A program that prints what ncu would, for two evaluations."""
    names = ["ID", "Kernel Name", *tool.METRICS.values()]
    printed = [
        "==PROF== Connected to process 1",
        "machine " + json.dumps(MACHINE),
        "watched waves alkahest",
        "watched waves numba",
        *(",".join(f'"{cell}"' for cell in row) for row in (names, UNITS, *kernels)),
    ]
    program = folder / "ncu"
    quoted = "\n".join(printed)
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{quoted}\nEND\nexit {code}\n")
    program.chmod(0o755)
    return str(program)


OURS = ["0", "alkahest_eval", "729,000", "91.2", "44.1", "39", "86.9", "32"]
THEIRS = ["1", "f(double*, double*)", "840000", "79", "74", "43", "83", "32"]


def run(tool: ModuleType, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["gpu_profile.py", *arguments])
    code: int = tool.main()
    return code


def test_figures_belong_to_the_evaluations_in_their_order(
    tool: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ncu, kept = profiler(tmp_path, tool, [OURS, THEIRS]), tmp_path / "kept.json"
    assert run(tool, monkeypatch, "--ncu", ncu, "--json", str(kept)) == 0
    printed = capsys.readouterr().out
    assert "Device 9, driver 1.2, 2026-01-02 03:04 UTC." in printed
    assert "| waves | alkahest | 0.729 | 91 | 44 | 39 | 87 | 32 |" in printed
    assert "| waves | numba | 0.840 | 79 | 74 | 43 | 83 | 32 |" in printed
    assert json.loads(kept.read_text())["kernels"][1]["kernel"] == "f(double*, double*)"

    page = tmp_path / "page.md"
    page.write_text("# Page\n<!-- begin profile -->\nold\n<!-- end profile -->\nend\n")
    assert run(tool, monkeypatch, "--table", str(kept), "--page", str(page)) == 0
    assert capsys.readouterr().out == printed
    assert "old" not in page.read_text()
    assert "| waves | numba |" in page.read_text()


@pytest.mark.parametrize(
    ("kernels", "code"), [([OURS], 0), ([OURS, THEIRS, THEIRS], 0), ([OURS, THEIRS], 9)]
)
def test_another_number_of_kernels_or_a_failure_is_reported(
    tool: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kernels: list[list[str]],
    code: int,
) -> None:
    ncu = profiler(tmp_path, tool, kernels, code)
    assert run(tool, monkeypatch, "--ncu", ncu) == 1
    said = capsys.readouterr().err
    assert f"ended with {code} and {len(kernels)} kernels for 2 evaluations" in said
    assert "watched waves numba" in said


def test_a_profiler_that_is_missing_is_named(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run(tool, monkeypatch, "--ncu", "no-such-program")
    assert "no profiler 'no-such-program'; name it with --ncu" in capsys.readouterr().err
