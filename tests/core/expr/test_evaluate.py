"""Values of expressions at one point."""

import json
import math
import random
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from alkahest.errors import CodegenError, EvalError, InputError, InputTypeError, PoolError
from alkahest.expr import (
    Eq,
    Expr,
    ExprPool,
    Ne,
    Or,
    arg,
    conjugate,
    eval_expr,
    exp,
    im,
    log,
    parse,
    piecewise,
    re,
    sin,
    sqrt,
)

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def pool() -> ExprPool:
    return ExprPool()


@pytest.fixture
def x(pool: ExprPool) -> Expr:
    return pool.symbol("x")


def test_symbols_are_bound_by_themselves_or_by_name(pool, x):
    y = pool.symbol("y")
    assert eval_expr(x**2 + y, {x: 3.0, "y": 1}) == 10.0
    assert eval_expr(x, {x: 1, y: 2, "not there": 3}) == 1.0
    assert eval_expr(pool.integer(7)) == 7.0


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (2, 2.0),
        (True, 1.0),
        (Fraction(1, 3), 1 / 3),
        (Decimal("0.1"), 0.1),
        (2**53 + 1, 2.0**53),
        (-math.inf, -math.inf),
    ],
)
def test_values_are_rounded_once(x, value, number):
    assert eval_expr(x, {x: value}) == number


def test_results_are_plain_python_numbers(pool, x):
    import numpy

    assert type(eval_expr(x + 1, {x: numpy.float32(0.5)})) is float
    assert type(eval_expr(x + 1, {x: numpy.int64(1)})) is float
    assert type(eval_expr(x + 1, {x: numpy.complex64(1j)})) is complex
    assert type(eval_expr(x < 1, {x: 0})) is bool


def test_conditions_have_truth_values(x):
    assert eval_expr(x < 1, {x: 0}) is True
    assert eval_expr(Or(x < 1, Eq(x, 2)), {x: 3}) is False
    assert eval_expr(Ne(x, x), {x: math.nan}) is True
    assert eval_expr(x.pool.pred_true()) is True


def test_nothing_raises_where_ieee_arithmetic_has_a_result(x):
    assert eval_expr(1 / x, {x: 0}) == math.inf
    assert eval_expr(1 / x, {x: -0.0}) == -math.inf
    assert math.isnan(eval_expr(log(x), {x: -1}))
    assert eval_expr(exp(x), {x: 1000}) == math.inf
    assert eval_expr(x**2, {x: 1e200}) == math.inf
    assert math.isnan(eval_expr(x - x, {x: math.inf}))


def test_a_piecewise_ignores_the_branches_that_are_not_chosen(x):
    node = piecewise((log(x), x > 0), (1 / x, x < 0))
    assert eval_expr(node, {x: -2}) == -0.5
    assert math.isnan(eval_expr(node, {x: 0}))


def test_a_complex_binding_makes_everything_complex(pool, x):
    y = pool.symbol("y")
    assert eval_expr(x * y, {x: 2, y: 1j}) == 2j
    assert eval_expr(sqrt(x), {x: complex(-4)}) == 2j
    assert eval_expr(x**2, {x: 1 + 1j}) == 2j
    assert eval_expr(y, {x: 1j, y: 2}) == 2.0
    assert type(eval_expr(y, {x: 1j, y: 2})) is float


def test_the_imaginary_unit_makes_everything_complex(pool, x):
    i = pool.imaginary_unit()
    assert eval_expr(exp(i * x), {x: math.pi}) == pytest.approx(-1 + 0j, abs=1e-15)
    assert eval_expr(x + 2j, {x: 1}) == 1 + 2j


def test_parts_of_complex_numbers_are_real(x):
    z = {x: 3 - 4j}
    assert [eval_expr(f, z) for f in (re(x), im(x), x.__abs__())] == [3.0, -4.0, 5.0]
    assert type(eval_expr(re(x), z)) is float
    assert eval_expr(conjugate(x), z) == 3 + 4j
    assert eval_expr(arg(x), {x: -1.0}) == math.pi
    assert eval_expr(re(x) < im(x), z) is False


def test_ordering_complex_numbers_is_refused(x):
    with pytest.raises(CodegenError, match="E-JIT-010"):
        eval_expr(x < 1, {x: 1j})


