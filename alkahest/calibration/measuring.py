"""Timing the backends that are here, each through its ordinary evaluator."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from alkahest._plugins import calls
from alkahest._plugins.registry import registry
from alkahest.calibration import storage
from alkahest.calibration.experiments import SMALL, experiments
from alkahest.calibration.fitting import Sample, fit
from alkahest.calibration.model import BackendModel, Calibration, Figures, Work
from alkahest.ops import DTYPES
from alkahest.plugin import BackendInfo, Batch, Evaluator
from alkahest.selection import HOST

LARGE = {"host": 1 << 16, "cuda": 1 << 20}
"""Points of the calls that tell what is spent per point; a device is to be kept busy."""

_MOVED = {"host": (1 / 8, 4, 16), "cuda": (1 / 16, 1 / 4, 4)}
"""At what parts and multiples of these the programs are run besides that only move columns.

Memory is dearer where it is fresh, and transfers where they are short.
"""

ROUNDS, QUICK_ROUNDS = 5, 3

_SHORT = 1e-3
"""Seconds below which a call is repeated, so that the clock and interruptions matter less.

It is then made once more beforehand, since it finds the caches as another program has left them. On
a GPU's host that doubles the 0.1 ms of a short call.
"""

_MOST_REPEATS = 64


@attrs.define
class _Timed:
    """One program at one length on one backend."""

    backend: str
    dtype: str
    work: Work
    evaluator: Evaluator
    batch: Batch
    repeats: int = 1
    times: list[float] = attrs.field(factory=list)

    def warm(self) -> None:
        """Run once for what only the first call does, and once more to see how long it takes."""
        settle = getattr(self.evaluator, "settle", None)
        if settle is not None:
            settle()
        self.evaluator.evaluate(self.batch)
        start = perf_counter()
        self.evaluator.evaluate(self.batch)
        seconds = perf_counter() - start
        self.repeats = max(1, min(_MOST_REPEATS, int(_SHORT / max(seconds, 1e-9))))

    def time(self) -> None:
        """Add one measurement."""
        evaluate, batch = self.evaluator.evaluate, self.batch
        if self.repeats > 1:
            evaluate(batch)
        start = perf_counter()
        for _ in range(self.repeats):
            evaluate(batch)
        self.times.append((perf_counter() - start) / self.repeats)

    @property
    def sample(self) -> Sample:
        """The median, for the fit."""
        return Sample(self.work, self.batch.n, max(statistics.median(self.times), 1e-9))


def measure(
    backends: Sequence[BackendInfo],
    *,
    quick: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Calibration:
    """Time every one of ``backends`` and fit its models.

    The backends take turns, round after round, so that all of them see the same machine; medians
    keep interruptions out.

    Args:
        backends: reachable ones with a device; the first device of each is measured.
        quick: fewer operations and rounds.
        progress: called with the number of steps done, and of all.

    Raises:
        AlkahestError: what a backend or its device refuses.
    """
    timed = [entry for info in backends for entry in _prepared(info, quick)]
    rounds = QUICK_ROUNDS if quick else ROUNDS
    total = len(timed) * (rounds + 1)
    for round_ in range(rounds + 1):
        for position, entry in enumerate(timed):
            entry.time() if round_ else entry.warm()
            progress(round_ * len(timed) + position + 1, total)
    samples: dict[str, dict[str, list[Sample]]] = {}
    for entry in timed:
        samples.setdefault(entry.backend, {}).setdefault(entry.dtype, []).append(entry.sample)
    return Calibration(
        machine=storage.machine(),
        measured=datetime.now(UTC).isoformat(timespec="seconds"),
        backends={
            info.name: BackendModel(
                plugin=storage.plugin_of(info.name),
                devices=storage.device_names(info.name),
                placement=info.placement,
                models={
                    dtype: fit(found, one_kernel=info.placement != HOST)
                    for dtype, found in samples[info.name].items()
                },
            )
            for info in backends
            if info.name in samples
        },
    )


def measure_figures(backends: Sequence[BackendInfo], *, quick: bool = False) -> Calibration:
    """Ask backends that evaluate no programs for the figures of their own models.

    Args:
        backends: reachable ones with a device.
        quick: whether a few seconds have to do.

    Raises:
        AlkahestError: what a device refuses.
    """
    found = {info.name: calls.calibrate(info.name, quick=quick) for info in backends}
    return Calibration(
        machine=storage.machine(),
        measured=datetime.now(UTC).isoformat(timespec="seconds"),
        backends={},
        figures={
            name: Figures(
                plugin=storage.plugin_of(name),
                devices=storage.device_names(name),
                values=values,
            )
            for name, values in found.items()
            if values
        },
    )


def _prepared(info: BackendInfo, quick: bool) -> list[_Timed]:
    support = registry.support(info.name)
    found = []
    for dtype in DTYPES:
        columns: dict[tuple[Any, ...], NDArray[Any]] = {}
        for program, domain, moves in experiments(support, dtype, quick=quick):
            artifact = calls.codegen(info.name, program, None, {})
            evaluator = calls.make_evaluator(info.name, artifact, None)
            large = LARGE[info.placement]
            others = [int(part * large) for part in _MOVED[info.placement]] if moves else []
            for n in (SMALL, large, *others):
                batch = _batch(len(program.inputs), n, dtype, domain, columns)
                found.append(_Timed(info.name, dtype, Work.of(program), evaluator, batch))
    return found


def _batch(
    inputs: int,
    n: int,
    dtype: str,
    domain: tuple[float, float],
    known: dict[tuple[Any, ...], NDArray[Any]],
) -> Batch:
    """Columns of random values; equal requests share them."""
    columns = []
    for position in range(inputs):
        key = (position, n, domain)
        if key not in known:
            values = np.random.default_rng(position).uniform(*domain, n)
            known[key] = values.astype(dtype)
        columns.append(known[key])
    return Batch(columns=tuple(columns), n=n)


def merged(old: Calibration | None, new: Calibration) -> Calibration:
    """``new``, and what ``old`` knows of backends that were not measured this time."""
    if old is None:
        return new
    backends: Mapping[str, BackendModel] = {**old.backends, **new.backends}
    figures: Mapping[str, Figures] = {**old.figures, **new.figures}
    return attrs.evolve(new, backends=backends, figures=figures)


__all__ = ["measure", "measure_figures", "merged"]
