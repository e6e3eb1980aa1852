"""The reference has every public name, and every public function says what it takes and raises."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import alkahest
from alkahest._plugins.builtin import BY_EXPORT

ROOT = Path(__file__).resolve().parents[2]

PUBLIC_MODULES = (
    "alkahest.cache",
    "alkahest.calibration",
    "alkahest.emit",
    "alkahest.expr",
    "alkahest.interop",
    "alkahest.plugin",
    "alkahest.program",
    "alkahest.testing",
)
"""Modules whose ``__all__`` is public beside that of ``alkahest`` itself."""

ABSENT = tuple(
    name for name in ("alkahest.backends.groebner_gpu",) if importlib.util.find_spec(name) is None
)
"""Packages on the pages that are not installed here: the pages are tested with README's own set."""

_DIRECTIVE = re.compile(
    r"^\.\. auto(?P<kind>module|class|function|data):: (?P<name>[\w.]+)\n(?P<options>(?:   :.*\n)*)",
    re.MULTILINE,
)


def resolve(name: str) -> Any:
    """The object that a dotted name means; an attribute goes before a module of its name."""
    first, *rest = name.split(".")
    found: Any = importlib.import_module(first)
    for position, part in enumerate(rest, start=1):
        if not hasattr(found, part):
            importlib.import_module(".".join([first, *rest[:position]]))
        found = getattr(found, part)
    return found


def documented() -> Iterator[Any]:
    """Every object that an autodoc directive of a page shows."""
    for page in sorted((ROOT / "docs").glob("*.md")):
        for match in _DIRECTIVE.finditer(page.read_text(encoding="utf-8")):
            if match["name"].startswith(ABSENT):
                continue
            found = resolve(match["name"])
            if match["kind"] != "module":
                yield found
                continue
            options = dict(re.findall(r":([\w-]+): ?(.*)", match["options"]))
            excluded = re.split(r",\s*", options.get("exclude-members", ""))
            names = re.split(r",\s*", options["members"]) if options.get("members") else None
            for name in names or getattr(found, "__all__", None) or vars(found):
                member = getattr(found, name)
                of_module = getattr(member, "__module__", "") == found.__name__
                if name not in excluded and (names or hasattr(found, "__all__") or of_module):
                    yield member


def public() -> dict[str, Any]:
    """Dotted name -> object for everything public that has a docstring of its own."""
    names = {f"alkahest.{name}": getattr(alkahest, name) for name in alkahest.PUBLIC_NAMES}
    for name in BY_EXPORT:
        if hasattr(alkahest, name):
            names[f"alkahest.{name}"] = getattr(alkahest, name)
    for module in map(importlib.import_module, PUBLIC_MODULES):
        names |= {f"{module.__name__}.{name}": getattr(module, name) for name in module.__all__}
    return {
        name: value
        for name, value in names.items()
        if inspect.isclass(value) or inspect.isroutine(value)
    }


def test_the_reference_has_every_public_function_and_class() -> None:
    shown = {id(found) for found in documented()}
    assert sorted(name for name, value in public().items() if id(value) not in shown) == []


def test_everything_public_has_a_docstring() -> None:
    assert [name for name, value in public().items() if not inspect.getdoc(value)] == []


def test_the_docstring_of_a_public_function_names_every_parameter() -> None:
    missing = {}
    for name, value in public().items():
        # Of mathematical functions the operands need no words.
        if inspect.isclass(value) or value.__module__ == "alkahest.expr.functions":
            continue
        parameters = inspect.signature(value).parameters
        text = inspect.getdoc(value) or ""
        absent = [p for p in parameters if not re.search(rf"\b{p}\b", text)]
        if absent:
            missing[name] = absent
    assert missing == {}
