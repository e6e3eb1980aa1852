"""One typed function per hook. Nothing else calls hooks.

Every call goes to one plugin at a time: to the owner of the backend, or in turn to each active
plugin, so that one which raises does not end the others' answers. What a plugin returns is checked
here, at the border, so that the rest of core can rely on its types.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from alkahest._plugins.isolation import Failure, contained
from alkahest._plugins.records import ActivePlugin, PluginRecord
from alkahest._plugins.registry import registry
from alkahest.errors import InputError, PluginError, PluginLoadWarning
from alkahest.plugin import Artifact, Command, DeviceInfo, Diagnostic, Estimate, Evaluator, Tuned

if TYPE_CHECKING:
    from alkahest.program import Program

T = TypeVar("T")


def codegen(
    backend: str, program: Program, target: str | None, options: Mapping[str, Any]
) -> Artifact:
    """Have ``backend`` generate code; see :func:`alkahest.hookspecs.alkahest_codegen`.

    Raises:
        KeyError: no backend of that name is loaded.
        PluginError: E-PLUGIN-003 when the plugin returns no artifact.
        AlkahestError: what the backend refuses, under its own code.
    """
    arguments = {"program": program, "target": target, "options": options}
    return _required(backend, "alkahest_codegen", Artifact, arguments)


def make_evaluator(backend: str, artifact: Artifact, device: int | None) -> Evaluator:
    """Have ``backend`` prepare an artifact for running.

    A host backend is asked only for devices that it has. Others are looked for by the first call,
    so that code compiles on machines without a device.

    Raises:
        KeyError: no backend of that name is loaded.
        InputError: E-INPUT-011, a host backend has no device with that ordinal.
        PluginError: E-PLUGIN-003 when the plugin returns no evaluator.
        AlkahestError: what the backend refuses, under its own code.
    """
    if device is not None and registry.snapshot().backends[backend].placement == "host":
        _check_ordinal(backend, device)
    arguments = {"artifact": artifact, "device": device}
    return _required(backend, "alkahest_make_evaluator", Evaluator, arguments)  # type: ignore[type-abstract]


def devices(backend: str) -> tuple[DeviceInfo, ...]:
    """The devices that ``backend`` can run on; ``devices(backend)[i].ordinal == i``.

    A host backend that does not implement the hook runs on the host: one device.

    Raises:
        KeyError: no backend of that name is loaded.
        PluginError: E-PLUGIN-003 when the plugin's answer is no such tuple.
    """
    snapshot = registry.snapshot()
    owner = snapshot.owners[backend]
    answer = owner.hook.alkahest_devices(backend=backend)
    if answer is None:
        on_host = snapshot.backends[backend].placement == "host"
        return (DeviceInfo(ordinal=0, name="host"),) if on_host else ()
    if not isinstance(answer, tuple) or not all(isinstance(d, DeviceInfo) for d in answer):
        raise _wrong(owner.record, "alkahest_devices", answer, "a tuple of DeviceInfo")
    if [device.ordinal for device in answer] != list(range(len(answer))):
        raise _wrong(owner.record, "alkahest_devices", answer, "ordinals 0, 1, ...")
    return answer


def estimate(backend: str, program: Program, n: int, placement: str) -> Estimate | None:
    """Predicted cost of one call, or None where the backend has no calibrated model.

    Raises:
        KeyError: no backend of that name is loaded.
        PluginError: E-PLUGIN-003 when the plugin returns something else.
    """
    arguments = {"program": program, "n": n, "placement": placement}
    return _optional(backend, "alkahest_estimate", Estimate, arguments)


def tune(backend: str, *, quick: bool) -> tuple[Tuned, ...]:
    """What measuring says about the settings of ``backend``; empty where it has none.

    Raises:
        KeyError: no backend of that name is loaded.
        PluginError: E-PLUGIN-003 when the plugin returns something else.
        AlkahestError: what a device refuses.
    """
    found = _optional(backend, "alkahest_tune", tuple, {"quick": quick}) or ()
    if not all(isinstance(entry, Tuned) for entry in found):
        owner = registry.snapshot().owner(backend)
        raise _wrong(owner, "alkahest_tune", found, "a tuple of Tuned")
    return found


def calibrate(backend: str, *, quick: bool) -> Mapping[str, float] | None:
    """Figures of a backend's own model, or None where it has none.

    Raises:
        KeyError: no backend of that name is loaded.
        PluginError: E-PLUGIN-003 when the answer is not positive numbers by name.
        AlkahestError: what its device refuses.
    """
    found = _optional(backend, "alkahest_calibrate", Mapping, {"quick": quick})  # type: ignore[type-abstract]
    if found is None:
        return None
    if not all(isinstance(v, float) and 0 < v < math.inf for v in found.values()):
        raise PluginError(
            "E-PLUGIN-003",
            f"alkahest_calibrate for {backend!r} returned {dict(found)!r}, not positive numbers",
        )
    return {str(name): value for name, value in found.items()}


def make_reducer(backend: str, device: int | None) -> object | None:
    """Linear algebra over prime fields, or None where the backend has none.

    Raises:
        KeyError: no backend of that name is loaded.
    """
    return _optional(backend, "alkahest_make_reducer", object, {"device": device})


def commands() -> list[tuple[PluginRecord, Command]]:
    """Subcommands of every active plugin; of two with one name, the first plugin's.

    A plugin whose hook fails, or whose command is taken already, gets a PluginLoadWarning and the
    others are returned.
    """
    found: dict[str, tuple[PluginRecord, Command]] = {}
    for plugin in registry.snapshot(strict=False).active:
        rows = _listed(plugin, "alkahest_commands", Command)
        if isinstance(rows, PluginError):
            warnings.warn(rows.message, PluginLoadWarning, stacklevel=2)
            continue
        for row in rows:
            first, _ = found.setdefault(row.name, (plugin.record, row))
            if first is not plugin.record:
                warnings.warn(
                    f"{plugin.record.label}: command {row.name!r} already belongs to {first.label}",
                    PluginLoadWarning,
                    stacklevel=2,
                )
    return list(found.values())


def diagnostics() -> list[tuple[PluginRecord, Diagnostic]]:
    """Rows for ``alkahest doctor``; a plugin whose hook fails gets a row that says so."""
    found: list[tuple[PluginRecord, Diagnostic]] = []
    for plugin in registry.snapshot(strict=False).active:
        rows = _listed(plugin, "alkahest_diagnostics", Diagnostic)
        if isinstance(rows, PluginError):
            rows = [
                Diagnostic(
                    name=f"plugin {plugin.record.name}",
                    ok=False,
                    detail=rows.message,
                    remedy=f"Report it to the authors of {plugin.record.origin}.",
                )
            ]
        found += [(plugin.record, row) for row in rows]
    return found


def _check_ordinal(backend: str, device: int) -> None:
    count = len(devices(backend))
    if 0 <= device < count:
        return
    known = {0: "It has none here.", 1: "Its only device is 0."}
    raise InputError(
        "E-INPUT-011",
        f"backend {backend!r} has no device {device}",
        remediation=known.get(count, f"Its devices are 0 to {count - 1}."),
    )


def _required(backend: str, hook: str, kind: type[T], arguments: Mapping[str, Any]) -> T:
    answer = _optional(backend, hook, kind, arguments)
    if answer is None:
        owner = registry.snapshot().owner(backend)
        raise _wrong(owner, hook, None, kind.__name__)
    return answer


def _optional(backend: str, hook: str, kind: type[T], arguments: Mapping[str, Any]) -> T | None:
    owner = registry.snapshot().owners[backend]
    answer = getattr(owner.hook, hook)(backend=backend, **arguments)
    if answer is not None and not isinstance(answer, kind):
        raise _wrong(owner.record, hook, answer, kind.__name__)
    return answer


def _listed(plugin: ActivePlugin, hook: str, kind: type[T]) -> list[T] | PluginError:
    """One plugin's answer to a hook that every plugin may answer, or what is wrong with it."""

    def call() -> list[object]:
        answers = getattr(plugin.hook, hook)()
        return [row for answer in answers for row in answer]

    rows = contained(f"{hook} of {plugin.record.label}", call, may_ask=True)
    if isinstance(rows, Failure):
        return PluginError("E-PLUGIN-003", f"{plugin.record.label}: {hook} raised {rows.detail}")
    wrong = [row for row in rows if not isinstance(row, kind)]
    if wrong:
        return _wrong(plugin.record, hook, wrong[0], kind.__name__)
    return [row for row in rows if isinstance(row, kind)]


def _wrong(owner: PluginRecord, hook: str, answer: object, promised: str) -> PluginError:
    return PluginError(
        "E-PLUGIN-003", f"{owner.label}: {hook} returned {answer!r} instead of {promised}"
    )
