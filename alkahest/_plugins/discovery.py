"""From installed distributions to imported plugin objects: entry points and switches.

Nothing here holds a lock: plugin modules are imported under the import system's own locks only.
"""

from __future__ import annotations

import os
import re
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import Distribution, PackageNotFoundError, distributions, version

import attrs

import alkahest
from alkahest._plugins.builtin import BY_MODULE, DISTRIBUTIONS
from alkahest._plugins.isolation import Failure, contained
from alkahest._plugins.records import Status
from alkahest.errors import PluginError

GROUP = "alkahest.backends"
"""The entry-point group of plugins."""


@attrs.frozen
class Candidate:
    """A plugin before anything of it has run.

    Attributes:
        name: name of the entry point, or the name it is registered under.
        value: ``"module"`` or ``"module:attribute"``.
        distribution: what ships it; "" for one that the application registered.
        version: version of the distribution, or "".
        load: imports and returns the plugin object.
    """

    name: str
    value: str
    distribution: str
    version: str
    load: Callable[[], object] = attrs.field(eq=False, repr=False)

    @property
    def is_ours(self) -> bool:
        """Whether it is one of the plugins that core knows."""
        return self.distribution in DISTRIBUTIONS or self.value in BY_MODULE

    @property
    def is_foreign(self) -> bool:
        """Whether another distribution brought it, without the application asking for it."""
        return bool(self.distribution) and not self.is_ours

    @property
    def order(self) -> tuple[bool, str, str, str]:
        """Sort key: ours first, so that nobody's spelling lets him in before; then by name."""
        return (not self.is_ours, self.name, self.value, self.distribution)


@attrs.frozen
class Imported:
    """A candidate after its import: the plugin object, or why there is none."""

    candidate: Candidate
    plugin: object | None
    status: Status = Status.ACTIVE
    detail: str = ""
    error: BaseException | None = None


def discover(path: Sequence[str] | None = None) -> list[Candidate]:
    """Every installed plugin once, in an order that depends on names only.

    The same site-packages reached by two paths, and one entry point kept by an editable install
    beside stale metadata, both count once.

    Args:
        path: folders to look for installed distributions in; ``sys.path`` by default.
    """
    found: list[Candidate] = []
    seen: set[str] = set()
    for distribution in distributions(path=list(sys.path if path is None else path)):
        if GROUP not in _entry_point_text(distribution):
            continue
        name = _name(distribution)
        if name in seen:  # as for imports, the first on the path is the one in effect
            continue
        if name:
            seen.add(name)
        found += _candidates(name or "unknown", distribution)
    unique: dict[tuple[str, str], Candidate] = {}
    for candidate in sorted(found, key=lambda candidate: candidate.order):
        unique.setdefault((candidate.name, candidate.value), candidate)
    return list(unique.values())


def _entry_point_text(distribution: Distribution) -> str:
    try:
        return distribution.read_text("entry_points.txt") or ""
    except (OSError, UnicodeError):  # somebody's damaged installation, and no way to tell whose
        return ""


def _name(distribution: Distribution) -> str:
    """Name of a distribution, or "" where its metadata is damaged."""
    name: object = contained("metadata", lambda: distribution.metadata["Name"])
    return canonical(name) if isinstance(name, str) else ""


def _candidates(name: str, distribution: Distribution) -> Iterator[Candidate]:
    given = contained(f"metadata of {name}", lambda: distribution.version)
    shown = given if isinstance(given, str) else ""
    points = contained(
        f"metadata of {name}", lambda: list(distribution.entry_points.select(group=GROUP))
    )
    if isinstance(points, Failure):
        yield Candidate(name, "", name, shown, partial(_reraise, points.error))
    else:
        for point in points:
            yield Candidate(point.name, point.value, name, shown, point.load)


def _reraise(error: BaseException) -> object:
    raise error


def canonical(name: str) -> str:
    """A distribution's name in the one spelling that packaging tools compare."""
    return re.sub(r"[-_.]+", "-", name).lower()


def registered_candidate(plugin: object, name: str | None) -> Candidate:
    """A candidate for a plugin object that is already at hand."""
    module = plugin.__name__ if isinstance(plugin, types.ModuleType) else ""
    builtin = BY_MODULE.get(module)
    if builtin is None:
        own = getattr(plugin, "__name__", None)
        chosen = name or (own if isinstance(own, str) else type(plugin).__qualname__)
        return Candidate(chosen, module, "", "", lambda: plugin)
    try:
        released = version(builtin.distribution)
    except PackageNotFoundError:  # frozen application, or a checkout
        released = alkahest.__version__
    return Candidate(name or builtin.plugin, module, builtin.distribution, released, lambda: plugin)


def import_plugin(candidate: Candidate) -> Imported:
    """Import one plugin, unless the environment switches it off.

    Raises:
        PluginError: E-PLUGIN-004 if the plugin's module is itself asking for this import.
    """
    switch = switched_off_by(candidate)
    if switch:
        return Imported(candidate, None, Status.DISABLED, f"by {switch}")
    plugin = contained(f"the import of plugin {candidate.name!r}", candidate.load)
    if isinstance(plugin, Failure):
        return Imported(candidate, None, Status.FAILED, plugin.detail, plugin.error)
    module = sys.modules.get(candidate.value.partition(":")[0])
    if getattr(getattr(module, "__spec__", None), "_initializing", False):
        raise PluginError(
            "E-PLUGIN-004",
            f"plugin {candidate.name!r} used a plugin-provided name of alkahest "
            "while it was being imported",
        )
    return Imported(candidate, plugin)


def switched_off_by(candidate: Candidate) -> str:
    """The environment variable that switches ``candidate`` off, or ""."""
    names = {canonical(candidate.name), canonical(candidate.distribution)}
    blocked = _names("ALKAHEST_DISABLE_PLUGINS")
    if blocked and names & blocked:
        return "ALKAHEST_DISABLE_PLUGINS"
    allowed = _names("ALKAHEST_PLUGINS")
    if allowed is not None and not names & allowed:
        return "ALKAHEST_PLUGINS"
    return ""


def _names(variable: str) -> frozenset[str] | None:
    """The comma-separated names in an environment variable, None where it is not set."""
    text = os.environ.get(variable)
    if text is None:
        return None
    return frozenset(canonical(part.strip()) for part in text.split(",") if part.strip())
