"""What a finished run says: the document's summary, and tables for terminals and for the docs."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

SCHEMA = 1
"""Of the JSON document."""

OURS = "alkahest"

GROUPS = ("small", "heavy")


class Line(NamedTuple):
    """One row, judged.

    Attributes:
        name, group: of the row.
        ours: our milliseconds, or None where we failed.
        peer: name of the fastest peer, "" without any.
        best: its milliseconds.
        ratio: its time over ours.
        floor: share of the rate of a copy that we reach.
        noise: the larger of the two spreads.
    """

    name: str
    group: str
    ours: float | None
    peer: str
    best: float | None
    ratio: float | None
    floor: float | None
    noise: float | None


def judge(row: Mapping[str, Any]) -> Line:
    """The line of a row's record; where our call failed, our kernel alone stands for it."""
    contenders = row.get("contenders", {})
    timed = {name: c for name, c in contenders.items() if "ms" in c}
    mine = timed.get(OURS) or timed.get(f"{OURS} kernel")
    peers = {name: c for name, c in timed.items() if not name.startswith(OURS)}
    peer = min(peers, key=lambda name: peers[name]["ms"], default="")
    best = peers.get(peer)
    floor = row.get("floor_ms")
    return Line(
        name=row["name"],
        group=row["group"],
        ours=mine["ms"] if mine else None,
        peer=peer,
        best=best["ms"] if best else None,
        ratio=best["ms"] / mine["ms"] if mine and best else None,
        floor=floor / mine["ms"] if mine and floor else None,
        noise=max(mine["spread"], best["spread"]) if mine and best else None,
    )


def means(lines: Iterable[Line]) -> dict[str, float]:
    """Geometric mean of the ratios in every group that has any."""
    found: dict[str, list[float]] = {group: [] for group in GROUPS}
    for line in lines:
        if line.ratio is not None:
            found[line.group].append(line.ratio)
    return {group: statistics.geometric_mean(r) for group, r in found.items() if r}


def failures(document: Mapping[str, Any]) -> list[str]:
    """Everything that we ourselves did not manage, one text each."""
    found = []
    for row in document.get("rows", []):
        error = row.get("error") or row.get("contenders", {}).get(OURS, {}).get("error")
        if error:
            found.append(f"row {row['name']}: {error}")
    for size in document.get("host", {}).get("sizes", []):
        found += [
            f"host arrays, {size['points']} points, {name}: {size[f'{name}_error']}"
            for name in ("reused", "fresh")
            if f"{name}_error" in size
        ]
    first = document.get("first_call", {}).get("contenders", {}).get(OURS, {})
    if "error" in first:
        found.append(f"first call: {first['error']}")
    small = document.get("small_batches", {}).get("errors", {})
    if OURS in small:
        found.append(f"small batches: {small[OURS]}")
    found += [f"{part}: {error}" for part, error in document.get("errors", {}).items()]
    return found


class Table(NamedTuple):
    """A table: a caption, a heading and cells; the first column is text, the others numbers."""

    caption: str
    heading: tuple[str, ...]
    cells: Sequence[tuple[str, ...]]


def _number(value: float | None, digits: int = 3, suffix: str = "") -> str:
    return "" if value is None else f"{value:.{digits}f}{suffix}"


def summary_table(document: Mapping[str, Any]) -> Table:
    """Ours against the best peer, row by row, and the means."""
    lines = [judge(row) for row in document.get("rows", [])]
    cells = [
        (
            line.name,
            _number(line.ours),
            _number(line.best),
            line.peer,
            _number(line.ratio, 2),
            _number(line.noise and line.noise * 100, 1, " %"),
            _number(line.floor, 2),
        )
        for line in lines
    ]
    for group, mean in means(lines).items():
        cells.append((f"geometric mean, {group} rows", "", "", "", _number(mean, 2), "", ""))
    heading = ("row", "ours, ms", "best peer, ms", "peer", "ratio", "spread", "of copy")
    return Table("Device arrays: the best peer's time over ours", heading, cells)


def contenders_table(document: Mapping[str, Any]) -> Table:
    """Everybody's milliseconds."""
    rows = document.get("rows", [])
    names = list(dict.fromkeys(name for row in rows for name in row.get("contenders", {})))
    clocks = {
        name: contender["clock"]
        for row in rows
        for name, contender in row.get("contenders", {}).items()
        if "clock" in contender
    }
    shown = [f"{name} (wall)" if clocks.get(name) == "wall" else name for name in names]
    cells = []
    for row in rows:
        contenders = row.get("contenders", {})
        times = [contenders.get(name, {}) for name in names]
        cells.append(
            (
                row["name"],
                f"{row['points']:,}" if "points" in row else "",
                _number(row.get("floor_ms")),
                *[_number(t.get("ms")) or ("failed" if "error" in t else "") for t in times],
            )
        )
    return Table("Device arrays: milliseconds", ("row", "points", "copy", *shown), cells)


