"""The rules that an imported plugin must keep before any of its backends is in use."""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import re
from collections.abc import Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import attrs
import pluggy

import alkahest
from alkahest import hookspecs
from alkahest._plugins.builtin import (
    BUILTIN_FEATURES,
    BY_BACKEND,
    BY_EXPORT,
    SELECTION_WORDS,
    BuiltinFeature,
)
from alkahest._plugins.discovery import Candidate, Imported
from alkahest._plugins.isolation import Failure, contained
from alkahest._plugins.records import ActivePlugin, PluginRecord, Snapshot, Status
from alkahest.errors import CODES, CodegenError, CudaError
from alkahest.plugin import OLDEST_PLUGIN_API, PLUGIN_API, BackendInfo, Feature

PREFIX = "alkahest_"
HOOKS = frozenset(name for name in vars(hookspecs) if name.startswith(PREFIX))

_DOTTED = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)+")
_TARGET = re.compile(r"\w+(\.\w+)*:\w+")


class Refusal(Exception):
    """A plugin broke a rule. Private, so that no exception of a plugin is mistaken for it."""

    def __init__(self, status: Status, detail: str) -> None:
        self.status = status
        self.detail = detail
        super().__init__(detail)


class PluginManager(pluggy.PluginManager):
    """Holds one plugin, so that no other can answer its calls and none is left half registered."""

    def __init__(self) -> None:
        super().__init__("alkahest")
        self.add_hookspecs(hookspecs)

    def parse_hookimpl_opts(self, plugin: object, name: str) -> Any:
        """Look at nothing but our hooks: reading an attribute may run a module's __getattr__."""
        return super().parse_hookimpl_opts(plugin, name) if name.startswith(PREFIX) else None


@attrs.define
class Roll:
    """The plugins admitted so far; the first to claim a name keeps it."""

    records: list[PluginRecord] = attrs.field(factory=list)
    errors: dict[PluginRecord, BaseException] = attrs.field(factory=dict)
    active: list[ActivePlugin] = attrs.field(factory=list)
    backends: dict[str, BackendInfo] = attrs.field(factory=dict)
    owners: dict[str, ActivePlugin] = attrs.field(factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot) -> Roll:
        """A roll that continues ``snapshot``."""
        return cls(
            list(snapshot.records),
            dict(snapshot.errors),
            list(snapshot.active),
            dict(snapshot.backends),
            dict(snapshot.owners),
        )

    def snapshot(self) -> Snapshot:
        """What has been admitted, as an immutable picture."""
        infos = self.backends.values()
        return Snapshot(
            records=tuple(self.records),
            errors=MappingProxyType(self.errors),
            active=tuple(self.active),
            backends=MappingProxyType(self.backends),
            owners=MappingProxyType(self.owners),
            features=MappingProxyType({f.name: info.name for info in infos for f in info.features}),
            exports=MappingProxyType({name: info.name for info in infos for name in info.exports}),
        )

    def admit(self, imported: Imported) -> PluginRecord:
        """Check one plugin and take it in, or note why not; never raises for a plugin's fault.

        A plugin object that is in already stays as it is.
        """
        candidate = imported.candidate
        record = PluginRecord(
            name=candidate.name,
            distribution=candidate.distribution,
            version=candidate.version,
            status=imported.status,
            detail=imported.detail,
        )
        error = imported.error
        if imported.status is Status.ACTIVE:
            for active in self.active:
                if active.plugin is imported.plugin:
                    return active.record
            try:
                record = self._take_in(record, candidate, imported.plugin)
            except Refusal as refusal:
                error = refusal.__cause__
                record = attrs.evolve(record, status=refusal.status, detail=refusal.detail)
        self.records.append(record)
        if error is not None:
            self.errors[record] = error
        return record

    def _take_in(self, record: PluginRecord, candidate: Candidate, plugin: object) -> PluginRecord:
        check_api(plugin, candidate)
        for other in self.active:
            if other.record.name == record.name:
                raise Refusal(
                    Status.CONFLICT, f"{other.record.label} already has the name {record.name!r}"
                )
        manager, hooks, remark = register_hooks(plugin, record)
        infos = describe_backends(manager, record) if PREFIX + "register_backends" in hooks else []
        for info in infos:
            check_backend(info)
            check_reserved(info, candidate)
        self._check_claims(infos)
        names = tuple(info.name for info in infos)
        record = attrs.evolve(record, hooks=hooks, detail=remark, backends=names)
        active = ActivePlugin(record, plugin, manager.hook)
        self.active.append(active)
        self.backends.update(zip(names, infos, strict=True))
        self.owners.update(dict.fromkeys(names, active))
        return record

    def _check_claims(self, infos: list[BackendInfo]) -> None:
        """Refuse names that another plugin stands for already."""
        claimed = {
            claim: self.owners[info.name].record
            for info in self.backends.values()
            for claim in _claims(info)
        }
        own: set[tuple[str, str]] = set()
        for info in infos:
            for claim in _claims(info):
                kind, name = claim
                if claim in own:
                    raise Refusal(Status.INVALID, f"{kind} {name!r} is described twice")
                own.add(claim)
                if claim in claimed:
                    raise Refusal(
                        Status.CONFLICT,
                        f"{kind} {name!r} already belongs to {claimed[claim].label}",
                    )
            for other in self.backends.values():
                label = self.owners[other.name].record.label
                if info.name == other.group:
                    raise Refusal(
                        Status.CONFLICT,
                        f"backend {info.name!r} is the name of a group that {label} uses",
                    )
                if info.group == other.name:
                    raise Refusal(
                        Status.CONFLICT, f"group {info.group!r} is the name of a backend of {label}"
                    )


