"""``alkahest eval`` on the CPU reference, in this process and in others."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from alkahest.cli import main

# A checkout on the path has no entry points; with installed wheels this registers nothing new.
_PROGRAM = """
import signal
import sys
import alkahest.backends.cpu.plugin
from alkahest.cli import main

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits none
alkahest.register(alkahest.backends.cpu.plugin)
sys.exit(main())
"""


def start(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_file_of_two_rows(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("x,y\n1,0.5\n2,0.25\n")
    out = tmp_path / "out.csv"
    assert main(["eval", "x**2 + y", str(tmp_path / "in.csv"), "-o", str(out)]) == 0
    assert out.read_text() == "f0\n1.5\n4.25\n"


def test_many_rows_and_three_expressions_agree_with_numpy_in_order(tmp_path: Path) -> None:
    x, y, z = np.random.default_rng(5).normal(size=(3, 50_000))
    rows = zip(x.tolist(), y.tolist(), z.tolist(), strict=True)
    lines = "".join(f"{a!r},{b!r},{c!r}\n" for a, b, c in rows)
    (tmp_path / "in.csv").write_text("x,y,z\n" + lines)
    out = tmp_path / "out.npz"
    command = [
        "eval",
        "a=exp(-x**2)*sin(y)",
        "b=hypot(x, y) + z",
        "c=Piecewise((x, x < y), (z, True))",
    ]
    assert main([*command, str(tmp_path / "in.csv"), "-o", str(out), "--chunk", "7777"]) == 0
    with np.load(out) as results:
        np.testing.assert_allclose(results["a"], np.exp(-(x**2)) * np.sin(y), rtol=1e-14)
        np.testing.assert_allclose(results["b"], np.hypot(x, y) + z, rtol=1e-13, atol=1e-15)
        np.testing.assert_array_equal(results["c"], np.where(x < y, x, z))


def test_a_reader_that_has_had_enough_ends_the_job_quietly() -> None:
    job = start("eval", "sin(x)", "--grid", "x=0:1:100000000")
    assert job.stdout is not None
    assert job.stderr is not None
    assert job.stdout.readline() == "f0\n"
    assert job.stdout.readline() == "0.0\n"
    job.stdout.close()
    assert job.stderr.read() == ""
    assert job.wait(30) == 0
    job.stderr.close()


@pytest.mark.parametrize(
    ("number", "code", "message"),
    [(signal.SIGINT, 130, "alkahest: interrupted\n"), (signal.SIGTERM, 143, "")],
)
def test_a_signal_ends_the_job_and_leaves_nothing_behind(
    tmp_path: Path, number: signal.Signals, code: int, message: str
) -> None:
    out = tmp_path / "out.npy"
    job = start("eval", "sin(x)", "--grid", "x=0:1:100000000000", "-o", out)
    until = time.monotonic() + 30
    while not any(path.stat().st_size > 1 << 20 for path in tmp_path.iterdir()):
        assert time.monotonic() < until, "the job did not begin to write"
        assert job.poll() is None
        time.sleep(0.02)
    job.send_signal(number)
    _, errors = job.communicate(timeout=30)
    assert (job.returncode, errors) == (code, message)
    assert list(tmp_path.iterdir()) == []
