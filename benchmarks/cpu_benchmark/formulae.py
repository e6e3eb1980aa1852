"""The twelve rows: what is evaluated, on which points, and in which forms.

Everybody gets the same straight-line program, made from SymPy's expressions after its own common
subexpression elimination. For polynomials there is a second form, nested by hand, so that no peer
loses because it does not nest by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import sympy as sp

SMALL, LARGE = 10**6, 10**7
"""Points of the largest size: less where a point takes long or has many columns."""

FUNCTIONS = "sin cos exp log sqrt sinh erf atan2".split()


@attrs.frozen(kw_only=True)
class Row:
    """One row.

    Attributes:
        name: of the row.
        title: what it is.
        symbols: the inputs.
        outputs: the expressions.
        low, high: bounds of the inputs; one number for all, or one per input.
        largest: number of points of the largest size.
        aims: time over the best peer's that the row should reach at 10**5 points and at most.
        nested: the outputs in nested form, or None.
    """

    name: str
    title: str
    symbols: Sequence[sp.Symbol]
    outputs: Sequence[sp.Expr]
    low: Any
    high: Any
    largest: int = LARGE
    aims: tuple[float, float]
    nested: Sequence[sp.Expr] | None = None

    def columns(self, n: int, seed: int = 0) -> Any:
        """Points, drawn evenly: an array of shape (inputs, n)."""
        import numpy as np

        generator = np.random.default_rng(seed)
        columns = np.empty((len(self.symbols), n))
        low, high = (self._per_input(bound) for bound in (self.low, self.high))
        for column, a, b in zip(columns, low, high, strict=True):
            column[...] = generator.uniform(a, b, n)
        return columns

    def _per_input(self, bound: Any) -> Sequence[float]:
        return bound if isinstance(bound, list) else [bound] * len(self.symbols)

    def program(self, form: str) -> list[list[Any]] | None:
        """The straight-line program of a form, ``"same"`` or ``"nested"``; None where there is none.

        A list of ``[operation, operand, ...]``, operands being positions in the list; the last one
        is ``["outputs", ...]``.
        """
        if form == "same":
            return straight_line(self.symbols, self.outputs, share=True)
        if self.nested is None:
            return None
        return straight_line(self.symbols, self.nested, share=False)


def rows() -> list[Row]:
    """All of them, in the order of the tables."""
    x, y, z = sp.symbols("x y z")
    ratio = sp.Rational
    poly16 = sum(ratio((-1) ** k * (k + 1), 2 * k + 1) * x**k for k in range(17))
    poly3 = 1 + 2 * x - ratio(3, 2) * x**2 + x**3 / 7
    degree8 = sp.Add(*_degree_eight(x, y, z))
    return [
        Row(
            name="seed",
            title="sin(x) cos(y) + (x² + y²)/100",
            symbols=[x, y],
            outputs=[sp.sin(x) * sp.cos(y) + (x**2 + y**2) / 100],
            low=-10,
            high=10,
            aims=(0.65, 0.85),
        ),
        Row(
            name="poly3",
            title="a cubic",
            symbols=[x],
            outputs=[poly3],
            nested=[sp.horner(poly3)],
            low=-10,
            high=10,
            aims=(1.05, 1.0),
        ),
        Row(
            name="poly16",
            title="degree 16, expanded",
            symbols=[x],
            outputs=[poly16],
            nested=[sp.horner(poly16)],
            low=-1.2,
            high=1.2,
            aims=(0.65, 0.9),
        ),
        Row(
            name="poly3v8",
            title="dense, three variables, degree 8: 165 terms",
            symbols=[x, y, z],
            outputs=[degree8],
            nested=[sp.horner(degree8, wrt=[x, y, z])],
            low=-1.2,
            high=1.2,
            aims=(0.6, 0.7),
        ),
        Row(
            name="damped",
            title="exp(-x/4) sin(x) + sqrt(x + 1)",
            symbols=[x],
            outputs=[sp.exp(-x / 4) * sp.sin(x) + sp.sqrt(x + 1)],
            low=0,
            high=20,
            aims=(0.65, 0.85),
        ),
        Row(
            name="special",
            title="atan2(y, x) + sinh(x/3) + erf(y)",
            symbols=[x, y],
            outputs=[sp.atan2(y, x) + sp.sinh(x / 3) + sp.erf(y)],
            low=-5,
            high=5,
            aims=(0.45, 0.55),
        ),
        Row(
            name="rational",
            title="cubic over quartic",
            symbols=[x, y],
            outputs=[(x**3 - 2 * x * y + y**2 + 1) / (x**2 * y**2 + 3 * x**2 + 2 * y**2 + 5)],
            low=-10,
            high=10,
            aims=(0.85, 0.95),
        ),
        Row(
            name="chain200",
            title="200 operations one after the other, 40 sines, 40 roots, 40 divisions",
            symbols=[x, y],
            outputs=[_chain(x, y)],
            low=-2,
            high=2,
            largest=SMALL,
            aims=(0.45, 0.45),
        ),
        _sum500(),
        _rosen10(),
        _arm6(),
        _black_scholes(),
    ]


def _degree_eight(x: Any, y: Any, z: Any) -> list[Any]:
    terms, q = [], 7
    for i in range(9):
        for j in range(9 - i):
            for k in range(9 - i - j):
                q = q * 131 % 1009
                terms.append(sp.Rational(q - 500, 97) * x**i * y**j * z**k)
    return terms


def _chain(x: Any, y: Any) -> Any:
    u = x
    for k in range(40):
        u = sp.sin(u * y + sp.Rational(k + 1, 41))
        u = sp.sqrt(1 + u**2) - x / (k + 2)
        u = 1 / (2 + u**2)
    return u


def _sum500() -> Row:
    v = sp.symbols("v0:32")
    coefficients: dict[int, list[Any]] = {}
    count, q = 0, 11
    for i in range(32):
        for j in range(i, 32):
            if count < 500:
                count += 1
                q = q * 131 % 1009
                coefficients.setdefault(i, []).append(sp.Rational(q - 504, 61) * v[j])
    return Row(
        name="sum500",
        title="500 products of 32 variables",
        symbols=v,
        outputs=[sp.Add(*(v[i] * term for i, terms in coefficients.items() for term in terms))],
        nested=[
            sp.Add(
                *(
                    sp.Mul(v[i], sp.Add(*terms, evaluate=False), evaluate=False)
                    for i, terms in coefficients.items()
                ),
                evaluate=False,
            )
        ],
        low=-1,
        high=1,
        largest=SMALL,
        aims=(0.95, 1.0),
    )


def _rosen10() -> Row:
    w = sp.symbols("w0:10")
    f = sum(100 * (w[i + 1] - w[i] ** 2) ** 2 + (1 - w[i]) ** 2 for i in range(9))
    return Row(
        name="rosen10",
        title="Rosenbrock's function of ten variables and its gradient",
        symbols=w,
        outputs=[f, *(sp.diff(f, a) for a in w)],
        low=-2,
        high=2,
        largest=SMALL,
        aims=(0.95, 0.95),
    )


def _arm6() -> Row:
    """The Jacobian of a robot's arm with six joints, from its Denavit-Hartenberg table."""
    q = sp.symbols("q1:7")
    ratio = sp.Rational
    links = [
        (ratio(9, 100), 0, sp.pi / 2),
        (0, ratio(-17, 40), 0),
        (0, ratio(-39, 100), 0),
        (ratio(11, 100), 0, sp.pi / 2),
        (ratio(19, 200), 0, -sp.pi / 2),
        (ratio(41, 500), 0, 0),
    ]
    pose = sp.eye(4)
    axes, places = [sp.Matrix([0, 0, 1])], [sp.Matrix([0, 0, 0])]
    for (d, a, twist), angle in zip(links, q, strict=True):
        c, s, ct, st = sp.cos(angle), sp.sin(angle), sp.cos(twist), sp.sin(twist)
        pose = pose * sp.Matrix(
            [[c, -s * ct, s * st, a * c], [s, c * ct, -c * st, a * s], [0, st, ct, d], [0, 0, 0, 1]]
        )
        axes.append(pose[:3, 2])
        places.append(pose[:3, 3])
    jacobian = places[-1].jacobian(list(q))
    outputs = [jacobian[i, j] for i in range(3) for j in range(6)]
    outputs += [axes[j][i] for i in range(3) for j in range(6)]
    return Row(
        name="arm6",
        title="Jacobian of an arm with six joints: 36 outputs",
        symbols=q,
        outputs=[sp.sympify(output) for output in outputs],
        low=-3.1,
        high=3.1,
        largest=SMALL,
        aims=(0.95, 0.95),
    )


