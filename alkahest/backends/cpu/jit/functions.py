"""Vector functions of a module: each written once, called for as many vectors as there are.

A function's operands and results are doubles. A kernel of single precision widens its numbers for
them, which makes two vectors of one, and rounds the results once.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from alkahest.backends.cpu.jit.lanes import Lanes, Value

LARGEST_CALL = 4
"""Vectors that one call works on together, at most."""


LINKAGE = "@@"
"""Stands in a definition for what is decided last: whether the function is put in line."""


@attrs.frozen
class Function:
    """A function of vectors of doubles.

    Attributes:
        name: in the assembly.
        build: ``build(lanes, *operands)`` writes it and returns the result, or several.
        arity: number of operands.
        results: number of results.
        is_rare: whether it stays out of the way: one vector at a time, never in line.
    """

    name: str
    build: Callable[..., Value | tuple[Value, ...]]
    arity: int = 1
    results: int = 1
    is_rare: bool = False


def call(b: Lanes, function: Function, *operands: Value) -> tuple[Value, ...]:
    """The results of a function."""
    if b.scalar == "float":
        wide, halves = b.widened(operands)
        return tuple(b.narrowed(result) for result in call(wide, function, *halves))
    size = 1 if function.is_rare else min(b.copies, LARGEST_CALL)
    results: list[Value] = [()] * function.results
    for first in range(0, b.copies, size):
        parts = [operand[first : first + size] for operand in operands]
        found = _called(b, function, parts, size)
        results = [so_far + new for so_far, new in zip(results, found, strict=True)]
    return tuple(results)


def only(b: Lanes, function: Function, *operands: Value) -> Value:
    """The result of a function that has one."""
    (result,) = call(b, function, *operands)
    return result


def _called(b: Lanes, function: Function, parts: list[Value], size: int) -> list[Value]:
    name = f"ak.{function.name}.{size}x{b.width}"
    _define(b, function, name, size)
    b.symbols.calls[name] = b.symbols.calls.get(name, 0) + 1
    kind = _result_type(b.type, size * function.results)
    arguments = ", ".join(f"{b.type} {x}" for part in parts for x in part)
    result = b.new()
    b.line(f"  {result} = call {kind} @{name}({arguments})")
    if size * function.results == 1:
        return [(result,)]
    flat = []
    for position in range(size * function.results):
        element = b.new()
        b.line(f"  {element} = extractvalue {kind} {result}, {position}")
        flat.append(element)
    return [tuple(flat[k : k + size]) for k in range(0, len(flat), size)]


def _result_type(type_: str, count: int) -> str:
    return type_ if count == 1 else "{ " + ", ".join([type_] * count) + " }"


def _define(b: Lanes, function: Function, name: str, size: int) -> None:
    if name in b.symbols.functions:
        return
    b.symbols.functions[name] = ""  # keeps the place, so that callees may refer to it
    inner = Lanes(b.symbols, b.width, size)
    inner.is_rare = function.is_rare
    operands = [tuple(f"%a{k}.{copy}" for copy in range(size)) for k in range(function.arity)]
    found = function.build(inner, *operands)
    results = [found] if function.results == 1 else list(found)
    flat = [x for result in results for x in result]
    kind = _result_type(b.type, len(flat))
    last = flat[0]
    if len(flat) > 1:
        last = "poison"
        for position, x in enumerate(flat):
            new = inner.new()
            inner.line(f"  {new} = insertvalue {kind} {last}, {b.type} {x}, {position}")
            last = new
    parameters = ", ".join(f"{b.type} {x}" for operand in operands for x in operand)
    linkage = "noinline cold" if function.is_rare else LINKAGE
    b.symbols.functions[name] = "\n".join(
        [
            f"define internal {kind} @{name}({parameters}) {linkage} nounwind {{",
            "entry:",
            *inner.lines,
            f"  ret {kind} {last}",
            "}",
        ]
    )


def rarely(
    b: Lanes, condition: Value, far: Function, operands: tuple[Value, ...], *near: Value
) -> tuple[Value, ...]:
    """``far(*operands)`` in the lanes where the condition holds, else ``near``.

    Hardly any vector has such a lane; others skip the call.
    """
    before = b.label
    name = b.new().removeprefix("%")
    b.branch_rarely(b.any(condition), f"rare.{name}", f"done.{name}")
    b.start(f"rare.{name}")
    found = call(b, far, *operands)
    chosen = [b.select(condition, x, y) for x, y in zip(found, near, strict=True)]
    within = b.label
    b.jump(f"done.{name}")
    b.start(f"done.{name}")
    return tuple(b.phi(b.type, x, within, y, before) for x, y in zip(chosen, near, strict=True))
