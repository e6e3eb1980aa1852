"""What a measurement says: one table for each dtype, and what is above its bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import attrs

from accuracy_measure.promises import Promises

Record = Mapping[str, Any]

_NONE = "none"
_POWERS = ((4, "|n| <= 4"), (64, "5 <= |n| <= 64"), (1024, "65 <= |n| <= 1024"))


class Judged(NamedTuple):
    """A record beside its bound.

    Attributes:
        error: in the bound's measure; ulps of the exact value where there is no bound.
        allowed: the same units, or None where nothing is promised.
        passed: whether the error is within, and nothing is wrong beyond measure.
    """

    error: float
    allowed: float | None
    passed: bool


def judge(record: Record, promises: Promises) -> Judged:
    """Compare one record with what is promised."""
    bound = _bound(record, promises)
    if bound is None:
        return Judged(record["ulp"], None, True)
    error = record["scaled"] if bound.scale else record["ulp"]
    allowed = bound.of(record["parameter"])
    return Judged(error, allowed, error <= allowed and not record["wrong"])


def _bound(record: Record, promises: Promises) -> Any:
    fields = (record[name] for name in ("op", "dtype", "mode", "part", "parameter"))
    return promises.promised(*fields)


def failures(records: Iterable[Record], promises: Promises) -> list[str]:
    """Everything above its bound, one text each."""
    found = []
    for record in records:
        judged = judge(record, promises)
        if judged.passed:
            continue
        name = _name(record["op"], record["parameter"])
        where = " ".join(filter(None, [name, record["dtype"], record["mode"], record["part"]]))
        if record["wrong"]:
            found.append(f"{where}: {record['wrong']} wrong values, first {record['wrong_at']}")
        else:
            measure = "ulp" if judged.error == record["ulp"] else "scaled"
            place = record[f"{measure}_at"]
            found.append(f"{where}: {judged.error:.3g} ulp, {judged.allowed:g} allowed, at {place}")
    return found


def _name(op: str, parameter: int | None) -> str:
    return op if parameter is None else f"{op} {parameter}"


@attrs.define
class _Line:
    """A row of the table: everything measured of an operation on one part of its domain."""

    part: str
    documented: str
    bounds: dict[str, str] = attrs.Factory(dict)
    errors: dict[str, float] = attrs.Factory(dict)
    points: int = 0


def lines(
    records: Iterable[Record], dtype: str, promises: Promises
) -> dict[tuple[str, str], _Line]:
    """(operation, part) -> its line, in the order of the records."""
    found: dict[tuple[str, str], _Line] = {}
    for record in records:
        if record["dtype"] != dtype or not record["points"]:
            continue
        part = ", ".join(filter(None, [_group(record["parameter"]), record["part"]]))
        line = found.get((record["op"], part))
        if line is None:
            known = promises.documented(record["op"], dtype, record["part"])
            line = found[record["op"], part] = _Line(part, known.text if known else "")
        mode, judged = record["mode"], judge(record, promises)
        line.errors[mode] = max(judged.error, line.errors.get(mode, 0.0))
        line.bounds[mode] = _text(_bound(record, promises))
        line.points += record["points"]
    return found


def _group(parameter: int | None) -> str:
    if parameter is None:
        return ""
    return next((text for limit, text in _POWERS if abs(parameter) <= limit), "|n| > 1024")


def _text(bound: Any) -> str:
    if bound is None:
        return _NONE
    if bound.per_power:
        return "|n|"
    return f"{bound.ulp:g}" + ("*" if bound.scale else "")


def table(records: Sequence[Record], dtype: str, promises: Promises) -> str:
    """Markdown: rows that say the same of several operations are one."""
    measured = {record["mode"] for record in records}
    modes = [mode for mode in promises.modes if mode in measured]
    joined: dict[tuple[str, ...], list[str]] = {}
    for (op, part), line in lines(records, dtype, promises).items():
        errors = [_error(line, mode) for mode in modes]
        bounds = list(dict.fromkeys(line.bounds.get(mode, "") for mode in modes))
        bound = bounds[0] if len(bounds) == 1 else " / ".join(line.bounds[mode] for mode in modes)
        joined.setdefault((part, *errors, bound, line.documented), []).append(op)
    heading = ["operation", "for", *(mode or "largest error" for mode in modes), "bound"]
    heading += ["libdevice's"] if any(cells[-1] for cells in joined) else []
    rows = [heading, ["---", "---", *["---:"] * (len(heading) - 2)]]
    for cells, ops in joined.items():
        shown = [cell.replace("|", "\\|") for cell in cells]
        rows.append([", ".join(f"`{op}`" for op in ops), *shown][: len(heading)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _error(line: _Line, mode: str) -> str:
    """The largest error; not where an accuracy mode gives its operands up."""
    if mode not in line.errors:
        return ""
    if mode and line.bounds[mode] == _NONE:
        return "–"
    value = line.errors[mode]
    if value in (0.0, 0.5):
        return f"{value:g}"
    return f"{value:.2f}" if value < 100 else f"{value:.0f}" if value < 1e4 else f"{value:.0e}"


def about(document: Mapping[str, Any]) -> str:
    """Backend, device, date and number of points in a sentence."""
    machine = document["machine"]
    device = machine.get("device") or machine["processor"]
    driver = f", driver {machine['driver']}" if "driver" in machine else ""
    return (
        f"Backend `{document['backend']}` on {device}{driver}, {machine['date']}; "
        f"{document['points']:,} points for every operation and dtype."
    )
