"""Every notebook in ``examples/`` runs from top to bottom in a kernel of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted(ROOT.glob("examples/*.ipynb"))


def shown(notebook: Any) -> list[str]:
    """Kinds of what the cells put out, in order."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [kind for output in outputs for kind in output.get("data", {"text/stream": ""})]


def test_there_are_notebooks_to_run() -> None:
    assert [path.name for path in NOTEBOOKS] == ["lagrange_points.ipynb"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.name for path in NOTEBOOKS])
def test_a_notebook_is_kept_without_what_it_puts_out(path: Path) -> None:
    notebook = nbformat.read(path, 4)
    nbformat.validate(notebook)
    assert shown(notebook) == []
    assert all(not cell.get("execution_count") for cell in notebook.cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.name for path in NOTEBOOKS])
def test_a_notebook_runs_and_shows_formulae_and_pictures(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, 4)
    client = nbclient.NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    )
    client.execute()
    kinds = shown(notebook)
    assert {"text/latex", "image/png"} <= set(kinds)
    assert "text/stream" not in kinds  # no warnings
