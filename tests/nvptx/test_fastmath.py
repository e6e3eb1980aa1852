"""The functions of fastmath, compiled for this machine: values, special cases, what they cost."""

from __future__ import annotations

import ctypes
import importlib.util
import math
import os
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

from alkahest.backends.nvptx import coefficients, targets
from alkahest.backends.nvptx.fastmath import FUNCTIONS, assembly
from alkahest.backends.nvptx.nvvm import HOST
from alkahest.program.far_angles import TWO_OVER_PI_WORDS
from alkahest.testing.special import CASES, Case, same

OPS = ("sin", "cos", "exp", "exp2", "log", "sqrt")
EXACT: dict[str, Callable[[Any], Any]] = {
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "exp": mpmath.exp,
    "exp2": lambda x: mpmath.power(2, x),
    "log": mpmath.log,
    "sqrt": mpmath.sqrt,
}

# A loop over one function of the module; %v becomes a double, or a flag for is_far.
_LOOP = """
define void @run.{name}(ptr %in, ptr %out, i64 %n) {{
entry:
  br label %body
body:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %from = getelementptr double, ptr %in, i64 %i
  %x = load double, ptr %from
  {call}
  %to = getelementptr double, ptr %out, i64 %i
  store double %v, ptr %to
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %body, label %exit
exit:
  ret void
}}
"""


class HostFunctions:
    """Every function and predicate of the module, compiled for this machine."""

    def __init__(self, pooled: bool = True, edit: Callable[[str], str] = str) -> None:
        code = assembly(FUNCTIONS, pooled=pooled)
        calls = {op: f"%v = call double @ak.{op}(double %x)" for op in OPS}
        for op in OPS:
            calls[f"{op}.is_far"] = (
                f"%far = call i1 @ak.{op}.is_far(double %x)\n  %v = uitofp i1 %far to double"
            )
        for k, part in enumerate(("sin", "cos")):
            calls[f"sincos.{part}"] = (
                "%both = call { double, double } @ak.sincos(double %x)\n"
                f"  %v = extractvalue {{ double, double }} %both, {k}"
            )
        loops = [_LOOP.format(name=name, call=call) for name, call in calls.items()]
        declarations = [
            line
            for symbol, line in code.declarations.items()
            if not symbol.startswith("llvm.nvvm") and f"@{symbol}(" not in HOST
        ]
        text = "\n".join([*declarations, code.definitions, *loops])
        self._engine = _compiled(edit(text.replace("@llvm.nvvm.", "@nvvm.") + HOST))

    def __call__(self, name: str, xs: Iterable[float]) -> np.ndarray[Any, np.dtype[np.float64]]:
        points = np.fromiter(xs, np.float64)
        values = np.empty_like(points)
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)
        run = prototype(self._engine.get_function_address(f"run.{name}"))
        run(points.ctypes.data, values.ctypes.data, points.size)
        return values


def _compiled(text: str) -> Any:
    binding = targets.llvm()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        jit=True,
    )
    ref = binding.parse_assembly(text, context=binding.create_context())
    ref.triple, ref.data_layout = machine.triple, str(machine.target_data)
    ref.verify()
    passes = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(1))
    passes.getModulePassManager().run(ref, passes)
    engine = binding.create_mcjit_compiler(ref, machine)
    engine.finalize_object()
    return engine


@pytest.fixture(scope="module")
def host() -> HostFunctions:
    return HostFunctions()


def _ulps(got: float, want: Any) -> float:
    """Distance in units in the last place of the exact value."""
    if not want:
        return math.inf if got else 0.0
    _, exponent = mpmath.frexp(want)
    return float(abs(mpmath.mpf(got) - want) / mpmath.ldexp(1, max(exponent - 53, -1074)))


def _worst(host: HostFunctions, op: str, xs: list[float]) -> tuple[float, float]:
    """Largest error at some points, and where."""
    with mpmath.workprec(1300 if max(map(abs, xs)) > 2.0**60 else 200):
        errors = [_ulps(v, EXACT[op](mpmath.mpf(x))) for v, x in zip(host(op, xs), xs, strict=True)]
    return max(zip(errors, xs, strict=True))


