"""The command line on compiled code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from alkahest.cli import main


def test_eval_runs_compiled_code_over_files_in_chunks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x, y = np.random.default_rng(5).normal(size=(2, 50_000))
    np.savez(tmp_path / "in.npz", x=x, y=y)
    out = tmp_path / "out.npz"
    command = ["eval", "a=exp(-x**2)*sin(y)", "b=Piecewise((x, x < y), (y, True))"]
    command += [str(tmp_path / "in.npz"), "-o", str(out), "--backend", "cpu-jit", "--chunk", "7777"]
    assert main(command) == 0
    assert "50000 rows, cpu-jit, float64" in capsys.readouterr().err
    with np.load(out) as results:
        np.testing.assert_allclose(results["a"], np.exp(-(x**2)) * np.sin(y), rtol=4e-15)
        np.testing.assert_array_equal(results["b"], np.where(x < y, x, y))


def test_capabilities_and_doctor_show_the_compiler(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capabilities"]) == 0
    assert "machine code for" in capsys.readouterr().out
    main(["doctor"])  # the exit code is about the machine
    shown = capsys.readouterr().out
    assert "CPU compiler" in shown
    assert "CPU threads" in shown


def test_devices_lists_the_processor_for_both_backends(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices"]) == 0
    shown = capsys.readouterr().out
    assert "cpu-jit" in shown
    assert "cpu-reference" in shown
