"""Rewrites that keep the mathematics of a program and change its rounding.

Core never applies them; a backend does, in an accuracy mode that says so. They also change what
infinities give (``x**2 - x`` is nan at infinity, ``x*(x - 1)`` is infinite) and nothing else about
special values.

* :func:`factor_sums` turns sums of products into nested multiply-adds: Horner's rule for any
  number of variables, by the greedy choice of Ceberio and Kreinovich (2004).
* :func:`share_reciprocals` divides once by a divisor that several quotients have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import attrs

from alkahest.ops import Kind
from alkahest.program.records import Instruction, Program

LARGEST_POWER = 64
"""Integer powers up to this one count as repeated factors."""

DEEPEST = 200
"""Nesting at which factoring stops; what remains is added up as it stands."""

_SUM = frozenset({"add", "sub", "neg"})
_PRODUCT = frozenset({"mul", "neg"})


@attrs.frozen
class Term:
    """``coefficient`` times the product of ``factors``: values of the new program, with powers.

    Attributes:
        coefficient: a constant, 1.0 where there is none.
        factors: pairs of value and power, by value; values are distinct, powers positive.
    """

    coefficient: float
    factors: tuple[tuple[int, int], ...]

    def over(self, base: int, power: int) -> Term:
        """The term divided by ``base**power``, which divides it."""
        left = ((b, p - power if b == base else p) for b, p in self.factors)
        return Term(self.coefficient, tuple((b, p) for b, p in left if p))


class _Writer:
    """A program under construction out of another one; equal instructions are one value."""

    def __init__(self, program: Program) -> None:
        self._inputs = len(program.inputs)
        self._constants: list[float | complex | bool] = list(program.constants)
        self._numbers = {(type(c), repr(c)): -1 - k for k, c in enumerate(self._constants)}
        self._code: dict[Instruction, int] = {}

    def input(self, position: int) -> int:
        return position

    def constant(self, value: float | complex | bool) -> int:
        """Constants have negative numbers until :meth:`finish`, since more may come."""
        key = (type(value), repr(value))
        if key not in self._numbers:
            self._numbers[key] = -1 - len(self._constants)
            self._constants.append(value)
        return self._numbers[key]

    def apply(self, op: str, *args: int, parameter: int | None = None) -> int:
        key = Instruction(op, args, parameter)
        return self._code.setdefault(key, self._inputs + len(self._code))

    def finish(self, program: Program, outputs: Sequence[int]) -> Program:
        """``program`` with the new code; instructions that no output needs are dropped."""
        needed = set(outputs)
        for (_, args, _), value in reversed(self._code.items()):
            if value in needed:
                needed.update(args)
        constants = [k for k in range(len(self._constants)) if -1 - k in needed]
        position = {i: i for i in range(self._inputs)}
        position.update((-1 - k, self._inputs + i) for i, k in enumerate(constants))
        first = self._inputs + len(constants)
        kept = [(key, value) for key, value in self._code.items() if value in needed]
        position.update((value, first + i) for i, (_, value) in enumerate(kept))
        return attrs.evolve(
            program,
            constants=tuple(self._constants[k] for k in constants),
            code=tuple(
                Instruction(op, tuple([position[a] for a in args]), parameter)
                for (op, args, parameter), _ in kept
            ),
            outputs=tuple(position[o] for o in outputs),
        ).verify()


def _rewritten(
    program: Program, rule: Callable[[int, Instruction, list[int], _Writer], int | None]
) -> Program:
    """Copy ``program``; ``rule`` gives a value of the new program in place of its own, or None."""
    writer = _Writer(program)
    values = [*range(len(program.inputs)), *map(writer.constant, program.constants)]
    for number, instruction in enumerate(program.code, program.first_instruction):
        value = rule(number, instruction, values, writer)
        if value is None:
            op, args, parameter = instruction
            value = writer.apply(op, *[values[a] for a in args], parameter=parameter)
        values.append(value)
    return writer.finish(program, [values[o] for o in program.outputs])


# Sums of products


def factor_sums(program: Program) -> Program:
    """Nested multiply-adds instead of sums of products, in real programs.

    A sum is only taken apart where nothing else uses its parts, so no work is done twice. Returns
    an equal program where there is nothing to gain, and complex programs as they are.
    """
    if program.is_complex:
        return program
    return _rewritten(program, _SumFactoring(program))


class _SumFactoring:
    """The rule that rewrites the root of a sum, and leaves its parts to be dropped."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._first = program.first_instruction
        uses = Counter(a for i in program.code for a in i.args)
        uses.update(program.outputs)
        self._parts = {
            a
            for instruction in program.code
            if instruction.op in _SUM
            for a in instruction.args
            if uses[a] == 1 and self._instruction(a).op in _SUM
        }
        self._once = {value for value, count in uses.items() if count == 1}

    def _instruction(self, value: int) -> Instruction:
        """What computes ``value``; an instruction without a name for inputs and constants."""
        if value < self._first:
            return Instruction("", ())
        return self._program.code[value - self._first]

    def __call__(
        self, number: int, instruction: Instruction, values: list[int], writer: _Writer
    ) -> int | None:
        if instruction.op not in ("add", "sub") or number in self._parts:
            return None
        terms = [self._term(sign, leaf, values) for sign, leaf in self._leaves(number)]
        collected = _collected(terms)
        if len(collected) == len(terms) and _best_base(terms) is None:
            return None
        return _nested(collected, writer, 0)

    def _leaves(self, root: int) -> Iterator[tuple[float, int]]:
        """Terms of the sum at ``root`` with their signs, from left to right."""
        stack = [(1.0, root)]
        while stack:
            sign, value = stack.pop()
            if value != root and value not in self._parts:
                yield sign, value
                continue
            op, args, _ = self._program.code[value - self._first]
            signs = {"add": (sign, sign), "sub": (sign, -sign), "neg": (-sign,)}[op]
            stack.extend(reversed(list(zip(signs, args, strict=True))))

    def _term(self, sign: float, leaf: int, values: list[int]) -> Term:
        coefficient = sign
        powers: Counter[int] = Counter()
        stack = [leaf]
        while stack:
            value = stack.pop()
            number = self._constant(value)
            if number is not None:
                coefficient *= number
                continue
            op, args, parameter = self._instruction(value)
            if op in _PRODUCT and value in self._once:
                coefficient = -coefficient if op == "neg" else coefficient
                stack.extend(args)
            elif op == "powi" and parameter is not None and 0 < parameter <= LARGEST_POWER:
                powers[values[args[0]]] += parameter
            else:
                powers[values[value]] += 1
        return Term(coefficient, tuple(sorted(powers.items())))

    def _constant(self, value: int) -> float | None:
        k = value - len(self._program.inputs)
        if not 0 <= k < len(self._program.constants):
            return None
        constant = self._program.constants[k]
        return constant if type(constant) is float else None