_RESERVED: Mapping[str, Mapping[str, BuiltinFeature]] = {
    "backend": BY_BACKEND,
    "feature": BUILTIN_FEATURES,
    "export": BY_EXPORT,
}


def _claims(info: BackendInfo) -> list[tuple[str, str]]:
    """Every name that a backend wants for itself, with its kind."""
    features = [("feature", feature.name) for feature in info.features]
    exports = [("export", name) for name in info.exports]
    return [("backend", info.name), *features, *exports]


def check_api(plugin: object, candidate: Candidate) -> None:
    """Refuse a plugin of another interface version, running none of its code."""
    # getattr_static: a module's __getattr__ would already be code of the plugin.
    declared = inspect.getattr_static(plugin, "ALKAHEST_PLUGIN_API", None)
    if type(declared) is int and OLDEST_PLUGIN_API <= declared <= PLUGIN_API:
        return
    speaks = (
        str(PLUGIN_API)
        if OLDEST_PLUGIN_API == PLUGIN_API
        else f"{OLDEST_PLUGIN_API} to {PLUGIN_API}"
    )
    newer = type(declared) is int and declared > PLUGIN_API
    behind = "alkahest" if newer else candidate.distribution or "the plugin"
    raise Refusal(
        Status.INCOMPATIBLE,
        f"it declares ALKAHEST_PLUGIN_API {declared!r} and alkahest {alkahest.__version__} speaks {speaks}; "
        f"upgrade {behind}"
        + (f": pip install --upgrade {behind}" if candidate.distribution and not newer else ""),
    )


def register_hooks(
    plugin: object, record: PluginRecord
) -> tuple[PluginManager, tuple[str, ...], str]:
    """Register one plugin with a manager of its own.

    Returns:
        The manager, the names of the hooks found, and a remark for the plugin's author or "".
    """
    manager = PluginManager()
    _contained(f"the registration of {record.label}", lambda: manager.register(plugin, record.name))
    names: list[str] = []
    remarks: list[str] = []
    for caller in manager.get_hookcallers(plugin) or ():
        implementations = caller.get_hookimpls()
        if caller.has_spec():
            names.append(caller.name)
            remarks += [
                f"{caller.name} gives {name!r} a default, so alkahest never passes it"
                for implementation in implementations
                for name in implementation.kwargnames
            ]
        elif not all(implementation.optionalhook for implementation in implementations):
            close = difflib.get_close_matches(caller.name, HOOKS, n=1)
            raise Refusal(
                Status.INVALID,
                f"unknown hook {caller.name!r}"
                + (f"; did you mean {close[0]!r}?" if close else ""),
            )
    for name in sorted(HOOKS.difference(names)):
        if inspect.isroutine(inspect.getattr_static(plugin, name, None)):
            raise Refusal(Status.INVALID, f"{name} is not marked with alkahest.plugin.hookimpl")
    return manager, tuple(sorted(names)), "; ".join(remarks)


