"""Markdown pages, cut into the blocks that a reader would run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

_BLOCK = re.compile(
    r"(?:^<!-- needs: (?P<need>[\w-]+) -->\n+)?^```(?P<language>[\w{}-]*)[^\n]*\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """One fenced block.

    Attributes:
        language: first word after the fence.
        text: what stands inside.
        line: zero-based line of the fence.
        need: what the comment ``<!-- needs: ... -->`` before it asks for, or "".
    """

    language: str
    text: str
    line: int
    need: str


def _blocks(page: Path) -> Iterator[Block]:
    source = page.read_text(encoding="utf-8")
    for match in _BLOCK.finditer(source):
        fence = match.start("language")
        yield Block(
            language=match["language"],
            text=match["text"],
            line=source.count("\n", 0, fence),
            need=match["need"] or "",
        )


@pytest.fixture(scope="session")
def blocks() -> Callable[[str], tuple[Block, ...]]:
    """Fenced blocks of a page, given relative to the repository's root."""
    return lambda page: tuple(_blocks(ROOT / page))