def _collected(terms: Sequence[Term]) -> list[Term]:
    """Like terms made one, except those that cancel: infinities in them would not."""
    found: dict[tuple[tuple[int, int], ...], float] = {}
    collected: list[Term] = []
    for term in terms:
        total = found.get(term.factors, 0.0) + term.coefficient
        if total:
            found[term.factors] = total
        else:
            collected.append(term)
    return [*(Term(c, factors) for factors, c in found.items()), *collected]


def _best_base(terms: Sequence[Term]) -> int | None:
    """The value that divides most terms, at least two; the smallest number breaks ties."""
    counts = Counter(base for term in terms for base, _ in term.factors)
    if not counts:
        return None
    base, count = min(counts.items(), key=lambda item: (-item[1], item[0]))
    return base if count > 1 else None


def _nested(terms: Sequence[Term], writer: _Writer, depth: int) -> int:
    """``base**m * (quotients) + rest``, the quotients and the rest in the same way."""
    base = _best_base(terms) if depth < DEEPEST else None
    if base is None:
        return _plain_sum(terms, writer)
    divisible = [t for t in terms if any(b == base for b, _ in t.factors)]
    rest = [t for t in terms if not any(b == base for b, _ in t.factors)]
    power = min(p for t in divisible for b, p in t.factors if b == base)
    inner = _nested([t.over(base, power) for t in divisible], writer, depth + 1)
    product = writer.apply("mul", inner, _power(base, power, writer))
    if not rest:
        return product
    if len(rest) == 1 and rest[0].coefficient < 0:
        return writer.apply("sub", product, _product(rest[0], writer, negated=True))
    return writer.apply("add", product, _nested(rest, writer, depth + 1))


def _plain_sum(terms: Sequence[Term], writer: _Writer) -> int:
    first, *others = sorted(terms, key=lambda t: t.coefficient < 0)  # a positive one first
    total = _product(first, writer)
    for term in others:
        negative = term.coefficient < 0
        op = "sub" if negative else "add"
        total = writer.apply(op, total, _product(term, writer, negated=negative))
    return total


def _product(term: Term, writer: _Writer, negated: bool = False) -> int:
    coefficient = -term.coefficient if negated else term.coefficient
    factors = [_power(base, power, writer) for base, power in term.factors]
    if not factors:
        return writer.constant(coefficient)
    if abs(coefficient) != 1:
        factors.insert(0, writer.constant(coefficient))
    total = factors[0]
    for factor in factors[1:]:
        total = writer.apply("mul", total, factor)
    return writer.apply("neg", total) if coefficient == -1 else total


def _power(base: int, power: int, writer: _Writer) -> int:
    return base if power == 1 else writer.apply("powi", base, parameter=power)


# Quotients


def share_reciprocals(program: Program) -> Program:
    """One division and products instead of several quotients by one value, in real programs.

    Costs up to one more rounding for each quotient; where a divisor is subnormal its reciprocal
    overflows, and so do the quotients.
    """
    if program.is_complex:
        return program
    constants = range(len(program.inputs), program.first_instruction)
    divisors = Counter(args[1] for op, args, _ in program.code if op == "div")
    shared = {d for d, count in divisors.items() if count > 1 and d not in constants}

    def rule(
        number: int, instruction: Instruction, values: list[int], writer: _Writer
    ) -> int | None:
        op, args, _ = instruction
        if op != "div" or args[1] not in shared or program.kinds[number] is not Kind.REAL:
            return None
        reciprocal = writer.apply("div", writer.constant(1.0), values[args[1]])
        if values[args[0]] == writer.constant(1.0):
            return reciprocal
        return writer.apply("mul", values[args[0]], reciprocal)

    return _rewritten(program, rule) if shared else program
