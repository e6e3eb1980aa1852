"""What a finished run says: ratios, tables for the docs, and a picture."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

OURS = "alkahest"
OUT = "alkahest out="
ALONE = "alkahest alone"

_DISTRIBUTIONS = "alkahest llvmlite numpy scipy sympy numexpr numba heyoka jax symengine".split()

Record = Mapping[str, Any]


def is_peer(name: str) -> bool:
    """Whether a contender is somebody else's work."""
    return not name.startswith(OURS)


def times(row: Record, size: str, form: str) -> dict[str, float]:
    """Seconds of a call by contender.

    Args:
        row: a row's record.
        size: number of points.
        form: ``"same"``, where everybody has the same form, or ``"best"``, where everybody has the
            one that suits them most.
    """
    found: dict[str, float] = {}
    for name, record in row["forms"].items():
        if form == "best" or name == form:
            for contender, seconds in record["sizes"].get(size, {}).items():
                found[contender] = min(seconds, found.get(contender, seconds))
    return found


def best_peer(found: Mapping[str, float]) -> tuple[str, float] | None:
    """The quickest of the others, and its seconds."""
    peers = {name: seconds for name, seconds in found.items() if is_peer(name)}
    if not peers:
        return None
    name = min(peers, key=lambda n: peers[n])
    return name, peers[name]


def ratio(found: Mapping[str, float], ours: str = OURS) -> float | None:
    """Our time over the best peer's: below 1 we are faster."""
    best = best_peer(found)
    return found[ours] / best[1] if best and ours in found else None


def tables(document: Record) -> str:
    """All tables, as Markdown."""
    parts = [f"*{about(document)}*"]
    one = document.get("one")
    if one:
        parts += [_ratios(one), _nanoseconds(one), _calls(one), _builds(one)]
        if any("published" in record["build"] for record in _records(one)):
            parts.append(_published(one))
    if "two" in document:
        parts.append(_two(document))
    return "\n\n".join(parts)


def about(document: Record) -> str:
    """Machine, versions and date in one line."""
    facts = document["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    return f"{facts['processor']}, {facts['system']}, {facts['date']}; {versions}"


def machine() -> dict[str, Any]:
    """What the numbers are taken on."""
    import datetime

    versions = {}
    for name in _DISTRIBUTIONS:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "versions": versions,
    }


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor()
    found = re.search(r"model name\s*:\s*(.+)", text)
    return found[1].strip() if found else platform.processor()


def _records(session: Record) -> Iterable[Record]:
    return (record for row in session["rows"].values() for record in row["forms"].values())


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _largest(row: Record) -> str:
    sizes = [int(size) for record in row["forms"].values() for size in record["sizes"]]
    return str(max(sizes))


_MIDDLE = "100000"


def _ratios(session: Record) -> str:
    """The table that decides: our time over the best peer's."""
    lines = []
    for name, row in session["rows"].items():
        big = _largest(row)
        cells = [f"`{name}`"]
        for size in (_MIDDLE, big):
            for form in ("same", "best"):
                cells.append(_number(ratio(times(row, size, form))))
            cells.append(_number(ratio(times(row, size, "best"), OUT)))
            best = best_peer(times(row, size, "best"))
            cells.append(best[0] if best else "-")
        lines.append(cells)
    head = ["row"]
    for size in ("10⁵", "largest"):
        head += [f"{size}: same form", "each at its best", "`out=`", "best peer"]
    text = "**One thread: our time over the best peer's** (below 1 we are faster)"
    return f"{text}\n\n{_table(head, lines)}"


def _nanoseconds(session: Record) -> str:
    """Everybody at the middle size and at the largest."""
    parts = []
    for title, size_of in (("10⁵ points", lambda row: _MIDDLE), ("the largest size", _largest)):
        names = list(
            dict.fromkeys(
                name
                for row in session["rows"].values()
                for name in times(row, size_of(row), "best")
            )
        )
        lines = []
        for name, row in session["rows"].items():
            size = size_of(row)
            found = times(row, size, "best")
            lines.append([f"`{name}`", *(_short(_per_point(found.get(n), size)) for n in names)])
        parts.append(
            f"**One thread, {title}: nanoseconds a point, each at its best**\n\n"
            + _table(["row", *names], lines)
        )
    return "\n\n".join(parts)


