"""Compiled functions that arrive in a process as pickles: each is compiled once and kept.

A function travels as its program and choices. What evaluates a batch in parts sends it with every
part, so the parts that follow the first find it here.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from alkahest._plugins.records import Snapshot
from alkahest._plugins.registry import registry
from alkahest.forks import ForkSafeLock
from alkahest.program import loads

if TYPE_CHECKING:
    from alkahest.compiled import CompiledFn

MOST_KEPT = 64
"""Functions that a process keeps; the one that was needed longest ago goes first."""

_lock = ForkSafeLock()
_kept: OrderedDict[bytes, tuple[Snapshot, CompiledFn]] = OrderedDict()


def rebuild(cls: type[CompiledFn], program: bytes, choices: Mapping[str, Any]) -> CompiledFn:
    """The function that was pickled; the same object for equal pickles.

    Args:
        cls: its class.
        program: serialised by :func:`alkahest.program.dumps`.
        choices: keyword arguments of :meth:`alkahest.CompiledFn.from_program`.

    Raises:
        CodegenError: E-JIT-008 for a program that is damaged or of an unknown version.
        AlkahestError: what compiling raises.
    """
    key = sha256(pickle.dumps((cls, program, choices))).digest()
    # Other plugins may compile it otherwise.
    plugins = registry.snapshot(strict=False)
    with _lock:
        known = _kept.get(key)
        if known is None or known[0] is not plugins:
            known = _kept[key] = plugins, cls.from_program(loads(program), **choices)
        _kept.move_to_end(key)
        if len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    return known[1]


__all__ = ["MOST_KEPT", "rebuild"]
