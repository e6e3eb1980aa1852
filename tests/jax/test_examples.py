"""The scripts in ``examples/jax`` run as they are."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted(Path(__file__).parents[2].glob("examples/jax/*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.name for script in SCRIPTS])
def test_a_script_runs_to_its_end_without_a_complaint(script, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()
