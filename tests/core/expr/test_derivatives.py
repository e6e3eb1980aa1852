"""Derivatives, checked against mpmath, SymPy and finite structure."""

import random

import mpmath
import pytest
import sympy

from alkahest.errors import DiffError, InputError, InputTypeError, PoolError
from alkahest.expr import (
    ExprPool,
    diff,
    eval_expr,
    gradient,
    heads,
    hessian,
    jacobian,
    log,
    parse,
    sin,
)
from alkahest.expr.walk import postorder
from alkahest.ops import OPS


@pytest.fixture
def pool():
    return ExprPool()


# Every rule of the op table


REFERENCES = {
    "abs": (abs, (-3, 3)),
    "sign": (mpmath.sign, (-3, 3)),
    "min": (min, (-3, 3), (-3, 3)),
    "max": (max, (-3, 3), (-3, 3)),
    "floor": (mpmath.floor, (-3, 3)),
    "ceil": (mpmath.ceil, (-3, 3)),
    "round": (mpmath.nint, (-3, 3)),
    "trunc": (lambda a: mpmath.floor(a) if a > 0 else mpmath.ceil(a), (-3, 3)),
    "mod": (lambda a, b: a - b * mpmath.floor(a / b), (-9, 9), (1, 2)),
    "exp": (mpmath.exp, (-3, 3)),
    "exp2": (lambda a: mpmath.power(2, a), (-3, 3)),
    "expm1": (mpmath.expm1, (-3, 3)),
    "log": (mpmath.log, (0.1, 5)),
    "log2": (lambda a: mpmath.log(a, 2), (0.1, 5)),
    "log10": (mpmath.log10, (0.1, 5)),
    "log1p": (mpmath.log1p, (-0.9, 5)),
    "sqrt": (mpmath.sqrt, (0.1, 5)),
    "rsqrt": (lambda a: 1 / mpmath.sqrt(a), (0.1, 5)),
    "cbrt": (mpmath.cbrt, (0.1, 5)),
    "hypot": (mpmath.hypot, (-3, 3), (-3, 3)),
    "sin": (mpmath.sin, (-3, 3)),
    "cos": (mpmath.cos, (-3, 3)),
    "tan": (mpmath.tan, (-1.5, 1.5)),
    "asin": (mpmath.asin, (-0.95, 0.95)),
    "acos": (mpmath.acos, (-0.95, 0.95)),
    "atan": (mpmath.atan, (-3, 3)),
    "atan2": (mpmath.atan2, (-3, 3), (0.1, 3)),
    "sinh": (mpmath.sinh, (-3, 3)),
    "cosh": (mpmath.cosh, (-3, 3)),
    "tanh": (mpmath.tanh, (-3, 3)),
    "asinh": (mpmath.asinh, (-3, 3)),
    "acosh": (mpmath.acosh, (1.1, 5)),
    "atanh": (mpmath.atanh, (-0.95, 0.95)),
    "erf": (mpmath.erf, (-2, 2)),
    "erfc": (mpmath.erfc, (-2, 2)),
    "erfinv": (mpmath.erfinv, (-0.9, 0.9)),
    "gamma": (mpmath.gamma, (0.1, 5)),
    "lgamma": (lambda a: mpmath.log(abs(mpmath.gamma(a))), (0.1, 5)),
    "j0": (mpmath.j0, (-9, 9)),
    "j1": (mpmath.j1, (-9, 9)),
    "y0": (lambda a: mpmath.bessely(0, a), (0.1, 9)),
    "y1": (lambda a: mpmath.bessely(1, a), (0.1, 9)),
    "fma": (lambda a, b, c: a * b + c, (-3, 3), (-3, 3), (-3, 3)),
}
"""Functions with a rule: a reference, and for each argument where to try it."""


def test_every_function_with_a_rule_has_a_reference():
    assert set(REFERENCES) == {name for name in heads.FUNCTIONS if OPS[name].derivative is not None}


@pytest.mark.parametrize("head", REFERENCES)
def test_the_rule_agrees_with_numerical_differentiation(head, pool):
    reference, *ranges = REFERENCES[head]
    symbols = [pool.symbol(name) for name in "xyz"][: len(ranges)]
    node = pool.func(head, symbols)
    partials = gradient(node, symbols)
    points = random.Random(head)
    for _ in range(5):
        point = [points.uniform(*bounds) for bounds in ranges]
        bindings = dict(zip(symbols, point, strict=True))
        for i, partial in enumerate(partials):
            order = tuple(int(i == j) for j in range(len(point)))
            with mpmath.workdps(40):
                expected = mpmath.diff(reference, tuple(map(mpmath.mpf, point)), order)
            assert eval_expr(partial, bindings) == pytest.approx(
                float(expected), rel=1e-11, abs=1e-14
            )