def _black_scholes() -> Row:
    s, k, t, r, v = sp.symbols("S K T r sigma", positive=True)

    def normal(a: Any) -> Any:
        return (1 + sp.erf(a / sp.sqrt(2))) / 2

    d1 = (sp.log(s / k) + (r + v**2 / 2) * t) / (v * sp.sqrt(t))
    price = s * normal(d1) - k * sp.exp(-r * t) * normal(d1 - v * sp.sqrt(t))
    wanted = [price, price.diff(s), price.diff(s, 2), price.diff(v), price.diff(t), price.diff(r)]
    return Row(
        name="black-scholes",
        title="price of an option and five sensitivities",
        symbols=[s, k, t, r, v],
        outputs=wanted,
        low=[50, 50, 0.1, 0.0, 0.1],
        high=[150, 150, 2, 0.1, 0.6],
        largest=SMALL,
        aims=(0.55, 0.6),
    )


def straight_line(
    symbols: Sequence[Any], outputs: Sequence[Any], *, share: bool
) -> list[list[Any]]:
    """SymPy's expressions as a list of operations; see :meth:`Row.program`."""
    shared, reduced = sp.cse(list(outputs)) if share else ([], list(outputs))
    code: list[list[Any]] = []
    places: dict[Any, int] = {}

    def put(expression: Any, *operation: Any) -> None:
        code.append(list(operation))
        places[expression] = len(code) - 1

    for symbol in symbols:
        put(symbol, "symbol", str(symbol))
    for name, expression in shared:
        places[name] = _add(expression, places, put)
    code.append(["outputs", *(_add(sp.sympify(output), places, put) for output in reduced)])
    return code