def describe_backends(manager: PluginManager, record: PluginRecord) -> list[BackendInfo]:
    """Ask a plugin for its descriptors."""
    what = f"alkahest_register_backends of {record.label}"
    answers: list[object] = _contained(what, manager.hook.alkahest_register_backends)
    if not answers:  # pluggy drops None
        raise Refusal(Status.INVALID, "alkahest_register_backends returned None")
    infos: list[BackendInfo] = []
    for answer in answers:
        if not isinstance(answer, Iterable):
            raise Refusal(
                Status.INVALID, f"alkahest_register_backends returned {answer!r}, not an iterable"
            )
        for info in _contained(what, partial(list, answer)):
            if not isinstance(info, BackendInfo):
                raise Refusal(
                    Status.INVALID, f"alkahest_register_backends gave {info!r}, not a BackendInfo"
                )
            infos.append(info)
    return infos


def _contained(what: str, call: Any) -> Any:
    """Run a plugin's code during registration; what it raises makes the plugin invalid."""
    answer = contained(what, call)
    if isinstance(answer, Failure):
        raise Refusal(Status.INVALID, answer.detail) from answer.error
    return answer


def check_backend(info: BackendInfo) -> None:
    """Refuse a descriptor that could not be acted on."""
    at = f"backend {info.name!r}: "
    if not info.features:
        raise Refusal(Status.INVALID, at + "names no feature, so nothing proves that it works")
    for feature in info.features:
        if not isinstance(feature, Feature):
            raise Refusal(Status.INVALID, at + f"feature {feature!r} is not a Feature")
        if not callable(feature.probe):
            raise Refusal(Status.INVALID, at + f"the probe of {feature.name!r} is not callable")
        if feature.name not in BUILTIN_FEATURES and not _DOTTED.fullmatch(feature.name):
            raise Refusal(
                Status.INVALID,
                at + f"feature {feature.name!r} needs a dotted name, for instance "
                f"'{info.name.replace('-', '_')}.compile'",
            )
    if info.support is not None and not callable(info.support):
        raise Refusal(Status.INVALID, at + "support is neither callable nor None")
    if not isinstance(info.exports, Mapping):
        raise Refusal(Status.INVALID, at + "exports is not a mapping")
    for name, target in info.exports.items():
        if not (isinstance(name, str) and name.isidentifier()) or name.startswith("_"):
            raise Refusal(Status.INVALID, at + f"export {name!r} is not a public name")
        if not (isinstance(target, str) and _TARGET.fullmatch(target)):
            raise Refusal(
                Status.INVALID, at + f"export {name!r}: {target!r} is not 'module:attribute'"
            )
    entry = CODES.get(info.refusal_code)
    if entry is None or not issubclass(entry.error, CodegenError | CudaError):
        raise Refusal(Status.INVALID, at + f"{info.refusal_code!r} is no code for refusals")


def check_reserved(info: BackendInfo, candidate: Candidate) -> None:
    """Keep the names of core, and of the plugins that core knows, for those."""
    if info.name in SELECTION_WORDS:
        raise Refusal(
            Status.CONFLICT, f"backend name {info.name!r} already has a meaning in alkahest"
        )
    for name in info.exports:
        if is_core_name(name):
            raise Refusal(Status.CONFLICT, f"export {name!r} already is a name of alkahest itself")
    for kind, name in _claims(info):
        builtin = _RESERVED[kind].get(name)
        if builtin and (candidate.is_foreign or info.name != builtin.backend):
            raise Refusal(
                Status.CONFLICT,
                f"{kind} {name!r} is reserved for backend {builtin.backend!r} of distribution "
                f"{builtin.distribution}",
            )


def is_core_name(name: str) -> bool:
    """Whether ``alkahest.<name>`` means something without any plugin."""
    return name in alkahest.PUBLIC_NAMES or bool(importlib.util.find_spec(f"alkahest.{name}"))
