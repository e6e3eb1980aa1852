"""``alkahest.capabilities()``: what works here, as plain data.

This module is imported with the package, so it imports nothing itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from alkahest._plugins.records import Snapshot
    from alkahest._plugins.registry import Registry
    from alkahest.plugin import Probe

CONTRACT_VERSION = 4
"""Version of the layout described in :func:`capabilities`; additions do not change it."""


def capabilities(*, verify: bool = False) -> dict[str, Any]:
    """Say what works here: JSON data, made anew by every call, shown as tables in notebooks.

    Args:
        verify: also make the call that each bit promises, which may touch a device; a bit whose
            call fails is False in the answer.

    Returns:
        A dictionary with

        ``contract_version``
            4.
        ``features``
            bit -> bool. Every bit that alkahest itself defines is there; those of other
            distributions have dotted names and are there when loaded. A bit is True while the
            probe behind it passes, and exactly then the names that belong to it are on
            ``alkahest``, in ``dir(alkahest)`` and in ``alkahest.__all__``.
        ``backends``
            name -> ``summary``, ``features``, ``reachable``, ``detail`` (why not, or what was
            seen), ``placement``, ``group``, ``priority``, ``distribution``.
        ``plugins``
            one record per plugin found: ``name``, ``distribution``, ``version``, ``status``,
            ``detail``, ``hooks``, ``backends``.
        ``primitives``
            the operations that some reachable backend evaluates, sorted by name: ``name`` and
            ``backends``, name of a backend -> dtypes.

    Raises:
        PluginError: E-PLUGIN-001 under ``ALKAHEST_STRICT_PLUGINS=1``; E-PLUGIN-004 when a plugin
            asks while it is being loaded or probed.
    """
    from alkahest._plugins.builtin import BUILTIN_FEATURES
    from alkahest._plugins.registry import registry
    from alkahest.capability_report import Capabilities

    snapshot = registry.snapshot()
    ask = registry.witness if verify else registry.probe
    answers = {bit: ask(bit) for bit in sorted({*BUILTIN_FEATURES, *snapshot.features})}
    backends = _backends(snapshot, answers)
    return Capabilities(
        contract_version=CONTRACT_VERSION,
        features={bit: answer.ok for bit, answer in answers.items()},
        backends=backends,
        plugins=[
            {
                "name": record.name,
                "distribution": record.distribution,
                "version": record.version,
                "status": record.status.value,
                "detail": record.detail,
                "hooks": list(record.hooks),
                "backends": list(record.backends),
            }
            for record in snapshot.records
        ],
        primitives=_primitives(
            registry, snapshot, [name for name, entry in backends.items() if entry["reachable"]]
        ),
    )


def _backends(snapshot: Snapshot, answers: dict[str, Probe]) -> dict[str, dict[str, Any]]:
    entries: dict[str, dict[str, Any]] = {}
    for name, info in sorted(snapshot.backends.items()):
        own = [answers[feature.name] for feature in info.features]
        decisive = next((answer for answer in own if not answer.ok), own[0])
        entries[name] = {
            "summary": info.summary,
            "features": [feature.name for feature in info.features],
            "reachable": decisive.ok,
            "detail": f"[{decisive.code}] {decisive.detail}" if decisive.code else decisive.detail,
            "placement": info.placement,
            "group": info.group,
            "priority": info.priority,
            "distribution": snapshot.owner(name).distribution,
        }
    return entries


def _primitives(
    registry: Registry, snapshot: Snapshot, reachable: list[str]
) -> list[dict[str, Any]]:
    found: dict[str, dict[str, list[str]]] = {}
    for backend in reachable:
        if snapshot.backends[backend].support is None:
            continue
        for op, dtypes in registry.support(backend).lowers.items():
            found.setdefault(op, {})[backend] = sorted(dtypes)
    return [{"name": op, "backends": backends} for op, backends in sorted(found.items())]
