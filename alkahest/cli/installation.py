"""Rows of ``alkahest doctor`` about what is installed; they read metadata and import nothing."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path

import attrs

import alkahest
from alkahest._plugins.builtin import DISTRIBUTIONS
from alkahest._plugins.discovery import canonical
from alkahest.plugin import Diagnostic

CORE = "alkahest"
OF_LLVMLITE = ("numba",)
"""Distributions of others that pin llvmlite, and so may not agree with ours about it."""

_UNREADABLE = (metadata.PackageNotFoundError, OSError, ValueError, KeyError)
_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.-]*)\s*(?:\[[^]]*\])?\s*\(?(?P<bounds>[^;@)]*)[^;]*(?:;(?P<marker>.*))?"
)
_BOUND = re.compile(r"\s*(>=|<=|==|>|<)\s*(\d+(?:\.\d+)*\w*)\s*")
_COMPARISONS: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}


@attrs.frozen
class Requirement:
    """What one distribution asks of another.

    Attributes:
        owner: the distribution that asks.
        name: the distribution asked for, in canonical spelling.
        bounds: ``">=0.50,<0.51"``, or "".
        marker: the environment that it is asked in, or "".
    """

    owner: str
    name: str
    bounds: str
    marker: str

    def admits(self, version: str) -> bool:
        """Whether ``version`` is within the bounds; those that are no plain comparison are passed."""
        found = filter(None, map(_BOUND.fullmatch, self.bounds.split(",")))
        return all(_COMPARISONS[b[1]](_release(version), _release(b[2])) for b in found)


def checks() -> Iterator[Diagnostic]:
    """Core, the plugins of ours beside it, and what they require."""
    yield _core()
    yield _plugins_of_ours()
    yield from _requirements()


def version(distribution: str) -> str:
    """Version of an installed distribution, or ""."""
    try:
        return _version_of(metadata.distribution(distribution))
    except metadata.PackageNotFoundError:
        return ""


def requirements(distribution: str) -> list[Requirement]:
    """What an installed distribution asks for; nothing where it is not installed."""
    try:
        texts = metadata.requires(distribution) or []
    except _UNREADABLE:  # a checkout on the path, a frozen application, or damaged
        return []
    found = []
    for match in filter(None, map(_REQUIREMENT.fullmatch, texts)):
        name, bounds, marker = canonical(match["name"]), match["bounds"], match["marker"] or ""
        found.append(Requirement(distribution, name, bounds.strip(), marker.strip()))
    return found


def running_from() -> Path:
    """The folder that core was imported from."""
    return Path(alkahest.__file__).resolve().parents[1]


def extra_is_absent(distribution: str, extra: str) -> bool:
    """Whether something that an extra of ``distribution`` brings is not installed."""
    asked = re.compile(rf"\bextra\s*==\s*['\"]{re.escape(extra)}['\"]")
    return any(
        asked.search(requirement.marker) and not version(requirement.name)
        for requirement in requirements(distribution)
    )


def _core() -> Diagnostic:
    """Whether the code that runs is that of the one distribution of its name."""
    name = "alkahest"
    here = running_from()
    copies = {
        (
            _version_of(found) or "damaged",
            str(Path(str(found.locate_file(""))).resolve()),
            _is_editable(found),
        )
        for found in metadata.distributions(name=CORE)
    }
    running = f"{alkahest.__version__} from {here}"
    others = sorted(f"{v} in {where}" for v, where, _ in copies if v != alkahest.__version__)
    if others:
        detail = f"{running} runs; installed under the same name: {'; '.join(others)}"
        return Diagnostic(name=name, ok=False, detail=detail, remedy=_REINSTALL)
    if not copies:
        return Diagnostic(name=name, ok=None, detail=f"{running}, which is not installed")
    if not any(editable or where == str(here) for _, where, editable in copies):
        where = "; ".join(sorted(where for _, where, _ in copies))
        detail = f"{running} comes before the one that is installed in {where}"
        remedy = "Start Python in another folder, or with -P, to use the installed one."
        return Diagnostic(name=name, ok=None, detail=detail, remedy=remedy)
    return Diagnostic(name=name, ok=True, detail=running)


def _version_of(found: metadata.Distribution) -> str:
    """The version in the metadata, or "" where they are damaged."""
    try:
        given = found.metadata.get_all("Version")
        return given[0] if given else ""
    except _UNREADABLE:
        return ""


def _is_editable(found: metadata.Distribution) -> bool:
    try:
        origin = json.loads(found.read_text("direct_url.json") or "{}")
        return bool(origin.get("dir_info", {}).get("editable"))
    except (OSError, ValueError, AttributeError):
        return False


def _plugins_of_ours() -> Diagnostic:
    """Whether our plugins have core's version: they are built from one tree and pin each other."""
    name = "versions of plugins"
    found = {plugin: version(plugin) for plugin in sorted(DISTRIBUTIONS)}
    shown = ", ".join(f"{plugin} {v}" for plugin, v in found.items() if v)
    if not shown:
        return Diagnostic(name=name, ok=None, detail="no plugin of ours is installed")
    if all(v in ("", alkahest.__version__) for v in found.values()):
        return Diagnostic(name=name, ok=True, detail=f"{shown}: as core's")
    detail = f"{shown}; core is {alkahest.__version__}, and they only work together"
    return Diagnostic(name=name, ok=False, detail=detail, remedy=_REINSTALL)


