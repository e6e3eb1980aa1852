"""Pictures that say where the limits are: a roofline, and crossovers; need matplotlib.

    python benchmarks/figures.py roofline GPU.json PICTURE.svg      # of benchmarks/gpu.py --json
    python benchmarks/figures.py crossover CPU.json PICTURE.svg     # of benchmarks/cpu.py --json
    python benchmarks/figures.py crossover CPU.json PICTURE.svg --row seed

roofline: every row by its operations per byte moved and by the operations per second that we and the
best peer reach. The slanted line is what a copy's rate allows; below it, arithmetic is the limit.

crossover: nanoseconds per point against the number of points, everybody in one row, and from how many
points on we are the quicker one.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

from cpu_benchmark import results as cpu_results
from gpu_benchmark import results as gpu_results

_OURS = "#b5541c"
_COLOURS = ("#3b6ea5", "#5b8c5a", "#9a7fb8", "#76a5cf", "#d99a5b", "#777777", "#c05c8e")


class Mark(NamedTuple):
    """One row in the roofline.

    Attributes:
        name: of the row.
        intensity: operations per byte.
        ours: billions of operations per second, or None where we failed.
        peer: name of the best peer, or "".
        best: what it reaches, or None.
    """

    name: str
    intensity: float
    ours: float | None
    peer: str
    best: float | None


def marks(document: Mapping[str, Any]) -> list[Mark]:
    """The rows of a GPU benchmark with their rates; an operation is one instruction of the program."""
    found = []
    for row in document.get("rows", []):
        if "bytes" not in row:
            continue
        work = row["instructions"] * row["points"]
        line = gpu_results.judge(row)
        rates = [work / (ms * 1e6) if ms else None for ms in (line.ours, line.best)]
        found.append(Mark(row["name"], work / row["bytes"], rates[0], line.peer, rates[1]))
    return found


def copy_rate(document: Mapping[str, Any]) -> float:
    """Gigabytes per second of a copy on the device: the median of the rows' measurements.

    Raises:
        ValueError: no row has one.
    """
    rates = [row["copy_gb_per_s"] for row in document.get("rows", []) if "copy_gb_per_s" in row]
    if not rates:
        raise ValueError("there are no rates of copies to draw a roof of")
    return float(statistics.median(rates))


def crossover(ours: Mapping[int, float], theirs: Mapping[int, float]) -> float | None:
    """Number of points from which on we are quicker, at all larger sizes that were measured.

    Between two sizes the logarithms of times are taken to be straight. 0 where we always are, None
    where we are not at the largest size.

    Args:
        ours: points -> seconds.
        theirs: the same of a peer.
    """
    sizes = sorted(ours.keys() & theirs.keys())
    leads = [math.log(theirs[n] / ours[n]) for n in sizes]
    if not sizes or leads[-1] <= 0:
        return None
    for (small, behind), (large, ahead) in reversed(list(pairwise(zip(sizes, leads, strict=True)))):
        if behind <= 0:
            share = -behind / (ahead - behind)
            return float(math.exp(math.log(small) + share * math.log(large / small)))
    return 0.0


def times_by_size(document: Mapping[str, Any], row: str) -> dict[str, dict[int, float]]:
    """Contender -> points -> seconds, for a row of a CPU benchmark, in everybody's best form.

    Raises:
        ValueError: the document has no such row.
    """
    rows = document.get("one", {}).get("rows", {})
    if row not in rows:
        raise ValueError(f"there is no row {row!r}; there are: {', '.join(rows) or 'none'}")
    record = rows[row]
    sizes = dict.fromkeys(size for form in record["forms"].values() for size in form["sizes"])
    found: dict[str, dict[int, float]] = {}
    for size in sizes:
        for name, seconds in cpu_results.times(record, size, "best").items():
            found.setdefault(name, {})[int(size)] = seconds
    return found


def draw_roofline(document: Mapping[str, Any], target: Path) -> None:
    """Draw a GPU benchmark's rows under the roof of its copies.

    Raises:
        ValueError: there are no rows or no rates of copies.
    """
    rate, rows = copy_rate(document), marks(document)
    figure, axes = _figure((7.5, 5.0))
    ends = [min(m.intensity for m in rows) / 1.5, max(m.intensity for m in rows) * 1.5]
    axes.loglog(ends, [rate * end for end in ends], color="black", linewidth=1.2)
    axes.annotate(
        f"a copy's {rate:,.0f} GB/s",
        (ends[1], rate * ends[1]),
        (-12, 0),
        textcoords="offset points",
        ha="right",
    )
    for mark in rows:
        reached = [rate for rate in (mark.ours, mark.best) if rate is not None]
        if not reached:
            continue
        axes.plot([mark.intensity] * len(reached), reached, color="0.7", linewidth=0.8, zorder=1)
        axes.annotate(
            mark.name,
            (mark.intensity, min(reached)),
            (2, -4),
            textcoords="offset points",
            fontsize="x-small",
            rotation=-55,
            rotation_mode="anchor",
            va="top",
        )
    for rates, colour, label, filled in (
        ([m.best for m in rows], _COLOURS[0], "the best peer", "none"),
        ([m.ours for m in rows], _OURS, "alkahest", _OURS),
    ):
        known = [(m.intensity, r) for m, r in zip(rows, rates, strict=True) if r is not None]
        axes.plot(
            [x for x, _ in known],
            [y for _, y in known],
            "o",
            color=colour,
            markerfacecolor=filled,
            label=label,
        )
    axes.set_xlabel("operations per byte moved")
    axes.set_ylabel("billions of operations per second")
    axes.set_title(gpu_results.about(document).partition(";")[0], fontsize="medium")
    axes.legend(frameon=False, loc="lower right")
    _save(figure, target)


def draw_crossover(document: Mapping[str, Any], row: str, target: Path) -> None:
    """Draw everybody's time per point in one row of a CPU benchmark against the number of points.

    Raises:
        ValueError: there is no such row.
    """
    times = times_by_size(document, row)
    ours = times.pop(cpu_results.OURS, {})
    peers = {name: found for name, found in times.items() if cpu_results.is_peer(name)}
    figure, axes = _figure((7.5, 4.4))
    for number, (name, found) in enumerate(sorted(peers.items())):
        where = crossover(ours, found)
        axes.loglog(
            *_per_point(found),
            "o-",
            color=_COLOURS[number % len(_COLOURS)],
            linewidth=1.2,
            markersize=3.5,
            label=f"{name}: {_words(where)}",
        )
    axes.loglog(*_per_point(ours), "o-", color=_OURS, linewidth=2.4, label=cpu_results.OURS)
    axes.set_xlabel("points in a call")
    axes.set_ylabel("nanoseconds per point")
    axes.set_title(f"{row}, one thread", fontsize="medium")
    axes.grid(True, color="0.92", linewidth=0.7)
    axes.legend(
        frameon=False,
        fontsize="small",
        title="we are quicker",
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
    )
    _save(figure, target)


def _per_point(found: Mapping[int, float]) -> tuple[Sequence[int], Sequence[float]]:
    sizes = sorted(found)
    return sizes, [found[n] / n * 1e9 for n in sizes]


def _words(where: float | None) -> str:
    if where is None:
        return "nowhere"
    return f"from {where:,.0f} points" if where else "at every size"


def _figure(size: tuple[float, float]) -> tuple[Any, Any]:
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = "alkahest"  # the same file for the same numbers
    matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _save(figure: Any, target: Path) -> None:
    figure.savefig(target, dpi=150, metadata={"Date": None} if target.suffix == ".svg" else None)


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("kind", choices=("roofline", "crossover"))
    parser.add_argument("json", type=Path, help="what the benchmark's --json wrote")
    parser.add_argument("picture", type=Path, help="SVG, PNG or PDF")
    parser.add_argument("--row", default="seed", help="of the crossover (default: seed)")
    options = parser.parse_args(arguments)
    try:
        if options.kind == "roofline":
            draw_roofline(gpu_results.read(options.json), options.picture)
        else:
            draw_crossover(
                json.loads(options.json.read_text("utf-8")), options.row, options.picture
            )
    except ValueError as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
