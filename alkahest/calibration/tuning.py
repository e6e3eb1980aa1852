"""Backends that measure how their own code is best shaped, and what they found, for the calibration."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from alkahest._plugins import calls
from alkahest._plugins.isolation import Failure, contained
from alkahest.calibration.model import BackendModel, Calibration


def with_tuning(
    calibration: Calibration, *, quick: bool = False, failed: Callable[[str, str], None]
) -> Calibration:
    """``calibration``, and what each of its backends has measured about its settings.

    Args:
        calibration: of backends that are loaded and have a device.
        quick: whether less time is to be taken.
        failed: called with the name of a backend whose tuning failed, and the reason; it goes
            without.
    """

    def tuned(name: str, entry: BackendModel) -> BackendModel:
        found = contained(
            f"alkahest_tune for {name!r}", lambda: calls.tune(name, quick=quick), may_ask=True
        )
        if isinstance(found, Failure):
            failed(name, found.detail)
            return entry
        return attrs.evolve(entry, tuned=found)

    backends = {name: tuned(name, entry) for name, entry in calibration.backends.items()}
    return attrs.evolve(calibration, backends=backends)


__all__ = ["with_tuning"]
