"""``alkahest doctor``: what is wrong with an installation, and what to do about it.

Stub distributions, which are nothing but metadata at the front of the path, stand for installations
that went wrong. What only plugins know is tested with them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from brokenplugins import Failing, Sick, future

import alkahest
from alkahest.cli.installation import Requirement
from alkahest.plugin import Diagnostic, Probe, hookimpl
from alkahest.testing.plugins import NullPlugin, isolated_plugins

Run = Callable[..., Any]
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """``install(name, version, *requirements)``: a distribution before all others of its name."""
    monkeypatch.syspath_prepend(tmp_path)

    def call(name: str, version: str, *requirements: str) -> None:
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        lines = [f"Name: {name}", f"Version: {version}"]
        lines += [f"Requires-Dist: {requirement}" for requirement in requirements]
        (folder / "METADATA").write_text("\n".join(["Metadata-Version: 2.1", *lines, ""]))

    return call


def rows(run: Run) -> dict[str, dict[str, Any]]:
    """The doctor's rows by name; the exit code says whether one of them is false."""
    result = run("doctor", "--json")
    facts = json.loads(result.out)
    wrong = [row["name"] for row in facts["checks"] if row["ok"] is False]
    assert facts["wrong"] == len(wrong)
    assert result.code == bool(wrong)
    return {row["name"]: row for row in facts["checks"]}


class Healthy(NullPlugin):
    """A plugin with diagnostics."""

    @hookimpl
    def alkahest_diagnostics(self) -> list[Diagnostic]:
        return [
            Diagnostic(name="fuel", ok=True, detail="full"),
            Diagnostic(name="oil", ok=False, detail="empty", remedy="pour some"),
            Diagnostic(name="colour", ok=None, detail="red"),
        ]


def test_the_doctor_reports_every_plugins_findings(run: Run) -> None:
    with isolated_plugins(("healthy", Healthy())):
        facts = json.loads(run("doctor", "--json").out)
        text = run("doctor").out
    rows = {row["name"]: row for row in facts["checks"]}
    assert rows["fuel"] == {
        "plugin": "healthy",
        "name": "fuel",
        "ok": True,
        "detail": "full",
        "remedy": "",
    }
    assert rows["oil"]["remedy"] == "pour some"
    assert rows["capability null.compile"]["ok"] is True
    assert rows["capability cpu"]["ok"] is None
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "no oil empty -> pour some" in lines
    assert "-- colour red" in lines
    assert lines[-1] == "1 to look at"


def test_the_doctor_works_when_every_plugin_is_broken(run: Run) -> None:
    plugins = [("failing", Failing()), ("sick", Sick()), ("future", future())]
    with isolated_plugins(*plugins):
        result = run("doctor", "--json")
        verbose = run("doctor", "--verbose").out
        plain = run("doctor").out
    facts = json.loads(result.out)
    row = next(row for row in facts["checks"] if row["plugin"] == "sick" and row["ok"] is False)
    assert "no pulse" in row["detail"]
    tracebacks = {entry["name"]: entry["traceback"] for entry in facts["plugins"]}
    assert "RuntimeError: the moon is full" in tracebacks["failing"]
    assert tracebacks["sick"] == ""
    assert "Traceback (most recent call last)" in verbose
    assert "Traceback" not in plain