def _points(op: str, seed: int, count: int) -> list[float]:
    """Points of every kind that matters to one function, ``count`` of each."""
    rng = random.Random(seed)

    def scaled(low: int, high: int) -> list[float]:
        return [math.ldexp(rng.uniform(1, 2), rng.randrange(low, high)) for _ in range(count)]

    def uniform(low: float, high: float) -> list[float]:
        return [rng.uniform(low, high) for _ in range(count)]

    if op in ("sin", "cos"):
        near_zeros = [rng.randrange(1 << 30) * (math.pi / 2) for _ in range(count)]
        steps = [x * rng.choice((0.125, 0.25, 0.5)) for x in uniform(1, 1.01)]
        return uniform(-7, 7) + uniform(-1e5, 1e5) + scaled(-1074, 31) + near_zeros + steps
    if op == "sqrt":
        return scaled(-1074, 1024) + uniform(0.25, 4)
    if op == "log":
        near_one = [1 + math.ldexp(rng.uniform(-1, 1), -rng.randrange(1, 53)) for _ in range(count)]
        return scaled(-1074, 1024) + uniform(0.5, 2) + near_one + uniform(0.70, 0.712)
    per_octave = 1.0 if op == "exp2" else math.log(2)
    halves = [(rng.randrange(-1000, 1000) + 0.5) * per_octave for _ in range(count)]
    whole = uniform(-1075 * per_octave, 1024 * per_octave)
    tiny = [x * rng.choice((-1, 1)) for x in scaled(-1074, 0)]
    return whole + uniform(-1, 1) + halves + tiny + uniform(-1075 * per_octave, -1020 * per_octave)


# Where ten million points had their largest errors.
WORST: dict[str, list[float]] = {
    "sin": [1.5594588703067014, 4.7056786644548811, 929673869.19726527, 6.062626498767383e211],
    "cos": [3.6119967462333588e-09, 3.1167860949155797, -84433.440010284292],
    "exp": [-708.7581012475725, 0.35989186564641606, 41.950952390881525],
    "exp2": [-1022.4262490387733, -0.4842802815719345, -463.4849134980682],
    "log": [0.7066634317271753, 1.2818376121591488, 0.6244164225221392],
    "sqrt": [2.0, 2.0**-1074],
}


@pytest.mark.parametrize("op", OPS)
def test_errors_stay_below_the_stated_bound(host: HostFunctions, op: str) -> None:
    error, where = _worst(host, op, [*_points(op, seed=1, count=400), *WORST[op]])
    assert 0.49 < error <= FUNCTIONS[op].ulp, where


@pytest.mark.parametrize("op", ["sin", "cos"])
def test_huge_arguments_are_reduced_exactly(host: HostFunctions, op: str) -> None:
    rng = random.Random(2)
    xs = [math.ldexp(rng.uniform(-2, 2), rng.randrange(31, 1023)) for _ in range(300)]
    error, where = _worst(host, op, [*xs, 1e22, 2.0**31, -(2.0**31), 1.7976931348623157e308])
    assert error <= FUNCTIONS[op].ulp, where


