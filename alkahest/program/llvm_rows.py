"""Rows of the tables by which backends write operations as LLVM instructions.

Each backend adds the rows that it alone has: its libraries, its own functions, its expansions.
"""

from __future__ import annotations

import attrs


@attrs.frozen
class Opcode:
    """An LLVM instruction on operands of the result's type."""

    name: str


@attrs.frozen
class Compare:
    """``fcmp`` with this predicate; the ordered ones are false for nan."""

    predicate: str


@attrs.frozen
class Logic:
    """An LLVM instruction on truth values."""

    name: str


@attrs.frozen
class Intrinsic:
    """An LLVM intrinsic, without the type suffix."""

    name: str


__all__ = ["Compare", "Intrinsic", "Logic", "Opcode"]
