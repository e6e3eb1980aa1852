"""Rational reconstruction in arrays of digits, by Lehmer's form of Euclid's algorithm.

Numbers are arrays of 24-bit digits in 64-bit words, the least significant first. From ``M`` and
``x`` the algorithm makes remainders ``r`` and cofactors ``t`` with ``r = t * x`` modulo ``M``, up to
sign. A fraction ``n/d`` with residue ``x`` and ``n * d`` far below ``M`` appears as ``r/t`` just
before an outstandingly large quotient (M. Monagan, "Maximal quotient rational reconstruction",
ISSAC 2004), and random residues have a quotient as large as :data:`LARGE_QUOTIENT` with
probability of some 2**-20. Quotients below it are found in batches from the leading 62 bits
(D. E. Knuth, "The Art of Computer Programming", volume 2, algorithm 4.5.2L).
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from alkahest.groebner.engine._kernel import inlined

DIGIT_BITS = 24
DIGIT_MASK = (1 << DIGIT_BITS) - 1
LARGE_QUOTIENT = 1 << 30
_COFACTOR_BOUND = 1 << 30


@inlined
def length(digits):
    """Number of digits up to the last that is not zero."""
    n = digits.size
    while n > 0 and digits[n - 1] == 0:
        n -= 1
    return n


@inlined
def bit_length(digits):
    """Number of bits."""
    n = length(digits)
    if n == 0:
        return 0
    bits = DIGIT_BITS * (n - 1)
    top = digits[n - 1]
    while top > 0:
        bits += 1
        top >>= 1
    return bits


@inlined
def _less(a, b):
    for k in range(a.size - 1, -1, -1):
        if a[k] != b[k]:
            return a[k] < b[k]
    return False


@inlined
def _leading(digits, k, top_bits):
    """The 62 bits that begin ``top_bits`` below the top of digit ``k``."""
    shift = 62 - top_bits
    value = digits[k] << shift
    for below in range(1, 4):
        shift -= DIGIT_BITS
        if k >= below:
            if shift >= 0:
                value += digits[k - below] << shift
            elif shift > -DIGIT_BITS:
                value += digits[k - below] >> -shift
    return value


@inlined
def _combine(x, a, y, b, out, n):
    """``out = a * x + b * y``, which is not negative."""
    carry = np.int64(0)
    for k in range(n):
        value = a * x[k] + b * y[k] + carry
        out[k] = value & DIGIT_MASK
        carry = value >> DIGIT_BITS


@inlined
def fraction(modulus, value, work):
    """Find the fraction with residue ``value``.

    Args:
        modulus: digits.
        value: digits, below the modulus; as many.
        work: int64, shape ``(6, digits)``.

    Returns:
        1 or -1, the sign of the numerator, with the numerator in ``work[1]`` and the positive
        denominator in ``work[3]``; 0 when no fraction stands out.
    """
    n = modulus.size
    for k in range(n):
        work[0, k] = modulus[k]
        work[1, k] = value[k]
        work[2, k] = 0
        work[3, k] = 0
    work[3, 0] = 1
    i, j, s, t = 0, 1, 2, 3
    u, v = 4, 5
    sign = 1
    if length(value) == 0:
        return 1
    while True:
        k = length(work[i]) - 1
        if length(work[j]) == 0:
            return 0
        top_bits = 0
        top = work[i, k]
        while top > 0:
            top_bits += 1
            top >>= 1
        a = _leading(work[i], k, top_bits)
        b = _leading(work[j], k, top_bits)
        w, x, y, z = np.int64(1), np.int64(0), np.int64(0), np.int64(1)
        steps = 0
        while b + y > 0 and b + z > 0:
            q = (a + w) // (b + y)
            if q != (a + x) // (b + z) or q >= LARGE_QUOTIENT:
                break
            new_y = w - q * y
            new_z = x - q * z
            if abs(new_y) >= _COFACTOR_BOUND or abs(new_z) >= _COFACTOR_BOUND:
                break
            w, y = y, new_y
            x, z = z, new_z
            a, b = b, a - q * b
            steps += 1
        if steps > 0:
            _combine(work[i], w, work[j], x, work[u], n)
            _combine(work[i], y, work[j], z, work[v], n)
            i, j, u, v = u, v, i, j
            _combine(work[s], abs(w), work[t], abs(x), work[u], n)
            _combine(work[s], abs(y), work[t], abs(z), work[v], n)
            s, t, u, v = u, v, s, t
            if steps & 1:
                sign = -sign
            continue
        q = a // (b + 1)
        if b == 0 or q >= LARGE_QUOTIENT:
            # Digit by digit, because either may lie where the other goes.
            for k in range(n):
                numerator, denominator = work[j, k], work[t, k]
                work[1, k] = numerator
                work[3, k] = denominator
            return sign
        # An estimate from below: the rest of the quotient follows in the next turn.
        q = max(q, np.int64(1))
        _combine(work[i], np.int64(1), work[j], -q, work[u], n)
        _combine(work[s], np.int64(1), work[t], q, work[v], n)
        i, u = u, i
        s, v = v, s
        if _less(work[i], work[j]):
            i, j, s, t = j, i, t, s
            sign = -sign
