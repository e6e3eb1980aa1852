"""The text of StableHLO modules; ``tests/jax`` parses and runs them."""

import pytest

import alkahest as ak
from alkahest.emit import to_stablehlo
from alkahest.errors import CodegenError, InputError

POOL = ak.ExprPool()
X, Y = POOL.symbols("x y")


def test_a_scalar_module_is_a_function_called_main():
    assert to_stablehlo(X + Y, [X, Y]).splitlines() == [
        "module @alkahest_fn {",
        "  func.func public @main(%arg0: tensor<f64>, %arg1: tensor<f64>) -> (tensor<f64>) {",
        "    %v2 = stablehlo.add %arg0, %arg1 : tensor<f64>",
        "    return %v2 : tensor<f64>",
        "  }",
        "}",
    ]


def test_shapes_dtypes_and_names_are_the_callers():
    text = to_stablehlo([X / 3, X < Y], [X, Y], "mine", shape=(2, 5), dtype="float32")
    assert text.startswith("module @mine {")
    assert "-> (tensor<2x5xf32>, tensor<2x5xi1>)" in text
    assert "dense<0x40400000> : tensor<2x5xf32>" in text


@pytest.mark.parametrize("op", ["fma", "hypot", "gamma", "j0", "j1", "y0", "y1"])
def test_an_operation_that_the_language_lacks_is_an_error_that_names_it(op):
    arity = {"fma": 3, "hypot": 2}.get(op, 1)
    with pytest.raises(CodegenError, match=repr(op)) as caught:
        to_stablehlo(POOL.func(op, [X, Y, X][:arity]), [X, Y])
    assert caught.value.code == "E-EMIT-002"


def test_mistakes_are_errors():
    with pytest.raises(CodegenError, match="unbound symbol 'y'"):
        to_stablehlo(X + Y, X)
    with pytest.raises(CodegenError, match="'no name'"):
        to_stablehlo(X, X, "no name")
    for shape in ((-1,), (2.5,), "a", 4, None):
        with pytest.raises(InputError, match="is not a list or tuple of sizes") as caught:
            to_stablehlo(X, X, shape=shape)
        assert caught.value.code == "E-INPUT-011"
