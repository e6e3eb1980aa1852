"""``lambdify`` in the place of SymPy's: the same calls, the same shapes, the same numbers."""

import inspect
import pickle
import sys
from types import ModuleType

import numpy as np
import pytest
import sympy as sp

import alkahest as ak
from alkahest.errors import CodegenError, InputError, InputTypeError
from alkahest.interop.lambdified import _assembled

X, Y, T = sp.symbols("x y t")
Q = sp.Function("q")(T)
ELEMENTS = sp.IndexedBase("a")
POINTS = np.linspace(-2.0, 2.0, 41)


def both(args, expr, *values, **options):
    """What our function and SymPy's give for the same call."""
    return ak.lambdify(args, expr, **options)(*values), sp.lambdify(args, expr)(*values)


def assert_same(ours, theirs):
    assert type(ours) is type(theirs) or np.isscalar(theirs)
    if isinstance(ours, (list, tuple)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_same(a, b)
        return
    assert np.shape(ours) == np.shape(theirs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(
    ("args", "expr", "values"),
    [
        (X, sp.sin(X) ** 2, (POINTS,)),
        ([X, Y], X * Y + sp.exp(-(X**2)), (POINTS, 2.0)),
        ((X, Y), X / Y, (1.0, 3.0)),
        ([X, [Y, T]], X + Y * T, (1.0, [POINTS, 2.0])),
        (X, [X, X**2], (POINTS,)),
        (X, (X, [X + 1, X**2]), (3.0,)),
        ([X, Y], sp.Matrix([[X, Y], [X * Y, X - Y]]), (1.0, 2.0)),
        ([X, Y], sp.Matrix([X, Y]), (POINTS, POINTS + 1)),
        (sp.Matrix([X, Y]), X - Y, (3.0, 5.0)),
        ([sp.Matrix([X, Y])], X - Y, ([3.0, 5.0],)),
        (sp.MatrixSymbol("M", 2, 2), sp.MatrixSymbol("M", 2, 2)[0, 1] + 1, (np.eye(2),)),
        (X, sp.Piecewise((X, X > 0), (-X, True)), (POINTS,)),
        ([X, Y], sp.Max(X, Y) + sp.Heaviside(X), (POINTS, POINTS[::-1])),
        (X, sp.besselj(0, X) + sp.gamma(X + 4), (POINTS,)),
        (X, X > 0, (POINTS,)),
        (X, sp.Array([[X, X**2], [X + 1, X - 1]]), (POINTS,)),
        ([Q, Q.diff(T)], Q * Q.diff(T) ** 2, (POINTS, 3.0)),
        ([[Q.diff(T), Q], X], sp.Matrix([Q.diff(T), sp.sin(Q) * X]), ([2.0, 3.0], 5.0)),
        ([ELEMENTS[0], ELEMENTS[1]], ELEMENTS[0] - ELEMENTS[1], (POINTS, 3.0)),
        (sp.sin(X), sp.sin(X) ** 2 + 1, (POINTS,)),
        (X, sp.exp(sp.I * X), (POINTS,)),
        (X, sp.sqrt(X), (POINTS + 0j,)),
    ],
    ids=str,
)
def test_calls_give_what_the_function_of_sympy_gives(args, expr, values):
    assert_same(*both(args, expr, *values))


def test_matrices_broadcast_even_where_an_entry_is_a_constant():
    rotation = sp.Matrix([[sp.cos(T), -sp.sin(T), 0], [sp.sin(T), sp.cos(T), 0], [0, 0, 1]])
    got = ak.lambdify(T, rotation)(POINTS)
    assert got.shape == (3, 3, 41)
    np.testing.assert_array_equal(got[2, 2], np.ones(41))
    np.testing.assert_allclose(got[1, 0], np.sin(POINTS), rtol=1e-15)


def test_matrices_are_put_together_by_the_library_of_their_entries(monkeypatch):
    class Tensor:
        shape = (3,)

        def reshape(self, shape):
            return "reshaped", shape

    torch = ModuleType("torch")
    torch.stack = lambda tensors: Tensor() if len(tensors) == 4 else None
    Tensor.__module__ = "torch"
    monkeypatch.setitem(sys.modules, "torch", torch)
    tensors = iter([Tensor() for _ in range(4)])
    assert _assembled((2, 2), tensors) == ("reshaped", (2, 2, 3))


def test_complex_arguments_are_computed_in_complex_numbers_and_real_ones_are_not():
    fn = ak.lambdify(X, sp.sqrt(X))
    assert np.isnan(fn(-4.0))
    assert fn(-4.0 + 0j) == 2j
    assert fn(4.0) == 2.0
    assert isinstance(fn(4.0), float)
    assert fn.compiled.dtype == "float64"


def test_a_dtype_given_is_kept():
    fn = ak.lambdify(X, X * 2, dtype="float32")
    assert fn(np.float32(1.5)).dtype == np.float32


def test_backend_and_options_go_to_the_compiler():
    fn = ak.lambdify(X, X + 1, backend="cpu-reference", casting="same_kind")
    assert fn.compiled.backend == "cpu-reference"
    with pytest.raises(CodegenError, match="no-such"):
        ak.lambdify(X, X, backend="no-such")


def test_arguments_can_be_named_as_in_a_function_with_that_signature():
    fn = ak.lambdify([X, Y], X - 2 * Y)
    assert str(inspect.signature(fn)) == "(x, y)"
    assert fn(y=1.0, x=5.0) == 3.0
    with pytest.raises(TypeError, match="missing a required argument: 'y'"):
        fn(1.0)
    with pytest.raises(TypeError, match="too many positional"):
        fn(1.0, 2.0, 3.0)


def test_unused_and_no_arguments_are_allowed():
    assert ak.lambdify([X, Y], X**2)(3.0, 99.0) == 9.0
    assert ak.lambdify([], sp.pi)() == np.pi


def test_names_of_libraries_are_accepted_and_functions_refused():
    for modules in ("numpy", ["scipy", "numpy"], np, None):
        assert ak.lambdify(X, X + 1, modules)(1.0) == 2.0
    with pytest.raises(InputError, match="functions of the caller's own") as caught:
        ak.lambdify(X, sp.Function("g")(X), [{"g": abs}, "numpy"])
    assert caught.value.code == "E-INPUT-011"
    with pytest.raises(InputError, match="'tensorflow'"):
        ak.lambdify(X, X, "tensorflow")


def test_derivatives_have_no_place_in_the_nesting_of_results():
    with pytest.raises(InputError, match=r"derivatives= .* nested") as caught:
        ak.lambdify([X, Y], X * Y, derivatives=1)
    assert caught.value.code == "E-INPUT-011"
    assert ak.lambdify([X, Y], [X * Y, [X]], derivatives=0)(2.0, 3.0) == [6.0, [2.0]]


def test_lambdified_functions_pickle_with_their_expression():
    fn = pickle.loads(pickle.dumps(ak.lambdify([X, Y], [X + Y, X * Y])))
    assert fn(2.0, 3.0) == [5.0, 6.0]
    assert fn.expr == [X + Y, X * Y]


@pytest.mark.parametrize(
    ("args", "expr", "error", "code"),
    [
        (X, X + Y, CodegenError, "E-JIT-005"),
        ([X, X], X, InputError, "E-INPUT-007"),
        (X**2, X**2, InputTypeError, "E-INPUT-008"),
        ([ELEMENTS], ELEMENTS[0], InputTypeError, "E-INPUT-008"),
        ([Q, Q], Q, InputError, "E-INPUT-007"),
        (Q, Q.diff(T), InputTypeError, "E-SYMPY-001"),
        (X, sp.zeta(X), InputTypeError, "E-SYMPY-001"),
    ],
    ids=[
        "free symbol",
        "twice",
        "no symbol",
        "elements of no number",
        "a function twice",
        "a derivative of a number",
        "unknown function",
    ],
)
def test_mistakes_are_errors_when_the_function_is_made(args, expr, error, code):
    with pytest.raises(error) as caught:
        ak.lambdify(args, expr)
    assert caught.value.code == code


def test_arrays_of_sympy_may_have_any_number_of_axes():
    cube = ak.lambdify(X, sp.Array([[[X, X**2], [X + 1, X - 1]]]))(POINTS)
    want = [[[POINTS, POINTS**2], [POINTS + 1, POINTS - 1]]]
    np.testing.assert_allclose(cube, want, rtol=1e-15)
    assert ak.lambdify(X, sp.Array([X, 2 * X]))(3.0).tolist() == [3.0, 6.0]
    assert ak.lambdify(X, sp.Array(X))(3.0) == 3.0


def test_a_derivative_that_stands_unevaluated_is_carried_out_in_terms_of_the_arguments():
    assert ak.lambdify([Q, Q.diff(T)], sp.Derivative(Q**2, T))(3.0, 5.0) == 30.0


def test_a_nested_argument_of_another_length_is_an_error():
    for argument in ([X, Y], sp.Matrix([X, Y])):
        with pytest.raises(InputError, match="takes 2 parts here, got 3"):
            ak.lambdify([argument], X + Y)([1.0, 2.0, 3.0])


def test_a_matrix_takes_its_shape_or_its_elements():
    matrix = sp.Matrix([[X, Y], [T, sp.Symbol("z")]])
    fn = ak.lambdify([matrix], X + 10 * Y + 100 * T + 1000 * matrix[1, 1])
    assert fn(np.array([[1.0, 2.0], [3.0, 4.0]])) == fn([1.0, 2.0, 3.0, 4.0]) == 4321.0
    assert fn([[1.0, 2.0], [3.0, 4.0]]) == 4321.0
    columns = fn([[POINTS, 0.0], [0.0, POINTS]])
    np.testing.assert_allclose(columns, 1001 * POINTS, rtol=1e-15)
