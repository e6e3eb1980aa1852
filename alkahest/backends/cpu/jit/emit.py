"""Programs to LLVM assembly: one kernel.

The entry's parameters::

    void alkahest_kernel(ptr columns, ptr scratch, i64 begin, i64 end)

``columns`` is an array of addresses: of the inputs' data, then of the outputs', each contiguous,
complex numbers as pairs, truth values as bytes. It computes points ``begin`` to ``end - 1`` and
reads and writes nothing else. All inputs of a block of points are read before its outputs are
written, so that an output may be an input; it must not overlap one in another way. ``scratch`` is
``scratch_bytes`` of memory for this call alone.

Values are named by numbers only; no text of the user's gets into the assembly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from alkahest.backends.cpu.jit import passes
from alkahest.backends.cpu.jit.blocks import ENTRY, Column, Surroundings
from alkahest.backends.cpu.jit.functions import LINKAGE
from alkahest.backends.cpu.jit.host import ITEM_BITS, HostTarget
from alkahest.backends.cpu.jit.lanes import Symbols
from alkahest.backends.cpu.jit.model import Vectors, estimate, without_divider
from alkahest.backends.cpu.jit.options import STRICT
from alkahest.backends.cpu.jit.order import ordered
from alkahest.backends.cpu.jit.rows import rows
from alkahest.backends.cpu.jit.shared import KERNEL
from alkahest.backends.cpu.jit.steps import cut, steps
from alkahest.backends.cpu.jit.writer import Frame, pieces, whole
from alkahest.ops import Kind
from alkahest.program import Program
from alkahest.program.split_complex import split

LARGE = 400
"""Steps, or instructions that read inputs and write outputs, beyond which a program is cut."""


@attrs.frozen(kw_only=True)
class KernelCode:
    """A program as LLVM assembly.

    Attributes:
        ir: the module.
        entry: name of the kernel in it.
        symbols: external functions that it calls.
        scratch_bytes: memory that every call needs.
        width: numbers in a vector.
        interleave: vectors that are computed together.
        cost: estimated cycles for one point.
        report: what there is to say about it.
    """

    ir: str
    entry: str
    symbols: tuple[str, ...]
    scratch_bytes: int
    width: int
    interleave: int
    cost: float
    report: Mapping[str, Any]


def emit_kernel(
    program: Program,
    target: HostTarget,
    *,
    accuracy: str = "default",
    interleave: int | None = None,
    scalars: frozenset[int] = frozenset(),
) -> KernelCode:
    """The kernel of a verified program.

    Args:
        program: of any dtype.
        target: the processor.
        accuracy: ``"strict"``, ``"default"`` or ``"fast"``.
        interleave: vectors that are computed together; None lets an estimate decide.
        scalars: positions of inputs that are one element for all points.

    Raises:
        CodegenError: E-JIT-001 naming an operation that is not lowered.
    """
    found = split(program)
    change = passes.prepared_parts if program.is_complex else passes.prepared
    if target.fuses:
        found = attrs.evolve(found, program=change(found.program, accuracy))
    if not program.is_complex:  # the order of branches around unusual parts is their generator's
        found = attrs.evolve(found, program=ordered(found.program))
    undivided = frozenset[int]()
    vectors = Vectors(target.registers, target.vector_bits, target.has_wide_masks)
    if accuracy != STRICT and target.fuses and program.dtype == "float64":
        guess, undivided = without_divider(found.program, vectors)
    else:
        guess = estimate(found.program, vectors=vectors)
    plan = steps(
        found.program,
        is_split=program.is_complex,
        pairs=target.fuses,
        merges=target.fuses and accuracy != STRICT and not program.is_complex,
    )
    is_large = max(len(plan), _accesses(found.program)) > LARGE
    copies = interleave or guess.interleave
    width = target.width(program.dtype)
    symbols = Symbols(target)
    columns = _columns(program, scalars)
    scalar = "double" if ITEM_BITS[program.dtype] == 64 else "float"
    frame = Frame(
        found, columns, rows(target, accuracy), (width, copies, scalar), symbols, undivided
    )
    values = 0
    if is_large:
        cut_plan = cut(plan, found.program, lambda step: float(len(step.writes) + len(step.rare)))
        values = cut_plan.count * frame.slot_bytes()
        loop = pieces(frame, cut_plan)
    else:
        loop = whole(frame, plan)
    around = Surroundings(columns, width * copies, values)
    kernel = around.kernel(symbols, loop.head, loop.body, loop.last)
    linkages = _linkages(symbols)
    lines = [
        f'target triple = "{target.triple}"',
        *symbols.globals.values(),
        *symbols.declarations.values(),
        *(text.replace(LINKAGE, linkages[name]) for name, text in symbols.functions.items()),
        KERNEL.rstrip(),
        *loop.functions,
        *kernel,
        '!0 = !{!"branch_weights", i32 1, i32 2000}',
        "!1 = !{}",
    ]
    return KernelCode(
        ir="\n".join(lines) + "\n",
        entry=ENTRY,
        symbols=tuple(symbols.external),
        scratch_bytes=around.scratch_bytes,
        width=width,
        interleave=copies,
        cost=guess.cycles(copies) / width,
        report={"accuracy": accuracy, "instructions": len(found.program.code)},
    )


def _accesses(program: Program) -> int:
    """Loads and stores of a program in one piece: for an output, its address and the value."""
    used = {a for i in program.code for a in i.args if a < len(program.inputs)}
    return len(used) + 2 * len(program.outputs)


def _columns(program: Program, scalars: frozenset[int]) -> list[Column]:
    item = ITEM_BITS[program.dtype] // 8
    sizes = {Kind.REAL: item, Kind.COMPLEX: 2 * item, Kind.BOOL: 1}
    own = sizes[Kind.COMPLEX if program.is_complex else Kind.REAL]
    columns = [Column(own, is_scalar=k in scalars) for k in range(len(program.inputs))]
    return columns + [Column(sizes[program.kinds[o]], is_output=True) for o in program.outputs]


def _linkages(symbols: Symbols) -> dict[str, str]:
    """In line where a function is called once: calls cost little, and copies long to compile."""
    return {
        name: "noinline" if symbols.calls.get(name, 0) > 1 else "alwaysinline"
        for name in symbols.functions
    }