def _requirements() -> Iterator[Diagnostic]:
    """One row where all is well, else one per distribution that is missing or out of bounds."""
    asked = list(_asked())
    wrong = [r for r in asked if not (has := version(r.name)) or not r.admits(has)]
    for name in sorted({requirement.name for requirement in wrong}):
        demands = [requirement for requirement in wrong if requirement.name == name]
        wanted = "; ".join(f"{d.owner} {version(d.owner)} needs {name}{d.bounds}" for d in demands)
        yield Diagnostic(
            name=f"package {name}",
            ok=False,
            detail=f"{version(name) or 'not installed'}, but {wanted}",
            remedy=_remedy(demands, asked),
        )
    if not wrong:
        packages = {requirement.name for requirement in asked if version(requirement.name)}
        detail = f"{len(packages)} packages, each within the bounds of those that need it"
        yield Diagnostic(name="requirements", ok=True if packages else None, detail=detail)


def _asked() -> Iterator[Requirement]:
    """What our distributions ask for, and what their requirements ask for in turn.

    A marker is an environment or an extra that may not be this one: bounds count for what is
    installed all the same, so only the absence of what has a marker is no fault.
    """
    ours = [CORE, *sorted(DISTRIBUTIONS)]
    first = [r for owner in ours for r in requirements(owner) if r.name not in ours]
    yield from _of_the_installed(first)
    for owner in sorted({r.name for r in first}.union(OF_LLVMLITE)):
        yield from _of_the_installed(r for r in requirements(owner) if not r.marker)


def _of_the_installed(found: Iterable[Requirement]) -> Iterator[Requirement]:
    return (r for r in found if not r.marker or version(r.name))


def _remedy(demands: list[Requirement], asked: list[Requirement]) -> str:
    """What to install: the package that we ask for, else the owner of the demand as we ask for it."""
    ours = [r for r in demands if _is_ours(r.owner)]
    if ours:
        return f"pip install '{ours[0].name}{ours[0].bounds}'"
    owner = demands[0].owner
    bounds = next((r.bounds for r in asked if r.name == owner and _is_ours(r.owner)), "")
    return (
        f"pip install --upgrade '{owner}{bounds}', or keep {owner} and alkahest in environments "
        "of their own: both need one version of it."
    )


def _is_ours(distribution: str) -> bool:
    return distribution == CORE or distribution in DISTRIBUTIONS


def _release(text: str) -> tuple[int, ...]:
    """``(0, 50)`` for 0.50.0 and for 0.50.0dev0: trailing zeros and letters do not count."""
    match = re.match(r"\d+(?:\.\d+)*", text)
    numbers = [int(number) for number in match[0].split(".")] if match else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


_REINSTALL = (
    "pip uninstall alkahest, until no copy is left, then install core and plugins in one command, "
    "from one checkout or with one exact version; `pip install alkahest` brings another project."
)
