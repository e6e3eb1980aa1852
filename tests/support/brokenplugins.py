"""Plugins that are broken, each in its own way."""

from __future__ import annotations

import types
from typing import Any

from alkahest.plugin import BackendInfo, Diagnostic, hookimpl
from alkahest.testing.plugins import NullPlugin


class Failing:
    """A plugin that is refused: its registration raises."""

    ALKAHEST_PLUGIN_API = 1

    @hookimpl
    def alkahest_register_backends(self) -> list[BackendInfo]:
        print("a plugin that prints")
        raise RuntimeError("the moon is full")


class Sick(NullPlugin):
    """An active plugin whose every later answer is wrong."""

    @hookimpl
    def alkahest_devices(self, backend: str) -> Any:
        print("a plugin that prints")
        raise OSError("bus error")

    @hookimpl
    def alkahest_diagnostics(self) -> list[Diagnostic]:
        raise RuntimeError("no pulse")


def future() -> types.SimpleNamespace:
    return types.SimpleNamespace(ALKAHEST_PLUGIN_API=99, __name__="future")
