"""Vector code: eight residues side by side, the inner loops of every elimination.

A lane vector is eight unsigned 64-bit words, one cache line. The lanes are eight rows modulo one
prime, or one row modulo eight primes. An accumulator is kept below ``p * p``: a product of two
residues is added and ``p * p`` taken away again where the sum reaches it, so nothing is divided
until an entry is needed (``m * c < p * p`` and ``p < 2**31``, hence no sum exceeds 63 bits).

The loops are written in LLVM IR because loops over eight lanes are otherwise not turned into
vector code. A processor without 512-bit vectors gets the same code in halves or quarters.
Everything takes addresses; the caller keeps the arrays alive and aligned to 64 bytes. What the
lanes compute modulo is described by an array that :func:`moduli` makes, four lines: the primes,
their squares, their inverses as doubles, and room for the multipliers of the row being added.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from alkahest.groebner.engine._kernel import inlined, intrinsic

LANES = 8

_SQUARES, _INVERSES, _MULTIPLIERS = 64, 128, 192
"""Places of the lines of :func:`moduli`, in bytes."""

_I32 = ir.IntType(32)
_I64 = ir.IntType(64)
_F64 = ir.DoubleType()
_V32 = ir.VectorType(_I32, LANES)
_V64 = ir.VectorType(_I64, LANES)
_VF64 = ir.VectorType(_F64, LANES)


def _at(builder, address, kind):
    return builder.inttoptr(address, kind.as_pointer())


def _load(builder, address, kind, align):
    value = builder.load(_at(builder, address, kind))
    value.align = align
    return value


def _line(builder, field, place, kind=_V64):
    return _load(builder, builder.add(field, _I64(place)), kind, 64)


def _splat(builder, value, kind=_V64):
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(_I32, 0))
    zeros = ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), zeros)


def _low_halves(builder, vector):
    """Words known to be below 2**32, so that LLVM multiplies them by one instruction."""
    return builder.and_(vector, ir.Constant(_V64, [0xFFFFFFFF] * LANES))


def _lesser(builder, a, b):
    return builder.select(builder.icmp_unsigned("<", a, b), a, b)


def _add_product(builder, accumulator, product, squares):
    total = builder.add(accumulator, product)
    return _lesser(builder, total, builder.sub(total, squares))


def _scattered(per_lane: bool) -> Any:
    """``accumulator[columns[j]] += multipliers * coefficients[j]`` for ``count`` entries."""

    def build(typingctx, accumulator, columns, coefficients, count, field):
        signature = types.void(*([types.int64] * 5))

        def codegen(context, builder, sig, args):
            accumulator, columns, coefficients, count, field = args
            factors = _low_halves(builder, _line(builder, field, _MULTIPLIERS))
            p2 = _line(builder, field, _SQUARES)
            entries = _at(builder, columns, _I32)
            lines = _at(builder, accumulator, _V64)
            kind = _V32 if per_lane else _I32
            values = _at(builder, coefficients, kind)
            with cgutils.for_range(builder, count) as loop:
                column = builder.load(builder.gep(entries, [loop.index]))
                line = builder.gep(lines, [builder.zext(column, _I64)])
                value = builder.load(builder.gep(values, [loop.index]))
                if per_lane:
                    value.align = 4
                    wide = builder.zext(value, _V64)
                else:
                    wide = _splat(builder, builder.zext(value, _I64))
                old = builder.load(line)
                old.align = 64
                new = _add_product(builder, old, builder.mul(factors, wide), p2)
                store = builder.store(new, line)
                store.align = 64
            return context.get_dummy_value()

        return signature, codegen

    return build


add_scaled_row = intrinsic(_scattered(per_lane=False))
"""Eight rows, one prime: (accumulator, columns, coefficients, count, field)."""

add_scaled_images = intrinsic(_scattered(per_lane=True))
"""One row, eight primes: the same, with eight coefficients per entry."""


@intrinsic
def dot_lines(typingctx, lines, columns, coefficients, count, target, field):
    """``target[0:16] = sum over j of coefficients[j] * lines[columns[j]]``, below p*p.

    ``lines`` holds sixteen 32-bit residues for each column; they stay in registers until the end.
    """
    signature = types.void(*([types.int64] * 6))

    def codegen(context, builder, sig, args):
        lines, columns, coefficients, count, target, field = args
        p2 = _line(builder, field, _SQUARES)
        entries = _at(builder, columns, _I32)
        values = _at(builder, coefficients, _I32)
        halves = _at(builder, lines, _V32)
        sums = [cgutils.alloca_once_value(builder, ir.Constant(_V64, [0] * LANES)) for _ in "ab"]
        with cgutils.for_range(builder, count) as loop:
            column = builder.zext(builder.load(builder.gep(entries, [loop.index])), _I64)
            value = builder.load(builder.gep(values, [loop.index]))
            factors = _splat(builder, builder.zext(value, _I64))
            for half, total in enumerate(sums):
                place = builder.add(builder.shl(column, _I64(1)), _I64(half))
                line = builder.load(builder.gep(halves, [place]))
                line.align = 32
                product = builder.mul(factors, builder.zext(line, _V64))
                old = builder.load(total)
                builder.store(_add_product(builder, old, product, p2), total)
        for half, total in enumerate(sums):
            place = builder.gep(_at(builder, target, _V64), [_I64(half)])
            builder.store(builder.load(total), place).align = 8
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def add_products(typingctx, target, source, count, multiplier):
    """``target[j] += multiplier * source[j]`` for ``8 * count`` words, nothing taken away."""
    signature = types.void(*([types.int64] * 4))

    def codegen(context, builder, sig, args):
        target, source, count, multiplier = args
        factors = _low_halves(builder, _splat(builder, multiplier))
        lines = _at(builder, target, _V64)
        values = _at(builder, source, _V32)
        with cgutils.for_range(builder, count) as loop:
            line = builder.gep(lines, [loop.index])
            value = builder.load(builder.gep(values, [loop.index]))
            value.align = 4
            old = builder.load(line)
            old.align = 8
            product = builder.mul(factors, builder.zext(value, _V64))
            builder.store(builder.add(old, product), line).align = 8
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def add_scaled_dense(typingctx, target, source, count, multiplier, square):
    """``target[j] += multiplier * source[j]`` for ``8 * count`` words and 32-bit entries."""
    signature = types.void(*([types.int64] * 5))

    def codegen(context, builder, sig, args):
        target, source, count, multiplier, square = args
        factors = _low_halves(builder, _splat(builder, multiplier))
        p2 = _splat(builder, square)
        lines = _at(builder, target, _V64)
        values = _at(builder, source, _V32)
        with cgutils.for_range(builder, count) as loop:
            line = builder.gep(lines, [loop.index])
            value = builder.load(builder.gep(values, [loop.index]))
            value.align = 4
            old = builder.load(line)
            old.align = 8
            product = builder.mul(factors, builder.zext(value, _V64))
            store = builder.store(_add_product(builder, old, product, p2), line)
            store.align = 8
        return context.get_dummy_value()

    return signature, codegen


def _reduced(builder, vector, primes, inverses):
    """Residues of words below p*p: the quotient from a double, off by at most one."""
    quotient = builder.fptoui(builder.fmul(builder.uitofp(vector, _VF64), inverses), _V64)
    product = builder.mul(_low_halves(builder, quotient), _low_halves(builder, primes))
    rest = builder.sub(vector, product)
    rest = _lesser(builder, rest, builder.add(rest, primes))
    return _lesser(builder, rest, builder.sub(rest, primes))


def _nonzero(builder, vector):
    """A word with a bit for each of eight words that is not zero."""
    lanes = builder.icmp_unsigned("!=", vector, ir.Constant(_V64, [0] * LANES))
    return builder.zext(builder.bitcast(lanes, ir.IntType(LANES)), _I64)


@intrinsic
def reduce_line(typingctx, line, field):
    """Reduce eight words modulo their primes in place; a bit for each residue that is not zero."""
    signature = types.int64(types.int64, types.int64)

    def codegen(context, builder, sig, args):
        line, field = args
        words = _load(builder, line, _V64, 64)
        found = cgutils.alloca_once_value(builder, _I64(0))
        # Most lines of sparse matrices hold zeros, which are recognised faster than reduced.
        with builder.if_then(builder.icmp_unsigned("!=", _nonzero(builder, words), _I64(0))):
            inverses = _line(builder, field, _INVERSES, _VF64)
            rest = _reduced(builder, words, _line(builder, field, 0), inverses)
            builder.store(rest, _at(builder, line, _V64)).align = 64
            builder.store(_nonzero(builder, rest), found)
        return builder.load(found)

    return signature, codegen


@intrinsic
def cancel_line(typingctx, line, field):
    """Let the multipliers be the primes less the residues of a line, which cancels it."""
    signature = types.void(types.int64, types.int64)

    def codegen(context, builder, sig, args):
        line, field = args
        rest = builder.sub(_line(builder, field, 0), _load(builder, line, _V64, 64))
        target = builder.add(field, _I64(_MULTIPLIERS))
        builder.store(rest, _at(builder, target, _V64)).align = 64
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def store_scaled_line(typingctx, line, target, field):
    """``target[0:8] = line * multipliers`` as 32-bit residues; the line holds residues."""
    signature = types.void(*([types.int64] * 3))

    def codegen(context, builder, sig, args):
        line, target, field = args
        words = _low_halves(builder, _load(builder, line, _V64, 64))
        factors = _low_halves(builder, _line(builder, field, _MULTIPLIERS))
        rest = _reduced(
            builder,
            builder.mul(words, factors),
            _line(builder, field, 0),
            _line(builder, field, _INVERSES, _VF64),
        )
        builder.store(builder.trunc(rest, _V32), _at(builder, target, _V32)).align = 4
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def first_divisor(typingctx, leads, stride, blocks, monomial, guard, words):
    """Index of the first of ``8 * blocks`` packed monomials that divides ``monomial``, or -1.

    ``leads`` holds the first words of all, then after ``stride`` words the second, and so on.
    """
    signature = types.int64(*([types.int64] * 6))

    def codegen(context, builder, sig, args):
        leads, stride, blocks, monomial, guard, words = args
        table, given = _at(builder, leads, _I64), _at(builder, monomial, _I64)
        tops = _at(builder, guard, _I64)
        found = cgutils.alloca_once_value(builder, _I64(-1))
        lost = cgutils.alloca_once(builder, _V64)

        def add_lost(start, index):
            top = builder.load(builder.gep(tops, [index]))
            word = builder.or_(builder.load(builder.gep(given, [index])), top)
            place = builder.add(builder.mul(index, stride), start)
            line = builder.gep(table, [place])
            lead = _load(builder, builder.ptrtoint(line, _I64), _V64, 8)
            rest = builder.sub(_splat(builder, word), lead)
            return builder.and_(builder.not_(rest), _splat(builder, top))

        with cgutils.for_range(builder, blocks) as loop:
            start = builder.mul(loop.index, _I64(LANES))
            builder.store(add_lost(start, _I64(0)), lost)
            with cgutils.for_range_slice(builder, _I64(1), words, _I64(1)) as (index, _):
                builder.store(builder.or_(builder.load(lost), add_lost(start, index)), lost)
            divides = builder.icmp_unsigned("==", builder.load(lost), ir.Constant(_V64, [0] * 8))
            bits = builder.zext(builder.bitcast(divides, ir.IntType(LANES)), _I64)
            with builder.if_then(builder.icmp_unsigned("!=", bits, _I64(0))):
                first = builder.cttz(bits, ir.Constant(ir.IntType(1), 1))
                builder.store(builder.add(start, first), found)
                loop.do_break()
        return builder.load(found)

    return signature, codegen


def aligned(count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Zeroed uint64 array of ``count`` words that begins on a cache line."""
    raw = np.zeros(count + LANES, dtype=np.uint64)
    start = (-raw.__array_interface__["data"][0] // 8) % LANES
    return raw[start : start + count]


def moduli(primes: Sequence[int]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """What the lanes need of their primes, shape ``(4, 8)``: see above."""
    field = aligned(4 * LANES).reshape(4, LANES)
    field[:3] = _constants(tuple(primes))
    return field


@functools.lru_cache(maxsize=64)
def _constants(primes: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    values = np.array(primes, np.uint64)
    return np.stack([values, values * values, (1.0 / values).view(np.uint64)])


GOLDEN = 0x9E3779B97F4A7C15
"""From one state of the generator splitmix64 to the next."""


@inlined
def scrambled(state):
    """The random word that belongs to a state of splitmix64."""
    z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined
def power(base, exponent, prime):
    """``base ** exponent`` modulo ``prime``."""
    result = np.uint64(1)
    base = np.uint64(base) % np.uint64(prime)
    while exponent > 0:
        if exponent & 1:
            result = result * base % np.uint64(prime)
        base = base * base % np.uint64(prime)
        exponent >>= 1
    return result


@inlined
def inverse(value, prime):
    """Inverse of a non-zero residue (Fermat)."""
    return power(value, np.int64(prime) - 2, prime)
