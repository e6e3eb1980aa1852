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
from alkahest.program.builder import Builder, Value
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
    factors: tuple[tuple[Value, int], ...]

    def over(self, base: Value, power: int) -> Term:
        """The term divided by ``base**power``, which divides it."""
        left = ((b, p - power if b == base else p) for b, p in self.factors)
        return Term(self.coefficient, tuple((b, p) for b, p in left if p))


Rule = Callable[[int, Instruction, list[Value], Builder], Value | None]


def _rewritten(program: Program, rule: Rule) -> Program:
    """Copy ``program``; ``rule`` gives a value of the new program in place of its own, or None."""
    builder = Builder(program.dtype, program.inputs)
    values = [builder.input(position) for position in range(len(program.inputs))]
    values += map(builder.constant, program.constants)
    for number, instruction in enumerate(program.code, program.first_instruction):
        value = rule(number, instruction, values, builder)
        if value is None:
            op, args, parameter = instruction
            value = builder.apply(op, *[values[a] for a in args], parameter=parameter)
        values.append(value)
    return builder.finish(tuple(values[o] for o in program.outputs))


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
        self, number: int, instruction: Instruction, values: list[Value], builder: Builder
    ) -> Value | None:
        if instruction.op not in ("add", "sub") or number in self._parts:
            return None
        terms = [self._term(sign, leaf, values) for sign, leaf in self._leaves(number)]
        collected = _collected(terms)
        if len(collected) == len(terms) and _best_base(terms) is None:
            return None
        return _nested(collected, builder, 0)

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

    def _term(self, sign: float, leaf: int, values: list[Value]) -> Term:
        coefficient = sign
        powers: Counter[Value] = Counter()
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
        return Term(coefficient, tuple(sorted(powers.items(), key=_written_order)))

    def _constant(self, value: int) -> float | None:
        k = value - len(self._program.inputs)
        if not 0 <= k < len(self._program.constants):
            return None
        constant = self._program.constants[k]
        return constant if type(constant) is float else None


def _written_order(factor: tuple[Value, int]) -> tuple[int, int, int]:
    """Constants, then inputs, then computed values, each in the order in which they arose."""
    (origin, number, _), power = factor
    return ("constant", "input", "code").index(origin), number, power


def _collected(terms: Sequence[Term]) -> list[Term]:
    """Like terms made one, except those that cancel: infinities in them would not."""
    found: dict[tuple[tuple[Value, int], ...], float] = {}
    collected: list[Term] = []
    for term in terms:
        total = found.get(term.factors, 0.0) + term.coefficient
        if total:
            found[term.factors] = total
        else:
            collected.append(term)
    return [*(Term(c, factors) for factors, c in found.items()), *collected]


def _best_base(terms: Sequence[Term]) -> Value | None:
    """The value that divides most terms, at least two; the earliest one breaks ties."""
    counts = Counter(base for term in terms for base, _ in term.factors)
    if not counts:
        return None
    base, count = min(counts.items(), key=lambda item: (-item[1], _written_order(item)))
    return base if count > 1 else None


def _nested(terms: Sequence[Term], builder: Builder, depth: int) -> Value:
    """``base**m * (quotients) + rest``, the quotients and the rest in the same way."""
    base = _best_base(terms) if depth < DEEPEST else None
    if base is None:
        return _plain_sum(terms, builder)
    divisible = [t for t in terms if any(b == base for b, _ in t.factors)]
    rest = [t for t in terms if not any(b == base for b, _ in t.factors)]
    power = min(p for t in divisible for b, p in t.factors if b == base)
    inner = _nested([t.over(base, power) for t in divisible], builder, depth + 1)
    product = builder.apply("mul", inner, _power(base, power, builder))
    if not rest:
        return product
    if len(rest) == 1 and rest[0].coefficient < 0:
        return builder.apply("sub", product, _product(rest[0], builder, negated=True))
    return builder.apply("add", product, _nested(rest, builder, depth + 1))


def _plain_sum(terms: Sequence[Term], builder: Builder) -> Value:
    first, *others = sorted(terms, key=lambda t: t.coefficient < 0)  # a positive one first
    total = _product(first, builder)
    for term in others:
        negative = term.coefficient < 0
        op = "sub" if negative else "add"
        total = builder.apply(op, total, _product(term, builder, negated=negative))
    return total


def _product(term: Term, builder: Builder, negated: bool = False) -> Value:
    coefficient = -term.coefficient if negated else term.coefficient
    factors = [_power(base, power, builder) for base, power in term.factors]
    if not factors:
        return builder.constant(coefficient)
    if abs(coefficient) != 1:
        factors.insert(0, builder.constant(coefficient))
    total = factors[0]
    for factor in factors[1:]:
        total = builder.apply("mul", total, factor)
    return builder.apply("neg", total) if coefficient == -1 else total


def _power(base: Value, power: int, builder: Builder) -> Value:
    return base if power == 1 else builder.apply("powi", base, parameter=power)


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
        number: int, instruction: Instruction, values: list[Value], builder: Builder
    ) -> Value | None:
        op, args, _ = instruction
        if op != "div" or args[1] not in shared or program.kinds[number] is not Kind.REAL:
            return None
        reciprocal = builder.apply("div", builder.constant(1.0), values[args[1]])
        if values[args[0]] == builder.constant(1.0):
            return reciprocal
        return builder.apply("mul", values[args[0]], reciprocal)

    return _rewritten(program, rule) if shared else program