def test_the_derivative_of_j1_is_defined_at_zero(pool):
    x = pool.symbol("x")
    slope = diff(parse("j1(x)", pool), x)
    assert eval_expr(slope, {x: 0.0}) == 0.5


def test_the_chain_rule_applies_to_every_function(pool):
    x = pool.symbol("x")
    for head, (reference, *ranges) in REFERENCES.items():
        middle = [(low + high) / 2 + 0.01 for low, high in ranges]
        inner = [pool.float(m) + sin(x + i) / 8 for i, m in enumerate(middle)]

        def outer(t, reference=reference, middle=middle):
            return reference(*(m + mpmath.sin(t + i) / 8 for i, m in enumerate(middle)))

        got = eval_expr(diff(pool.func(head, inner), x), {x: 0.3})
        with mpmath.workdps(40):
            expected = mpmath.diff(outer, mpmath.mpf(0.3))
        assert got == pytest.approx(float(expected), rel=1e-11, abs=1e-14), head


# Sums, products, powers: by structure


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", "0"),
        ("y", "0"),
        ("x", "1"),
        ("x + y", "1"),
        ("x + x", "2"),
        ("x - x", "0"),
        ("3*x/2", "3/2"),
        ("0*x", "0"),
        ("x*x", "2*x"),
        ("x*y", "y"),
        ("x*sin(x)", "x*cos(x) + sin(x)"),
        ("x**2", "2*x"),
        ("x**3*y", "3*x**2*y"),
        ("1/x", "-x**(-2)"),
        ("x/y", "1/y"),
        ("x**(1/3)", "x**(-2/3)/3"),
        ("x**2.5", "2.5*x**1.5"),
        ("x**0.0", "0"),
        ("x**y", "y*x**(y - 1)"),
        ("2**x", "2**x*log(2)"),
        ("E**x", "E**x"),
        ("x**x", "x*x**(x - 1) + x**x*log(x)"),
        ("exp(x**2)", "2*x*exp(x**2)"),
        ("sqrt(x)", "1/(2*sqrt(x))"),
        ("log(y)*gamma(y)", "0"),
        ("digamma(y)", "0"),
        ("Abs(x)", "sign(x)"),
        ("floor(x) + sign(x) + round(x) + trunc(x) + ceil(x)", "0"),
        ("Mod(x, 3)", "1"),
        ("fma(x, x, y)", "2*x"),
        ("Max(x, y)", "Piecewise((1, x >= y), (0, x < y))"),
        ("Piecewise((1, x < y), (2, True))", "0"),
        (
            "Piecewise((x**2, x < y), (y, x < 1), (sin(x), True))",
            "Piecewise((2*x, x < y), (0, x < 1), (cos(x), True))",
        ),
    ],
)
def test_derivatives_carry_no_noise(pool, text, expected):
    x = pool.symbol("x")
    assert str(diff(parse(text, pool), x)) == str(parse(expected, pool))


def test_the_derivative_of_a_power_needs_no_logarithm_for_a_fixed_exponent(pool):
    x, y = pool.symbol("x"), pool.symbol("y")
    assert eval_expr(diff(x**y, x), {x: -2.0, y: 3.0}) == 12.0
    assert diff(x**y, y) is x**y * log(x)


def test_higher_derivatives_repeat_the_first(pool):
    x = pool.symbol("x")
    expr = parse("x**5*exp(2*x)", pool)
    assert diff(expr, x, 0) is expr
    assert diff(expr, x, 2) is diff(diff(expr, x), x)
    expected = sympy.diff(sympy.sympify("x**5*exp(2*x)"), "x", 4).subs("x", 1.25)
    assert eval_expr(diff(expr, x, 4), {x: 1.25}) == pytest.approx(float(expected), rel=1e-13)


# Selections


def test_a_branch_that_is_not_selected_has_no_effect(pool):
    x, y, z = (pool.symbol(name) for name in "xyz")
    guarded = parse("Piecewise((sqrt(x), x > 0), (0, True))*y + Max(log(x), y)*z", pool)
    at = {x: 0.5, y: 2.0, z: 3.0}
    assert eval_expr(diff(guarded, y), at) == pytest.approx(0.5**0.5 + 3)
    assert eval_expr(diff(guarded, x), at) == pytest.approx(2 * 0.5 / 0.5**0.5)
    slope = diff(parse("Piecewise((sqrt(x), x > 0), (0, True))", pool), x)
    assert [eval_expr(slope, {x: v}) for v in (4.0, 0.0, -1.0)] == [0.25, 0.0, 0.0]


