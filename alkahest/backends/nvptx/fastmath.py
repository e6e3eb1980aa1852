"""sin, cos, exp, exp2, log, quotients and roots in double precision, cheaper than the usual ones.

LLVM assembly of internal functions for a kernel's module. Of each function there are, all inlined,
for instance::

    double @ak.sin(double)         right for every argument
    double @ak.sin.near(double)    straight-line code, right where the next one is false
    i1     @ak.sin.is_far(double)  |x| >= 2**31, an infinity or nan

so that a kernel may compute near values throughout, and a point again where any of its arguments is
far (:mod:`alkahest.backends.nvptx.doubts`). ``@ak.sincos`` gives ``{ double, double }``: both of
one argument cost less than one and the other.

Near parts have no branches, no look-ups in tables, and no conversions between integers and doubles.
Their cost is that of their double precision instructions, of which a GPU issues the fewest:

=========== ============ ========= ============================= ===============================
function    instructions bound     largest error seen            near where
=========== ============ ========= ============================= ===============================
sin         15           2.0 ulp   1.95 at 1.5594588703067014    ``|x| < 2**31``
cos         15           2.0 ulp   1.94 at 3.6119967462333588e-09 ``|x| < 2**31``
sincos      20           1.6 ulp   1.50 at 18994.194433556186    ``|x| < 2**31``
exp         15           1.0 ulp   0.89 at -708.7581012475725    ``|x| < 708``, and below -746
exp2        14           1.0 ulp   0.86 at -1022.4262490387733   ``|x| < 1020``, and below -1076
log         19           1.1 ulp   1.01 at 0.7066634317271753    x positive, normal, finite
div          5           0.51 ulp  0.50                          x is +0, or nothing extreme
sqrt         6           0.51 ulp  0.50                          x is +0, or from 2**-969 on
=========== ============ ========= ============================= ===============================

Bounds hold for all arguments (an ulp of a subnormal result is 2**-1074); errors were measured at
10**7 points a function against 64-bit significands. Of 2**25 quotients and as many roots on an H200
every one was the correctly rounded one. Sines and cosines never exceed 1. Signed zeros, subnormal
numbers, infinities and nan are as in C99 Annex F. Nothing depends on whether multiplications and
additions are contracted, nor on approximate reciprocals beyond their first 18 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from alkahest.backends.nvptx import exponentials, quotients, trigonometry
from alkahest.backends.nvptx.mathcode import PAIR, Code, beyond, bits, out_of_line

_ONE, _TWO = "double %x", "double %x, double %y"


@attrs.frozen
class Part:
    """An internal function ``@ak.<name>`` of doubles.

    Attributes:
        name: what follows ``@ak.``.
        result: LLVM's type of what it returns.
        build: writes its body.
        inlined: whether it becomes a part of the kernel, or is called out of line.
        parameters: of the function.
    """

    name: str
    result: str
    build: Callable[[Code], None]
    inlined: bool = True
    parameters: str = _ONE


@attrs.frozen
class Function:
    """A function of this module, ``@ak.<its key in FUNCTIONS>``.

    Attributes:
        result: LLVM's type of the result, ``double`` or ``{ double, double }``.
        parts: what it is composed of, definitions before uses.
        ulp: bound on the error, in units in the last place of the exact result.
        fp64: double precision instructions of the near part.
    """

    result: str
    parts: tuple[Part, ...]
    ulp: float
    fp64: int


@attrs.frozen
class Assembly:
    """Definitions to put into a module.

    Attributes:
        definitions: LLVM assembly.
        declarations: symbol of an intrinsic that they use -> its declaration.
    """

    definitions: str
    declarations: dict[str, str]


def assembly(names: Iterable[str], *, pooled: bool = True) -> Assembly:
    """The definitions of some functions and of what they share.

    Args:
        names: keys of :data:`FUNCTIONS`.
        pooled: keep constants in constant memory, where one instruction fetches one. A literal
            takes two, but no access to memory. Results are the same.
    """
    texts = {
        part.name: _definition(part, pooled)
        for name in sorted(set(names))
        for part in FUNCTIONS[name].parts
    }
    definitions = "\n".join(texts.values())
    used = {symbol: line for symbol, line in _INTRINSICS.items() if f"@{symbol}(" in definitions}
    return Assembly(definitions, used)


def _definition(part: Part, pooled: bool) -> str:
    """The function, with what it needs before it; only inlined ones have their constants pooled."""
    code = Code(pooled=pooled and part.inlined, parameters=part.parameters)
    part.build(code)
    before, loads = list(code.before), []
    if code.pool:
        size, symbol = len(code.pool), f"@ak.{part.name}.pool"
        values = ", ".join(f"double 0x{bits(value):016X}" for value in code.pool)
        # Were it a plain constant, LLVM would put the values back into the instructions.
        before.append(
            f"{symbol} = internal addrspace(4) externally_initialized global"
            f" [{size} x double] [{values}]"
        )
        loads = [
            f"  %pool.{k} = load double, ptr addrspace(4) getelementptr inbounds (double,"
            f" ptr addrspace(4) {symbol}, i64 {k}), align 8, !invariant.load !{{}}"
            for k in range(size)
        ]
    attributes = "alwaysinline" if part.inlined else "noinline cold"
    header = (
        f"define internal {part.result} @ak.{part.name}({part.parameters}) {attributes} nounwind {{"
    )
    return "\n".join([*before, header, "entry:", *loads, *code.lines, "}"])


def _function(
    name: str,
    near: Callable[[Code], None],
    whole: Callable[[Code], None],
    is_far: Callable[[Code], None],
    *,
    ulp: float,
    fp64: int,
) -> Function:
    parts = (
        Part(f"{name}.near", "double", near),
        Part(f"{name}.is_far", "i1", is_far),
        Part(name, "double", whole),
    )
    return Function("double", parts, ulp, fp64)


_TURNS = beyond(2.0**31)
_SINCOS = (
    Part("sincos.near", PAIR, trigonometry.sincos_near),
    Part("sincos.far", PAIR, trigonometry.sincos_far, inlined=False),
)


def _component(name: str, index: int, near: Callable[[Code], None]) -> Function:
    """sin or cos alone; its far arguments go through those of ``sincos``."""
    _, far = _SINCOS
    parts = (
        far,
        Part(f"{name}.near", "double", near),
        Part(f"{name}.is_far", "i1", _TURNS),
        Part(f"{name}.far", "double", trigonometry.component(far.name, index)),
        Part(name, "double", out_of_line(name, "double")),
    )
    return Function("double", parts, ulp=2.0, fp64=15)


def _called(
    name: str,
    near: Callable[[Code], None],
    far: Callable[[Code], None],
    is_far: Callable[[Code], None],
    *,
    fp64: int,
    parameters: str = _ONE,
) -> Function:
    """A function whose far part is an operation of PTX, called out of line."""
    parts = (
        Part(f"{name}.near", "double", near, parameters=parameters),
        Part(f"{name}.far", "double", far, inlined=False, parameters=parameters),
        Part(f"{name}.is_far", "i1", is_far, parameters=parameters),
        Part(name, "double", out_of_line(name, "double"), parameters=parameters),
    )
    return Function("double", parts, ulp=0.51, fp64=fp64)


FUNCTIONS: dict[str, Function] = {
    "sin": _component("sin", 0, trigonometry.sin_near),
    "cos": _component("cos", 1, trigonometry.cos_near),
    "sincos": Function(
        PAIR,
        (
            *_SINCOS,
            Part("sincos.is_far", "i1", _TURNS),
            Part("sincos", PAIR, out_of_line("sincos", PAIR)),
        ),
        ulp=1.6,
        fp64=20,
    ),
    "exp": _function(
        "exp",
        exponentials.exp_near,
        exponentials.exp_whole,
        exponentials.not_moderate(708.0, exponentials.EXP_VANISHES),
        ulp=1.0,
        fp64=15,
    ),
    "exp2": _function(
        "exp2",
        exponentials.exp2_near,
        exponentials.exp2_whole,
        exponentials.not_moderate(1020.0, exponentials.EXP2_VANISHES),
        ulp=1.0,
        fp64=14,
    ),
    "log": _function(
        "log",
        exponentials.log_near,
        exponentials.log_whole,
        exponentials.not_positive_and_normal,
        ulp=1.1,
        fp64=19,
    ),
    "div": _called(
        "div",
        quotients.div_near,
        quotients.div_far,
        quotients.div_is_far,
        fp64=5,
        parameters=_TWO,
    ),
    "sqrt": _called("sqrt", quotients.sqrt_near, quotients.sqrt_far, quotients.sqrt_is_far, fp64=6),
}
"""Name of an operation, or ``sincos``, -> function."""

_INTRINSICS = {
    "llvm.fma.f64": "declare double @llvm.fma.f64(double, double, double)",
    "llvm.copysign.f64": "declare double @llvm.copysign.f64(double, double)",
    "llvm.expect.i1": "declare i1 @llvm.expect.i1(i1, i1)",
    "llvm.fshl.i64": "declare i64 @llvm.fshl.i64(i64, i64, i64)",
    "llvm.abs.i128": "declare i128 @llvm.abs.i128(i128, i1)",
    "llvm.ctlz.i128": "declare i128 @llvm.ctlz.i128(i128, i1)",
    "llvm.nvvm.d2i.hi": "declare i32 @llvm.nvvm.d2i.hi(double)",
    "llvm.nvvm.d2i.lo": "declare i32 @llvm.nvvm.d2i.lo(double)",
    "llvm.nvvm.lohi.i2d": "declare double @llvm.nvvm.lohi.i2d(i32, i32)",
    "llvm.nvvm.fabs.f32": "declare float @llvm.nvvm.fabs.f32(float)",
    "llvm.fabs.f64": "declare double @llvm.fabs.f64(double)",
    "llvm.smin.i32": "declare i32 @llvm.smin.i32(i32, i32)",
    "llvm.fma.f32": "declare float @llvm.fma.f32(float, float, float)",
    "llvm.sqrt.f64": "declare double @llvm.sqrt.f64(double)",
    "llvm.nvvm.rsqrt.approx.ftz.d": "declare double @llvm.nvvm.rsqrt.approx.ftz.d(double)",
    "llvm.nvvm.rcp.approx.ftz.d": "declare double @llvm.nvvm.rcp.approx.ftz.d(double)",
}
