"""C that compilers take without a warning, and that gives the values of the expression.

Every operation, dtype and special value is covered where the emitted code is a backend: the
conformance kit of ``examples/alkahest-cc``.
"""

import ctypes
import shutil
import subprocess

import pytest

import alkahest as ak
from alkahest.emit import emit_c, emit_c_expr, emit_c_header, emit_c_vec
from alkahest.errors import CodegenError, InputError, InputTypeError

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler here")

POOL = ak.ExprPool()
X, Y = POOL.symbols("x y")
STRICT = ("-std=c11", "-D_XOPEN_SOURCE=700", "-Wall", "-Wextra", "-Werror", "-O1")


def library(source, folder, *flags):
    """The shared library of ``source``, compiled with warnings as errors."""
    path = folder / "code.c"
    path.write_text(source)
    target = folder / "code.so"
    command = [COMPILER, *STRICT, *flags, "-shared", "-fPIC", str(path), "-o", str(target), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(target))


EVERYTHING = [
    ak.sin(X) * Y**3 + X**-2 - ak.erfinv(X) / 3,
    ak.piecewise((ak.min(X, Y), X > 0), (ak.mod(X, Y), Y > 1), default=ak.sign(X)),
    ak.digamma(Y) + ak.j0(X) + ak.y1(Y) + ak.cbrt(Y) + ak.lgamma(Y),
    ak.max(X, Y, 0.25) + ak.fma(X, Y, 1) + ak.round(10 * X) + X**101,
]


@needs_compiler
def test_a_function_of_several_outputs_gives_their_values(tmp_path):
    fn = library(emit_c_vec(EVERYTHING, [X, Y]), tmp_path).eval_vec
    for at in ((0.3, 1.7), (-0.6, 2.5), (0.9, 0.2)):
        out = (ctypes.c_double * 4)()
        fn(*map(ctypes.c_double, at), out)
        want = [ak.eval_expr(e, dict(zip("xy", at, strict=True))) for e in EVERYTHING]
        assert list(out) == pytest.approx(want, rel=1e-14)


@needs_compiler
def test_a_function_of_one_output_returns_it(tmp_path):
    fn = library(emit_c_expr(ak.hypot(X, Y), [X, Y], ["a", "b"], "length"), tmp_path).length
    fn.restype = ctypes.c_double
    assert fn(ctypes.c_double(3.0), ctypes.c_double(4.0)) == 5.0


@needs_compiler
@pytest.mark.parametrize("flags", [(), ("-fopenmp",)], ids=["one thread", "OpenMP"])
def test_the_batch_function_fills_a_column_for_each_output(tmp_path, flags):
    source = emit_c([X * Y, X < Y], [X, Y], "pair")
    assert "#pragma omp parallel for" in source
    batch = library(source, tmp_path, *flags).pair_batch
    n = 1000
    xs, ys = (ctypes.c_double * n)(*range(n)), (ctypes.c_double * n)(*range(n, 0, -1))
    products, below = (ctypes.c_double * n)(), (ctypes.c_bool * n)()
    batch(ctypes.c_size_t(n), xs, ys, products, below)
    assert list(products) == [i * (n - i) for i in range(n)]
    assert list(below) == [i < n - i for i in range(n)]


@needs_compiler
def test_single_precision_is_single_throughout(tmp_path):
    source = emit_c(ak.exp(X) / 3 + ak.j0(X), X, "f", dtype="float32")
    assert "expf(x)" in source
    fn = library(source, tmp_path).f
    fn.restype = ctypes.c_float
    want = ak.eval_expr(ak.exp(X) / 3 + ak.j0(X), {"x": 0.5})
    assert fn(ctypes.c_float(0.5)) == pytest.approx(want, rel=2e-7)


@needs_compiler
def test_functions_of_one_point_have_the_dtype_that_is_asked_for(tmp_path):
    (tmp_path / "one").mkdir()
    one = library(emit_c_expr(X / 3, X, dtype="float32"), tmp_path / "one").f
    one.restype = ctypes.c_float
    assert one(ctypes.c_float(1.0)) == ctypes.c_float(1 / 3).value
    vec = library(emit_c_vec([X / 3, X * Y], [X, Y], dtype="float32"), tmp_path).eval_vec
    out = (ctypes.c_float * 2)()
    vec(ctypes.c_float(1.0), ctypes.c_float(7.0), out)
    assert list(out) == [ctypes.c_float(1 / 3).value, 7.0]
    with pytest.raises(InputError, match="dtype 'float16'"):
        emit_c_expr(X, X, dtype="float16")


@needs_compiler
def test_complex_programs_take_and_return_complex_numbers(tmp_path):
    source = emit_c(ak.sqrt(X) * POOL.imaginary_unit(), X, "f", dtype="complex128")
    batch = library(source, tmp_path).f_batch
    out = (ctypes.c_double * 2)()
    batch(ctypes.c_size_t(1), (ctypes.c_double * 2)(-4.0, 0.0), out)
    assert list(out) == [-2.0, 0.0]


@needs_compiler
def test_the_header_declares_what_the_source_defines(tmp_path):
    arguments = ([X + Y, X < Y], [X, Y], "pair")
    (tmp_path / "pair.h").write_text(emit_c_header(*arguments))
    source = '#include "pair.h"\n#include "pair.h"\n' + emit_c(*arguments)
    assert library(source, tmp_path, f"-I{tmp_path}").pair_batch


def test_conditions_are_bool_and_constants_exact():
    source = emit_c_expr(X < 0.1, X)
    assert "bool f(double x)" in source
    assert float.fromhex("0x1.999999999999ap-4") == 0.1
    assert "0x1.999999999999ap-4" in source


def test_an_integer_power_keeps_its_sign_where_its_exponent_rounds_to_an_even_number():
    assert "copysign(pow(fabs(x)" in emit_c_expr(X ** (2**60 + 1), X)
    assert "pow(x, 101.0)" in emit_c_expr(X**101, X)
    assert "x * x * x" in emit_c_expr(X**3, X)
    assert "1 / x / x" in emit_c_expr(X**-2, X)


@pytest.mark.parametrize(
    ("name", "names", "shown"),
    [
        ("f", ["double", "y"], "'double'"),
        ("f", ["a", "a"], "'a' is used twice"),
        ("f", ["f", "y"], "'f' is used twice"),
        ("f", ["x 1", "y"], "'x 1'"),
        ("2f", None, "'2f'"),
        ("f", ["sin", "y"], "'sin' is a function of the C library that the code calls"),
        ("sin", None, "'sin'"),
    ],
)
def test_names_that_c_does_not_allow_are_refused(name, names, shown):
    with pytest.raises(CodegenError, match=shown) as caught:
        emit_c(ak.sin(X) + Y, [X, Y], name, var_names=names)
    assert caught.value.code == "E-EMIT-001"


def test_variables_of_the_code_never_hide_a_parameter():
    pool = ak.ExprPool()
    v = pool.symbol("v2")
    assert "const double v_2 = sin(v2)" in emit_c_expr(ak.sin(v) * 3, v)


def test_mistakes_are_those_of_compile_expr():
    with pytest.raises(CodegenError) as caught:
        emit_c(X + Y, X)
    assert caught.value.code == "E-JIT-005"
    with pytest.raises(InputTypeError, match="takes one expression"):
        emit_c_expr([X], X)
    with pytest.raises(InputError, match="must be a list of 1 names"):
        emit_c_expr(X, X, "x")


def test_a_long_program_is_written_in_one_piece():
    total = POOL.add([ak.sin(X * k) for k in range(1, 3001)])
    assert emit_c_expr(total, X).count("sin(") == 3000
