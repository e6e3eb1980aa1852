"""The README's first command, run as it stands, in a fresh copy of the tree."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def copy_of_the_tree(target: Path) -> Path:
    """What a clone would hold: everything tracked, and new files that are not ignored."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, listing.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


def rounded(text: str) -> str:
    """``text`` with its floats cut to twelve digits; the last ones depend on the processor."""
    return re.sub(r"\d+\.\d{2,}", lambda found: f"{float(found[0]):.12g}", text)


def test_the_first_command_installs_and_prints_what_the_readme_shows(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    command = re.findall(r"^```sh\n(.*)\n```$", readme, re.MULTILINE)[0]
    shown = re.findall(
        r"^```console\n\$ \.venv/bin/python -m alkahest\n(.*?)^```$", readme, re.MULTILINE | re.S
    )[0]
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("ALKAHEST_", "PYTHON"))}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=copy_of_the_tree(tmp_path),
        env={**variables, "COLUMNS": "100", "PIP_NO_COMPILE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # Dots stand for what depends on the processor, and first of all for what pip says.
    matches = doctest.OutputChecker().check_output
    assert matches("..." + rounded(shown), rounded(done.stdout), doctest.ELLIPSIS), done.stdout
