"""Operators, identity and the protocols of an expression."""

import builtins
import copy
import math
from decimal import Decimal
from fractions import Fraction

import pytest

from alkahest.errors import InputTypeError
from alkahest.expr import And, Expr, ExprPool, Ge, Gt, Le, Lt, Not, Or, abs, floor, mod, round, sin


@pytest.fixture
def pool() -> ExprPool:
    return ExprPool()


@pytest.fixture
def x(pool: ExprPool) -> Expr:
    return pool.symbol("x")


NUMBERS = [
    (3, "integer", 3),
    (10**30, "integer", 10**30),
    (True, "integer", 1),
    (1.5, "float", 1.5),
    (0.1, "float", 0.1),
    (Fraction(1, 3), "rational", Fraction(1, 3)),
    (Fraction(4, 2), "integer", 2),
    (Decimal("0.1"), "rational", Fraction(1, 10)),
    (Decimal("2e3"), "integer", 2000),
    (Decimal("Infinity"), "float", math.inf),
]


@pytest.mark.parametrize(("number", "head", "value"), NUMBERS)
def test_operators_take_every_python_number_on_either_side(x, pool, number, head, value):
    node = pool.constant(number)
    assert (node.head, node.value) == (head, value)
    assert x + number is number + x is pool.add([x, node])
    assert x * number is number * x is pool.mul([x, node])
    assert x - number is pool.add([x, -node])
    assert number - x is pool.add([node, -x])
    assert x / number is pool.mul([x, pool.pow(node, -1)])
    assert number / x is pool.mul([node, pool.pow(x, -1)])
    assert x**number is pool.pow(x, node)
    if not isinstance(number, Fraction):  # Python may round that one before asking us
        assert number**x is pool.pow(node, x)


def test_complex_numbers_become_a_real_and_an_imaginary_part(x, pool):
    i = pool.imaginary_unit()
    assert x + 2j is x + 2.0 * i
    assert (1 + 2j) * x is (1.0 + 2.0 * i) * x
    assert pool.constant(complex(-0.0, 1)) is -0.0 + 1.0 * i


@pytest.mark.parametrize(
    ("name", "value", "number"),
    [
        ("float64", 1.5, 1.5),
        ("float32", 0.1, 0.10000000149011612),
        ("float16", 0.5, 0.5),
        ("int64", 2, 2),
        ("uint8", 200, 200),
        ("bool_", True, 1),
        ("longdouble", 0.5, 0.5),
        ("complex128", 2j, 2j),
    ],
)
def test_operators_take_numpy_scalars_on_either_side(x, pool, name, value, number):
    import numpy

    scalar = getattr(numpy, name)(value)
    assert scalar + x is x + scalar is x + number
    assert scalar * x is x * scalar is number * x
    assert scalar - x is number - x
    assert scalar / x is number / x
    assert scalar**x is number**x
    if not isinstance(number, complex):
        assert (scalar < x) is (x > number)
        assert scalar % x is number % x
    assert (x == scalar) is (scalar == x) is False


def test_arrays_are_no_operands(x):
    import numpy

    for array in (numpy.ones(3), numpy.array(1.0)):
        for combine in (lambda a: x + a, lambda a: a + x, lambda a: a**x, lambda a: x < a):
            with pytest.raises(TypeError, match="ndarray is an array, not an operand"):
                combine(array)


@pytest.mark.parametrize("other", ["a", None, [1], object()])
def test_other_types_are_left_to_python(x, other):
    for combine in (
        lambda: x + other,
        lambda: other - x,
        lambda: x * other,
        lambda: other / x,
        lambda: x**other,
        lambda: other**x,
        lambda: x // other,
        lambda: other // x,
        lambda: x < other,
        lambda: x & other,
    ):
        with pytest.raises(
            TypeError, match=r"unsupported operand|not supported between|can't multiply"
        ):
            combine()


def test_the_other_type_may_know_the_operator(x):
    class Friend:
        def __radd__(self, other: object) -> str:
            return "friend"

    assert x + Friend() == "friend"


def test_remaining_arithmetic_operators_are_functions(x):
    assert x % 2 is mod(x, 2)
    assert 7 % x is mod(7, x)
    assert x // 2 is floor(x / 2)
    assert 7 // x is floor(7 / x)
    assert +x is x
    assert -x is -1 * x
    assert math.floor(x) is floor(x)
    assert builtins.abs(x) is abs(x)
    assert builtins.round(x) is round(x)
    assert [f(x).head for f in (math.ceil, math.trunc)] == ["ceil", "trunc"]


def test_comparisons_build_conditions(x):
    assert (x < 1) is Lt(x, 1)
    assert (x <= 1) is Le(x, 1)
    assert (x > 1) is Gt(x, 1)
    assert (x >= 1) is Ge(x, 1)
    assert (1 < x) is Gt(x, 1)  # noqa: SIM300 - the reflected operator is the point
    assert (x < 1).is_condition
    assert not (x + 1).is_condition


def test_conditions_are_joined_by_bit_operators(x):
    a, b = x < 1, x > -1
    assert a & b is And(a, b)
    assert a | b is Or(a, b)
    assert ~a is Not(a)
    assert a & True is True & a is a
    assert (a | True).value is True


def test_equality_is_identity_and_never_a_relation(x):
    assert (x == x) is True
    assert (x + 1 == 1 + x) is True
    assert (x == 1) is False
    assert (x != 1) is True
    assert x in [1, "x", x]
    assert {x: 1}[x + 0] == 1


def test_an_expression_has_no_truth_value(x):
    for test in (lambda: bool(x), lambda: bool(x < 1), lambda: 0 < x < 1, lambda: x and 1):
        with pytest.raises(TypeError, match=r"(?s)truth value.*Eq\(a, b\).*piecewise"):
            test()


def test_decided_conditions_have_one(pool):
    assert pool.lt(1, 2)
    assert not pool.pred_false()


def test_an_expression_is_not_iterable_and_not_a_float(x):
    with pytest.raises(TypeError):
        iter(x)
    with pytest.raises(TypeError):
        math.sin(x)


def test_expressions_are_immutable(x):
    for name in ("head", "args", "value", "digest", "pool", "anything"):
        with pytest.raises(AttributeError, match=f"'{name}' cannot be set"):
            setattr(x, name, 1)
    with pytest.raises(AttributeError, match="cannot be deleted"):
        del x.head
    with pytest.raises(AttributeError, match="no attribute 'real'"):
        _ = (x + 1).real


def test_expressions_come_from_pools_alone():
    with pytest.raises(InputTypeError, match="an ExprPool builds expressions"):
        Expr()
    with pytest.raises(InputTypeError, match="cannot be subclassed"):
        type("Sub", (Expr,), {})


def test_copies_are_the_expression_itself(x, pool):
    assert copy.copy(x) is copy.deepcopy(x) is x
    assert copy.deepcopy({"a": [x + 1, pool]}) == {"a": [x + 1, pool]}


def test_free_symbols_are_those_inside(x, pool):
    y = pool.symbol("y")
    assert (sin(x) * 2 + pool.piecewise([(1, y < 0)])).free_symbols == {x, y}
    assert pool.pi().free_symbols == frozenset()


def test_texts_and_formulas_are_shown(x):
    assert str(x + 1) == repr(x + 1) == "x + 1"
    assert f"{x**2}" == "x**2"
    assert (x**2)._repr_latex_() == "$\\displaystyle x^{2}$"
