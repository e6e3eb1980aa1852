"""Which backend compiles a program.

A backend asked for by name is used or its refusal is raised; it never degrades. ``"auto"`` takes
the best backend that is reachable here, has a device here and lowers the program. Host columns go
to a backend that reads host memory unless there is none, or a calibration says that another one is
quicker (:mod:`alkahest.automatic`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from alkahest._plugins import calls
from alkahest._plugins.builtin import BUILTIN_FEATURES, BY_BACKEND
from alkahest._plugins.records import Status
from alkahest._plugins.registry import registry
from alkahest.errors import CODES, CodegenError, PluginError, install

if TYPE_CHECKING:
    from alkahest.plugin import BackendInfo
    from alkahest.program import Program

AUTO = "auto"
"""Name that lets alkahest choose."""

HOST = "host"
"""The placement of columns in host memory."""

ENVIRONMENT_VARIABLE = "ALKAHEST_BACKEND"
"""Names the backend that is used where ``backend=`` is not given."""


def find(name: str) -> tuple[BackendInfo, ...]:
    """Backends that ``name`` stands for, best first: that backend, or every one of that group.

    Raises:
        CodegenError: E-JIT-009 when no evaluating backend of that name or group is loaded.
    """
    loaded = evaluating()
    exact = tuple(info for info in loaded if info.name == name)
    members = exact or tuple(info for info in loaded if info.group == name)
    if members:
        return members
    names = ", ".join(info.name for info in loaded) or "none"
    raise CodegenError(
        "E-JIT-009",
        f"no backend {name!r} is loaded; loaded: {names}{_failures()}",
        remediation=_install(name),
    )


def choose(program: Program, backend: str = AUTO, placement: str = HOST) -> BackendInfo:
    """The backend that compiles ``program``.

    Args:
        program: what will be compiled.
        backend: a backend's name, a group's name or ``"auto"``.
        placement: where the columns are, ``"host"`` or ``"cuda"``.

    Raises:
        CodegenError: E-JIT-009 for an unknown name; the named backend's own refusal code (with
            its class) naming the operation; E-JIT-004 when nothing fits automatically.
    """
    if backend == AUTO:
        return next(fitting(program, placement))
    members = find(backend)
    lowering = [info for info in members if refusal(info, program) is None]
    if len(lowering) == 1:  # the only one there is to name; probing it may take long
        return lowering[0]
    if lowering:
        return next((i for i in lowering if registry.reachable(i.name).ok), lowering[0])
    info = members[0]
    raise CODES[info.refusal_code].error(
        info.refusal_code,
        f"backend {info.name!r} cannot compile this program: {refusal(info, program)}",
        remediation=_alternatives(program),
    )


def refusal(info: BackendInfo, program: Program) -> str | None:
    """Why ``info`` does not lower ``program``, naming the operation, or None if it does."""
    support = registry.support(info.name)
    dtypes = frozenset[str]().union(*support.lowers.values())
    if program.dtype not in dtypes:
        return f"it has no {program.dtype} programs, only {', '.join(sorted(dtypes))}"
    for name in dict.fromkeys(instruction.op for instruction in program.code):
        lowered = support.lowers.get(name)
        if lowered is None:
            return f"{name}: {support.refuses.get(name, 'unknown to this backend')}"
        if program.dtype not in lowered:
            return f"{name}: not lowered for {program.dtype}, only {', '.join(sorted(lowered))}"
    return None


def fitting(program: Program, placement: str = HOST) -> Iterator[BackendInfo]:
    """Backends that can run ``program`` here: first those of ``placement``, then by priority.

    Each is asked only when its turn comes, since asking for devices may start a driver.

    Raises:
        CodegenError: E-JIT-004, at the end, if there was none; it says why each was passed over.
    """
    obstacles: dict[str, str] = {}
    found = False
    for info in sorted(evaluating(), key=lambda info: info.placement != placement):
        reason = obstacle(info, program)
        if reason is None:
            found = True
            yield info
        else:
            obstacles[info.name] = reason
    if found:
        return
    if not obstacles:
        raise CodegenError("E-JIT-004", f"no backend is loaded{_failures()}")
    reasons = "; ".join(f"{name}: {reason}" for name, reason in obstacles.items())
    raise CodegenError("E-JIT-004", f"no backend can compile this program here ({reasons})")


def obstacle(info: BackendInfo, program: Program) -> str | None:
    """Why automatic selection passes over ``info``, cheapest question first."""
    try:
        reason = refusal(info, program)
        if reason is not None:
            return reason
        probe = registry.reachable(info.name)
        if not probe.ok:
            return probe.detail or "its probe failed"
        return None if calls.devices(info.name) else "no device here"
    except PluginError as error:  # a broken plugin is passed over like an unsuitable one
        return error.message


def evaluating() -> list[BackendInfo]:
    """Loaded backends that evaluate programs, best first; names break ties."""
    infos = [i for i in registry.snapshot().backends.values() if i.support is not None]
    return sorted(infos, key=lambda info: (-info.priority, info.name))


def _lowers(info: BackendInfo, program: Program) -> bool:
    try:
        return refusal(info, program) is None
    except PluginError:
        return False


def _alternatives(program: Program) -> str:
    names = [i.name for i in evaluating() if _lowers(i, program)]
    if names:
        return f"Use a backend that can: {', '.join(names)}."
    return f"No loaded backend can; install another, for instance: {install('cpu')}."


def _install(name: str) -> str:
    builtin = BY_BACKEND.get(name) or BUILTIN_FEATURES.get(name)
    if builtin is not None:
        return f"{builtin.remedy}."
    return "Use one of the loaded backends, or install the plugin that brings it."


def _failures() -> str:
    """What became of plugins that are installed and not active, for the end of a message."""
    records = (r for r in registry.snapshot().records if r.status is not Status.ACTIVE)
    notes = "; ".join(f"{r.label} is {r.status}: {r.detail}" for r in records)
    return f" ({notes})" if notes else ""


__all__ = [
    "AUTO",
    "ENVIRONMENT_VARIABLE",
    "HOST",
    "choose",
    "evaluating",
    "find",
    "fitting",
    "obstacle",
    "refusal",
]