def test_the_doctor_names_versions_and_the_environment(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALKAHEST_BACKEND", "abacus")
    monkeypatch.setenv("UNRELATED", "secret")
    with isolated_plugins():
        facts = json.loads(run("doctor", "--json").out)
    assert facts["installation"]["alkahest"] == alkahest.__version__
    assert facts["environment"]["ALKAHEST_BACKEND"] == "abacus"
    assert "UNRELATED" not in facts["environment"]
    assert set(facts["packages"]) >= {"attrs", "numpy", "pluggy"}


# Core, plugins and packages


def test_another_project_under_our_name_is_told_from_ours(
    run: Run, install: Install, tmp_path: Path
) -> None:
    install("alkahest", "3.8.0")
    with isolated_plugins():
        row = rows(run)["alkahest"]
    assert row["ok"] is False
    assert row["detail"].endswith(f"under the same name: 3.8.0 in {tmp_path}")
    assert row["remedy"].startswith("pip uninstall alkahest, until no copy is left")


def test_damaged_metadata_of_ours_are_a_fault_and_never_the_doctors(
    run: Run, install: Install, tmp_path: Path
) -> None:
    install("alkahest-cpu", alkahest.__version__)
    (tmp_path / f"alkahest_cpu-{alkahest.__version__}.dist-info" / "METADATA").unlink()
    broken = tmp_path / "alkahest-0.1.0.dist-info"
    broken.mkdir()
    (broken / "direct_url.json").write_text("[1, 2")
    with isolated_plugins():
        row = rows(run)["alkahest"]
    assert row["ok"] is False
    assert f"damaged in {tmp_path}" in row["detail"]


def test_a_copy_that_comes_before_the_installed_one_is_named(
    run: Run, install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("alkahest", alkahest.__version__)
    monkeypatch.setattr("alkahest.cli.installation.running_from", lambda: Path("/elsewhere"))
    with isolated_plugins():
        row = rows(run)["alkahest"]
    assert row["ok"] is None
    assert "from /elsewhere comes before the one that is installed in " in row["detail"]
    assert str(tmp_path) in row["detail"]
    assert "-P" in row["remedy"]


def test_plugins_of_another_version_than_core_are_a_fault(run: Run, install: Install) -> None:
    install("alkahest-nvptx", "0.2.0")
    with isolated_plugins():
        row = rows(run)["versions of plugins"]
    assert row["ok"] is False
    assert "alkahest-nvptx 0.2.0" in row["detail"]
    assert f"core is {alkahest.__version__}" in row["detail"]
    assert "core and plugins in one command" in row["remedy"]


def test_a_package_out_of_the_bounds_of_a_plugin_is_named_with_the_command(
    run: Run, install: Install
) -> None:
    install("alkahest-nvptx", alkahest.__version__, "llvmlite<0.51,>=0.50")
    install("llvmlite", "0.44.0")
    with isolated_plugins():
        row = rows(run)["package llvmlite"]
    assert row["ok"] is False
    assert row["detail"].startswith("0.44.0, but ")
    assert f"alkahest-nvptx {alkahest.__version__} needs llvmlite<0.51,>=0.50" in row["detail"]
    assert row["remedy"] == "pip install 'llvmlite<0.51,>=0.50'"


def test_numba_that_wants_another_llvmlite_is_what_has_to_change(
    run: Run, install: Install
) -> None:
    install("alkahest-groebner", alkahest.__version__, "numba<0.69,>=0.68")
    install("alkahest-nvptx", alkahest.__version__, "llvmlite<0.51,>=0.50")
    install("llvmlite", "0.50.0")
    install("numba", "0.61.2", "llvmlite<0.45,>=0.44.0dev0")
    with isolated_plugins():
        found = rows(run)
    assert found["package llvmlite"]["ok"] is False
    assert "numba 0.61.2 needs llvmlite<0.45,>=0.44.0dev0" in found["package llvmlite"]["detail"]
    assert found["package llvmlite"]["remedy"].startswith(
        "pip install --upgrade 'numba<0.69,>=0.68', or keep numba and alkahest in environments"
    )
    assert found["package numba"]["ok"] is False


def test_what_a_requirement_lacks_is_a_fault_unless_an_extra_or_a_platform_asks_for_it(
    run: Run, install: Install
) -> None:
    install(
        "alkahest-cpu",
        alkahest.__version__,
        "no-such-thing>=1",
        'none-of-this>=2; extra == "jit"',
        'too-old>=3; sys_platform != "plan9"',
    )
    install("too-old", "2.9")
    with isolated_plugins():
        found = rows(run)
    missing = found["package no-such-thing"]
    assert (missing["ok"], missing["detail"][:18]) == (False, "not installed, but")
    assert missing["remedy"] == "pip install 'no-such-thing>=1'"
    assert found["package too-old"]["ok"] is False
    assert "package none-of-this" not in found
    assert "requirements" not in found


@pytest.mark.parametrize(
    ("bounds", "version", "answer"),
    [
        (">=0.50,<0.51", "0.50.0", True),
        (">=0.50,<0.51", "0.50.3rc1", True),
        (">=0.50,<0.51", "0.51", False),
        (">=0.50,<0.51", "0.5", False),
        ("<0.51,>=0.50.0dev0", "0.50", True),
        ("==0.1.0", "0.1", True),
        ("==0.1.0", "0.1.1", False),
        (" > 2 , <= 3.0", "3", True),
        ("~=1.4", "7", True),  # not judged: nothing of ours is written like that
        ("", "1.0", True),
    ],
)
def test_bounds_are_compared_by_release_number(bounds: str, version: str, answer: bool) -> None:
    requirement = Requirement(owner="ours", name="theirs", bounds=bounds, marker="")
    assert requirement.admits(version) is answer


# Plugins


def test_a_plugin_that_is_switched_off_is_no_fault_and_says_by_what(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALKAHEST_DISABLE_PLUGINS", "null")
    with isolated_plugins(NullPlugin()):
        row = rows(run)["plugin null"]
    assert row["ok"] is None
    assert row["detail"] == "disabled by ALKAHEST_DISABLE_PLUGINS=null"
    assert row["remedy"] == "Change ALKAHEST_DISABLE_PLUGINS to have it back."


@pytest.mark.parametrize(
    ("plugin", "reason"),
    [
        (("failing", Failing()), "invalid: "),
        (("future", future()), "incompatible: "),
    ],
    ids=["failing", "future"],
)
def test_a_broken_plugin_is_a_fault_with_a_way_around_it(
    run: Run, plugin: tuple[str, object], reason: str
) -> None:
    with isolated_plugins(plugin):
        row = rows(run)[f"plugin {plugin[0]}"]
    assert row["ok"] is False
    assert row["detail"].startswith(reason)
    assert f"ALKAHEST_DISABLE_PLUGINS={plugin[0]} leaves it out" in row["remedy"]


@pytest.mark.parametrize(
    ("variable", "value", "known"),
    [
        ("ALKAHEST_PLUGINS", "null,nul", "null"),
        ("ALKAHEST_DISABLE_PLUGINS", "nul", "null"),
        ("ALKAHEST_BACKEND", "nul", "auto, cpu, null"),
    ],
)
def test_a_variable_that_names_what_is_not_there_is_a_fault(
    run: Run, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, known: str
) -> None:
    monkeypatch.setenv(variable, value)
    with isolated_plugins(NullPlugin()):
        row = rows(run)[variable]
    assert (row["ok"], row["detail"]) == (False, f"names 'nul'; there are: {known}")
    assert row["remedy"] == f"Correct {variable}, or unset it."


def test_a_bit_whose_extra_was_left_out_is_no_fault(run: Run, install: Install) -> None:
    refusing = NullPlugin(
        backend="cpu-jit",
        features=("llvm_jit",),
        probe=lambda: Probe(ok=False, detail="no llvmlite", code="E-JIT-004"),
    )
    with isolated_plugins(("cpu", refusing)):
        assert rows(run)["capability llvm_jit"]["ok"] is False
        install("alkahest-cpu", alkahest.__version__, 'no-such-thing; extra == "jit"')
        row = rows(run)["capability llvm_jit"]
    assert row["ok"] is None
    assert row["remedy"].startswith("pip install 'alkahest[jit]==")


def test_whether_anything_evaluates_here_is_a_row_of_its_own(run: Run) -> None:
    with isolated_plugins(NullPlugin(), NullPlugin(backend="far", devices=0)):
        row = rows(run)["evaluation"]
    assert (row["ok"], row["detail"]) == (True, "by null")
    refusing = NullPlugin(backend="ill", probe=lambda: Probe(ok=False, detail="it has a cold"))
    with isolated_plugins(refusing, NullPlugin(backend="far", devices=0)):
        row = rows(run)["evaluation"]
    assert (row["ok"], row["remedy"][:26]) == (None, "pip install 'alkahest[cpu]")


# The cache


def test_a_cache_that_cannot_be_written_is_a_fault(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ALKAHEST_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with isolated_plugins():
        row = rows(run)["cache"]
    assert row["ok"] is False
    assert str(tmp_path / "file") in row["detail"]
    assert "ALKAHEST_CACHE_DIR" in row["remedy"]
