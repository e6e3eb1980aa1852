"""Directives that render alkahest's own tables, so that the pages cannot drift from the code.

``{error-codes}`` renders :data:`alkahest.errors.CODES`, ``{operations}`` renders
:data:`alkahest.ops.OPS`, ``{semantics}`` the cases that every backend is tested with,
``{gpu-accuracy}`` and ``{cpu-accuracy}`` the bounds of the accuracy modes. All produce Markdown and leave
the rest to MyST.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from families import FAMILIES
from sphinx.util.docutils import SphinxDirective

from alkahest.errors import CODES
from alkahest.ops import OPS, Exactness, Op

if TYPE_CHECKING:
    from sphinx.application import Sphinx


CASES = Path(__file__).resolve().parents[2] / "tests" / "data" / "semantics_cases.json"


def _plain(text: str) -> str:
    """``text`` with everything escaped that Markdown would take for markup."""
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", text)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return "\n".join([_row(*head), _row(*["---"] * len(head)), *(_row(*row) for row in rows)])


def error_codes() -> str:
    """For each family of codes, when it comes, what to do first, and a table."""
    parts = []
    for family, codes in groupby(CODES, key=lambda code: code.rsplit("-", 1)[0]):
        rows = [
            (
                f"[`{code}`]{{#{code.lower()}}}",
                f"`{CODES[code].error.__name__}`",
                _plain(CODES[code].meaning),
                _plain(CODES[code].remedy or "see the message"),
            )
            for code in codes
        ]
        table = _table(("code", "class", "meaning", "remedy"), rows)
        when, first = FAMILIES[family]
        parts.append(f"[**{family}**]{{#{family.lower()}}}\n: {when}\n: {first}\n\n{table}")
    return "\n\n".join(parts)


def operations() -> str:
    """One table of every primitive operation with the accuracy it must have."""
    rows = [
        (f"`{op.name}`", str(op.arity), op.signature.value, _plain(op.meaning), _accuracy(op))
        for op in OPS.values()
    ]
    return _table(("operation", "operands", "kinds", "meaning", "accuracy"), rows)


def _accuracy(op: Op) -> str:
    match op.exactness:
        case Exactness.EXACT:
            return "exact"
        case Exactness.ROUNDED:
            return "correctly rounded"
        case Exactness.ULP:
            return f"{op.ulp:g} ulp"
        case Exactness.SPECIAL:
            return f"{op.ulp:g} ulp of max(\\|value\\|, scale)"


def semantics() -> str:
    """One table of expressions, operands and the value that every backend gives."""
    rows = []
    for case in json.loads(CASES.read_text(encoding="utf-8")):
        operands = ", ".join(f"{name} = {value}" for name, value in case["inputs"].items())
        rows.append((f"`{case['expr']}`", operands, str(case["expected"]), _plain(case["why"])))
    return _table(("expression", "operands", "value", "why"), rows)


def gpu_accuracy() -> str:
    """One table of the operations whose code depends on the accuracy mode of ``nvptx``."""
    from alkahest.backends.nvptx.accuracy import MODES
    from alkahest.backends.nvptx.bounds import BOUNDS

    rows = [
        (f"`{op}`", *(_plain(bounds[mode].text) for mode in MODES)) for op, bounds in BOUNDS.items()
    ]
    return _table(("operation", *(f"`{mode}`" for mode in MODES)), rows)


def cpu_accuracy() -> str:
    """One table of the functions of ``cpu-jit``, with their bounds by accuracy mode."""
    from alkahest.backends.cpu.jit.bounds import BOUNDS
    from alkahest.backends.cpu.jit.options import ACCURACIES

    rows = [
        (f"`{op}`", *(_plain(bounds[mode].text) for mode in ACCURACIES))
        for op, bounds in BOUNDS.items()
    ]
    return _table(("operation", *(f"`{mode}`" for mode in ACCURACIES)), rows)


class _ErrorCodes(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(error_codes())


class _Operations(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(operations())


class _Semantics(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(CASES))
        return self.parse_text_to_nodes(semantics())


class _CpuAccuracy(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(cpu_accuracy())


class _GpuAccuracy(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(gpu_accuracy())


def _escape_meanings(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Functions take their docstrings from the op table, whose formulae are no markup."""
    if name.startswith("alkahest.expr.functions."):
        lines[:] = ["``".join(_escape_outside_literals(line)) for line in lines]


def _escape_outside_literals(line: str) -> Iterator[str]:
    for position, part in enumerate(line.split("``")):
        yield part if position % 2 else re.sub(r"([*|])", r"\\\1", part)


def setup(app: Sphinx) -> dict[str, Any]:
    """Entry point of the extension."""
    app.add_directive("error-codes", _ErrorCodes)
    app.add_directive("operations", _Operations)
    app.add_directive("semantics", _Semantics)
    app.add_directive("cpu-accuracy", _CpuAccuracy)
    app.add_directive("gpu-accuracy", _GpuAccuracy)
    app.connect("autodoc-process-docstring", _escape_meanings)
    return {"parallel_read_safe": True, "version": "1"}
