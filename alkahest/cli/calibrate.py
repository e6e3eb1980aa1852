"""``alkahest calibrate``: measure the backends that are here, so that "auto" can compare them."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import attrs

from alkahest._plugins import calls
from alkahest._plugins.registry import registry
from alkahest.automatic import MARGIN
from alkahest.calibration import Calibration, Model, Work, current, path, store
from alkahest.calibration.storage import as_data
from alkahest.cli import messages
from alkahest.cli.layout import aligned
from alkahest.cli.progress import Progress
from alkahest.errors import CodegenError, PluginError
from alkahest.expr import ExprPool, parse
from alkahest.plugin import BackendInfo, Tuned
from alkahest.program import lower
from alkahest.selection import HOST, evaluating, find

FORMULAE = (
    "x*y",
    "sin(x)*cos(y) + (x**2 + y**2)/100",
    "exp(-x/4)*erf(y) + sqrt(x + 1)*log(y + 2)",
)
"""Examples to tell from how many points on another backend is quicker."""

_FAR = 1 << 40  # points between which a slope is taken
_DTYPE = "float64"


@attrs.frozen
class Crossover:
    """From where on host columns of one formula leave the host.

    Attributes:
        formula: over ``x`` and ``y``.
        host: the backend that takes short batches.
        other: the backend that takes long ones.
        points: the shortest such batch; None where there is none.
    """

    formula: str
    host: str
    other: str
    points: int | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of ``alkahest calibrate``."""
    parser.add_argument(
        "--quick", action="store_true", help="measure a few operations, in a few seconds"
    )
    parser.add_argument(
        "--backend", metavar="NAME", help="measure this one only and keep what is known of others"
    )
    parser.add_argument(
        "--show", action="store_true", help="print the stored calibration and measure nothing"
    )
    parser.add_argument("--json", action="store_true", help="print all costs, for programs")


def run(options: argparse.Namespace) -> int:
    """Measure, store and print; or only print."""
    if options.show:
        return _show(options.json)
    from alkahest.calibration.measuring import measure, measure_figures, merged
    from alkahest.calibration.tuning import with_tuning

    own = _with_models_of_their_own(options.backend)
    backends = [] if own and options.backend else _measurable(options.backend)
    bar: list[Progress] = []

    def progress(done: int, total: int) -> None:
        if not bar:
            bar.append(Progress(total, "steps"))
        bar[0].reached(done)

    try:
        measured = measure(backends, quick=options.quick, progress=progress)
    finally:
        for shown in bar:
            shown.close()
    measured = with_tuning(measured, quick=options.quick, failed=_not_tuned)
    calibration = merged(current().calibration, measured)
    if own:
        calibration = merged(calibration, measure_figures(own, quick=options.quick))
    place = None if path() is None else store(calibration)
    _print(calibration, None if place is None else str(place), options.json)
    if place is None:
        messages.show_warning("the calibration is not stored, since it is switched off")
    return messages.OK


def _show(as_json: bool) -> int:
    stored = current()
    place = path()
    if stored.calibration is not None:
        _print(stored.calibration, str(place), as_json)
    elif as_json:
        print(json.dumps({"path": place and str(place), "reason": stored.reason}, indent=2))
    else:
        print(f"{stored.reason}; `alkahest calibrate` measures this machine")
    return messages.OK


def _measurable(name: str | None) -> list[BackendInfo]:
    """The backends to measure; those that are left out are named on standard error.

    Raises:
        CodegenError: E-JIT-009 for an unknown name, E-JIT-004 when nothing can be measured.
    """
    asked = list(find(name)) if name else evaluating()
    obstacles = {info.name: _obstacle(info) for info in asked}
    found = [info for info in asked if not obstacles[info.name]]
    reasons = [f"{name}: {reason}" for name, reason in obstacles.items() if reason]
    if not found:
        raise CodegenError(
            "E-JIT-004",
            f"no backend can be measured here ({'; '.join(reasons) or 'none is loaded'})",
            remediation="Run `alkahest doctor`; it says what is missing.",
        )
    for reason in reasons:
        print(f"alkahest: not measured: {messages.one_line(reason)}", file=sys.stderr)
    return found


