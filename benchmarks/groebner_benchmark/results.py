"""What the runs gave: comparable digests, medians, tables."""

from __future__ import annotations

import hashlib
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import gcd, lcm
from typing import Any

from groebner_benchmark.contenders import OURS, Run

_TERM = re.compile(r"[+-]?[^+-]+")
Monomial = tuple[int, ...]
Number = int | Fraction


def digests(texts: Mapping[str, str], names: Sequence[str], p: int) -> dict[str, tuple[int, str]]:
    """Of each engine's basis: see :func:`digest`; nothing is read where all wrote the same."""
    plain = {engine: _hashed(_parts(text)) for engine, text in texts.items()}
    if len(set(plain.values())) <= 1:
        return plain
    return {engine: digest(text, names, p) for engine, text in texts.items()}


def digest(text: str, names: Sequence[str], p: int) -> tuple[int, str]:
    """Number of elements, and a hash of the elements whatever engine wrote them."""
    return _hashed(_canonical(terms, p) for terms in elements(text, names))


def _hashed(elements: Iterable[str]) -> tuple[int, str]:
    listed = sorted(elements)
    return len(listed), hashlib.sha256("\n".join(listed).encode()).hexdigest()


def elements(text: str, names: Sequence[str]) -> list[dict[Monomial, Number]]:
    """The elements that an engine wrote, their terms in the order that it wrote them in."""
    index = {name: i for i, name in enumerate(names)}
    return [_terms(part, index) for part in _parts(text)]


def _parts(text: str) -> list[str]:
    """The text of each element, without what engines write as they like."""
    text = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"[\s\[\]():]", "", text).replace("**", "^")
    text = re.sub(r"\^1\b", "", re.sub(r"(?<![\w^])1\*(?=[A-Za-z_])", "", text))
    return [part for part in text.split(",") if part]


def _terms(text: str, index: Mapping[str, int]) -> dict[Monomial, Number]:
    terms: dict[Monomial, Number] = {}
    for term in _TERM.findall(text):
        exponents = [0] * len(index)
        coefficient: Number = -1 if term[0] == "-" else 1
        for factor in term.lstrip("+-").split("*"):
            head, slash, below = factor.partition("/")
            base, _, power = head.partition("^")
            if base in index:
                exponents[index[base]] += int(power or 1)
            else:
                coefficient *= int(base)
            if slash:
                coefficient = Fraction(coefficient) / int(below)
        key = tuple(exponents)
        terms[key] = terms.get(key, 0) + coefficient
    return terms


def _canonical(terms: Mapping[Monomial, Number], p: int) -> str:
    """Terms under grevlex, the largest first: monic over GF(p), primitive over the rationals."""
    ordered = sorted(terms, key=lambda e: (sum(e), [-x for x in reversed(e)]), reverse=True)
    if p:
        values = [terms[e].numerator * pow(terms[e].denominator, -1, p) % p for e in ordered]
        inverse = pow(values[0], -1, p)
        values = [value * inverse % p for value in values]
    else:
        scale = lcm(*(c.denominator for c in terms.values()))
        values = [int(terms[e] * scale) for e in ordered]
        content = gcd(*values) if values[0] > 0 else -gcd(*values)
        values = [value // content for value in values]
    return ";".join(f"{e}:{c}" for e, c in zip(ordered, values, strict=True))


def summary(runs: Sequence[Run], digest: tuple[int, str] | None = None) -> dict[str, Any]:
    """Medians of one contender's runs of one system, which gave the basis of a digest."""
    done = [run for run in runs if run.seconds is not None]
    if not done:
        return {"failure": runs[0].failure, "runs": len(runs)}
    size, whole = digest or (0, "")
    return {
        "seconds": statistics.median(run.seconds for run in done if run.seconds is not None),
        "all_seconds": [run.seconds for run in done],
        "wall": statistics.median(run.wall for run in done),
        "call": statistics.median(run.call for run in done),
        "phases": dict(done[-1].phases),
        "peak": max(run.peak for run in done),
        "size": size,
        "digest": whole,
        "runs": len(runs),
    }


def disagreements(document: Mapping[str, Any]) -> list[str]:
    """Systems for which two contenders gave different bases."""
    found = []
    for row in document["rows"]:
        digests = {c["digest"] for c in row["contenders"].values() if c.get("digest")}
        if len(digests) > 1:
            found.append(f"{row['system']} over {row['field']}")
    return found


def tables(document: Mapping[str, Any]) -> str:
    """One table per field, in Markdown: processor seconds / megabytes at the peak.

    Where a device took part, wall seconds of the call instead, and then its seconds by phase.
    """
    clock = "call" if document.get("device") else "seconds"
    parts = []
    for field, title in (("gfp", "GF(2147483647), grevlex"), ("qq", "QQ, grevlex")):
        rows = [row for row in document["rows"] if row["field"] == field]
        names = [n for n in document["contenders"] if any(n in r["contenders"] for r in rows)]
        if rows:
            lines = [
                f"| {title} | elements | {' | '.join(names)} |",
                f"|---|---|{'---|' * len(names)}",
            ]
            for row in rows:
                found = row["contenders"]
                size = max((entry.get("size", 0) for entry in found.values()), default=0)
                cells = [_cell(found.get(name), clock) for name in names]
                lines.append(f"| {row['system']} | {size or ''} | {' | '.join(cells)} |")
            parts.append("\n".join(lines))
    if document.get("device"):
        parts.append(_phases(document["rows"], f"{OURS} {document['device']}"))
    return "\n\n".join(parts)


def _phases(rows: Sequence[Mapping[str, Any]], name: str) -> str:
    """Wall seconds by phase of one contender."""
    entries = [(row, row["contenders"].get(name, {}).get("phases", {})) for row in rows]
    phases = sorted({phase for _, found in entries for phase in found})
    lines = [f"| {name}, by phase | {' | '.join(phases)} |", f"|---|{'---|' * len(phases)}"]
    for row, found in entries:
        cells = [f"{found[phase]:.3g}" if phase in found else "" for phase in phases]
        lines.append(f"| {row['system']}, {row['field']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(entry: Mapping[str, Any] | None, clock: str) -> str:
    if entry is None:
        return ""
    if "seconds" not in entry:
        return (
            entry["failure"].replace("more than", ">") if "more" in entry["failure"] else "failed"
        )
    return f"{entry[clock]:.3g} / {entry['peak'] / 2**20:.0f}"


def shown(document: Mapping[str, Any]) -> str:
    """The tables below a line that says where and when they were measured."""
    machine = document["machine"]
    gpu = f"{machine['gpu']}; " if "gpu" in machine else ""
    note = f"{gpu}{machine['processor']}, Python {machine['python']}, {document['date']}."
    return f"{note}\n\n{tables(document)}"
