"""The wheels of this tree, and fresh environments to install them into."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Environment:
    """A virtual environment without pip of its own; installing goes through this process's pip.

    Args:
        folder: where to create it.
    """

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=False)
        scripts = "Scripts" if os.name == "nt" else "bin"
        self.folder = folder
        self.scripts = folder / scripts
        self.python = self.scripts / "python"

    def pip(self, *arguments: str | Path) -> str:
        """Run pip on this environment; its output, or a failure that shows it."""
        command = [sys.executable, "-m", "pip", "--python", str(self.python), *map(str, arguments)]
        # Compiling all of SciPy would take longer than everything else here.
        return _run(command, self.folder, {"PIP_NO_COMPILE": "1"})

    def run(self, *arguments: str | Path, **variables: str) -> str:
        """Run this environment's isolated interpreter outside of the checkout."""
        return _run([str(self.python), "-I", *map(str, arguments)], self.folder, variables)

    def script(self, *arguments: str | Path, **variables: str) -> str:
        """Run one of this environment's commands outside of the checkout."""
        name, *rest = map(str, arguments)
        return _run([str(self.scripts / name), *rest], self.folder, variables)

    def evaluate(self, code: str, **variables: str) -> Any:
        """What ``code`` assigns to ``answer`` in this environment, by way of JSON."""
        return json.loads(
            self.run("-c", f"{code}\nimport json; print(json.dumps(answer))", **variables)
        )


def _run(command: list[str], cwd: Path, variables: Mapping[str, str]) -> str:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("ALKAHEST_", "PYTHON"))}
    done = subprocess.run(
        command, cwd=cwd, env={**clean, **variables}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.fail(f"{' '.join(command)}\n{done.stdout}{done.stderr}", pytrace=False)
    return done.stdout


@pytest.fixture(scope="session")
def wheelhouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with one checked wheel and one sdist per distribution."""
    folder = tmp_path_factory.mktemp("wheelhouse")
    _run([sys.executable, str(ROOT / "tools" / "check_packages.py"), str(folder)], ROOT, {})
    return folder


@pytest.fixture(scope="session")
def wheel(wheelhouse: Path) -> Callable[[str], Path]:
    """Path of the wheel of a distribution."""

    def find(name: str) -> Path:
        (path,) = wheelhouse.glob(f"{name.replace('-', '_')}-[0-9]*.whl")
        return path

    return find


@pytest.fixture(scope="module")
def new_environment(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[], Environment]:
    """Maker of fresh, empty virtual environments."""
    return lambda: Environment(tmp_path_factory.mktemp("environment") / "venv")