def _nearest_to_quarter_turns(exponent: int) -> float:
    """The double from ``2**exponent`` to its double that is (almost) nearest to a multiple of pi/2.

    ``m * 2**(exponent - 52)`` is near a multiple where m is a denominator of a convergent of
    ``2**(exponent - 52) / (pi/2)``, or a combination of two.
    """
    with mpmath.workprec(1300):
        ratio = mpmath.ldexp(2 / mpmath.pi, exponent - 52)
        rest, denominators = ratio, [1, 0]
        while denominators[-1] < 2**53:
            whole = int(mpmath.floor(rest))
            denominators.append(whole * denominators[-1] + denominators[-2])
            rest = 1 / (rest - whole)
        last, before = denominators[-2], denominators[-3]
        small = last * -(-(2**52) // last)
        found = {small, *(j * last + s * before for j in range(1, 9) for s in (-1, 0, 1))}
        inside = [m for m in found if 2**52 <= m < 2**53]
        best = min(inside, key=lambda m: abs(m * ratio - mpmath.nint(m * ratio)))
    return math.ldexp(best, exponent - 52)


def test_the_known_worst_case_of_reduction_is_found() -> None:
    assert _nearest_to_quarter_turns(849) == 6381956970095103 * 2.0**797
    assert _nearest_to_quarter_turns(5) == 6411027962775774 * 2.0**-47


@pytest.mark.parametrize("op", ["sin", "cos"])
def test_arguments_nearest_to_multiples_of_a_quarter_turn_keep_all_digits(
    host: HostFunctions, op: str
) -> None:
    exponents = [*range(31), *range(31, 1024, 61), 849]
    xs = [x for e in exponents for x in (_nearest_to_quarter_turns(e),) for x in (x, -x)]
    with mpmath.workprec(1300):
        assert min(abs(mpmath.sin(x) * mpmath.cos(x)) for x in map(mpmath.mpf, xs)) < 2.0**-59
    error, where = _worst(host, op, xs)
    assert error <= FUNCTIONS[op].ulp, where


@pytest.mark.parametrize("case", [c for c in CASES if c.op in OPS], ids=str)
def test_special_values_are_those_of_every_backend(host: HostFunctions, case: Case) -> None:
    (got,) = host(case.op, case.operands).tolist()
    assert same(got, case.value), got


_INF, _NAN, _LEAST = math.inf, math.nan, 5e-324
SPECIAL: dict[str, list[tuple[float, float]]] = {
    "sin": [(0.0, 0.0), (-_INF, _NAN), (_NAN, _NAN), (_LEAST, _LEAST), (-_LEAST, -_LEAST)],
    "cos": [(-0.0, 1.0), (_INF, _NAN), (_NAN, _NAN), (_LEAST, 1.0), (0.0, 1.0)],
    "exp": [
        (-0.0, 1.0),
        (_INF, _INF),
        (709.782712893384, 1.7976931348622732e308),
        (709.782712893385, _INF),
        (-745.1, _LEAST),
        (-745.2, 0.0),
        (-1e308, 0.0),
        (1e308, _INF),
        (-_LEAST, 1.0),
    ],
    "exp2": [
        (-0.0, 1.0),
        (1023.0, 2.0**1023),
        (-1022.0, 2.0**-1022),
        (-1075.5, 0.0),
        (_INF, _INF),
        (-_INF, 0.0),
        (-1e300, 0.0),
        (1e300, _INF),
        (_NAN, _NAN),
    ],
    "log": [
        (_NAN, _NAN),
        (-_INF, _NAN),
        (-_LEAST, _NAN),
        (_LEAST, -744.4400719213812),
        (1.7976931348623157e308, 709.782712893384),
        (2.2250738585072014e-308, -708.3964185322641),
    ],
    "sqrt": [(0.0, 0.0), (-0.0, -0.0), (_INF, _INF), (-1.0, _NAN), (-_INF, _NAN), (_NAN, _NAN)],
}


@pytest.mark.parametrize("op", OPS)
def test_zeros_subnormals_infinities_and_nan_are_kept(host: HostFunctions, op: str) -> None:
    xs, wanted = zip(*SPECIAL[op], strict=True)
    got = host(op, xs).tolist()
    assert all(map(same, got, wanted)), dict(zip(xs, got, strict=True))


def test_sines_and_cosines_never_exceed_one(host: HostFunctions) -> None:
    peaks = np.arange(20000) * (math.pi / 2)
    for offset in (0.0, 1e-9, -3e-9, 1e-8, 2.1e-8):
        for op in ("sin", "cos"):
            assert np.abs(host(op, peaks + offset)).max() <= 1.0


@pytest.mark.parametrize("op", ["sin", "cos"])
def test_sincos_is_within_its_bound_too(host: HostFunctions, op: str) -> None:
    xs = [*_points("sin", seed=3, count=200), 1e30, -4e9]
    with mpmath.workprec(1200):
        values = zip(host(f"sincos.{op}", xs), xs, strict=True)
        assert max(_ulps(v, EXACT[op](mpmath.mpf(x))) for v, x in values) <= FUNCTIONS["sincos"].ulp
    specials = [_INF, _NAN, -0.0]
    assert host(f"sincos.{op}", specials).tobytes() == host(op, specials).tobytes()


def test_sine_is_odd_and_cosine_is_even(host: HostFunctions) -> None:
    xs = np.array([*_points("sin", seed=4, count=200), 1e30, 4e9])
    assert host("sin", -xs).tobytes() == (-host("sin", xs)).tobytes()
    assert host("cos", -xs).tobytes() == host("cos", xs).tobytes()


@pytest.mark.parametrize(
    ("op", "near", "far"),
    [
        ("sin", [0.0, -5e-324, 2147483647.9999995], [2.0**31, -(2.0**31), 1e308, _INF, _NAN]),
        ("cos", [0.0, -5e-324, 2147483647.9999995], [2.0**31, -(2.0**31), 1e308, _INF, _NAN]),
        ("exp", [0.0, 707.9999999, -707.9999999, -747.0, -1e300], [708.0, -708.0, -745.0, 1e300]),
        ("exp", [], [-1e308, _INF, -_INF, _NAN]),
        ("exp2", [-0.0, 1019.999, -1019.999, -1077.0], [1020.0, -1020.0, 1.7e308, _INF, _NAN]),
        ("sqrt", [0.0, 2.0**-969, 1.7e308], [-0.0, _LEAST, 1e-300, -1.0, _INF, _NAN]),
        ("log", [2.2250738585072014e-308, 1.0, 1.7e308], [0.0, -0.0, 2e-308, -1.0, _INF, _NAN]),
    ],
)
def test_the_predicate_tells_far_arguments_from_near_ones(
    host: HostFunctions, op: str, near: list[float], far: list[float]
) -> None:
    assert host(f"{op}.is_far", near).tolist() == [0.0] * len(near)
    assert host(f"{op}.is_far", far).tolist() == [1.0] * len(far)


def test_results_that_vanish_are_near(host: HostFunctions) -> None:
    for op, xs in (("exp", [-746.5, -1e5, -1e300]), ("exp2", [-1076.5, -1e9])):
        assert host(f"{op}.is_far", xs).tolist() == [0.0] * len(xs)
        assert host(op, xs).tolist() == [0.0] * len(xs)


def _all_values(functions: HostFunctions) -> dict[str, bytes]:
    specials = [0.0, -0.0, _INF, -_INF, _NAN, _LEAST, 1e300, -1e300]
    return {op: functions(op, [*_points(op, seed=5, count=300), *specials]).tobytes() for op in OPS}


def test_literals_and_pooled_constants_give_the_same_values(host: HostFunctions) -> None:
    assert _all_values(HostFunctions(pooled=False)) == _all_values(host)


def test_contraction_changes_nothing(host: HostFunctions) -> None:
    def contracted(text: str) -> str:
        return re.sub(r"= (fadd|fsub|fmul) double", r"= \1 contract double", text)

    assert _all_values(HostFunctions(edit=contracted)) == _all_values(host)


def test_an_approximate_reciprocal_of_18_bits_is_good_enough() -> None:
    def coarser(text: str) -> str:
        upper_word, upper_18_bits = -(2**32), -(2**34)
        return text.replace(f"and i64 %bits, {upper_word}", f"and i64 %bits, {upper_18_bits}")

    rough = HostFunctions(edit=coarser)
    for op in ("log", "sqrt"):
        error, where = _worst(rough, op, [*_points(op, seed=6, count=400), *WORST[op]])
        assert error <= FUNCTIONS[op].ulp, where


# --- What becomes of them on a GPU --------------------------------------------------------------

_KERNEL = """
define ptx_kernel void @kernel(ptr addrspace(1) %in, ptr addrspace(1) %out) {{
  %x = load double, ptr addrspace(1) %in
  %to.y = getelementptr i8, ptr addrspace(1) %in, i64 8
  %y = load double, ptr addrspace(1) %to.y
  {calls}
  ret void
}}
"""


def _parameters(name: str) -> str:
    return FUNCTIONS[name].parts[-1].parameters


def _ptx(names: Iterable[str], pooled: bool = True, part: str = "", target: str = "sm_90") -> str:
    """PTX of a kernel that stores some functions of one number."""
    names = list(names)
    code = assembly(names, pooled=pooled)
    machine = targets.machine(target, 3)
    calls = [
        f"%v{k} = call {FUNCTIONS[name].result} @ak.{name}{part}({_parameters(name)})\n"
        f"  %p{k} = getelementptr i8, ptr addrspace(1) %out, i64 {16 * k}\n"
        f"  store {FUNCTIONS[name].result} %v{k}, ptr addrspace(1) %p{k}, align 8"
        for k, name in enumerate(names)
    ]
    kernel = _KERNEL.format(calls="\n  ".join(calls))
    layout = f'target triple = "{targets.TRIPLE}"\ntarget datalayout = "{machine.target_data}"'
    text = "\n".join([layout, *code.declarations.values(), code.definitions, kernel])
    binding = targets.llvm()
    ref = binding.parse_assembly(text, context=binding.create_context())
    ref.verify()
    passes = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(3))
    passes.getModulePassManager().run(ref, passes)
    return str(machine.emit_assembly(ref))


