"""Asking a plugin something, making sense of whatever it answers, and saying it in words."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import attrs

from alkahest._plugins.builtin import BUILTIN_FEATURES, BuiltinFeature
from alkahest._plugins.isolation import Failure, contained
from alkahest._plugins.records import PluginRecord, Snapshot, Status
from alkahest.errors import CODES, AlkahestError, PluginError
from alkahest.ops import DTYPES, OPS
from alkahest.plugin import BackendInfo, Feature, Probe, Support


def answer_to(what: str, question: Callable[[], object], *, may_ask: bool = False) -> Probe:
    """Ask a plugin's probe or witness; anything but a Probe is a "no" with the reason."""
    given = contained(what, question, may_ask=may_ask)
    if isinstance(given, Probe):
        return given
    if not isinstance(given, Failure):
        return Probe(ok=False, detail=f"{what} returned {given!r} instead of a Probe")
    error = given.error
    if isinstance(error, AlkahestError):
        return Probe(ok=False, detail=error.message, code=error.code)
    return Probe(ok=False, detail=f"{what} raised {given.detail}")


def feature_of(info: BackendInfo, name: str) -> Feature:
    """The descriptor of one of a backend's features."""
    return next(feature for feature in info.features if feature.name == name)


def resolve(target: str) -> Any:
    """The object that ``"module:attribute"`` names."""
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def complete_support(info: BackendInfo, owner: PluginRecord) -> Support:
    """Run a backend's ``support`` and refuse what its author could not know yet.

    Raises:
        PluginError: E-PLUGIN-003.
    """
    what = f"support of backend {info.name!r} ({owner.label})"
    if info.support is None:
        raise PluginError("E-PLUGIN-003", f"{what} is None: it evaluates no programs")
    read = info.support

    def complete() -> Support:
        given: object = read()
        if not isinstance(given, Support):
            raise TypeError(f"it returned {given!r} instead of Support")
        lowers: dict[str, frozenset[str]] = {}
        for name, dtypes in given.lowers.items():
            if unknown := sorted(set(dtypes).difference(DTYPES)):
                raise ValueError(f"{name} has no dtype {unknown[0]!r}")
            if name in OPS and dtypes:  # what only a later core has is not ours to offer
                lowers[name] = frozenset(dtypes)
        missing = OPS.keys() - lowers.keys() - given.refuses.keys()
        automatic = dict.fromkeys(missing, f"unknown to {owner.origin}")
        return attrs.evolve(given, lowers=lowers, refuses={**automatic, **given.refuses})

    completed = contained(what, complete)
    if isinstance(completed, Failure):
        raise PluginError("E-PLUGIN-003", f"{what}: {completed.detail}") from completed.error
    return completed


def explain(answer: Probe) -> str:
    """A "no" in words: code, reason and remedy."""
    entry = CODES.get(answer.code)
    text = f"[{answer.code}] {answer.detail}" if answer.code else answer.detail
    return f"{text}\nRemediation: {entry.remedy}" if entry and entry.remedy else text


def absence(snapshot: Snapshot, feature: str) -> str:
    """Why no loaded plugin answers for ``feature``."""
    builtin = BUILTIN_FEATURES.get(feature)
    if builtin is None:
        return f"no loaded plugin has the feature {feature!r}"
    return not_loaded(snapshot, builtin)


def not_loaded(snapshot: Snapshot, builtin: BuiltinFeature) -> str:
    """Why nothing provides a feature that core knows, and what would."""
    for record in snapshot.records:
        if record.distribution != builtin.distribution:
            continue
        if record.status is Status.ACTIVE:
            return (
                f"{record.label} is installed and does not offer it; "
                f"if a part of it is missing: {builtin.remedy}"
            )
        return f"{record.label} is {record.status}: {record.detail}"
    return f"{builtin.distribution} is not installed; {builtin.remedy}"
