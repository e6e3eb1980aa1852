"""The table of primitive operations: one row each, and nothing about any backend.

Expressions use the rows as function heads, programs as instructions, derivatives as rules, tests
as the list of what must work. A backend says for each row how it lowers it or why it refuses.
"""

from __future__ import annotations

from enum import Enum

import attrs


class Kind(Enum):
    """What a value of a program is. ``real`` and ``complex`` are of the program's precision."""

    REAL = "real"
    COMPLEX = "complex"
    BOOL = "bool"

    __hash__ = object.__hash__  # Enum's own is a Python call, and programs hash kinds a lot


class Signature(Enum):
    """Which kinds an operation takes and gives."""

    NUMERIC = "numeric"  # all real -> real, all complex -> complex
    REAL = "real"  # all real -> real
    ORDER = "order"  # real, real -> bool
    EQUALITY = "equality"  # two of one numeric kind -> bool
    LOGIC = "logic"  # bools -> bool
    SELECT = "select"  # bool, then two of one numeric kind -> that kind
    PART = "part"  # real or complex -> real
    BUILD = "build"  # real, real -> complex


class Exactness(Enum):
    """How close a float64 result must be to the exact value of its (float64) operands.

    Backends with accuracy modes keep ``ROUNDED`` in the strict one, and state what others keep.
    """

    EXACT = "exact"  # no rounding at all
    ROUNDED = "rounded"  # the correctly rounded value
    ULP = "ulp"  # within `ulp` units in the last place
    SPECIAL = "special"  # within `ulp` units of max(|value|, 1 or the function's local scale)


@attrs.frozen
class Op:
    """One primitive operation.

    Attributes:
        name: key of :data:`OPS`, function name in expressions and in the parser.
        arity: number of operands.
        signature: kinds of operands and result.
        meaning: definition, with the convention where conventions differ.
        derivative: one rule per operand in the expression language over ``a, b, c`` (the
            operands), or None where the derivative is not an expression of this table.
        exactness: class of the result's accuracy on every backend.
        ulp: bound that goes with ``ULP`` and ``SPECIAL``, float64, the loosest of our backends.
        has_parameter: whether an instruction carries an exact integer besides its operands.
    """

    name: str
    arity: int
    signature: Signature
    meaning: str
    derivative: tuple[str, ...] | None = None
    exactness: Exactness = Exactness.ULP
    ulp: float = 0.0
    has_parameter: bool = False


_N, _R = Signature.NUMERIC, Signature.REAL
_EXACT, _ROUNDED, _SPECIAL = Exactness.EXACT, Exactness.ROUNDED, Exactness.SPECIAL
_ZERO = ("0",)

