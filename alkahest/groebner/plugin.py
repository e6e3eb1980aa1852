"""Entry point of the distribution ``alkahest-groebner``; it offers no backend in this version."""

from __future__ import annotations

from alkahest.plugin import BackendInfo, hookimpl

ALKAHEST_PLUGIN_API = 1


@hookimpl
def alkahest_register_backends() -> tuple[BackendInfo, ...]:
    """Offer nothing: a capability is claimed in the version that can prove it."""
    return ()
