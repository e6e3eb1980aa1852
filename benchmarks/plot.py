"""A picture of a JSON file of ``benchmarks/gpu.py``: needs matplotlib.

    python benchmarks/plot.py FILE.json PICTURE.svg
    python benchmarks/plot.py FILE.json --docs       # the tables and the picture of docs/benchmarks.md
    python benchmarks/plot.py ROWS.json --more HOST.json --docs      # a run that was made in parts

One group of bars for every row: everybody's time over ours, shorter is faster. A black mark shows
how long a copy of the same bytes takes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import pages
from gpu_benchmark import results

_COLOURS = ("#b5541c", "#d99a5b", "#3b6ea5", "#76a5cf", "#5b8c5a", "#9a7fb8")

LONGEST = 3.0
"""Bars end here; what is longer has its number beside it."""

PAGE, PICTURE = pages.DOCS / "benchmarks.md", "benchmarks.svg"


def series(document: Mapping[str, Any]) -> dict[str, list[float]]:
    """Times over ours, one value per row, for every contender; 0 where there is none.

    Where ours is missing, the row's fastest takes its place.
    """
    rows = document.get("rows", [])
    times = [_times(row) for row in rows]
    names = dict.fromkeys(name for row in times for name in row)
    return {name: [row.get(name, 0.0) / _unit(row) for row in times] for name in names}


def _times(row: Mapping[str, Any]) -> dict[str, float]:
    contenders = row.get("contenders", {})
    return {name: float(c["ms"]) for name, c in contenders.items() if "ms" in c}


def _unit(times: Mapping[str, float]) -> float:
    return times.get(results.OURS) or min(times.values(), default=1.0)


def draw(document: Mapping[str, Any], target: Path) -> None:
    """Draw the bars into a file of whatever format its name says.

    Raises:
        ValueError: the document has no rows with times.
    """
    bars = series(document)
    if not bars:
        raise ValueError("there are no times to draw")
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "alkahest"  # the same file for the same numbers
    matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text
    import matplotlib.pyplot as plt

    rows = document["rows"]
    figure, axes = plt.subplots(figsize=(8.0, 0.9 + 0.62 * len(rows)), layout="constrained")
    height = 0.84 / len(bars)
    for number, (name, shares) in enumerate(bars.items()):
        places = [place + (number - (len(bars) - 1) / 2) * height for place in range(len(rows))]
        drawn = [min(share, LONGEST) for share in shares]
        axes.barh(places, drawn, height, label=name, color=_COLOURS[number % len(_COLOURS)])
        for place, share in zip(places, shares, strict=True):
            if share > LONGEST:
                axes.text(LONGEST, place, f" {share:.1f}", va="center", fontsize="x-small")
    for place, row in enumerate(rows):
        if "floor_ms" in row:
            mark = row["floor_ms"] / _unit(_times(row))
            axes.plot([mark, mark], [place - 0.45, place + 0.45], color="black", linewidth=1.2)
    axes.axvline(1.0, color="grey", linewidth=0.6, zorder=0)
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows])
    axes.margins(y=0.01)
    axes.invert_yaxis()
    axes.set_xlabel("time over ours, shorter is faster; black: a copy of the same bytes")
    axes.set_title(results.about(document).partition(";")[0], fontsize="medium")
    figure.legend(loc="outside lower center", ncols=len(bars), fontsize="small")
    figure.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("json", type=Path, help="what benchmarks/gpu.py --json wrote")
    parser.add_argument("picture", type=Path, nargs="?", help="SVG, PNG or PDF")
    parser.add_argument(
        "--more",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="for the parts that JSON lacks; may be repeated",
    )
    parser.add_argument("--docs", action="store_true", help=f"rewrite the results of {PAGE.name}")
    options = parser.parse_args(arguments)
    if not (options.picture or options.docs):
        parser.error("name a picture, or pass --docs")
    try:
        document = results.merged([results.read(path) for path in (options.json, *options.more)])
        if options.picture:
            draw(document, options.picture)
        if options.docs:
            draw(document, PAGE.with_name(PICTURE))
            pages.replace(PAGE, "results", results.page(document, PICTURE))
    except ValueError as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