def _not_tuned(name: str, reason: str) -> None:
    print(f"alkahest: not tuned: {name}: {messages.one_line(reason)}", file=sys.stderr)


def _with_models_of_their_own(name: str | None) -> list[BackendInfo]:
    """Backends here that evaluate no programs; one of them, or all."""
    known = registry.snapshot().backends.values()
    return [
        info
        for info in known
        if info.support is None and name in (None, info.name) and not _obstacle(info)
    ]


def _obstacle(info: BackendInfo) -> str:
    try:
        probe = registry.reachable(info.name)
        if not probe.ok:
            return probe.detail or "its probe failed"
        return "" if calls.devices(info.name) else "no device here"
    except PluginError as error:
        return error.message


def crossovers(calibration: Calibration) -> list[Crossover]:
    """For every example and backend of another placement, where it takes over from the host."""
    models = {
        name: entry.models[_DTYPE]
        for name, entry in calibration.backends.items()
        if _DTYPE in entry.models
    }
    hosts = [info.name for info in evaluating() if info.placement == HOST and info.name in models]
    others = [name for name in models if calibration.backends[name].placement != HOST]
    if not hosts:
        return []
    pool = ExprPool()
    symbols = [pool.symbol("x"), pool.symbol("y")]
    found = []
    for formula in FORMULAE:
        work = Work.of(lower([parse(formula, pool)], symbols, _DTYPE))
        for other in others:
            points = crossover(work, models[hosts[0]], models[other])
            found.append(Crossover(formula, hosts[0], other, points))
    return found


def crossover(work: Work, host: Model, other: Model) -> int | None:
    """The smallest number of points from which on ``other`` wins by the margin, or None."""
    near, far = (host.seconds(work, n) - MARGIN * other.seconds(work, n) for n in (0, _FAR))
    if near >= 0:
        return 1 if far >= 0 else None
    slope = (far - near) / _FAR
    if not (slope > 0 and math.isfinite(near / slope)):  # what a file holds may overflow
        return None
    return int(-near / slope) + 1


def _print(calibration: Calibration, place: str | None, as_json: bool) -> None:
    found = crossovers(calibration)
    if as_json:
        facts = {
            "path": place,
            "calibration": as_data(calibration),
            "crossovers": [attrs.asdict(entry) for entry in found],
        }
        print(json.dumps(facts, indent=2))
        return
    for name, entry in calibration.backends.items():
        print(f"{name} on {', '.join(entry.devices[:1]) or 'no device'}")
        heads = ("", "call", "column in", "column out", "arithmetic", "elementary", "special")
        print(aligned([heads, *(_row(dtype, model) for dtype, model in entry.models.items())]))
        for device, rows in groupby(entry.tuned, key=lambda found: found.device):
            print(f"{name} tuned on {device}")
            print(aligned([(found.case, _settings(found)) for found in rows]))
    for name, own in calibration.figures.items():
        print(f"{name} on {', '.join(own.devices[:1])}")
        print(aligned([(key, f"{value:.3g}") for key, value in own.values.items()]))
    if found:
        print("columns in host memory leave the host")
        print(aligned([(entry.formula, _sentence(entry)) for entry in found]))
    if place is not None:
        print(f"measured {calibration.measured}, kept in {place}")


def _row(dtype: str, model: Model) -> Sequence[str]:
    classes: dict[str, Any] = dict(model.classes)
    points = [
        f"{classes[name].unit * 1e9:.3g} ns" if name in classes else "--"
        for name in ("arithmetic", "elementary", "special")
    ]
    columns = [_rate(cost.unit) for cost in (model.read, model.write)]
    return (dtype, f"{model.call * 1e6:.3g} µs", *columns, *points)


def _settings(found: Tuned) -> str:
    if not found.settings:
        return "as it chooses itself"
    chosen = ", ".join(f"{name} {value}" for name, value in found.settings.items())
    return f"{chosen}: {100 * (found.gain - 1):.0f} % faster"


def _rate(seconds_per_byte: float) -> str:
    return f"{1e-9 / seconds_per_byte:.3g} GB/s" if seconds_per_byte > 1e-12 else "free"


def _sentence(entry: Crossover) -> str:
    if entry.points is None:
        return f"never for {entry.other}"
    return f"for {entry.other} from {entry.points:,} points"