def test_unbound_symbols_are_named(pool, x):
    y = pool.symbol("a b")
    with pytest.raises(EvalError, match=r"E-EVAL-001.*no value for 'a b', 'x'"):
        eval_expr(x + y, {"z": 1})
    many = pool.add(pool.symbols(" ".join(f"s{i:02}" for i in range(20))))
    with pytest.raises(EvalError, match="'s06', 's07' and 12 more"):
        eval_expr(many, {})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("a", r"value of 'x' is no number: 'a' \(str\)"),
        (None, r"value of 'x' is no number: None \(NoneType\)"),
        ([1.0], r"value of 'x' is no number: \[1.0\] \(list\)"),
        ("a" * 1000, r"'x' is no number: 'aaa.*\.\.\. \(str\)"),
    ],
)
def test_a_value_that_is_no_number_is_named_and_not_called_unbound(pool, x, value, message):
    with pytest.raises(InputTypeError, match=r"E-INPUT-008.*" + message):
        eval_expr(x + pool.symbol("y"), {x: value, "y": 1})


def test_a_value_beyond_the_floats_is_named(x):
    for huge in (10**400, Fraction(10**400, 3), Decimal("1e400")):
        with pytest.raises(InputTypeError, match=r"E-INPUT-004.*'x' is outside the range"):
            eval_expr(x, {x: huge})


def test_an_expression_is_no_value(x):
    with pytest.raises(InputTypeError, match=r"'x' is no number: an expression \(Expr\)"):
        eval_expr(x, {x: x})


def test_keys_that_are_no_symbols_are_refused(x):
    with pytest.raises(InputError, match=r"E-INPUT-007.*not a symbol but add"):
        eval_expr(x, {x + 1: 2})
    with pytest.raises(InputError, match=r"E-INPUT-007.*not a symbol but int"):
        eval_expr(x, {3: 2})
    with pytest.raises(InputError, match=r"E-INPUT-007.*give 'x' two values"):
        eval_expr(x, {x: 1, "x": 2})
    with pytest.raises(PoolError, match="E-POOL-001"):
        eval_expr(x, {ExprPool().symbol("x"): 1})


def test_other_types_are_refused(x):
    with pytest.raises(InputTypeError, match="must be an Expr, not str"):
        eval_expr("x", {x: 1})
    with pytest.raises(InputTypeError, match=r"bindings must be a mapping.*not list"):
        eval_expr(x, [(x, 1)])


def test_a_constant_beyond_the_floats_is_refused(x):
    with pytest.raises(CodegenError, match="E-JIT-006"):
        eval_expr(x * 10**400, {x: 1e-300})


def test_names_that_look_like_code_are_just_names(pool):
    names = ["sin", "exp", "n", "i", "tid", "out", "x.1", "None", "lambda", "%1", "x y", "x_y"]
    values = {name: float(k + 1) for k, name in enumerate(names)}
    total = pool.add(k * pool.symbol(name) for k, name in enumerate(names))
    assert eval_expr(total, values) == sum(k * (k + 1.0) for k in range(len(names)))


def test_temporaries_do_not_collide_with_symbols(pool):
    c, x0 = pool.symbols("c x0")
    assert eval_expr(c * x0**2 + c * (x0**4 - x0**2), {c: 1, x0: 2}) == 16.0


def test_the_order_of_summation_does_not_depend_on_how_the_sum_was_built():
    shuffle = random.Random(1)
    values = {f"v{i}": shuffle.uniform(-1, 1) * 10.0 ** shuffle.randint(-8, 8) for i in range(40)}
    results = set()
    for _ in range(5):
        pool = ExprPool()
        names = list(values)
        shuffle.shuffle(names)
        total = pool.integer(0)
        for name in names:
            total = total + sin(pool.symbol(name)) * values[name]
        results.add(eval_expr(total, values))
    assert len(results) == 1


SEMANTICS = json.loads((DATA / "semantics_cases.json").read_text())


@pytest.mark.parametrize("case", SEMANTICS, ids=lambda c: f"{c['expr']} at {c['inputs']}")
def test_the_semantics_that_every_backend_keeps(pool, case):
    expr = parse(case["expr"], pool)
    point = {name: float(value) for name, value in case["inputs"].items()}
    if case["expected"] == "error":
        with pytest.raises(CodegenError, match="E-JIT-006"):
            eval_expr(expr, point)
        return
    got, want = eval_expr(expr, point), float(case["expected"])
    if math.isnan(want):
        assert math.isnan(got)
    elif math.isinf(want) or not want:
        assert (got, math.copysign(1, got)) == (want, math.copysign(1, want))
    else:
        assert abs(got - want) <= case["ulp"] * math.ulp(want)
