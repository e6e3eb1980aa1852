"""What the pyproject files say agrees, without building anything."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
NAMES = [path.name for path in PLUGINS]


def describe(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


CORE = describe(ROOT)


def requirements(description: dict[str, Any]) -> list[str]:
    extras = description["project"].get("optional-dependencies", {})
    return [*description["project"]["dependencies"], *(r for rs in extras.values() for r in rs)]


def test_the_plugins_are_the_four_of_the_documentation() -> None:
    assert NAMES == ["alkahest-cpu", "alkahest-groebner", "alkahest-groebner-gpu", "alkahest-nvptx"]


@pytest.mark.parametrize("file", ["hatch_build.py", "LICENSE"])
def test_copies_that_must_travel_inside_an_sdist_are_identical(file: str) -> None:
    texts = {(folder / file).read_bytes() for folder in PLUGINS}
    assert len(texts) == 1
    if file == "LICENSE":
        assert texts == {(ROOT / file).read_bytes()}


@pytest.mark.parametrize("folder", PLUGINS, ids=NAMES)
def test_a_plugin_is_named_after_its_folder_and_ships_an_existing_portion(folder: Path) -> None:
    description = describe(folder)
    portion = description["tool"]["hatch"]["build"]["hooks"]["custom"]["portion"]
    assert description["project"]["name"] == folder.name
    assert (ROOT / portion / "py.typed").is_file()
    entry_points = description["project"]["entry-points"]["alkahest.backends"]
    assert list(entry_points.values()) == [f"{portion.replace('/', '.')}.plugin"]


@pytest.mark.parametrize("folder", [ROOT, *PLUGINS], ids=["alkahest", *NAMES])
def test_every_distribution_has_core_s_version_python_and_pins(folder: Path) -> None:
    project = describe(folder)["project"]
    version = CORE["project"]["version"]
    assert project["version"] == version
    assert project["requires-python"] == CORE["project"]["requires-python"]
    assert "Private :: Do Not Upload" in project["classifiers"]
    ours = [r for r in requirements(describe(folder)) if re.match(r"alkahest(-|==)", r)]
    assert ours, "a plugin requires core, and core offers its plugins as extras"
    assert all(r.endswith(f"=={version}") for r in ours)


def test_core_excludes_exactly_the_folders_above_the_portions() -> None:
    portions = [
        describe(folder)["tool"]["hatch"]["build"]["hooks"]["custom"]["portion"]
        for folder in PLUGINS
    ]
    for target in ("sdist", "wheel"):
        excluded = CORE["tool"]["hatch"]["build"]["targets"][target]["exclude"]
        assert excluded == ["alkahest/backends", "alkahest/groebner"]
        assert all(portion.startswith(tuple(excluded)) for portion in portions)
    assert not (ROOT / "alkahest" / "backends" / "__init__.py").exists()


def test_core_requires_three_packages_and_offers_every_plugin_as_an_extra() -> None:
    names = [re.match(r"[a-z]+", r)[0] for r in CORE["project"]["dependencies"]]  # type: ignore[index]
    assert names == ["attrs", "numpy", "pluggy"]
    extras = CORE["project"]["optional-dependencies"]
    plugins = ["cpu", "jit", "nvptx", "groebner", "groebner-gpu"]
    assert list(extras) == [*plugins, "sympy", "io", "plot", "testing", "all"]
    assert extras["all"] == ["alkahest[cpu,jit,nvptx,groebner,groebner-gpu,io,plot,sympy]"]


def test_every_llvmlite_requirement_names_the_same_range() -> None:
    found = {r for folder in PLUGINS for r in requirements(describe(folder)) if "llvmlite" in r}
    assert len(found) == 1
    assert re.fullmatch(r"llvmlite>=\d+\.\d+,<\d+\.\d+", found.pop())


def test_the_oldest_versions_that_are_tested_are_those_that_the_requirements_admit() -> None:
    text = (ROOT / "tests" / "packaging" / "oldest.txt").read_text(encoding="utf-8")
    tested = dict(line.split("==") for line in text.splitlines() if not line.startswith("#"))
    folders = [ROOT, *PLUGINS]
    every = [r for f in folders for r in describe(f)["project"]["dependencies"]]
    admitted = dict(re.match(r"([\w-]+)>=([\d.]+)", r).groups() for r in every if ">=" in r)  # type: ignore[union-attr]
    assert tested.keys() == admitted.keys()
    for name, version in admitted.items():
        assert f"{tested[name]}.".startswith(f"{version}."), name


def test_the_version_in_the_package_is_the_version_of_the_distributions() -> None:
    text = (ROOT / "alkahest" / "__init__.py").read_text(encoding="utf-8")
    assert f'__version__ = "{CORE["project"]["version"]}"' in text
