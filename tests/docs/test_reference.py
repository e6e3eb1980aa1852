"""The documentation names everything that it must name: hooks, variables, codes, decisions."""

from __future__ import annotations

import inspect
import re
import runpy
import subprocess
from pathlib import Path

import pytest

from alkahest import hookspecs
from alkahest._plugins.records import Status
from alkahest.cli import commands
from alkahest.errors import CODES
from alkahest.ops import OPS

ROOT = Path(__file__).resolve().parents[2]
HOOKS = {
    name: function
    for name, function in vars(hookspecs).items()
    if name.startswith("alkahest_") and inspect.isfunction(function)
}
# Commands of plugins of ours that need not be installed where this runs.
OF_PLUGINS = {"ptx", "groebner", "solve"}
# Written like a variable, but an attribute that plugin modules set.
NOT_VARIABLES = {"ALKAHEST_PLUGIN_API"}


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def tracked_texts() -> dict[str, str]:
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\n")
    texts = {}
    for name in names:
        path = ROOT / name
        if path.suffix in {".py", ".md", ".ini", ".toml", ".yaml"} and path.is_file():
            texts[name] = path.read_text(encoding="utf-8")
    return texts


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_has_a_heading_with_its_arguments_and_its_docstring(hook: str) -> None:
    arguments = ", ".join(inspect.signature(HOOKS[hook]).parameters)
    text = page("plugins.md")
    assert f"\n### `{hook}({arguments})`\n" in text
    assert f".. autofunction:: alkahest.hookspecs.{hook}\n" in text
    assert inspect.getdoc(HOOKS[hook])


def test_the_page_on_plugins_documents_no_hook_that_does_not_exist() -> None:
    documented = re.findall(r"^### `(alkahest_\w+)\(", page("plugins.md"), re.MULTILINE)
    assert sorted(documented) == sorted(HOOKS)


def test_the_page_on_plugins_lists_every_status_of_a_plugin() -> None:
    documented = re.findall(r"^\| `(\w+)` \|", page("plugins.md"), re.MULTILINE)
    assert documented == [status.value for status in Status]


def test_the_page_on_the_command_line_lists_every_command() -> None:
    documented = re.findall(r"^\| `(\w+)` \|", page("command-line.md"), re.MULTILINE)
    here = [*commands.CORE, *commands.plugin_commands()]
    assert [name for name in documented if name in here] == here
    assert set(documented) - set(here) <= OF_PLUGINS


def test_every_environment_variable_of_the_tree_is_documented_and_none_else() -> None:
    used = {
        name
        for file, text in tracked_texts().items()
        if file != "docs/environment.md"
        for name in re.findall(r"\bALKAHEST_[A-Z]+(?:_[A-Z]+)*\b", text)
    }
    documented = set(re.findall(r"`(ALKAHEST_[A-Z_]+)", page("environment.md")))
    assert documented == used - NOT_VARIABLES


def test_every_error_code_that_a_page_names_exists() -> None:
    named = {
        code
        for file, text in tracked_texts().items()
        if file.endswith(".md")
        for code in re.findall(r"\bE-[A-Z]+-\d{3}\b", text)
    }
    assert named <= set(CODES)


def test_codes_operations_and_semantics_are_rendered_from_their_tables() -> None:
    assert "```{error-codes}" in page("errors.md")
    assert "```{operations}" in page("accuracy.md")
    assert "```{semantics}" in page("semantics.md")
    assert len(OPS) > 60


def test_every_family_of_codes_is_explained() -> None:
    families = runpy.run_path(str(ROOT / "docs" / "_ext" / "families.py"))["FAMILIES"]
    assert list(families) == list(dict.fromkeys(code.rpartition("-")[0] for code in CODES))


def test_every_page_is_in_the_navigation_once() -> None:
    trees = re.findall(r"^```{toctree}\n(?::[^\n]*\n)*\n(.*?)^```$", page("index.md"), re.M | re.S)
    listed = "".join(trees).split()
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"} | {"adr/index"}
    assert sorted(listed) == sorted(pages)


def test_files_shown_on_pages_belong_to_examples_that_continuous_integration_tests() -> None:
    tox = (ROOT / "tox.ini").read_text(encoding="utf-8")
    shown = [
        (ROOT / "docs" / name).resolve()
        for file in (ROOT / "docs").glob("*.md")
        for name in re.findall(
            r"^```\{literalinclude\} (\S+)$", file.read_text(encoding="utf-8"), re.MULTILINE
        )
    ]
    assert len(shown) > 5
    for path in shown:
        assert path.is_file()
        folder = path.relative_to(ROOT).parts[:2]
        assert f"{'/'.join(folder)}/tests" in tox


def test_decisions_are_numbered_without_gaps_and_have_their_three_parts() -> None:
    records = sorted((ROOT / "docs" / "adr").glob("0*.md"))
    for number, record in enumerate(records, start=1):
        text = record.read_text(encoding="utf-8")
        assert record.name.startswith(f"{number:04d}-")
        assert text.startswith(f"# {number}. ")
        headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
        assert headings == ["Context", "Decision", "Consequences"]
        assert len(text.splitlines()) <= 60, "a record is one page"


def test_continuous_integration_runs_the_test_command_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^(.*\.venv/bin/tox)$", readme, re.MULTILINE)
    assert f"\n{command}\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_contributing_fits_on_two_screens() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()) <= 100