def test_gradients_do_not_leak_through_branches_that_are_not_selected(pool):
    symbols = [pool.symbol(f"x{i}") for i in range(12)]
    total = pool.add([s * s for s in symbols])
    guarded = pool.piecewise([(total ** pool.rational(1, 2), total > 5), (total, True)])
    for _ in range(40):
        guarded = sin(guarded)
    rows = gradient(guarded, symbols)
    at = dict.fromkeys(symbols, 0.0)
    assert [eval_expr(row, at) for row in rows] == [0.0] * 12


def test_minimum_and_maximum_choose_the_derivative_of_what_they_choose(pool):
    x, y = pool.symbol("x"), pool.symbol("y")
    highest = diff(parse("Max(x**2, 3*x, y)", pool), x)
    lowest = diff(parse("Min(x**2, 3*x, y)", pool), x)
    assert [eval_expr(highest, {x: v, y: 7.0}) for v in (1.0, 2.5, 10.0)] == [0.0, 3.0, 20.0]
    assert [eval_expr(lowest, {x: v, y: 7.0}) for v in (1.0, 2.0, 10.0)] == [2.0, 4.0, 0.0]
    relu = diff(parse("Max(x, 0)", pool), x)
    assert [eval_expr(relu, {x: v}) for v in (-1.0, 0.0, 2.0)] == [0.0, 1.0, 1.0]
    assert eval_expr(relu, {x: float("nan")}) != eval_expr(relu, {x: float("nan")})


# Many variables


def test_gradient_jacobian_and_hessian_agree_with_single_derivatives(pool):
    x, y, z = symbols = [pool.symbol(name) for name in "xyz"]
    f, g = parse("x*y**2*sin(z) + x/y", pool), parse("exp(x*z)*y", pool)
    assert gradient(f, [x, y]) == [diff(f, x), diff(f, y)]
    assert jacobian([f, g], symbols) == [[diff(e, v) for v in symbols] for e in (f, g)]
    matrix = hessian(f, symbols)
    assert matrix[1][2] is matrix[2][1]
    at = {x: 1.25, y: 0.5, z: 2.0}
    for i, row in enumerate(matrix):
        for j, entry in enumerate(row):
            other = diff(diff(f, symbols[j]), symbols[i])
            assert eval_expr(entry, at) == pytest.approx(eval_expr(other, at), rel=1e-14, abs=1e-15)


def test_no_variables_and_no_expressions_give_empty_results(pool):
    x = pool.symbol("x")
    assert gradient(x, []) == []
    assert jacobian([], [x]) == []
    assert jacobian([x, 2 * x], []) == [[], []]
    assert hessian(x, []) == []


def test_adjoints_are_shared_where_many_variables_meet(pool):
    symbols = [pool.symbol(f"x{i}") for i in range(30)]
    expr = pool.add([i * s**2 for i, s in enumerate(symbols, 1)])
    for _ in range(100):
        expr = sin(expr) + 1 / expr
    rows = gradient(expr, symbols)
    assert sum(1 for _ in postorder(*rows)) < 1500  # 30 separate chains would be some 20,000
    at = {s: 0.01 * i for i, s in enumerate(symbols, 1)}
    for row, symbol in zip(rows[::10], symbols[::10], strict=True):
        single = eval_expr(diff(expr, symbol), at)
        assert eval_expr(row, at) == pytest.approx(single, rel=1e-10)


def random_layers(draw, symbols, *, selections):
    """Layers of random operations on top of a sum in which all symbols meet."""
    pool = symbols[0].pool
    layers = [pool.add([i * s * symbols[-i] for i, s in enumerate(symbols, 1)]), *symbols[:2]]
    for _ in range(40):
        one, two = layers[-1], draw.choice(layers)
        smooth = [
            lambda a, b: sin(a) + b / 3,
            lambda a, b: a / (b**2 + 1),
            lambda a, b: pool.func("tanh", [a]) * b - a,
            lambda a, b: pool.func("atan2", [a, 1 + b**2]),
            lambda a, b: pool.func("abs", [a]) - pool.func("mod", [b, 3]) / 7,
        ]
        choosing = [
            lambda a, b: pool.func("max", [a, b, 0.1 * a]),
            lambda a, b: pool.func("min", [a, -b]),
            lambda a, b: pool.piecewise([(a, a < b), (b * a / 2, a > 0.1), (sin(b), True)]),
        ]
        layers.append(draw.choice(smooth + choosing * selections)(one, two))
    return layers[-1]


@pytest.mark.parametrize("seed", range(10))
def test_gradients_by_many_variables_have_the_value_of_single_derivatives(seed, pool):
    draw = random.Random(seed)
    symbols = [pool.symbol(f"x{i:02}") for i in range(16)]
    expr = random_layers(draw, symbols, selections=seed % 3 == 0)
    at = {s: draw.uniform(-1, 1) for s in symbols}
    for row, symbol in zip(gradient(expr, symbols), symbols, strict=True):
        single = eval_expr(diff(expr, symbol), at)
        assert eval_expr(row, at) == pytest.approx(single, rel=1e-9, abs=1e-12)


