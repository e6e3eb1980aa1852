"""The helper that tests of plugins use."""

import pytest

import alkahest
from alkahest._plugins.registry import registry
from alkahest.errors import PluginLoadWarning
from alkahest.testing.plugins import NullPlugin, isolated_plugins


def test_inside_there_are_exactly_the_given_plugins_and_outside_what_was():
    before = registry.snapshot(strict=False)
    with isolated_plugins(NullPlugin(), ("mine", NullPlugin(backend="second"))):
        assert [plugin["name"] for plugin in alkahest.capabilities()["plugins"]] == ["null", "mine"]
        with isolated_plugins():
            assert alkahest.capabilities()["backends"] == {}
        assert sorted(alkahest.capabilities()["backends"]) == ["null", "second"]
    assert registry.snapshot(strict=False) is before


def test_what_was_comes_back_after_an_error():
    before = registry.snapshot(strict=False)
    with pytest.raises(ZeroDivisionError), isolated_plugins(NullPlugin()):
        raise ZeroDivisionError
    assert registry.snapshot(strict=False) is before


def test_a_plugin_registered_inside_is_gone_outside():
    with isolated_plugins():
        alkahest.register(NullPlugin())
        assert list(alkahest.capabilities()["backends"]) == ["null"]
    assert "null" not in registry.snapshot(strict=False).backends


def test_a_broken_plugin_is_recorded_as_an_installed_one_would_be():
    with isolated_plugins(object(), NullPlugin()):
        with pytest.warns(PluginLoadWarning, match="ALKAHEST_PLUGIN_API None"):
            plugins = alkahest.capabilities()["plugins"]
        assert [(plugin["name"], plugin["status"]) for plugin in plugins] == [
            ("object", "incompatible"),
            ("null", "active"),
        ]


def test_the_environment_applies_inside(monkeypatch):
    monkeypatch.setenv("ALKAHEST_DISABLE_PLUGINS", "null")
    with isolated_plugins(NullPlugin()):
        assert alkahest.capabilities()["plugins"][0]["status"] == "disabled"
