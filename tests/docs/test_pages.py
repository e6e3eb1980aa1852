"""Everything that README and the documentation show is run, and shows what they say.

Blocks of a page run in order and share one namespace and one folder: ``pycon`` blocks are doctests,
``python`` blocks are executed, ``console`` blocks are commands with their output. A block that
needs a GPU says so in a comment before it and runs where there is one.
"""

from __future__ import annotations

import doctest
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    str(path.relative_to(ROOT)) for path in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")))
]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Checker(doctest.OutputChecker):
    """Compares texts, and the floating-point numbers in them to twelve digits.

    The last digits of NumPy's functions depend on the processor.
    """

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Whether ``got`` is what the page shows."""
        return super().check_output(want, got, optionflags) or super().check_output(
            self._rounded(want), self._rounded(got), optionflags
        )

    @staticmethod
    def _rounded(text: str) -> str:
        return re.sub(r"\d+\.\d+(?:e[+-]\d+)?", lambda found: f"{float(found[0]):.12g}", text)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working folder in which the commands of the pages run this very interpreter."""
    commands = {"alkahest": '-m alkahest "$@"', "python": '"$@"'}
    for name, arguments in commands.items():
        command = tmp_path / ".venv" / "bin" / name
        command.parent.mkdir(parents=True, exist_ok=True)
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}\n')
        command.chmod(command.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}/.venv/bin{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_pycon(block: Any, names: dict[str, Any], page: str) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, names, page, page, block.line + 1)
    report: list[str] = []
    result = doctest.DocTestRunner(Checker(), optionflags=FLAGS).run(
        test, out=report.append, clear_globs=False
    )
    names.update(test.globs)
    if result.failed:
        pytest.fail("".join(report), pytrace=False)


def run_python(block: Any, names: dict[str, Any], page: str) -> None:
    padding = "\n" * (block.line + 1)  # so that a traceback names the page's own lines
    exec(compile(padding + block.text, page, "exec"), names)


def run_console(block: Any, page: str) -> None:
    commands: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines(keepends=True):
        if line.startswith("$ "):
            commands.append((line[2:], []))
        elif commands and commands[-1][0].endswith("\\\n"):
            commands[-1] = (commands[-1][0] + line, [])
        else:
            commands[-1][1].append(line)
    for command, expected in commands:
        done = subprocess.run(
            ["sh", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=120,
        )
        if not Checker().check_output("".join(expected), done.stdout, FLAGS):
            shown = f"{page}, line {block.line + 1}: $ {command}"
            pytest.fail(f"{shown}expected:\n{''.join(expected)}got:\n{done.stdout}", pytrace=False)


def run_page(page: str, blocks: tuple[Any, ...]) -> None:
    names: dict[str, Any] = {"__name__": "__page__"}
    for block in blocks:
        match block.language:
            case "pycon":
                run_pycon(block, names, page)
            case "python":
                run_python(block, names, page)
            case "console":
                run_console(block, page)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_is_what_happens(
    page: str, blocks: Callable[[str], tuple[Any, ...]]
) -> None:
    run_page(page, tuple(block for block in blocks(page) if not block.need))


@pytest.mark.usefixtures("folder", "gpu")
def test_what_the_page_on_gpus_shows_is_what_happens_on_one(
    blocks: Callable[[str], tuple[Any, ...]],
) -> None:
    run_page("docs/gpu.md", blocks("docs/gpu.md"))


def test_only_the_page_on_gpus_has_blocks_that_need_one(
    blocks: Callable[[str], tuple[Any, ...]],
) -> None:
    needs = {page: {block.need for block in blocks(page)} - {""} for page in PAGES}
    assert {page: need for page, need in needs.items() if need} == {"docs/gpu.md": {"gpu"}}


def test_every_fence_has_a_known_language(blocks: Callable[[str], tuple[Any, ...]]) -> None:
    known = {"pycon", "python", "console", "sh", "text", "toml", "json"}
    for page in PAGES:
        for block in blocks(page):
            assert block.language in known or block.language.startswith("{"), (page, block.line)
