"""The loop over blocks: reads, computation, writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from alkahest.backends.cpu.jit.blocks import Column
from alkahest.backends.cpu.jit.division import ROOT, Reciprocal, quotient, reciprocal
from alkahest.backends.cpu.jit.functions import call, only
from alkahest.backends.cpu.jit.lanes import Lanes, Symbols, Value
from alkahest.backends.cpu.jit.rows import EXP_OF_TWO, SINCOS, Row, lowered
from alkahest.backends.cpu.jit.steps import Pieces, Step
from alkahest.errors import CodegenError
from alkahest.ops import Kind
from alkahest.program import Program
from alkahest.program.split_complex import SplitProgram

EARLY = 12
"""Columns, at most, whose addresses are kept in registers."""

FEW = 8
"""Outputs, at most, that are written when everything is computed; more are written as they come."""

MANY = 24
"""Inputs from which on they are fetched ahead: more streams than processors follow by themselves."""

AHEAD = 512
"""Bytes between what is fetched and what is read."""

PORTION = 128
"""Inputs that a piece keeps, or outputs that it writes, at most."""


class Frame:
    """What is the same for every function of a kernel.

    Attributes:
        found: the program.
        columns: inputs, then outputs.
        rows: how operations are written.
        width, copies, scalar: of :class:`~alkahest.backends.cpu.jit.lanes.Lanes`.
        symbols: of the module.
        undivided: quotients and roots for :mod:`alkahest.backends.cpu.jit.division`.
        fetched: columns that are fetched ahead already.
    """

    def __init__(
        self,
        found: SplitProgram,
        columns: Sequence[Column],
        rows: Mapping[str, Row],
        lanes: tuple[int, int, str],
        symbols: Symbols,
        undivided: frozenset[int] = frozenset(),
    ) -> None:
        self.undivided = undivided
        self.found, self.columns, self.rows, self.symbols = found, columns, rows, symbols
        self.width, self.copies, self.scalar = lanes
        self.inputs = len(columns) - len(found.outputs)
        self.pair = len(found.program.inputs) // self.inputs if self.inputs else 1
        self.fetched: set[int] = set()

    @property
    def program(self) -> Program:
        return self.found.program

    def lanes(self, label: str) -> Lanes:
        """A place to write to."""
        return Lanes(self.symbols, self.width, self.copies, self.scalar, label)

    def slot_bytes(self) -> int:
        """Of a value in the scratch memory."""
        return self.width * self.copies * (8 if self.scalar == "double" else 4)


class Body:
    """Code of a block of points in one function, with what it has read and computed so far."""

    def __init__(self, frame: Frame, slots: Mapping[int, int], label: str = "block") -> None:
        self.frame, self.slots = frame, slots
        self.program = frame.program
        self.lanes = frame.lanes(label)
        self.head: list[str] = []
        self.values: dict[int, Value] = {}
        self._bases: dict[int, str] = {}
        self._reciprocals: dict[int, Reciprocal] = {}
        self._first_constant = len(self.program.inputs)

    # Values

    def value(self, number: int) -> Value:
        """An operand: computed here, or read, or a constant."""
        found = self.values.get(number)
        if found is None:
            if number in self.slots:
                self.values[number] = self._from_slot(number)
            elif number < self._first_constant:
                self._read(number)
            else:
                self.values[number] = self._constant(number)
            found = self.values[number]
        return found

    def _constant(self, number: int) -> Value:
        constant = self.program.constants[number - self._first_constant]
        if isinstance(constant, bool):
            return self.lanes.truth(constant)
        assert isinstance(constant, float)  # split() leaves no complex ones
        return self.lanes.constant(constant)

    def _kind(self, number: int) -> str:
        is_truth = self.program.kinds[number] is Kind.BOOL
        return self.lanes.mask if is_truth else self.lanes.type

    def _slot_addresses(self, slot: int) -> Value:
        size = self.frame.slot_bytes()
        step = size // self.lanes.copies
        offsets = tuple(str(slot * size + k * step) for k in range(self.lanes.copies))
        return self.lanes.each("getelementptr i8, ptr %%scratch, i64 %s", offsets)

    def _from_slot(self, number: int) -> Value:
        addresses = self._slot_addresses(self.slots[number])
        return self.lanes.each(f"load {self._kind(number)}, ptr %s, align 16", addresses)

    def keep(self, number: int) -> None:
        """Read an input and put it into its slot, since an output may overwrite it."""
        self._read(number)
        self._to_slot(number)

    def _to_slot(self, number: int) -> None:
        addresses = self._slot_addresses(self.slots[number])
        kind = self._kind(number)
        for vector, address in zip(self.values[number], addresses, strict=True):
            self.lanes.line(f"  store {kind} {vector}, ptr {address}, align 16")

    # Columns

    def _base(self, position: int) -> str:
        """The address of a column; of few columns, read once before the loop."""
        found = self._bases.get(position)
        if found is None:
            found = self._bases[position] = f"%column.{position}"
            lines = self.head if len(self.frame.columns) <= EARLY else self.lanes.lines
            lines += [
                f"  %to.{position} = getelementptr ptr, ptr %columns, i64 {position}",
                f"  {found} = load ptr, ptr %to.{position}, align 8, !invariant.load !1",
            ]
        return found

    def _addresses(self, position: int) -> Value:
        """Of the copies' vectors in a column."""
        lanes = self.lanes
        kind = f"i{8 * self.frame.columns[position].size}"
        (base,) = lanes.each(f"getelementptr {kind}, ptr %s, i64 %%i", (self._base(position),))
        offsets = tuple(str(lanes.width * k) for k in range(1, lanes.copies))
        bases = (base,) * len(offsets)
        return (base, *lanes.each(f"getelementptr {kind}, ptr %s, i64 %s", bases, offsets))

    def _read(self, number: int) -> None:
        """An input of the real program: with its partner where the numbers are complex."""
        lanes, pair = self.lanes, self.frame.pair
        position = number // pair
        column = self.frame.columns[position]
        align = column.size // pair
        if column.is_scalar:
            self._spread(position, align)
            return
        addresses = self._addresses(position)
        if self.frame.inputs >= MANY and position not in self.frame.fetched:
            self.frame.fetched.add(position)
            lanes.fetch(addresses, AHEAD)
        if pair == 1:
            self.values[number] = lanes.each(f"load {lanes.type}, ptr %s, align {align}", addresses)
        else:
            kind = f"<{2 * lanes.width} x {lanes.scalar}>"
            both = lanes.each(f"load {kind}, ptr %s, align {align}", addresses)
            for part in range(2):
                order = ", ".join(f"i32 {2 * lane + part}" for lane in range(lanes.width))
                self.values[2 * position + part] = lanes.each(
                    f"shufflevector {kind} %s, {kind} poison, <{lanes.width} x i32> <{order}>",
                    both,
                )

    def _spread(self, position: int, size: int) -> None:
        """One number for all points; of few columns, before the loop."""
        lanes, pair = self.lanes, self.frame.pair
        base = self._base(position)
        body, early = lanes.lines, len(self.frame.columns) <= EARLY
        if early:
            lanes.lines = self.head
        for part in range(pair):
            (address,) = lanes.each(f"getelementptr {lanes.scalar}, ptr %s, i64 {part}", (base,))
            (item,) = lanes.each(f"load {lanes.scalar}, ptr %s, align {size}", (address,))
            (first,) = lanes.each(
                f"insertelement {lanes.type} poison, {lanes.scalar} %s, i32 0", (item,)
            )
            (spread,) = lanes.each(
                f"shufflevector {lanes.type} %s, {lanes.type} poison,"
                f" <{lanes.width} x i32> zeroinitializer",
                (first,),
            )
            self.values[pair * position + part] = (spread,) * lanes.copies
        lanes.lines = body

    def write_output(self, place: int) -> None:
        """Store one output."""
        lanes, program, frame = self.lanes, self.program, self.frame
        position = frame.inputs + place
        numbers = [program.outputs[k] for k in frame.found.outputs[place]]
        size = frame.columns[position].size
        kind, value = lanes.type, self.value(numbers[0])
        if len(numbers) == 2:
            kind = f"<{2 * lanes.width} x {lanes.scalar}>"
            order = ", ".join(
                f"i32 {lane + part * lanes.width}" for lane in range(lanes.width) for part in (0, 1)
            )
            value = lanes.each(
                f"shufflevector {lanes.type} %s, {lanes.type} %s,"
                f" <{2 * lanes.width} x i32> <{order}>",
                value,
                self.value(numbers[1]),
            )
            size //= 2
        elif program.kinds[numbers[0]] is Kind.BOOL:
            kind = f"<{lanes.width} x i8>"
            value = lanes.each(f"zext {lanes.mask} %s to {kind}", value)
        for vector, address in zip(value, self._addresses(position), strict=True):
            lanes.line(f"  store {kind} {vector}, ptr {address}, align {size}")

    # Steps

    def write(self, step: Step) -> None:
        """A step, and its values into their slots."""
        code, first = self.program.code, self.program.first_instruction
        written = len(step.writes)
        if step.rare or (written > 1 and code[step.writes[0] - first].op == "select"):
            self._write_choice(step)
        elif written == 2:
            results = call(self.lanes, SINCOS, self.value(step.reads[0]))
            self.values.update(zip(step.writes, results, strict=True))
        elif step.reads != code[step.writes[0] - first].args:
            self._write_merged(step)
        else:
            self._compute(step.writes[0])
        for number in step.writes:
            if number in self.slots:
                self._to_slot(number)

    def _compute(self, number: int) -> None:
        op, args, parameter = self.program.code[number - self.program.first_instruction]
        row = self.frame.rows.get(op)
        if row is None:
            raise CodegenError("E-JIT-001", f"operation {op!r} is not lowered")
        operands = tuple([self.value(a) for a in args])
        if number not in self.frame.undivided:
            self.values[number] = lowered(self.lanes, row, operands, parameter)
        elif op == "sqrt":
            self.values[number] = only(self.lanes, ROOT, *operands)
        else:
            inverse = self._reciprocals.get(args[1])
            if inverse is None:
                inverse = self._reciprocals[args[1]] = reciprocal(self.lanes, operands[1])
            self.values[number] = quotient(self.lanes, operands[0], operands[1], inverse)

    def _write_merged(self, step: Step) -> None:
        """``exp(a)*exp(b)`` or ``exp(a)/exp(b)`` as the exponential of an exact sum."""
        op = self.program.code[step.writes[0] - self.program.first_instruction].op
        a, b = (self.value(number) for number in step.reads)
        b = self.lanes.neg(b) if op == "div" else b
        self.values[step.writes[0]] = only(self.lanes, EXP_OF_TWO, a, b)

    def _write_choice(self, step: Step) -> None:
        """A branch around what selects on one nan test need in the unusual case."""
        lanes, first = self.lanes, self.program.first_instruction
        selects = [self.program.code[number - first] for number in step.writes]
        for number in step.reads:  # what is read in the branch would not exist outside
            self.value(number)
        condition = self.value(selects[0].args[0])
        usual = [self.value(select.args[2]) for select in selects]
        name, before = f"rare.{step.writes[0]}", lanes.label
        lanes.branch_rarely(lanes.any(condition), name, f"{name}.end")
        lanes.start(name)
        outside = self.values
        self.values = dict(outside)
        for number in step.rare:
            self._compute(number)
        chosen = [
            lanes.select(condition, self.value(select.args[1]), value)
            for select, value in zip(selects, usual, strict=True)
        ]
        self.values = outside
        within = lanes.label
        lanes.jump(f"{name}.end")
        lanes.start(f"{name}.end")
        for number, a, b in zip(step.writes, chosen, usual, strict=True):
            outside[number] = lanes.phi(lanes.type, a, within, b, before)


