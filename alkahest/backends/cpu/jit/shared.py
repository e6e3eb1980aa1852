"""Functions that many kernels have in common: compiled once, linked to each of them.

A vector function has a part for arguments that hardly ever come, such as sines of huge numbers, which
is longer than all the rest of a small kernel. The generator marks these functions ``noinline cold``.
They are taken out of the kernel's module, compiled as modules of their own under a key made of their
text, kept in memory for good, and stored on disk like kernels.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from alkahest import cache
from alkahest.backends.cpu.jit import engine

if TYPE_CHECKING:
    from alkahest.backends.cpu.jit.host import HostTarget

KERNEL = "; the kernel\n"
"""Stands in a module between the functions that kernels may have in common and the kernel."""

_COLD = re.compile(
    r"^define internal (?P<head>[^\n]*@(?P<name>[\w.]+)\([^\n]*\)) noinline cold nounwind \{\n"
    r"(?P<body>.*?)^\}\n",
    re.MULTILINE | re.DOTALL,
)
_DECLARATION = re.compile(r"^declare [^\n]*@(?P<name>[\w.]+)\([^\n]*\n", re.MULTILINE)
_GLOBAL = re.compile(r"^@(?P<name>[\w.]+) = [^\n]*\n", re.MULTILINE)
_NAME = re.compile(r"@([\w.]+)")
_PARAMETER = re.compile(r" %[\w.]+(?=[,)])")

Keys = Mapping[str, str]
"""Name of a function -> what its code is stored under."""

_loaded: dict[str, engine.Code] = {}


class Parts:
    """A kernel's module without the functions that others have too.

    Args:
        text: the module, as it was generated.
        target: what it is for.

    Attributes:
        text: the module that is left, where they are declared.
        keys: of the functions that were taken out.
    """

    def __init__(self, text: str, target: HostTarget) -> None:
        self._target = target
        head, _, kernel = text.partition(KERNEL)
        cold = {found["name"]: found for found in _COLD.finditer(head)}
        declared = {name: _declared(found["head"]) for name, found in cold.items()}
        left = _COLD.sub(lambda found: declared[found["name"]], head)
        tables = {found["name"]: found[0] for found in _GLOBAL.finditer(head)}
        used = {name for name in tables if f"@{name}" in kernel}
        used.update(_used(_GLOBAL.sub("", left)))
        left = _GLOBAL.sub(lambda found: found[0] if found["name"] in used else "", left)
        self.text = left + kernel
        known = {found["name"]: found[0] for found in _DECLARATION.finditer(head)}
        known |= tables | declared
        self._texts = {
            name: "".join(
                [
                    *(known[n] for n in _used(found["body"]) if n in known and n != name),
                    f"define {found['head']} nounwind {{\n{found['body']}}}\n",
                ]
            )
            for name, found in cold.items()
        }
        self.keys: Keys = {
            name: engine.key(target, {"what": "function", "text": text})
            for name, text in self._texts.items()
        }

    def code(self, external: set[str]) -> Mapping[str, engine.Code]:
        """The functions in this process; compiled if need be.

        Args:
            external: names of the system's functions that the whole module may call.

        Raises:
            CodegenError: E-JIT-002 where one cannot be made.
        """
        return {name: self._made(name, external) for name in self._texts}

    def _made(self, name: str, external: set[str]) -> engine.Code:
        key = self.keys[name]
        found = find(name, key)
        if found is not None:
            return found
        used = [n for n in _used(self._texts[name]) if n != name]
        linked = {n: self._made(n, external) for n in used if n in self.keys}
        system = [n for n in used if n in external]
        object_code = engine.compile_ir(self._texts[name], self._target)
        head = {"needs": {n: self.keys[n] for n in linked}, "system": system}
        record = b"\n".join((json.dumps(head).encode(), object_code))
        cache.store(key, record, label=f"cpu-jit function {name}")
        return _loaded.setdefault(key, engine.Code(object_code, (name,), system, linked))


def find(name: str, key: str) -> engine.Code | None:
    """A function that is in memory or on disk, or None."""
    code = _loaded.get(key)
    if code is not None:
        return code
    record = cache.load(key)
    if record is None:
        return None
    text, _, object_code = record.partition(b"\n")
    head = json.loads(text)
    linked = find_all(head["needs"])
    if linked is None:
        return None
    return _loaded.setdefault(key, engine.Code(object_code, (name,), head["system"], linked))


def find_all(keys: Keys) -> Mapping[str, engine.Code] | None:
    """All of these functions, or None where one is missing."""
    found = {name: find(name, key) for name, key in keys.items()}
    complete = {name: code for name, code in found.items() if code is not None}
    return complete if len(complete) == len(found) else None


def _declared(head: str) -> str:
    return f"declare {_PARAMETER.sub('', head)} nounwind\n"


def _used(text: str) -> list[str]:
    """The names in a text, each once, in order."""
    return list(dict.fromkeys(_NAME.findall(text)))


__all__ = ["KERNEL", "Keys", "Parts", "find", "find_all"]