def host_table(document: Mapping[str, Any]) -> Table:
    """NumPy arrays in and out."""
    cells = []
    for size in document.get("host", {}).get("sizes", []):
        link = size["link_ms"]
        reused, fresh, cupy = (size.get(f"{name}_ms") for name in ("reused", "fresh", "cupy"))
        cells.append(
            (
                f"{size['points']:,}",
                _number(link),
                _number(reused),
                _number(reused and link / reused, 2),
                _number(fresh),
                _number(fresh and link / fresh, 2),
                _number(cupy),
                _number(reused and cupy and cupy / reused, 1),
            )
        )
    heading = (
        "points",
        "pinned link, ms",
        "with out=, ms",
        "of link",
        "fresh outputs, ms",
        "of link",
        "CuPy plain, ms",
        "CuPy over ours",
    )
    return Table(_dated("Host arrays, in and out", document, "host"), heading, cells)


def overhead_table(document: Mapping[str, Any]) -> Table:
    """First calls and small batches."""
    first = document.get("first_call", {}).get("contenders", {})
    small = document.get("small_batches", {}).get("us", {})
    cells = [
        (
            name,
            _number(first.get(name, {}).get("cold_ms"), 0),
            _number(first.get(name, {}).get("cached_ms"), 0),
            _number(small.get(name), 1),
        )
        for name in dict.fromkeys([*first, *small])
    ]
    heading = ("", "first call, ms", "from the disk cache, ms", "a call of 1000 points, µs")
    caption = _dated("First call", document, "first_call")
    return Table(f"{caption}, and host time of a small call", heading, cells)


def _dated(caption: str, document: Mapping[str, Any], part: str) -> str:
    date = document.get("dates", {}).get(part)
    return f"{caption} ({date})" if date else caption


def tables(document: Mapping[str, Any]) -> list[Table]:
    """Every table that has something in it; the summary last."""
    found = [
        host_table(document),
        overhead_table(document),
        contenders_table(document),
        summary_table(document),
    ]
    return [table for table in found if table.cells]


PARTS = ("rows", "small_batches", "host", "first_call")
"""Of a document, each of which a run may have been asked to leave out."""


def merged(documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One document of several, which were taken in parts: of every part the first that there is.

    What is from another run than the first document's has its date in ``dates``.
    """
    result = dict(documents[0])
    dates: dict[str, str] = {}
    for part in PARTS:
        for document in documents:
            if part in document:
                result[part] = document[part]
                if document is not documents[0]:
                    dates[part] = document.get("machine", {}).get("date", "no date")
                break
    return {**result, "dates": dates}


def left_out(document: Mapping[str, Any]) -> list[str]:
    """Who is missing from which row, and why; one text for each reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in document.get("rows", []):
        for name, contender in row.get("contenders", {}).items():
            if "error" in contender:
                reasons.setdefault((name, contender["error"]), []).append(row["name"])
    found = [f"{name}, {', '.join(rows)}: {why}" for (name, why), rows in reasons.items()]
    found += [f"{name}: {why}" for name, why in document.get("skipped", {}).items()]
    return found


def page(document: Mapping[str, Any], picture: str) -> str:
    """The results for the documentation, with the picture of that name."""
    parts = [about(document), f"![Times over ours, by row and library]({picture})"]
    parts += [markdown(table) for table in reversed(tables(document))]
    missing = left_out(document)
    if missing:
        parts.append("Left out:\n\n" + "\n".join(f"- {text}" for text in missing))
    return "\n\n".join(parts)


def plain(table: Table) -> str:
    """For a terminal, in columns."""
    rows = [table.heading, *table.cells]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([table.caption, *lines])


def markdown(table: Table) -> str:
    """For the documentation."""
    rule = ("---", *["---:"] * (len(table.heading) - 1))
    rows: Sequence[Sequence[str]] = [table.heading, rule, *table.cells]
    return "\n".join([f"**{table.caption}**", "", *(f"| {' | '.join(row)} |" for row in rows)])


def about(document: Mapping[str, Any]) -> str:
    """Device, versions and date, in a sentence for each."""
    machine = document.get("machine", {})
    versions = machine.get("versions", {})
    cupy = next((f"CuPy {v}" for n, v in versions.items() if n.startswith("cupy")), "")
    others = [
        f"{name} {versions[name]}" for name in ("torch", "jax", "numba-cuda") if name in versions
    ]
    peers = ", ".join(filter(None, [cupy, *others]))
    rates = [row["copy_gb_per_s"] for row in document.get("rows", []) if "copy_gb_per_s" in row]
    copied = f" Copies on the device: {statistics.median(rates):,.0f} GB/s." if rates else ""
    return (
        f"{machine.get('device', 'unknown device')}, driver {machine.get('driver', 'unknown')} "
        f"(CUDA {machine.get('driver_cuda', '?')}), {machine.get('date', 'no date')}; "
        f"Python {machine.get('python', '?')}{', ' if peers else ''}{peers}.{copied}"
    )


def write(document: Mapping[str, Any], path: Path) -> None:
    """Replace the file as a whole, so that an interrupted run leaves the last complete one."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    os.replace(new, path)


def read(path: Path) -> dict[str, Any]:
    """A document that :func:`write` wrote.

    Raises:
        ValueError: the file is something else, or of another version.
    """
    document = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError(f"{path} is no result of this benchmark, version {SCHEMA}")
    return document