_ROWS = (
    # Arithmetic
    Op("add", 2, _N, "a + b", ("1", "1"), _ROUNDED),
    Op("sub", 2, _N, "a - b", ("1", "-1"), _ROUNDED),
    Op("mul", 2, _N, "a * b", ("b", "a"), _ROUNDED),
    Op("div", 2, _N, "a / b, IEEE: x/0 is an infinity or nan", ("1/b", "-a/b**2"), _ROUNDED),
    Op("neg", 1, _N, "-a, sign bit flipped", ("-1",), _EXACT),
    Op("fma", 3, _R, "a*b + c with one rounding", ("b", "a", "1"), _ROUNDED),
    Op(
        "powi",
        1,
        _N,
        "a to an exact integer power n; nan**0 is 1, the parity of n is exact for any n",
        None,  # the derivative of a power is written in terms of powers, see expr.derivatives
        ulp=4,
        has_parameter=True,
    ),
    Op("pow", 2, _N, "a**b, IEEE 754 pow; a negative base to a fraction is nan", None, ulp=4),
    # Comparisons and selection
    Op("lt", 2, Signature.ORDER, "a < b", None, _EXACT),
    Op("le", 2, Signature.ORDER, "a <= b", None, _EXACT),
    Op("gt", 2, Signature.ORDER, "a > b", None, _EXACT),
    Op("ge", 2, Signature.ORDER, "a >= b", None, _EXACT),
    Op("eq", 2, Signature.EQUALITY, "a == b, false for nan", None, _EXACT),
    Op("ne", 2, Signature.EQUALITY, "a != b, true for nan", None, _EXACT),
    Op("and", 2, Signature.LOGIC, "both hold", None, _EXACT),
    Op("or", 2, Signature.LOGIC, "at least one holds", None, _EXACT),
    Op("not", 1, Signature.LOGIC, "does not hold", None, _EXACT),
    Op(
        "select",
        3,
        Signature.SELECT,
        "b where a holds, else c; the other has no effect",
        None,
        _EXACT,
    ),
    # Rounding, signs, extremes
    Op("abs", 1, Signature.PART, "|a|; clears the sign bit", ("sign(a)",), _EXACT),
    Op("sign", 1, _R, "-1, +0 or 1; nan stays nan", _ZERO, _EXACT),
    Op(
        "min",
        2,
        _R,
        "IEEE 754-2019 minimum: nan propagates, -0 is below +0",
        ("Piecewise((1, a <= b), (0, True))", "Piecewise((0, a <= b), (1, True))"),
        _EXACT,
    ),
    Op(
        "max",
        2,
        _R,
        "IEEE 754-2019 maximum: nan propagates, -0 is below +0",
        ("Piecewise((1, a >= b), (0, True))", "Piecewise((0, a >= b), (1, True))"),
        _EXACT,
    ),
    Op("floor", 1, _R, "largest integer not above a", _ZERO, _EXACT),
    Op("ceil", 1, _R, "smallest integer not below a", _ZERO, _EXACT),
    Op("round", 1, _R, "nearest integer, ties to even", _ZERO, _EXACT),
    Op("trunc", 1, _R, "a without its fraction", _ZERO, _EXACT),
    Op(
        "mod",
        2,
        _R,
        "a - b*floor(a/b): the sign of b, as in Python; nan for b = 0 or infinite a",
        ("1", "-floor(a/b)"),
        ulp=1,
    ),
    # Exponentials, logarithms, roots
    Op("exp", 1, _N, "e**a", ("exp(a)",), ulp=2),
    Op("exp2", 1, _R, "2**a", ("exp2(a)*log(2)",), ulp=2),
    Op("expm1", 1, _R, "e**a - 1 without cancellation", ("exp(a)",), ulp=2),
    Op("log", 1, _N, "natural logarithm", ("1/a",), ulp=2),
    Op("log2", 1, _R, "logarithm to base 2", ("1/(a*log(2))",), ulp=2),
    Op("log10", 1, _R, "logarithm to base 10", ("1/(a*log(10))",), ulp=2),
    Op("log1p", 1, _R, "log(1 + a) without cancellation", ("1/(1 + a)",), ulp=2),
    Op("sqrt", 1, _N, "square root; sqrt(-0.0) is -0.0", ("1/(2*sqrt(a))",), _ROUNDED),
    Op("rsqrt", 1, _R, "1/sqrt(a)", ("-rsqrt(a)/(2*a)",), ulp=2),
    Op("cbrt", 1, _R, "real cube root, odd", ("1/(3*cbrt(a)**2)",), ulp=2),
    Op(
        "hypot",
        2,
        _R,
        "sqrt(a**2 + b**2) without overflow",
        ("a/hypot(a, b)", "b/hypot(a, b)"),
        ulp=3,
    ),
    # Trigonometric and hyperbolic
    Op("sin", 1, _N, "sine, arguments reduced exactly", ("cos(a)",), ulp=3),
    Op("cos", 1, _N, "cosine, arguments reduced exactly", ("-sin(a)",), ulp=3),
    Op("tan", 1, _N, "tangent, arguments reduced exactly", ("1 + tan(a)**2",), ulp=2),
    Op("asin", 1, _N, "arc sine", ("1/sqrt(1 - a**2)",), ulp=3),
    Op("acos", 1, _N, "arc cosine", ("-1/sqrt(1 - a**2)",), ulp=3),
    Op("atan", 1, _N, "arc tangent", ("1/(1 + a**2)",), ulp=3),
    Op(
        "atan2",
        2,
        _R,
        "angle of the point (b, a), C99 Annex F",
        ("b/(a**2 + b**2)", "-a/(a**2 + b**2)"),
        ulp=3,
    ),
    Op("sinh", 1, _N, "hyperbolic sine", ("cosh(a)",), ulp=3),
    Op("cosh", 1, _N, "hyperbolic cosine", ("sinh(a)",), ulp=3),
    Op("tanh", 1, _N, "hyperbolic tangent", ("1 - tanh(a)**2",), ulp=3),
    Op("asinh", 1, _N, "inverse hyperbolic sine", ("1/sqrt(1 + a**2)",), ulp=4),
    Op("acosh", 1, _N, "inverse hyperbolic cosine", ("1/(sqrt(a - 1)*sqrt(a + 1))",), ulp=4),
    Op("atanh", 1, _N, "inverse hyperbolic tangent", ("1/(1 - a**2)",), ulp=4),
    # Special functions
    Op("erf", 1, _R, "error function", ("2*exp(-a**2)/sqrt(pi)",), ulp=4),
    Op("erfc", 1, _R, "1 - erf(a) without cancellation", ("-2*exp(-a**2)/sqrt(pi)",), ulp=8),
    Op("erfinv", 1, _R, "inverse of erf", ("sqrt(pi)*exp(erfinv(a)**2)/2",), ulp=8),
    Op(
        "gamma",
        1,
        _R,
        "Euler's gamma function; poles are nan, gamma(+-0) is +-inf",
        ("gamma(a)*digamma(a)",),
        ulp=16,
    ),
    Op("lgamma", 1, _R, "log|gamma(a)|", ("digamma(a)",), _SPECIAL, 16),
    Op("digamma", 1, _R, "derivative of lgamma", None, _SPECIAL, 16),
    Op("j0", 1, _R, "Bessel function of the first kind, order 0", ("-j1(a)",), _SPECIAL, 8),
    Op(
        "j1",
        1,
        _R,
        "Bessel function of the first kind, order 1",
        ("Piecewise((1/2, Eq(a, 0)), (j0(a) - j1(a)/a, True))",),
        _SPECIAL,
        8,
    ),
    Op(
        "y0",
        1,
        _R,
        "Bessel function of the second kind, order 0; nan below 0",
        ("-y1(a)",),
        _SPECIAL,
        8,
    ),
    Op(
        "y1",
        1,
        _R,
        "Bessel function of the second kind, order 1; nan below 0",
        ("y0(a) - y1(a)/a",),
        _SPECIAL,
        8,
    ),
    # Complex numbers
    Op("complex", 2, Signature.BUILD, "a + i b", None, _EXACT),
    Op("re", 1, Signature.PART, "real part", None, _EXACT),
    Op("im", 1, Signature.PART, "imaginary part", None, _EXACT),
    Op("conjugate", 1, _N, "a with the sign of its imaginary part flipped", None, _EXACT),
    Op("arg", 1, Signature.PART, "angle in (-pi, pi], atan2(im, re)", None, ulp=3),
)

