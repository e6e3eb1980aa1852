"""Aligned columns of text for the listings."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence

MARKS = {True: "ok", False: "no", None: "--"}
"""How answers are shown: True, False, and a fact that is neither."""


def aligned(rows: Sequence[Sequence[str]], indent: str = "  ") -> str:
    """Rows of texts as lines; every column but the last is padded, and long last cells wrap.

    Args:
        rows: equally long sequences of texts.
        indent: what every line begins with.
    """
    if not rows:
        return f"{indent}none"
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]) - 1)]
    room = shutil.get_terminal_size((100, 24)).columns
    lines = []
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        start = indent + "".join(f"{cell}  " for cell in cells)
        text = " ".join(row[-1].split())
        # Cut only between words: paths and commands must survive being copied.
        wrapped = textwrap.wrap(
            text, max(30, room - len(start)), break_long_words=False, break_on_hyphens=False
        )
        lines.append((start + f"\n{' ' * len(start)}".join(wrapped)).rstrip())
    return "\n".join(lines)