_FP64 = re.compile(r"^\s*(?:fma|add|sub|mul|div|setp\.\w+)(?:\.rn)?\.f64", re.MULTILINE)


@pytest.mark.parametrize("pooled", [True, False])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_near_part_is_as_many_instructions_as_stated_and_has_no_branch(
    name: str, pooled: bool
) -> None:
    ptx = _ptx([name], pooled, part=".near")
    assert len(_FP64.findall(ptx)) == FUNCTIONS[name].fp64
    assert not re.search(r"\b(bra|call|cvt\.\w+\.\w+|ld\.global\.nc)\b", ptx)


def test_sine_and_cosine_of_one_argument_are_computed_together() -> None:
    alone = FUNCTIONS["sin"].fp64, FUNCTIONS["cos"].fp64
    assert len(_FP64.findall(_ptx(["sincos"], part=".near"))) < sum(alone)


def test_pooled_constants_are_read_from_constant_memory() -> None:
    assert ".const .align 8" in _ptx(["exp"])
    assert "ld.const.b64" in _ptx(["exp"])
    assert "const" not in _ptx(["exp"], pooled=False)


def test_only_far_angles_quotients_and_roots_take_a_call() -> None:
    calls = {name for name in FUNCTIONS if re.search(r"\bcall\b", _ptx([name]))}
    assert calls == {"sin", "cos", "sincos", "div", "sqrt"}


