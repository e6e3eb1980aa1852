"""C for every primitive operation on real numbers, in double and in single precision.

``{f}`` in a text is the suffix of C's functions of the precision, ``{T}`` its type. Helpers are
functions that C lacks, or whose special values differ; only those that are used are written.
"""

from __future__ import annotations

EXPRESSIONS: dict[str, str] = {
    "add": "{a} + {b}",
    "sub": "{a} - {b}",
    "mul": "{a} * {b}",
    "div": "{a} / {b}",
    "neg": "-{a}",
    "fma": "fma{f}({a}, {b}, {c})",
    "pow": "pow{f}({a}, {b})",
    "lt": "{a} < {b}",
    "le": "{a} <= {b}",
    "gt": "{a} > {b}",
    "ge": "{a} >= {b}",
    "eq": "{a} == {b}",
    "ne": "{a} != {b}",
    "and": "{a} && {b}",
    "or": "{a} || {b}",
    "not": "!{a}",
    "select": "{a} ? {b} : {c}",
    "abs": "fabs{f}({a})",
    "round": "nearbyint{f}({a})",
    "rsqrt": "1 / sqrt{f}({a})",
    "gamma": "tgamma{f}({a})",
    "re": "{a}",
    "im": "0",
    "conjugate": "{a}",
    "arg": "atan2{f}(0, {a})",
    **{
        name: f"{name}{{f}}({{a}})"
        for name in (
            "floor ceil trunc exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan asin acos "
            "atan sinh cosh tanh asinh acosh atanh erf erfc lgamma"
        ).split()
    },
    **{name: f"{name}{{f}}({{a}}, {{b}})" for name in ("hypot", "atan2")},
    **{
        name: f"({{T}})ak_{name}({{a}})"
        for name in ("cbrt", "erfinv", "digamma", "j0", "j1", "y0", "y1")
    },
    **{name: f"ak_{name}({{a}}, {{b}})" for name in ("min", "max", "mod")},
    "sign": "ak_sign({a})",
}
"""Operation -> C expression of its operands, which are variables."""

HELPERS: dict[str, str] = {
    "sign": """\
static inline {T} ak_sign({T} a) {{
    return isnan(a) ? a : ({T})((a > 0) - (a < 0));
}}
""",
    "min": """\
static inline {T} ak_min({T} a, {T} b) {{
    if (isnan(a) || isnan(b)) return a + b;
    if (a == b) return signbit(a) ? a : b;
    return a < b ? a : b;
}}
""",
    "max": """\
static inline {T} ak_max({T} a, {T} b) {{
    if (isnan(a) || isnan(b)) return a + b;
    if (a == b) return signbit(a) ? b : a;
    return a > b ? a : b;
}}
""",
    # A remainder has the sign of the dividend; the floored one has that of the divisor.
    "mod": """\
static inline {T} ak_mod({T} a, {T} b) {{
    {T} r = fmod{f}(a, b);
    if (r == 0) return copysign{f}(r, b);
    return (r < 0) != (b < 0) ? r + b : r;
}}
""",
    # C libraries have errors of several units in the last place here; one step of Newton has not.
    "cbrt": """\
static inline double ak_cbrt(double a) {{
    double t = cbrt(a);
    if (t == 0 || isinf(t) || isnan(t)) return t;
    return t - fma(t * t, t, -a) / (3 * t * t);
}}
""",
    "erfinv": """\
static inline double ak_erfinv(double y) {{
    /* Winitzki's approximation, then corrections of third order. */
    const double pi = 3.14159265358979323846, a = 0.147;
    double size = fabs(y);
    if (!(size < 1)) return size == 1 ? copysign(INFINITY, y) : NAN;
    if (size < 1e-8) return y * (sqrt(pi) / 2);
    double log_ = log((1 - size) * (1 + size)), half = 2 / (pi * a) + log_ / 2;
    double x = sqrt(sqrt(half * half - log_ / a) - half);
    for (int i = 0; i < 3; i++) {{
        double error = size < 0.5 ? erf(x) - size : (1 - size) - erfc(x);
        double newton = error * (sqrt(pi) / 2) * exp(x * x);
        x -= newton / (1 + x * newton);
    }}
    return copysign(x, y);
}}
""",
    "digamma": """\
static inline double ak_digamma(double x) {{
    /* Reflection, recurrence up to 10, asymptotic series. */
    const double pi = 3.14159265358979323846;
    double below = 0;
    if (x == 0) return copysign(INFINITY, -x);
    if (isnan(x) || x == -INFINITY) return NAN;
    if (x < 0.5) {{
        double fraction = x - nearbyint(x);
        if (fraction == 0) return NAN;
        below = pi / tan(pi * fraction);
        x = 1 - x;
    }}
    for (; x < 10; x += 1) below += 1 / x;
    if (x == INFINITY) return x;
    double s = 1 / (x * x);
    double series = s * (1 / 12. - s * (1 / 120. - s * (1 / 252. - s * (1 / 240. - s * (1 / 132.
        - s * (691 / 32760. - s / 12))))));
    return log(x) - 0.5 / x - series - below;
}}
""",
    "j0": "static inline double ak_j0(double a) {{ return j0(a); }}\n",
    "j1": "static inline double ak_j1(double a) {{ return j1(a); }}\n",
    "y0": "static inline double ak_y0(double a) {{ return a < 0 ? NAN : y0(a); }}\n",
    "y1": "static inline double ak_y1(double a) {{ return a < 0 ? NAN : y1(a); }}\n",
}
"""Operation -> the C function that its expression calls."""

_LARGEST_PRODUCT = 4
_EXACT_INTEGERS = 2**53


def power(base: str, exponent: int, suffix: str) -> str:
    """C for an integer power: products up to the fourth, ``pow`` beyond, with exact parity."""
    size = abs(exponent)
    if size <= _LARGEST_PRODUCT:
        if exponent < 0:
            return "1" + f" / {base}" * size
        return " * ".join([base] * size) if size else "1"
    shown = f"{float(exponent)!r}{suffix}" if size < 2**1000 else f"{'-' * (exponent < 0)}INFINITY"
    text = f"pow{suffix}({base}, {shown})"
    rounded_is_even = size > (_EXACT_INTEGERS if not suffix else 2**24)
    if exponent % 2 and rounded_is_even:
        # The nearest floating-point number is even, so pow has lost the sign.
        return f"copysign{suffix}(pow{suffix}(fabs{suffix}({base}), {shown}), {base})"
    return text
