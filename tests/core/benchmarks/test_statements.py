"""The formulae as other compilers get them compute what the program means."""

from __future__ import annotations

import ctypes
import math
import os
import random
import subprocess
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gpu_benchmark import contenders, statements
from gpu_benchmark.formulae import ROWS, Row

from alkahest import ExprPool, parse
from alkahest.expr.evaluate import interpret
from alkahest.ops import OPS
from alkahest.program import Program, lower

POINTS = 5
COMPILER = os.environ.get("CC", "cc")

EACH_ROW = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


def columns(row: Row) -> list[list[float]]:
    draw = random.Random(row.name)
    return [[draw.uniform(low, high) for _ in range(POINTS)] for low, high in row.ranges]


def expected(program: Program, values: list[list[float]]) -> np.ndarray[Any, Any]:
    """One row per output."""
    points = zip(*values, strict=True)
    return np.array([interpret(program, point) for point in points], float).T


def program_of(text: str) -> Program:
    pool = ExprPool()
    x, y = pool.symbol("x"), pool.symbol("y")
    return lower([parse(text, pool, symbols=[x, y])], [x, y])


def array_values(program: Program, values: list[list[float]], names: Any) -> Any:
    function = contenders.define("function", statements.array_function(program), m=names)
    return function(*[np.array(column) for column in values])


@pytest.fixture(scope="module")
def numpy_names() -> Any:
    erf, erfc = np.vectorize(math.erf), np.vectorize(math.erfc)
    return types.SimpleNamespace(**vars(np), erf=erf, erfc=erfc)


@EACH_ROW
def test_the_array_function_of_every_row_is_right(row: Row, numpy_names: Any) -> None:
    values = columns(row)
    got = array_values(row.program, values, numpy_names)
    want = expected(row.program, values)
    assert len(got) == len(want)
    np.testing.assert_allclose(np.array(got), want, rtol=1e-11, atol=1e-13)


@EACH_ROW
def test_the_scalar_kernel_of_every_row_is_right_and_keeps_inside(row: Row) -> None:
    values = columns(row)
    want = expected(row.program, values)
    outputs = [np.full(POINTS, math.nan) for _ in want]
    threads = iter(range(POINTS + 3))
    cuda = types.SimpleNamespace(grid=lambda dimensions: next(threads))
    kernel = contenders.define("kernel", statements.scalar_kernel(row.program), cuda=cuda)
    for _ in range(POINTS + 3):
        kernel(*map(np.array, values), *outputs)
    np.testing.assert_allclose(np.array(outputs), want, rtol=1e-11, atol=1e-13)


C_FUNCTION = """
void {name}(const double *const *X, double *const *O, long points) {{
    for (long t = 0; t < points; ++t) {{
{body}
    }}
}}
"""


def c_function(row: Row) -> str:
    program = row.program
    loads = [f"const double x{i} = X[{i}][t];" for i in range(len(program.inputs))]
    outputs = [f"double o{i};" for i in range(len(program.outputs))]
    stores = [f"O[{i}][t] = o{i};" for i in range(len(program.outputs))]
    body = "\n".join([*loads, *outputs, statements.cuda_body(program), *stores])
    return C_FUNCTION.format(name=row.name, body=body)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Every row's statements of CUDA C++, in a loop, through the host's compiler."""
    path: Path = tmp_path_factory.mktemp("rows") / "rows.so"
    text = "#include <math.h>\n#include <stdbool.h>\n" + "".join(map(c_function, ROWS))
    command = [COMPILER, "-shared", "-fPIC", "-O0", "-x", "c", "-", "-o", str(path), "-lm"]
    subprocess.run(command, input=text, text=True, check=True)
    return ctypes.CDLL(str(path))


@EACH_ROW
def test_the_cuda_statements_of_every_row_are_right(row: Row, library: ctypes.CDLL) -> None:
    values = columns(row)
    want = expected(row.program, values)
    inputs = [np.array(column) for column in values]
    outputs = [np.full(POINTS, math.nan) for _ in want]
    pointers = [
        (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])
        for arrays in (inputs, outputs)
    ]
    library[row.name](*pointers, ctypes.c_long(POINTS))
    np.testing.assert_allclose(np.array(outputs), want, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("exponent", [2, 3, 4, 5, 7, 8, 16, 31, 64, -2, -3])
def test_powers_are_multiplied_out(exponent: int, numpy_names: Any) -> None:
    program = program_of(f"x**({exponent}) + y")
    source = statements.array_function(program)
    assert "**" not in source
    assert "pow" not in source
    (got,) = array_values(program, [[1.5], [0.25]], numpy_names)
    assert got[0] == pytest.approx(1.5**exponent + 0.25, rel=1e-14)


def test_what_depends_on_constants_only_is_computed_beforehand() -> None:
    program = program_of("x/sqrt(2*pi)")
    assert {i.op for i in program.code} == {"sqrt", "div"}
    body = statements.body(program, statements.C)
    assert body.lines == [f"double v{program.outputs[0]} = x0 / {math.sqrt(2 * math.pi)!r};"]


def test_negative_constants_are_in_parentheses_and_read_back_exactly() -> None:
    assert statements.C.literal(-0.1) == "(-0.1)"
    assert statements.C.literal(5e-324) == "5e-324"
    assert statements.C.literal(-0.0) == "(-0.0)"
    assert statements.SCALAR.literal(math.inf) == "math.inf"
    assert statements.C.literal(math.nan) == 'nan("")'


@pytest.mark.parametrize("text", ["gamma(x)", "x**65", "x**100*y"])
def test_what_has_no_text_is_refused(text: str) -> None:
    with pytest.raises(statements.Unprintable, match=r"gamma|power"):
        statements.cuda_body(program_of(text))


def test_every_text_belongs_to_an_operation_and_takes_its_operands() -> None:
    for name, texts in statements.OPERATIONS.items():
        for text in texts:
            assert all(f"{{{i}}}" in text for i in range(OPS[name].arity)), name


def test_logic_and_selection_agree_in_every_language(numpy_names: Any) -> None:
    text = "Piecewise((x, Or(And(x < y, Not(Eq(x, 1))), x >= 3)), (-y, True))"
    program = program_of(text)
    values = [[0.0, 1.0, 2.0, 3.0], [2.0, 2.0, 2.0, 2.0]]
    (got,) = array_values(program, values, numpy_names)
    assert got.tolist() == [0.0, -2.0, -2.0, 3.0]
    assert expected(program, values).tolist() == [[0.0, -2.0, -2.0, 3.0]]
    assert "bool v" in statements.cuda_body(program)