def _add(root: Any, places: dict[Any, int], put: Callable[..., None]) -> int:
    stack = [root]
    while stack:
        e = stack[-1]
        if e in places:
            stack.pop()
            continue
        is_power = e.is_Pow and e.exp.is_Rational
        missing = [a for a in ((e.base,) if is_power else e.args) if a not in places]
        if missing:
            stack += missing
            continue
        stack.pop()
        operands = [places[a] for a in ((e.base,) if is_power else e.args)]
        if not e.args:
            put(e, "number", *((int(e.p), int(e.q)) if e.is_Rational else (float(e), 1)))
        elif e.is_Add or e.is_Mul:
            put(e, "add" if e.is_Add else "mul", *operands)
        elif is_power:
            _put_power(e, operands[0], put)
        elif e.is_Pow:
            put(e, "pow", *operands)
        else:
            put(e, type(e).__name__.lower(), *operands)
    return places[root]


def _put_power(e: Any, base: int, put: Callable[..., None]) -> None:
    if e.exp.is_Integer:
        put(e, "power", base, int(e.exp))
    elif (2 * e.exp).is_Integer:
        put(e, "root-power", base, int(2 * e.exp))
    else:
        raise ValueError(f"{e} has an exponent that the rows do not need")


Operations = Mapping[str, Callable[..., Any]]


def rebuild(program: Sequence[Sequence[Any]], operations: Operations) -> list[Any]:
    """The outputs as objects of a library that has ``operations``.

    ``symbol(name)``, ``number(p, q)``, ``add``, ``mul``, ``power(base, k)``, ``pow`` and the
    functions; operands are given as objects.
    """
    values: list[Any] = []
    for operation, *operands in program:
        if operation in ("symbol", "number"):
            values.append(operations[operation](*operands))
        elif operation == "power":
            values.append(operations["power"](values[operands[0]], operands[1]))
        elif operation == "root-power":
            root = operations["sqrt"](values[operands[0]])
            values.append(root if operands[1] == 1 else operations["power"](root, operands[1]))
        elif operation == "outputs":
            return [values[k] for k in operands]
        else:
            found = operations[operation]
            first, *others = [values[k] for k in operands]
            if operation in ("add", "mul"):
                for other in others:
                    first = found(first, other)
                values.append(first)
            else:
                values.append(found(first, *others))
    raise ValueError("a program ends with its outputs")
