"""A picture of a JSON file of ``benchmarks/gpu.py``: needs matplotlib.

    python benchmarks/plot.py FILE.json PICTURE.svg

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

from gpu_benchmark import results

_COLOURS = ("#b5541c", "#d99a5b", "#3b6ea5", "#76a5cf", "#5b8c5a", "#9a7fb8")


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
    import matplotlib.pyplot as plt

    rows = document["rows"]
    figure, axes = plt.subplots(figsize=(8.0, 0.9 + 0.55 * len(rows)), layout="constrained")
    height = 0.8 / len(bars)
    for number, (name, shares) in enumerate(bars.items()):
        places = [place + (number - (len(bars) - 1) / 2) * height for place in range(len(rows))]
        axes.barh(places, shares, height, label=name, color=_COLOURS[number % len(_COLOURS)])
    for place, row in enumerate(rows):
        if "floor_ms" in row:
            mark = row["floor_ms"] / _unit(_times(row))
            axes.plot([mark, mark], [place - 0.42, place + 0.42], color="black", linewidth=1.2)
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows])
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
    parser.add_argument("picture", type=Path, help="SVG, PNG or PDF")
    options = parser.parse_args(arguments)
    try:
        draw(results.read(options.json), options.picture)
    except ValueError as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
