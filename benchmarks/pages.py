"""Parts of the documentation's pages that a command writes, between two marks."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


def replace(page: Path, name: str, text: str) -> None:
    """Put ``text`` between the marks ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` of a page.

    Raises:
        ValueError: the page has no such marks, or has them twice.
    """
    content = page.read_text(encoding="utf-8")
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    if content.count(begin) != 1 or content.count(end) != 1:
        raise ValueError(f"{page} needs one line {begin.strip()!r} and one {end!r}")
    before, _, rest = content.partition(begin)
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{begin}\n{text.strip()}\n\n{end}{after}", encoding="utf-8")