def test_nothing_of_libdevice_is_called() -> None:
    assert "__nv_" not in assembly(FUNCTIONS).definitions


def test_the_order_of_names_does_not_matter() -> None:
    assert assembly(["sin", "exp", "cos"]) == assembly(["cos", "sin", "exp", "sin"])


@pytest.mark.parametrize("target", ["sm_75", "sm_90", "sm_120"])
def test_ptxas_assembles_every_function_without_spilling(target: str, tmp_path: Path) -> None:
    source = tmp_path / "functions.ptx"
    source.write_text(_ptx(FUNCTIONS, target=target))
    command = [_ptxas(), f"-arch={target}", "-v", str(source), "-o", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"\b0 bytes spill stores, 0 bytes spill loads", done.stderr)


def _ptxas() -> str:
    """NVIDIA's assembler: of the ``ptxas`` dependency group, else of an installed toolkit."""
    wheels = importlib.util.find_spec("nvidia")
    places = (
        [Path(p) / "cu13" / "bin" for p in wheels.submodule_search_locations or ()]
        if wheels
        else []
    )
    found = shutil.which("ptxas", path=os.pathsep.join(map(str, places))) or shutil.which("ptxas")
    assert found, "install the dependency group ptxas"
    return found


# --- Constants ------------------------------------------------------------------------------------

# table -> (function of the argument and the polynomial's value, exact function, largest argument,
#           polynomial's variable, stated error)
_FORMS: dict[str, tuple[Callable[..., Any], Callable[[Any], Any], float, int, float]] = {
    "SIN": (lambda r, p: r + r**3 * p, mpmath.sin, math.pi / 4, 2, 3.8e-18),
    "SINE": (lambda r, p: r + r**3 * p, mpmath.sin, 1.574, 2, 3.5e-17),
    "COS": (lambda r, p: 1 + r**2 * p, mpmath.cos, math.pi / 4, 2, 8.8e-20),
    "EXP": (lambda r, p: 1 + r + r**2 * p, mpmath.exp, math.log(2) / 2, 1, 3.8e-18),
    "EXP2": (lambda r, p: 1 + r * p, EXACT["exp2"], 0.5, 1, 5.3e-18),
    "LOG": (lambda s, p: 2 * s + s**3 * p, lambda s: 2 * mpmath.atanh(s), 0.17157, 2, 1.7e-18),
}


@pytest.mark.parametrize("table", _FORMS)
def test_polynomials_are_as_good_as_stated(table: str) -> None:
    form, function, limit, power, stated = _FORMS[table]
    worst = mpmath.mpf(0)
    with mpmath.workprec(200):
        for k in range(-300, 300):
            r = mpmath.mpf(limit) * (k + 0.5) / 300
            p = mpmath.polyval(list(reversed(getattr(coefficients, table))), r**power)
            worst = max(worst, abs(form(r, p) / function(r) - 1))
    assert 0.5 * stated < worst <= stated


def test_constants_are_the_digits_of_pi_and_of_the_logarithm_of_two() -> None:
    with mpmath.workprec(1400):
        half_pi = mpmath.pi / 2
        assert abs(sum(map(mpmath.mpf, coefficients.HALF_PI)) - half_pi) < 2.0**-158
        assert abs(sum(map(mpmath.mpf, coefficients.LN2)) - mpmath.log(2)) < 2.0**-108
        assert float(1 / half_pi) == coefficients.TWO_OVER_PI
        assert float(1 / mpmath.log(2)) == coefficients.LOG2_E
        words = TWO_OVER_PI_WORDS
        joined = sum(w << 64 * (len(words) - 1 - k) for k, w in enumerate(words))
        assert joined == int(mpmath.floor(mpmath.ldexp(1 / half_pi, 64 * (len(words) - 1))))
        assert int(mpmath.floor(mpmath.ldexp(half_pi, 63))) == coefficients.HALF_PI_WORD
