"""What a program costs, estimated, and how many vectors to compute together.

The figures are cycles of a recent processor with two units for vectors. A loop over independent
blocks overlaps by itself as far as the processor looks ahead, so that only long chains of operations
gain from that when several vectors are computed at once. But all programs do whose constants are more
than the registers: a constant is loaded once for all vectors. Too many live values cost stores and
loads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

import attrs

from alkahest.program import Program

AHEAD = 400
"""Instructions that are worked on at the same time."""

UNITS = 2
"""Instructions a cycle."""


@attrs.frozen
class Vectors:
    """What a processor has for them.

    Attributes:
        registers: that instructions can name.
        bits: of a vector.
        approximates: whether there are instructions for reciprocals with 14 bits.
    """

    registers: int = 32
    bits: int = 512
    approximates: bool = True


WIDE = Vectors()
"""Of AVX-512."""


@attrs.frozen
class Cost:
    """Of one operation on one vector: instructions, cycles until the result, cycles of the divider."""

    instructions: float = 1.0
    latency: float = 4.0
    divider: float = 0.0


_FUNCTION = 6
"""What has more instructions is a function."""

_INSIDE = 2
"""Values that a function needs at the same time."""

_CONSTANTS_INSIDE = 0.4
"""Of the instructions of a function, how many have a constant of their own."""

_PLAIN = Cost()

COSTS: Mapping[str, Cost] = MappingProxyType(
    {
        "neg": Cost(0, 0),  # goes into multiply-adds
        "div": Cost(1, 24, 16),
        "sqrt": Cost(1, 32, 24),
        "rsqrt": Cost(2, 56, 40),
        "powi": Cost(8, 30),
        "pow": Cost(75, 150),
        "sign": Cost(5, 8),
        "min": Cost(5, 10),
        "max": Cost(5, 10),
        "mod": Cost(20, 60, 16),
        "exp": Cost(20, 55),
        "exp2": Cost(20, 50),
        "expm1": Cost(28, 70),
        "log": Cost(32, 65),
        "log2": Cost(38, 75),
        "log10": Cost(38, 75),
        "log1p": Cost(45, 90),
        "cbrt": Cost(45, 150),
        "hypot": Cost(25, 90, 40),
        "sin": Cost(24, 60),
        "cos": Cost(24, 64),
        "tan": Cost(60, 130, 16),
        "asin": Cost(35, 120, 40),
        "acos": Cost(45, 130, 40),
        "atan": Cost(45, 100, 16),
        "atan2": Cost(50, 110, 16),
        "sinh": Cost(40, 80),
        "cosh": Cost(40, 80),
        "tanh": Cost(60, 130, 16),
        "asinh": Cost(60, 170, 40),
        "acosh": Cost(75, 200, 64),
        "atanh": Cost(65, 150, 16),
        "erf": Cost(38, 50),
        "erfc": Cost(95, 170, 16),
        "erfinv": Cost(80, 170, 24),
        "gamma": Cost(190, 330, 64),
        "lgamma": Cost(230, 380, 64),
        "digamma": Cost(150, 250, 48),
        "j0": Cost(45, 70),
        "j1": Cost(45, 70),
        "y0": Cost(120, 130),
        "y1": Cost(125, 130, 16),
    }
)
"""Of operations that are more than one instruction."""


_LONG, _LONGEST = 1500, 80_000
"""Instructions that take long to compile, and more than are written for the sake of overlapping."""

_LONG_WIDE = 1000
"""The same with AVX-512, where less is gained: constants come with the instruction that needs them."""

_SPILL = 2.5
"""Cycles for a value that has no register."""

_PRODUCTS = {2: Cost(1, 4), 3: Cost(2, 8), 4: Cost(2, 8)}
"""Integer powers that are products."""

_OTHER = Cost(12, 8)
"""A sine besides the cosine of one argument, or the reverse."""


@attrs.frozen
class Estimate:
    """Of a program on one vector.

    Attributes:
        instructions: how many.
        latency: cycles from the inputs to the last output.
        divider: cycles in which the divider is busy.
        live: values, at most, that are needed at the same time; inputs are read when needed.
        loads: constants that have to be loaded, for all vectors that are computed together.
        vectors: of the processor.
    """

    instructions: float
    latency: float
    divider: float
    live: int
    loads: float
    vectors: Vectors = WIDE

    def cycles(self, copies: int) -> float:
        """For one vector, if so many are computed together."""
        # Instructions of AVX-512 read constants from memory themselves.
        each = 0.5 if self.vectors.bits == WIDE.bits else 1.0
        instructions = self.instructions + each * self.loads / copies
        busy = max(instructions / UNITS, self.divider)
        together = instructions * copies
        overlapped = max(1.0, AHEAD / max(together, 1.0))
        waiting = self.latency / (copies * overlapped)
        spilled = max(0, self.live * copies - self.vectors.registers + 6)
        overhead = 2.0 / copies
        return max(busy, waiting) + overhead + _SPILL * spilled / copies

    @property
    def interleave(self) -> int:
        """Vectors to compute together; more of them only where that pays, also for the compiler."""
        best = 1
        long = _LONG_WIDE if self.vectors.bits == WIDE.bits else _LONG
        for copies in (2, 4):
            if copies * self.instructions > _LONGEST:
                break
            enough = 0.94 if copies * self.instructions < long else 0.7
            if self.cycles(copies) < enough * self.cycles(best):
                best = copies
        return best


_RECIPROCAL = 12.0
"""Instructions of :mod:`alkahest.backends.cpu.jit.division` for each divisor."""

_SHARED = 3
"""Quotients by one divisor from which a division for its reciprocal pays."""

_UNDIVIDED = {"div": Cost(6, 45), "sqrt": Cost(14, 60)}


def without_divider(program: Program, vectors: Vectors = WIDE) -> tuple[Estimate, frozenset[int]]:
    """Quotients and roots to compute by multiply-adds, until the divider is not what one waits for.

    They take longer one by one, so that nothing is changed where one waits for a chain of them.

    Args:
        program: real, of double precision.

    Returns:
        The estimate, and the numbers of the instructions.
    """
    found = estimate(program, vectors=vectors)
    first, scale = program.first_instruction, vectors.bits / WIDE.bits
    groups: dict[tuple[str, int], list[int]] = {}
    for number, (op, args, _) in enumerate(program.code, first):
        if op in _UNDIVIDED and (op == "div" or vectors.approximates):
            groups.setdefault((op, args[-1]), []).append(number)
    if not vectors.approximates:
        groups = {key: numbers for key, numbers in groups.items() if len(numbers) >= _SHARED}
    chosen: set[int] = set()
    instructions, divider = found.instructions, found.divider
    # The largest groups share a reciprocal; sorting is stable, so that the order is the program's.
    for (op, _), numbers in sorted(groups.items(), key=lambda item: -len(item[1])):
        if divider <= instructions / UNITS:
            break
        size = len(numbers)
        divider -= COSTS[op].divider * (size - (not vectors.approximates)) * scale
        instructions += _RECIPROCAL if op == "div" else 0.0
        instructions += (_UNDIVIDED[op].instructions - 1) * size
        chosen.update(numbers)
    changed = estimate(program, frozenset(chosen), vectors)
    if changed.cycles(changed.interleave) < found.cycles(found.interleave):
        return changed, frozenset(chosen)
    return found, frozenset()


def estimate(
    program: Program, undivided: frozenset[int] = frozenset(), vectors: Vectors = WIDE
) -> Estimate:
    """Of a real program, some of whose quotients and roots do without the divider."""
    first = program.first_instruction
    ready = [0.0] * first
    instructions = float(len(program.inputs) + len(program.outputs))
    divider = 0.0
    last: dict[int, int] = {}
    for number, (_, args, _) in enumerate(program.code, first):
        for a in args:
            last[a] = number
    for output in program.outputs:
        last[output] = first + len(program.code)
    ending: dict[int, int] = {}
    live = most = 0
    inside = 0.0
    constants: Counter[int] = Counter()
    inputs = len(program.inputs)
    circular: set[int] = set()
    for number, (op, args, parameter) in enumerate(program.code, first):
        cost = _UNDIVIDED[op] if number in undivided else COSTS.get(op, _PLAIN)
        if op == "powi" and parameter in _PRODUCTS:
            cost = _PRODUCTS[parameter]
        elif op in ("sin", "cos"):
            cost = _OTHER if args[0] in circular else cost
            circular.add(args[0])
        instructions += cost.instructions
        divider += cost.divider * vectors.bits / WIDE.bits
        ready.append(cost.latency + max((ready[a] for a in args), default=0.0))
        live -= ending.pop(number, 0)
        if number in last:
            live += 1
            ending[last[number]] = ending.get(last[number], 0) + 1
        is_function = cost.instructions > _FUNCTION
        most = max(most, live + _INSIDE * is_function)
        inside += cost.instructions * is_function
        constants.update(a for a in args if inputs <= a < first)
    divisors = {program.code[number - first].args[-1] for number in undivided}
    instructions += _RECIPROCAL * len(divisors)
    if not vectors.approximates:
        divider += COSTS["div"].divider * len(divisors) * vectors.bits / WIDE.bits
    latency = max((ready[o] for o in program.outputs), default=0.0)
    # The constants that are used most stay in the registers that nothing else needs.
    kept = sum(uses for _, uses in constants.most_common(max(0, vectors.registers - 4 - most)))
    loads = _CONSTANTS_INSIDE * inside + constants.total() - kept
    return Estimate(instructions, latency, divider, most, loads, vectors)