# Errors


@pytest.mark.parametrize("head", ["digamma", "re", "im", "conjugate", "arg"])
def test_a_function_without_a_derivative_is_named(pool, head):
    x = pool.symbol("x")
    with pytest.raises(DiffError, match=f"{head} has no derivative here") as error:
        diff(x + pool.func(head, [x * x]), x)
    assert error.value.code == "E-DIFF-001"


def test_a_condition_has_no_derivative(pool):
    x = pool.symbol("x")
    with pytest.raises(DiffError, match=r"a condition \(lt\) has no derivative") as error:
        diff(x < 1, x)
    assert error.value.code == "E-DIFF-001"


def test_the_variable_must_be_a_symbol(pool):
    x = pool.symbol("x")
    for derive in (diff, lambda e, v: gradient(e, [v]), lambda e, v: hessian(e, [v])):
        with pytest.raises(DiffError, match="the variable must be a symbol, not add") as error:
            derive(x, x + 1)
        assert error.value.code == "E-DIFF-002"


def test_arguments_of_the_wrong_type_are_named(pool):
    x = pool.symbol("x")
    for call in (
        lambda: diff(3, x),
        lambda: diff(x, "x"),
        lambda: gradient("x", [x]),
        lambda: gradient(x, [1]),
        lambda: jacobian([x, None], [x]),
        lambda: diff(x, x, 1.0),
    ):
        with pytest.raises(InputTypeError) as error:
            call()
        assert error.value.code == "E-INPUT-008"
    with pytest.raises(InputError, match="-1 is negative") as negative:
        diff(x, x, -1)
    assert negative.value.code == "E-INPUT-011"


def test_variables_need_an_order(pool):
    x = pool.symbol("x")
    for variables in ({x}, "x", iter([x])):
        with pytest.raises(InputError, match="variables must be a list or tuple") as error:
            gradient(x, variables)
        assert error.value.code == "E-INPUT-007"


def test_variables_belong_to_the_pool_of_the_expression(pool):
    with pytest.raises(PoolError) as error:
        diff(pool.symbol("x"), ExprPool().symbol("x"))
    assert error.value.code == "E-POOL-001"


# Against SymPy

X, Y = sympy.symbols("x y")
_UNARY = (
    sympy.sin,
    sympy.exp,
    sympy.atan,
    sympy.tanh,
    sympy.erf,
    sympy.Abs,
    sympy.sinh,
    sympy.cosh,
)


def random_formula(draw, depth):
    """A SymPy expression that is defined everywhere near (0.7, 1.3)."""
    if depth == 0:
        return draw.choice([X, Y, sympy.Rational(draw.randint(1, 9), draw.randint(1, 4)), sympy.pi])
    one, two = random_formula(draw, depth - 1), random_formula(draw, depth - 1)
    third = random_formula(draw, depth - 2) if depth > 1 else X
    return draw.choice(
        [
            lambda: one + two,
            lambda: one * two,
            lambda: one - two / 3,
            lambda: one / (two**2 + 1),
            lambda: sympy.sqrt(one**2 + two**2 + 1),
            lambda: (one**2 + 1) ** sympy.Rational(2, 3),
            lambda: draw.choice(_UNARY)(one / (1 + one**2)),
            lambda: sympy.log(one**2 + 1, 2) * third,
            lambda: sympy.Max(one, two) + sympy.Min(one, third),
            lambda: sympy.Piecewise((one, (X < Y) & (X > 0)), (two, True)),
            lambda: sympy.Piecewise((one, sympy.Eq(X, Y)), (third, X >= Y), (two, True)),
            lambda: sympy.besselj(0, one) - sympy.Heaviside(two - third) * third,
        ]
    )()


@pytest.mark.parametrize("seed", range(40))
def test_formulas_from_sympy_have_the_same_value_and_derivative(seed, pool):
    formula = random_formula(random.Random(seed), 3)
    expr = parse(str(formula), pool, symbols=["x", "y"])
    assert parse(str(expr), pool) is expr
    at = {"x": 0.7, "y": 1.3}
    substitution = {X: sympy.Float(0.7, 40), Y: sympy.Float(1.3, 40)}
    expected = formula.subs(substitution).evalf(30)
    assert eval_expr(expr, at) == pytest.approx(float(expected), rel=1e-11, abs=1e-12)
    with mpmath.workdps(40):
        step = sympy.Float("1e-12", 40)
        sides = [formula.subs({X: substitution[X] + s, Y: substitution[Y]}) for s in (step, -step)]
        slope = (sides[0].evalf(40) - sides[1].evalf(40)) / (2 * step)
    got = eval_expr(diff(expr, pool.symbol("x")), at)
    assert got == pytest.approx(float(slope), rel=1e-9, abs=1e-11)
