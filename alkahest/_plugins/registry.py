"""The one place that knows which plugins there are and what works here.

Loading happens once, at the first question that needs plugins, in two phases: modules are imported
without our lock (the import system has its own, and holding ours meanwhile would deadlock with a
thread that imports the same plugin and asks us something), then registered under it. Readers see
an immutable snapshot that is replaced whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import attrs

from alkahest._plugins.announcements import strict_error, warn_about
from alkahest._plugins.builtin import BY_EXPORT
from alkahest._plugins.discovery import (
    Candidate,
    discover,
    import_plugin,
    registered_candidate,
)
from alkahest._plugins.isolation import refuse_reentry
from alkahest._plugins.questions import (
    absence,
    answer_to,
    complete_support,
    explain,
    feature_of,
    not_loaded,
    resolve,
)
from alkahest._plugins.records import PluginRecord, Snapshot
from alkahest._plugins.registration import Roll
from alkahest.errors import PluginError
from alkahest.forks import ForkSafeLock
from alkahest.plugin import BackendInfo, Probe, Support


@attrs.define
class _State:
    """A snapshot and the answers that its plugins have given so far."""

    snapshot: Snapshot
    probes: dict[str, Probe] = attrs.field(factory=dict)
    checks: dict[str, Probe] = attrs.field(factory=dict)
    support: dict[str, Support] = attrs.field(factory=dict)


class Registry:
    """Loads plugins on the first question and answers what is reachable; safe from any thread."""

    def __init__(self, find: Callable[[], Sequence[Candidate]] = discover) -> None:
        self._lock = ForkSafeLock()
        self._find = find
        self._registered: tuple[Candidate, ...] = ()
        self._state: _State | None = None

    # Loading

    def snapshot(self, *, strict: bool = True) -> Snapshot:
        """Every plugin, loading them at the first call.

        Args:
            strict: False answers even under ``ALKAHEST_STRICT_PLUGINS=1``, for listings whose
                purpose is to show what is wrong.

        Raises:
            PluginError: E-PLUGIN-001 under ``ALKAHEST_STRICT_PLUGINS=1`` when a plugin is neither
                active nor disabled; E-PLUGIN-004 when a plugin asks while it is being loaded.
        """
        snapshot = self._loaded().snapshot
        if strict and snapshot.troubled and os.environ.get("ALKAHEST_STRICT_PLUGINS") == "1":
            raise strict_error(snapshot)
        return snapshot

    def _loaded(self) -> _State:
        state = self._state
        if state is not None:
            return state
        refuse_reentry()
        imported = [import_plugin(candidate) for candidate in (*self._find(), *self._registered)]
        with self._lock:
            fresh = self._state is None
            if self._state is None:
                roll = Roll()
                for plugin in imported:
                    roll.admit(plugin)
                self._state = _State(roll.snapshot())
            state = self._state
        if fresh:
            # Only now: with warnings turned into errors, the next question finds the snapshot.
            warn_about(state.snapshot.records)
        return state

    def register(self, plugin: object, name: str | None = None) -> PluginRecord:
        """Add a plugin that no entry point announces; loads the others first.

        Registering a plugin object that is already active changes nothing. What the environment
        switches off stays off: the record returned then says "disabled".

        Args:
            plugin: a module or any other object with hooks and ``ALKAHEST_PLUGIN_API``.
            name: its name; by default the known name of our own plugins, else the object's.

        Raises:
            PluginError: E-PLUGIN-002 with the reason why the plugin is refused.
        """
        refuse_reentry()
        self._loaded()
        candidate = registered_candidate(plugin, name)
        with self._lock:
            state = self._state
            if state is None:  # another thread called refresh() in between
                raise PluginError("E-PLUGIN-002", "plugins were refreshed during register()")
            roll = Roll.of(state.snapshot)
            record = roll.admit(import_plugin(candidate))
            if len(roll.records) == len(state.snapshot.records):
                return record
            if record.status.is_trouble:
                cause = roll.errors.get(record)
                raise PluginError("E-PLUGIN-002", f"{record.label}: {record.detail}") from cause
            self._registered += (candidate,)
            self._state = attrs.evolve(state, snapshot=roll.snapshot())
        warn_about([record])
        return record

    def refresh(self) -> None:
        """Forget everything but what was registered; the next question loads again."""
        with self._lock:
            self._state = None

    @contextmanager
    def isolated(self, plugins: Sequence[tuple[str | None, object]]) -> Iterator[None]:
        """Meanwhile, have these (name, plugin) pairs and no others; restore afterwards."""
        candidates = [registered_candidate(plugin, name) for name, plugin in plugins]
        with self._lock:
            saved = self._find, self._registered, self._state
            self._find, self._registered, self._state = (lambda: candidates), (), None
        try:
            yield
        finally:
            with self._lock:
                self._find, self._registered, self._state = saved

    # Questions

    def probe(self, feature: str) -> Probe:
        """Whether the call behind a capability bit works here.

        Yes means that the plugin's own probe says so, that every name which comes with the
        backend can be imported, and that its operation tables load. Runs the code of the plugin
        that answers for ``feature`` and of no other, once per process. What that code raises is a
        "no" with the reason; a probe that never returns blocks this call (Ctrl-C works, and
        ``ALKAHEST_DISABLE_PLUGINS`` excludes its plugin).

        Args:
            feature: the bit; one that no loaded plugin answers for gets a "no" saying why.
        """
        state = self._loaded()
        backend = state.snapshot.features.get(feature)
        if backend is None:
            return Probe(ok=False, detail=absence(state.snapshot, feature))
        answer = state.probes.get(feature)
        if answer is None:
            refuse_reentry()
            # Not under the lock, since a probe imports; of two threads, one answer is kept.
            answer = state.probes.setdefault(feature, self._ask(state, backend, feature))
        return answer

    def _ask(self, state: _State, backend: str, feature: str) -> Probe:
        info = state.snapshot.backends[backend]
        answer = answer_to(f"the probe of {feature!r}", feature_of(info, feature).probe)
        if not answer.ok:
            return answer
        check = self._check(state, info)
        return answer if check.ok else check

    def _check(self, state: _State, info: BackendInfo) -> Probe:
        """Whether a backend's exported names resolve and its operation tables load."""
        known = state.checks.get(info.name)
        if known is not None:
            return known

        def check() -> Probe:
            for target in info.exports.values():
                resolve(target)
            if info.support is not None:
                self._support(state, info)
            return Probe(ok=True)

        return state.checks.setdefault(info.name, answer_to(f"backend {info.name!r}", check))

    def witness(self, feature: str) -> Probe:
        """Make the call that proves a capability bit; may touch a device, is never cached.

        Returns:
            The witness's answer; the probe's where that is a "no" or there is no witness.
        """
        probe = self.probe(feature)
        if not probe.ok:
            return probe
        snapshot = self._loaded().snapshot
        call = feature_of(snapshot.backends[snapshot.features[feature]], feature).witness
        if call is None:
            return probe
        # A witness makes the promised call, and that may ask what else works here.
        return answer_to(f"the witness of {feature!r}", call, may_ask=True)

    def reachable(self, backend: str) -> Probe:
        """Whether every feature of a backend passes: the first "no", or a "yes"."""
        info = self._loaded().snapshot.backends.get(backend)
        if info is None:
            return Probe(ok=False, detail=f"no backend named {backend!r} is loaded")
        answers = [self.probe(feature.name) for feature in info.features]
        return next((answer for answer in answers if not answer.ok), answers[0])

    def support(self, backend: str) -> Support:
        """Operation tables of a backend, completed: every row of OPS is lowered or refused.

        Raises:
            KeyError: no backend of that name is loaded.
            PluginError: E-PLUGIN-003 when the plugin's tables do not load or are no tables.
        """
        state = self._loaded()
        return self._support(state, state.snapshot.backends[backend])

    def _support(self, state: _State, info: BackendInfo) -> Support:
        known = state.support.get(info.name)
        if known is None:
            owner = state.snapshot.owner(info.name)
            known = state.support.setdefault(info.name, complete_support(info, owner))
        return known

    def exports(self) -> dict[str, str]:
        """The plugin-provided names that are on ``alkahest`` now -> ``"module:attribute"``."""
        snapshot = self.snapshot()
        return {
            name: snapshot.backends[backend].exports[name]
            for name, backend in snapshot.exports.items()
            if self.reachable(backend).ok
        }

    def resolve_export(self, name: str) -> Any:
        """The object behind a plugin-provided name.

        Raises:
            AttributeError: nothing provides the name, or not here; with code, reason and remedy.
        """
        snapshot = self.snapshot()
        missing = f"module 'alkahest' has no attribute {name!r}"
        backend = snapshot.exports.get(name)
        if backend is not None:
            answer = self.reachable(backend)
            if answer.ok:
                return resolve(snapshot.backends[backend].exports[name])
            owner = snapshot.owner(backend)
            missing += f": {owner.label} provides it, but backend {backend!r} does not work here: "
            missing += explain(answer)
        elif name in BY_EXPORT:
            builtin = BY_EXPORT[name]
            missing += f": it comes with backend {builtin.backend!r}, and " + not_loaded(
                snapshot, builtin
            )
        raise AttributeError(missing, name=name)


registry = Registry()
"""The registry of this process."""


def register(plugin: object, name: str | None = None) -> None:
    """Add a plugin that no entry point announces, for instance in a frozen application.

    Args:
        plugin: a module or any other object with hooks and ``ALKAHEST_PLUGIN_API``.
        name: what listings and ``ALKAHEST_DISABLE_PLUGINS`` call it; the object's own by default.

    Raises:
        PluginError: E-PLUGIN-002 with the reason why the plugin is refused.
    """
    registry.register(plugin, name)
