"""Installed distributions made up on the spot, with real metadata and real modules."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import attrs
import pytest

from alkahest._plugins.discovery import discover
from alkahest._plugins.registry import Registry
from alkahest.testing.plugins import NullPlugin


@attrs.frozen
class Site:
    """A folder like site-packages.

    Attributes:
        folder: where it is.
    """

    folder: Path

    def install(
        self,
        distribution: str,
        entry_points: Mapping[str, str],
        modules: Mapping[str, str] | None = None,
        version: str = "1.0",
    ) -> None:
        """Add a distribution with entry points of our group, and its modules' source text."""
        rows = "".join(f"{name} = {value}\n" for name, value in entry_points.items())
        self.metadata(distribution, f"[alkahest.backends]\n{rows}", version)
        for module, source in (modules or {}).items():
            (self.folder / f"{module}.py").write_text(textwrap.dedent(source), encoding="utf-8")
        importlib.invalidate_caches()

    def metadata(self, distribution: str, entry_points: str, version: str = "1.0") -> None:
        """Add a distribution's metadata alone, with this text as its entry_points.txt."""
        info = self.folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n", encoding="utf-8"
        )
        (info / "entry_points.txt").write_text(entry_points, encoding="utf-8")

    def registry(self, *others: Path) -> Registry:
        """A registry that finds what is installed here, and in other folders after it."""
        return Registry(partial(discover, [str(self.folder), *map(str, others)]))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An empty site, first on ``sys.path``; its modules are forgotten afterwards."""
    for variable in ("PLUGINS", "DISABLE_PLUGINS", "STRICT_PLUGINS"):
        monkeypatch.delenv(f"ALKAHEST_{variable}", raising=False)
    before = set(sys.modules)
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    yield Site(folder)
    for name in set(sys.modules) - before:
        if (origin := getattr(sys.modules[name], "__file__", None)) and str(folder) in origin:
            del sys.modules[name]


def source(
    backend: str, feature: str = "", exports: str = "{}", before: str = "", probe: str = ""
) -> str:
    """Source text of a plugin module with one backend.

    Args:
        backend: its name.
        feature: its capability bit, ``"<backend>.compile"`` by default.
        exports: a dictionary display.
        before: statements at the top of the module.
        probe: body of the probe, a "yes" by default.
    """
    bit = feature or f"{backend}.compile"
    return (
        f"{before}\n"
        "from alkahest.plugin import BackendInfo, Feature, Probe, hookimpl\n"
        "ALKAHEST_PLUGIN_API = 1\n"
        f"def probe():\n    {probe or 'return Probe(ok=True)'}\n"
        "@hookimpl\n"
        "def alkahest_register_backends():\n"
        f"    feature = Feature(name={bit!r}, probe=probe)\n"
        f"    return [BackendInfo(name={backend!r}, features=[feature], exports={exports})]\n"
    )


@pytest.fixture(name="source")
def source_fixture() -> Callable[..., str]:
    """Maker of source texts of plugin modules."""
    return source


@pytest.fixture
def registry_of() -> Callable[..., Registry]:
    """Maker of a registry whose plugins are the given objects, found in this order."""

    def make(*plugins: object) -> Registry:
        made = Registry(list)
        for plugin in plugins:
            made.register(plugin)
        return made

    return make


@pytest.fixture
def null() -> type[NullPlugin]:
    """The null plugin's class."""
    return NullPlugin
