"""Expressions as LaTeX."""

import re

import pytest
from casefiles import workloads

from alkahest.errors import InputTypeError
from alkahest.expr import ExprPool, heads, latex, parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x**2 + 1/y", r"x^{2} + \frac{1}{y}"),
        ("x - y", "x - y"),
        ("x - 2*y", "x - 2 y"),
        ("-(x + y)", r"-\left(x + y\right)"),
        ("a - (b - c)", r"a - \left(b - c\right)"),
        ("(x + 1)*(y - 1)", r"\left(x + 1\right) \left(y - 1\right)"),
        ("(x + 1)/(y - 1)", r"\frac{x + 1}{y - 1}"),
        ("2*(x + 1)/3", r"\frac{2 \left(x + 1\right)}{3}"),
        ("x*x", r"x \cdot x"),
        ("2*x*x*y/(z*z)", r"\frac{2 x \cdot x y}{z \cdot z}"),
        ("-x/2", r"-\frac{x}{2}"),
        ("2*x/3/y", r"\frac{2 x}{3 y}"),
        ("3*(x + y)**-2", r"\frac{3}{\left(x + y\right)^{2}}"),
        ("x**(-1/2)", r"\frac{1}{x^{1/2}}"),
        ("x/(y/z)", r"\frac{x}{\frac{y}{z}}"),
        ("(1/2)**x", r"\left(\frac{1}{2}\right)^{x}"),
        ("(-1)**x", r"\left(-1\right)^{x}"),
        ("(1/x)**2", r"\left(\frac{1}{x}\right)^{2}"),
        ("-1/2", r"-\frac{1}{2}"),
        ("x - 1/2", r"x - \frac{1}{2}"),
        ("sqrt(x) + cbrt(y)", r"\sqrt{x} + \sqrt[3]{y}"),
        ("x**(y + 1)", "x^{y + 1}"),
        ("(x**y)**z", r"\left(x^{y}\right)^{z}"),
        ("exp(-x)**2", r"\left(e^{-x}\right)^{2}"),
        ("sin(x)**2", r"\sin^{2}\left(x\right)"),
        ("sin(x)**y", r"\left(\sin\left(x\right)\right)^{y}"),
        ("erfinv(x)**2", r"\left(\operatorname{erf}^{-1}\left(x\right)\right)^{2}"),
        ("alpha*omega_0 - x_1*x2", r"\alpha \omega_{0}"),
        ("x_1*x2", "x_{2} x_{1}"),
        ("beta_max + mass + v_x", r"\beta_{\mathrm{max}} + \mathrm{mass} + v_{x}"),
        ("`a b_c%`", r"\text{a b\_c\%}"),
        ("`\\beta`", r"\text{\textbackslash{}beta}"),
        ("pi*I*x", r"\pi i x"),
        ("1.5e-7*x", r"1.5 \cdot 10^{-7} x"),
        ("2*3.0*x", r"2 \cdot 3.0 x"),
        ("x*2.0**y", r"x \cdot 2.0^{y}"),
        ("-2.5*x", "-2.5 x"),
        ("x*exp2(y)", r"x \cdot 2^{y}"),
        ("atan2(-oo, nan)", r"\operatorname{atan2}\left(-\infty, \text{nan}\right)"),
        ("Abs(x) + floor(y)", r"\left|x\right| + \left\lfloor y\right\rfloor"),
        ("2*Mod(x, y)", r"2 \left(x \bmod y\right)"),
        ("2*expm1(x)", r"2 \left(e^{x} - 1\right)"),
        ("log1p(x + y)", r"\log\left(1 + \left(x + y\right)\right)"),
        ("gamma(x)*gamma", r"\gamma \Gamma\left(x\right)"),
        ("(x <= y) & Ne(z, 1)", r"\left(x \leq y\right) \wedge \left(z \neq 1\right)"),
        ("Eq(x, 1) | (x <= y)", r"\left(x = 1\right) \vee \left(x \leq y\right)"),
        ("~(x < 1)", r"\neg \left(x < 1\right)"),
        (
            "Piecewise((x**2, x < 0), (1, True))",
            r"\begin{cases} x^{2} & \text{for}\: x < 0 \\ 1 & \text{otherwise} \end{cases}",
        ),
        (
            "2*Piecewise((x, x >= 0))",
            r"2 \left(\begin{cases} x & \text{for}\: x \geq 0 \end{cases}\right)",
        ),
    ],
)
def test_mathematics_is_written_as_people_write_it(text, expected):
    assert expected in latex(parse(text, ExprPool()))


def test_every_head_has_a_notation():
    pool = ExprPool()
    x, y, z = (pool.symbol(name) for name in "xyz")
    for head, arity in heads.FUNCTIONS.items():
        text = latex(pool.func(head, [x, y, z][:arity]))
        assert "x" in text
        assert_balanced(text)
    for head in heads.RELATIONS:
        assert latex(pool.func(head, [x, y])).startswith("x ")


def assert_balanced(text):
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    assert text.count(r"\left") == text.count(r"\right")
    assert len(re.findall(r"\\begin", text)) == len(re.findall(r"\\end", text))


@pytest.mark.parametrize("workload", workloads(), ids=str)
def test_published_formulae_give_balanced_latex(workload):
    for expr in workload.expressions(ExprPool())[0]:
        assert_balanced(latex(expr))


def test_notebooks_show_expressions():
    x = ExprPool().symbol("x")
    shown = r"$\displaystyle x^{2}$"
    assert (x**2)._repr_latex_() == shown
    assert (x**2)._repr_mimebundle_() == {"text/plain": "x**2", "text/latex": shown}


def test_only_expressions_have_latex():
    with pytest.raises(InputTypeError, match="latex takes an expression, not str") as error:
        latex("x")
    assert error.value.code == "E-INPUT-008"


def test_repeated_parts_of_huge_expressions_are_named_and_explained():
    pool = ExprPool()
    expr = pool.symbol("x")
    for _ in range(30):
        expr = pool.func("hypot", [expr, expr])
    text = latex(expr)
    assert len(text) < 3000
    main, where, parts = text.partition(r" \quad\text{where}\quad ")
    assert main == r"\operatorname{hypot}\left(s_{27}, s_{27}\right)"
    assert where
    assert parts.endswith(r",\; s_{27} = \operatorname{hypot}\left(s_{26}, s_{26}\right)")
    assert_balanced(text)
