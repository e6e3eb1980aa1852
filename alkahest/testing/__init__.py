"""For authors of backends and plugins: the conformance kit and plugins for tests.

Nothing here is imported unless a test suite asks for it, and nothing registers itself with pytest.
The kit needs pytest and mpmath (``pip install 'alkahest[testing]==VERSION'``); the rest needs neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from alkahest.testing.accuracy_conformance import AccuracyConformance
    from alkahest.testing.batch_conformance import BatchConformance
    from alkahest.testing.conformance import BackendConformance
    from alkahest.testing.plugins import NullPlugin, isolated_plugins

__all__ = [
    "AccuracyConformance",
    "BackendConformance",
    "BatchConformance",
    "NullPlugin",
    "isolated_plugins",
]

_HOMES = {
    "AccuracyConformance": "alkahest.testing.accuracy_conformance",
    "BackendConformance": "alkahest.testing.conformance",
    "BatchConformance": "alkahest.testing.batch_conformance",
    "NullPlugin": "alkahest.testing.plugins",
    "isolated_plugins": "alkahest.testing.plugins",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