class Loop(NamedTuple):
    """Code of a block, what goes before the loop, the label it ends with, and what it calls."""

    head: Sequence[str]
    body: Sequence[str]
    last: str
    functions: Sequence[str] = ()


def whole(frame: Frame, found: Sequence[Step]) -> Loop:
    """Everything in the loop."""
    body = Body(frame, {})
    outputs = frame.found.outputs
    at_once = len(outputs) > FEW
    used = {a for step in found for a in step.reads} | set(frame.program.outputs)
    waiting: dict[int, list[int]] = {}
    if at_once:
        # What may be overwritten has to be read before.
        for number in range(len(frame.program.inputs)):
            if number in used:
                body.value(number)
        for place, parts in enumerate(outputs):
            waiting.setdefault(max(frame.program.outputs[k] for k in parts), []).append(place)
    for step in found:
        body.write(step)
        for number in step.writes:
            for place in waiting.pop(number, ()):
                body.write_output(place)
    for number in frame.program.outputs:
        body.value(number)  # an input among them must be read before it is overwritten
    left = sorted(place for places in waiting.values() for place in places)
    for place in left if at_once else range(len(outputs)):
        body.write_output(place)
    return Loop(body.head, body.lanes.lines, body.lanes.label)


def pieces(frame: Frame, plan: Pieces) -> Loop:
    """A row of calls in the loop.

    What only copies is not optimised: LLVM takes twenty times as long to order its loads and stores,
    which makes them no faster.
    """
    lines: list[str] = []
    count = 0

    def add(body: Body, *, copies: bool = False) -> None:
        nonlocal count
        lines.extend(
            [
                f"define internal void @piece.{count}(ptr %columns, ptr %scratch, i64 %i)"
                f" noinline{' optnone' * copies} nounwind {{",
                "entry:",
                *body.head,
                *body.lanes.lines,
                "  ret void",
                "}",
            ]
        )
        count += 1

    for numbers in _portions(plan.kept, PORTION):
        body = Body(frame, plan.slots, "entry")
        for number in numbers:
            body.keep(number)
        add(body, copies=True)
    for part in plan.parts:
        body = Body(frame, plan.slots, "entry")
        for step in part:
            body.write(step)
        add(body)
    for places in _portions(range(len(frame.found.outputs)), PORTION):
        body = Body(frame, plan.slots, "entry")
        for place in places:
            body.write_output(place)
        add(body, copies=True)
    calls = [f"  call void @piece.{k}(ptr %columns, ptr %scratch, i64 %i)" for k in range(count)]
    return Loop((), calls, "block", lines)


def _portions(items: Sequence[int], size: int) -> Iterable[Sequence[int]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
