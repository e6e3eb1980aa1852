"""What is found, in which order, and what the environment keeps out."""

import sys
import types
from importlib import metadata

import pytest

import alkahest
from alkahest._plugins.discovery import discover
from alkahest._plugins.registry import Registry
from alkahest.errors import PluginLoadWarning


def statuses(registry):
    return {record.name: str(record.status) for record in registry.snapshot().records}


def test_an_installed_plugin_is_found_with_its_distribution_and_version(site, source):
    site.install("Toy.Backend", {"toy": "toy_plugin"}, {"toy_plugin": source("toy")}, "2.5")
    (record,) = site.registry().snapshot().records
    assert (record.name, record.distribution, record.version) == ("toy", "toy-backend", "2.5")
    assert record.status == "active"
    assert record.hooks == ("alkahest_register_backends",)
    assert record.backends == ("toy",)
    assert record.label == "plugin 'toy' (toy-backend 2.5)"


def test_the_order_depends_on_names_and_not_on_the_path(site, source, tmp_path):
    for name in ("c", "a", "b"):
        site.install(f"dist-{name}", {name: f"{name}_plugin"}, {f"{name}_plugin": source(name)})
    assert [candidate.name for candidate in discover([str(site.folder)])] == ["a", "b", "c"]


def test_one_site_under_two_names_counts_once(site, source, tmp_path):
    site.install("toy", {"toy": "toy_plugin"}, {"toy_plugin": source("toy")})
    link = tmp_path / "lib64"
    link.symlink_to(site.folder)
    registry = site.registry(link, site.folder)
    assert statuses(registry) == {"toy": "active"}
    assert len(registry.snapshot().records) == 1


def test_one_entry_point_of_two_distributions_counts_once(site, source):
    site.install("toy", {"toy": "toy_plugin"}, {"toy_plugin": source("toy")})
    site.install("toy-renamed", {"toy": "toy_plugin"})
    (record,) = site.registry().snapshot().records
    assert (record.distribution, record.status) == ("toy", "active")


def test_an_unreadable_entry_point_file_is_reported_and_others_load(site, source):
    site.metadata("broken", "[alkahest.backends]\nno equals sign here\n")
    site.install("toy", {"toy": "toy_plugin"}, {"toy_plugin": source("toy")})
    registry = site.registry()
    with pytest.warns(PluginLoadWarning, match="'broken'"):
        assert statuses(registry) == {"broken": "failed", "toy": "active"}


def test_damaged_metadata_of_strangers_is_passed_over(site, source):
    site.metadata("stranger", "[console_scripts]\nno equals sign here\n")
    (site.folder / "stranger-1.0.dist-info" / "METADATA").unlink()
    (site.folder / "latin.dist-info").mkdir()
    (site.folder / "latin.dist-info" / "entry_points.txt").write_bytes(b"\xff\xfe\x00")
    site.install("toy", {"toy": "toy_plugin"}, {"toy_plugin": source("toy")})
    assert statuses(site.registry()) == {"toy": "active"}


def test_damaged_names_of_plugins_do_not_hide_one_another(site, source):
    for name in ("one", "two"):
        site.install(name, {name: f"{name}_plugin"}, {f"{name}_plugin": source(name)})
        (site.folder / f"{name}-1.0.dist-info" / "METADATA").write_bytes(b"Name: \xff\n")
    records = site.registry().snapshot().records
    assert [(r.name, r.distribution, r.version) for r in records] == [
        ("one", "unknown", ""),
        ("two", "unknown", ""),
    ]


def test_an_entry_point_may_name_an_object_in_a_module(site, source):
    text = "from alkahest.testing.plugins import NullPlugin\nplugin = NullPlugin(backend='inner')\n"
    site.install("toy", {"toy": "toy_module:plugin"}, {"toy_module": text})
    assert sorted(site.registry().snapshot().backends) == ["inner"]


@pytest.mark.parametrize("name", ["slow", "slow-dist", "Slow_Dist"])
def test_a_disabled_plugin_is_never_imported(site, source, monkeypatch, name):
    site.install(
        "slow-dist", {"slow": "slow_plugin"}, {"slow_plugin": "import time; time.sleep(5)"}
    )
    site.install("toy", {"toy": "toy_plugin"}, {"toy_plugin": source("toy")})
    monkeypatch.setenv("ALKAHEST_DISABLE_PLUGINS", f"nobody, {name}")
    registry = site.registry()
    assert statuses(registry) == {"slow": "disabled", "toy": "active"}
    assert registry.snapshot().records[0].detail == "by ALKAHEST_DISABLE_PLUGINS"
    assert "slow_plugin" not in sys.modules


@pytest.mark.parametrize(
    ("value", "active"),
    [("", set()), ("a", {"a"}), ("dist-b", {"b"}), ("a,b", {"a", "b"}), ("nobody", set())],
)
def test_the_allow_list_keeps_only_what_it_names(site, source, monkeypatch, value, active):
    for name in ("a", "b"):
        site.install(f"dist-{name}", {name: f"{name}_plugin"}, {f"{name}_plugin": source(name)})
    monkeypatch.setenv("ALKAHEST_PLUGINS", value)
    snapshot = site.registry().snapshot()
    assert {r.name for r in snapshot.records if r.status == "active"} == active
    assert {r.detail for r in snapshot.records if r.status != "active"} <= {"by ALKAHEST_PLUGINS"}


def test_the_deny_list_beats_the_allow_list(site, source, monkeypatch):
    site.install("toy", {"toy": "toy_plugin"}, {"toy_plugin": source("toy")})
    monkeypatch.setenv("ALKAHEST_PLUGINS", "toy")
    monkeypatch.setenv("ALKAHEST_DISABLE_PLUGINS", "toy")
    assert statuses(site.registry()) == {"toy": "disabled"}


def test_the_switches_apply_to_registered_plugins_too(null, monkeypatch):
    monkeypatch.setenv("ALKAHEST_DISABLE_PLUGINS", "null")
    registry = Registry(list)
    assert registry.register(null()).status == "disabled"
    assert registry.snapshot().backends == {}


def test_three_hundred_other_distributions_are_not_parsed(site, source, monkeypatch):
    for number in range(300):
        site.metadata(f"other-{number}", "[console_scripts]\nrun = somewhere:main\n")
    site.install("toy", {"toy": "toy_plugin"}, {"toy_plugin": source("toy")})
    parsed = []
    whole = metadata.Distribution.entry_points
    monkeypatch.setattr(
        metadata.Distribution,
        "entry_points",
        property(lambda self: parsed.append(self.name) or whole.fget(self)),
    )
    assert statuses(site.registry()) == {"toy": "active"}
    assert parsed == ["toy"]


def test_without_any_metadata_a_plugin_can_be_registered(site, monkeypatch, null):
    def nothing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", nothing)
    registry = site.registry()
    ours = types.ModuleType("alkahest.backends.cpu.plugin")
    for name in ("ALKAHEST_PLUGIN_API", "alkahest_register_backends"):
        setattr(ours, name, getattr(null(backend="cpu-reference", features=("cpu",)), name))
    record = registry.register(ours)
    assert (record.name, record.distribution) == ("cpu", "alkahest-cpu")
    assert record.version == alkahest.__version__ == "0.1.0"
    assert registry.probe("cpu").ok
