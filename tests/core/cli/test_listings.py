"""``capabilities``, ``plugins``, ``devices`` and the summary."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from brokenplugins import Failing, Sick, future

import alkahest
from alkahest.cli.layout import aligned
from alkahest.plugin import Probe
from alkahest.testing.plugins import NullPlugin, isolated_plugins

Run = Callable[..., Any]


def test_capabilities_as_json_are_what_the_function_returns(run: Run) -> None:
    with isolated_plugins(NullPlugin()):
        assert json.loads(run("capabilities", "--json").out) == alkahest.capabilities()


def test_capabilities_as_a_page_are_html(run: Run) -> None:
    with isolated_plugins(NullPlugin()):
        page = run("capabilities", "--html").out
    assert page.startswith("<!doctype html>")
    assert "<td>null.compile</td><td>yes</td>" in page


def test_capabilities_as_text_say_why_a_bit_is_false(run: Run) -> None:
    refusing = NullPlugin(backend="ill", probe=lambda: Probe(ok=False, detail="it has a cold"))
    with isolated_plugins(NullPlugin(), refusing):
        text = " ".join(run("capabilities").out.split())
    assert "null.compile ok" in text
    assert "ill.compile no it has a cold" in text
    assert "cpu no alkahest-cpu is not installed; pip install 'alkahest[cpu]==0.1.0'" in text


def test_verifying_makes_the_promised_call(run: Run) -> None:
    broken = NullPlugin(witness=lambda: Probe(ok=False, detail="the launch failed"))
    with isolated_plugins(broken):
        assert json.loads(run("capabilities", "--json").out)["features"]["null.compile"]
        verified = run("capabilities", "--json", "--verify")
        assert not json.loads(verified.out)["features"]["null.compile"]
        text = " ".join(run("capabilities", "--verify").out.split())
        assert "null.compile no the launch failed" in text


def test_plugins_are_listed_with_what_became_of_them(run: Run) -> None:
    with isolated_plugins(NullPlugin(), ("failing", Failing()), ("future", future())):
        listed = run("plugins", "--json")
        text = run("plugins").out
    records = {entry["name"]: entry for entry in json.loads(listed.out)}
    assert {name: entry["status"] for name, entry in records.items()} == {
        "null": "active",
        "failing": "invalid",
        "future": "incompatible",
    }
    assert records["null"]["backends"] == ["null"]
    assert "the moon is full" in records["failing"]["detail"]
    assert records["failing"]["disable"] == "ALKAHEST_DISABLE_PLUGINS=failing"
    assert "null: active" in text
    assert "ALKAHEST_DISABLE_PLUGINS=failing leaves it out" in text


def test_without_plugins_the_listing_says_what_to_install(run: Run) -> None:
    with isolated_plugins():
        assert "pip install 'alkahest[cpu]==0.1.0'" in run("plugins").out
        assert "pip install 'alkahest[cpu]==0.1.0'" in run("devices").out
        assert json.loads(run("devices", "--json").out) == {}


@pytest.mark.parametrize("command", ["capabilities", "plugins", "devices", "doctor"])
def test_a_broken_plugin_costs_a_warning_line_and_never_the_command(run: Run, command: str) -> None:
    for options in ([], ["--json"]):
        with isolated_plugins(("failing", Failing()), ("sick", Sick())):
            result = run(command, *options)
        assert result.code == (command == "doctor")  # which says that something is wrong
        warnings = [line for line in result.err.splitlines() if "the moon is full" in line]
        assert len(warnings) == 1
        assert warnings[0].startswith("alkahest: warning: plugin 'failing' ")
        assert "a plugin that prints" not in result.out
        if options:
            json.loads(result.out)


@pytest.mark.parametrize(("command", "code"), [("plugins", 0), ("doctor", 1)])
def test_strictness_does_not_hide_what_is_wrong(
    run: Run, command: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALKAHEST_STRICT_PLUGINS", "1")
    with isolated_plugins(("failing", Failing())):
        result = run(command)
        assert result.code == code
        assert "the moon is full" in " ".join(result.out.split())
        assert run("capabilities").code == 1


def test_devices_are_listed_by_backend(run: Run) -> None:
    with isolated_plugins(
        NullPlugin(devices=2), NullPlugin(backend="none", devices=0), Sick(backend="sick")
    ):
        found = json.loads(run("devices", "--json").out)
        text = run("devices").out
    assert [device["name"] for device in found["null"]["devices"]] == ["null 0", "null 1"]
    assert found["none"] == {"devices": [], "detail": ""}
    assert found["sick"] == {"devices": [], "detail": "OSError: bus error"}
    assert "null\n  0  null 0\n  1  null 1" in text
    assert "none\n  no devices" in text


def test_the_summary_evaluates_on_the_backend_that_is_here(run: Run) -> None:
    with isolated_plugins(NullPlugin()):
        result = run()
    assert result.code == 0
    assert "evaluated by backend 'null':" in result.out
    assert "f(0.5) = 0.0" in result.out


def test_the_summary_reports_a_backend_that_was_asked_for_and_is_not_here(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALKAHEST_BACKEND", "abacus")
    with isolated_plugins(NullPlugin()):
        result = run()
    assert result.code == 2
    assert "[E-JIT-009]" in result.err


def test_columns_of_text_are_aligned_and_long_ones_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    text = aligned([("a", "x" * 60), ("long", "one two three four five six seven eight nine ten")])
    assert text == (
        f"  a     {'x' * 60}\n  long  one two three four five six seven eight\n        nine ten"
    )
    assert aligned([]) == "  none"