OPS: dict[str, Op] = {op.name: op for op in _ROWS}
"""Every primitive operation by name, in the order of the documentation."""

DTYPES = ("float64", "float32", "complex128", "complex64")
"""The dtypes that a program can have."""


_RESULT_KINDS: dict[tuple[str, tuple[Kind, ...]], Kind | None] = {}


def result_kind(op: Op, kinds: tuple[Kind, ...]) -> Kind | None:
    """Kind of ``op`` applied to operands of ``kinds``, or None where it has no meaning."""
    key = (op.name, kinds)
    if key not in _RESULT_KINDS:
        _RESULT_KINDS[key] = _result_kind(op, kinds)
    return _RESULT_KINDS[key]


def _result_kind(op: Op, kinds: tuple[Kind, ...]) -> Kind | None:
    numeric = (Kind.REAL, Kind.COMPLEX)
    if len(kinds) != op.arity:
        return None
    match op.signature:
        case Signature.NUMERIC if kinds[0] in numeric and len(set(kinds)) == 1:
            return kinds[0]
        case Signature.REAL if set(kinds) == {Kind.REAL}:
            return Kind.REAL
        case Signature.ORDER if set(kinds) == {Kind.REAL}:
            return Kind.BOOL
        case Signature.EQUALITY if kinds[0] in numeric and len(set(kinds)) == 1:
            return Kind.BOOL
        case Signature.LOGIC if set(kinds) == {Kind.BOOL}:
            return Kind.BOOL
        case Signature.SELECT if kinds[0] is Kind.BOOL and kinds[1] is kinds[2]:
            return kinds[1] if kinds[1] in numeric else None
        case Signature.PART if kinds[0] in numeric:
            return Kind.REAL
        case Signature.BUILD if set(kinds) == {Kind.REAL}:
            return Kind.COMPLEX
    return None
