"""Polynomials and constants of :mod:`alkahest.backends.nvptx.fastmath`.

Every polynomial minimises the largest error of the *function's* result relative to that result,
over an interval that is wider than the reduced argument's by one part in ten million. The leading
terms of the Taylor series (``x`` of the sine, ``1 - x**2/2`` of the cosine, ``1 + x`` of the
exponential) stay exact and outside.

How they were found: least squares at 160 Chebyshev nodes with 240 bits; then the largest weighted
residual at the nodes made as small as possible by linear programming; then one coefficient
rounded and the remaining ones fitted again, until all are doubles: first the highest powers, to
21 bits where listed under "short", then the others from the lowest power up. A short coefficient
is the immediate operand of an instruction; any other one must be loaded.

====== ============================================ ================= ========= ===== =========
table  approximates                                 in                argument  short error
====== ============================================ ================= ========= ===== =========
SIN    ``(sin(r)/r - 1) / z``                       z = r**2          pi/4      1     3.8e-18
SINE   the same, over a half turn                   z = r**2          1.574     3     3.5e-17
COS    ``(cos(r) - 1) / z``                         z = r**2          pi/4      2     8.8e-20
EXP    ``(exp(r) - 1 - r) / r**2``                  r                 ln(2)/2   3     3.8e-18
EXP2   ``(2**r - 1) / r``                           r                 1/2       3     5.3e-18
LOG    ``(2*atanh(s)/s - 2) / z``                   z = s**2          0.1716    3     1.7e-18
====== ============================================ ================= ========= ===== =========

SINE is fitted to ``sin(r) * (1 - 3.6e-17 * (r/1.574)**12)``, and last bits were chosen among a
million variations: of the double nearest to pi/2 the computed sine is 1, of no other one (all
2*10**8 within 2.2e-8 of it were tried) is it more.

``argument`` bounds ``|r|`` or ``|s|``; ``error`` bounds the relative error of sin(r), cos(r),
exp(r), 2**r and 2*atanh(s) in exact arithmetic (2**-53 is 1.1e-16).
"""

from __future__ import annotations

SIN = (
    -0.1666666666666663,
    0.008333333333321917,
    -0.0001984126982948461,
    2.7557313600751204e-06,
    -2.505074638026357e-08,
    1.5896228777734223e-10,
)

SINE = (
    -0.1666666666666668,
    0.008333333333333947,
    -0.00019841269841339883,
    2.7557319221154016e-06,
    -2.505210721261472e-08,
    1.6058943064223286e-10,
    -7.642948773867175e-13,
    2.72071387229407e-15,
)

COS = (
    -0.5,
    0.041666666666666574,
    -0.0013888888888870772,
    2.48015872879425e-05,
    -2.75573140310631e-07,
    2.087569228592656e-09,
    -1.135853910927409e-11,
)

EXP = (
    0.5000000000000011,
    0.16666666666666455,
    0.04166666666652874,
    0.008333333333479038,
    0.0013888888943737222,
    0.00019841269524195631,
    2.480149311251743e-05,
    2.7557580324355513e-06,
    2.7630221666186117e-07,
    2.4999735614983365e-08,
)

EXP2 = (
    0.6931471805599453,
    0.2402265069591012,
    0.05550410866482123,
    0.00961812910759671,
    0.0013333558146687743,
    0.00015403530455422728,
    1.525273350955531e-05,
    1.321543562879865e-06,
    1.0178200682275929e-07,
    7.073783336863926e-09,
    4.434832501232222e-10,
)

LOG = (
    0.6666666666666746,
    0.3999999999937133,
    0.2857142874678442,
    0.22222198414926533,
    0.18183565139770508,
    0.15314102172851562,
    0.14795398712158203,
)

HALF_PI = (1.5707963267948966, 6.123233995736765e-17, 1.0828566739219139e-32)
"""pi/2 as a sum of doubles; the parts after the first are cut off, so that none is negative."""

PI = tuple(2 * part for part in HALF_PI)

LN2 = (0.6931471805599453, 2.3190468138462996e-17)
"""log(2) as a sum of doubles."""

TWO_OVER_PI = 0.6366197723675814
ONE_OVER_PI = 0.3183098861837907
LOG2_E = 1.4426950408889634


HALF_PI_WORD = 0xC90FDAA22168C234
"""pi/2 times 2**63, cut off."""