def _per_point(seconds: float | None, size: str) -> float | None:
    return None if seconds is None else 1e9 * seconds / int(size)


def _calls(session: Record) -> str:
    """One point."""
    names = list(
        dict.fromkeys(n for row in session["rows"].values() for n in times(row, "1", "best"))
    )
    lines = []
    for name, row in session["rows"].items():
        found = times(row, "1", "best")
        micro = {n: 1e6 * s for n, s in found.items()}
        lines.append([f"`{name}`", *(_short(micro.get(n)) for n in names)])
    return f"**One point: microseconds a call**\n\n{_table(['row', *names], lines)}"


def _builds(session: Record) -> str:
    """From the expression to the first results."""
    names = list(
        dict.fromkeys(
            name
            for row in session["rows"].values()
            for name in row["forms"]["same"]["build"]
            if name not in (OUT, "alkahest strict", "alkahest fast", "published")
        )
    )
    lines = []
    for name, row in session["rows"].items():
        build = row["forms"]["same"]["build"]
        milli = {n: 1e3 * s for n, s in build.items()}
        lines.append([f"`{name}`", *(_short(milli.get(n)) for n in names)])
    return (
        "**Building, nothing cached: milliseconds until the first results on 1000 points**\n\n"
        + _table(["row", *names], lines)
        + "\n\n`alkahest` compiles; `alkahest auto` is what a call gets where nobody asks for that."
    )


def _published(session: Record) -> str:
    """The published package of our name."""
    lines = []
    for name, row in session["rows"].items():
        found = times(row, _MIDDLE, "same")
        theirs, mine = found.get("published"), found.get(OURS)
        quotient = theirs / mine if theirs and mine else None
        lines.append([f"`{name}`", _short(_per_point(theirs, _MIDDLE)), _number(quotient, 1)])
    return "**The published package of this name, 10⁵ points**\n\n" + _table(
        ["row", "its nanoseconds a point", "times ours"], lines
    )


def _two(document: Record) -> str:
    """Two threads: against one thread of ours, and against the others' two."""
    lines = []
    for name, row in document["two"]["rows"].items():
        cells = [f"`{name}`"]
        for size in (_MIDDLE, _largest(row)):
            found = times(row, size, "best")
            alone = found.get(ALONE)
            cells.append(_number(alone / found[OURS] if alone and OURS in found else None))
            cells.append(_number(ratio(found)))
            best = best_peer(found)
            cells.append(best[0] if best else "-")
        lines.append(cells)
    head = ["row"]
    for size in ("10⁵", "largest"):
        head += [f"{size}: one thread over two", "over the best peer's", "best peer"]
    return f"**Two threads**\n\n{_table(head, lines)}"


def draw(document: Record, target: Path) -> None:
    """A picture of the ratios: one group of bars a row.

    Raises:
        ValueError: there is nothing to draw.
    """
    rows = document.get("one", {}).get("rows", {})
    if not rows:
        raise ValueError("there are no times to draw")
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "alkahest"  # the same file for the same numbers
    import matplotlib.pyplot as plt

    series = {
        "10⁵ points": [ratio(times(row, _MIDDLE, "best")) for row in rows.values()],
        "largest": [ratio(times(row, _largest(row), "best")) for row in rows.values()],
        "largest, out=": [ratio(times(row, _largest(row), "best"), OUT) for row in rows.values()],
    }
    figure, axes = plt.subplots(figsize=(8.0, 0.9 + 0.4 * len(rows)), layout="constrained")
    height = 0.8 / len(series)
    for number, (name, values) in enumerate(series.items()):
        places = [place + (number - 1) * height for place in range(len(rows))]
        colour = ("#3b6ea5", "#76a5cf", "#d99a5b")[number]
        axes.barh(places, [v or 0.0 for v in values], height, label=name, color=colour)
    axes.axvline(1.0, color="black", linewidth=1.0)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.invert_yaxis()
    axes.set_xlabel("our time over the best peer's, each at its best, one thread")
    figure.legend(loc="outside lower center", ncols=len(series), fontsize="small")
    figure.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None)
    plt.close(figure)


def read(path: Path) -> dict[str, Any]:
    """A document that was written."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document
