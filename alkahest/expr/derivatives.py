"""Derivatives with respect to symbols.

Rules come from the op table; sums, products, powers and selections have theirs here. What is
structurally zero is left out, exact numbers are multiplied out, and nothing else is simplified.

Conventions:

- ``abs``, ``sign``, ``floor``, ``ceil``, ``round``, ``trunc`` and ``mod`` are differentiated
  where they are smooth: ``sign`` and the roundings have derivative 0, ``abs`` has ``sign``.
- ``Piecewise`` is differentiated branch by branch under the same conditions, ``min`` and ``max``
  like the piecewise they are, the first of equal arguments winning; nan stays nan. A branch that
  is not selected has no effect, be it infinite or nan.
- Symbols are real variables, or complex ones where only analytic functions occur.

Nothing recurses, and time is linear in the number of nodes above a variable; a product of k
factors with the variable gives k terms of k factors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from alkahest.errors import DiffError, InputError, InputTypeError, PoolError
from alkahest.expr.derivative_rules import SELECTIONS, Partial, cofactors, partial, selection
from alkahest.expr.nodes import Expr
from alkahest.expr.pool import ExprPool
from alkahest.expr.walk import postorder


def diff(expr: Expr, var: Expr, n: int = 1) -> Expr:
    """The ``n``-th derivative of ``expr`` with respect to the symbol ``var``.

    Raises:
        DiffError: E-DIFF-001 for a condition, or for ``digamma``, ``re``, ``im``, ``conjugate``
            or ``arg`` of something that depends on ``var``; E-DIFF-002 when ``var`` is no symbol.
        InputTypeError: E-INPUT-008 for arguments of the wrong type.
        InputError: E-INPUT-011 for a negative ``n``.
        PoolError: E-POOL-001 when ``var`` belongs to another pool.
    """
    _check([expr], [var])
    if not isinstance(n, int):
        raise InputTypeError("E-INPUT-008", f"n must be an int, not {type(n).__name__}")
    if n < 0:
        raise InputError("E-INPUT-011", f"n counts derivatives; {n} is negative")
    for _ in range(n):
        expr = _Graph([expr]).forward(var)[0]
    return expr


def gradient(expr: Expr, variables: Sequence[Expr]) -> list[Expr]:
    """The derivatives of ``expr`` with respect to each of ``variables``, in their order.

    Where many variables meet in common parts, and no selection lies above them, the adjoints of
    the parts are shared, so that a result can be arranged differently from that of :func:`diff`.

    Raises:
        DiffError, InputTypeError, PoolError: as :func:`diff`.
        InputError: E-INPUT-007 when ``variables`` has no order.
    """
    return jacobian([expr], variables)[0]


def jacobian(exprs: Sequence[Expr], variables: Sequence[Expr]) -> list[list[Expr]]:
    """Row i, column j: the derivative of ``exprs[i]`` with respect to ``variables[j]``.

    Raises:
        DiffError, InputTypeError, InputError, PoolError: as :func:`gradient`.
    """
    exprs, variables = _ordered("exprs", exprs), _ordered("variables", variables)
    _check(exprs, variables)
    if len(variables) > 2 * len(exprs):
        return [_gradient(expr, variables) for expr in exprs]
    graph = _Graph(exprs)
    columns = [graph.forward(var) for var in variables]
    return [[column[i] for column in columns] for i in range(len(exprs))]


def hessian(expr: Expr, variables: Sequence[Expr]) -> list[list[Expr]]:
    """The symmetric matrix of second derivatives of ``expr`` by ``variables``, as a list of rows.

    Entries (i, j) and (j, i) are the same node.

    Raises:
        DiffError, InputTypeError, InputError, PoolError: as :func:`gradient`.
    """
    first = gradient(expr, variables)
    upper = [gradient(entry, variables[i:]) for i, entry in enumerate(first)]
    size = range(len(first))
    return [[upper[min(i, j)][abs(i - j)] for j in size] for i in size]


def _gradient(expr: Expr, variables: Sequence[Expr]) -> list[Expr]:
    graph = _Graph([expr])
    if graph.adjoints_are_shorter(variables):
        return graph.reverse(variables)
    return [graph.forward(var)[0] for var in variables]


class _Scaled(NamedTuple):
    """A derivative under construction: ``factor * core``, or ``factor`` alone.

    Exact factors stay outside the pool until the end: in a chain of 10^5 halvings they would
    leave as many ever longer numbers there.
    """

    factor: int | Fraction
    core: Expr | None = None

    def times(self, partial: Partial, count: int) -> _Scaled:
        """This derivative times a partial derivative that occurs ``count`` times."""
        number, factors = partial
        if count != 1:
            number *= count
        factor = self.factor if number == 1 else self.factor * number
        if not factor:
            return _ZERO
        if self.core is not None:
            factors = (*factors, self.core)
        if len(factors) < 2:
            return _Scaled(factor, *factors)
        return _Scaled(factor, factors[0].pool.mul(factors))

    def built(self, pool: ExprPool) -> Expr:
        """As an expression."""
        if self.core is None:
            return pool.constant(self.factor)
        return self.core if self.factor == 1 else pool.mul((self.factor, self.core))


_ONE, _ZERO = _Scaled(1), _Scaled(0)
_UNIT: Partial = (1, ())
_WIDE = 8  # factors from which on all cofactors of a product are made together
_WORTH_IT = 4  # how many times the cost of one pass the alternative may cost


def _total(parts: Sequence[_Scaled], pool: ExprPool) -> _Scaled:
    """The sum of ``parts``; 0 when there are none."""
    if len(parts) == 1:
        return parts[0]
    number = sum(p.factor for p in parts if p.core is None)
    terms = [p.built(pool) for p in parts if p.core is not None]
    return _Scaled(1, pool.add([*terms, number])) if terms else _Scaled(number)


class _Conditions:
    """The container of all conditions."""

    def __contains__(self, node: object) -> bool:
        return isinstance(node, Expr) and node.is_condition


class _Graph:
    """The nodes below some roots, with the edges that derivatives take.

    Conditions are not entered: they choose between derivatives and have none.
    """

    def __init__(self, roots: Sequence[Expr]) -> None:
        for root in roots:
            if root.is_condition:
                raise DiffError("E-DIFF-001", f"a condition ({root.head}) has no derivative")
        self.roots = roots
        self.order: dict[Expr, int] = {}
        self.above: dict[Expr, list[tuple[Expr, int]]] = {}
        self.partials: dict[tuple[Expr, int], Partial] = {}
        for node in postorder(*roots, stop=_Conditions()):
            self.order[node] = len(self.order)
            if node.is_condition:
                continue
            for position, arg in enumerate(node.args):
                if not arg.is_condition:
                    self.above.setdefault(arg, []).append((node, position))

    def touched(self, variables: Iterable[Expr]) -> list[tuple[Expr, list[int]]]:
        """The nodes above ``variables`` in post-order, with the arguments that lead there."""
        positions: dict[Expr, list[int]] = {}
        pending = [var for var in dict.fromkeys(variables) if var in self.order]
        while pending:
            for node, position in self.above.get(pending.pop(), ()):
                if node not in positions:
                    positions[node] = []
                    pending.append(node)
                positions[node].append(position)
        return [(node, positions[node]) for node in sorted(positions, key=self.order.__getitem__)]

    def forward(self, var: Expr) -> list[Expr]:
        """The derivatives of the roots with respect to ``var``."""
        pool = var.pool
        known = {var: _ONE}  # what is missing is zero
        waiting: Counter[Expr] = Counter(self.roots)  # of the results, who still needs them
        for node, positions in self.touched([var]):
            args = node.args
            inner = {i: known[args[i]] for i in positions if args[i] in known}
            if node.head in SELECTIONS and inner:
                built = {i: inner[i].built(pool) for i in sorted(inner)}
                total = _Scaled(1, selection(node, built))
            else:
                edges = self.edges(node, inner).items()
                total = _total([known[arg].times(p, count) for (arg, p), count in edges], pool)
            if total.factor != 0:
                known[node] = total
                waiting[node] += len(self.above.get(node, ()))
            for i in inner:
                waiting[args[i]] -= 1
                if not waiting[args[i]]:
                    del known[args[i]]
        return [known.get(root, _ZERO).built(pool) for root in self.roots]

    def edges(self, node: Expr, positions: Iterable[int]) -> Counter[tuple[Expr, Partial]]:
        """How often each (argument, partial derivative) occurs; ``x*x`` has (x, x) twice."""
        args = node.args
        if node.head == "add":
            return Counter([(args[i], _UNIT) for i in positions])
        return Counter([(args[i], self.partial(node, i)) for i in positions])

    def partial(self, node: Expr, position: int) -> Partial:
        """The partial derivative of ``node``, made once for all variables."""
        found = self.partials.get((node, position))
        if found is None:
            if node.head == "mul" and len(node.args) > _WIDE:
                for i, others in enumerate(cofactors(node)):
                    self.partials[node, i] = others
                return self.partials[node, position]
            found = self.partials[node, position] = partial(node, position)
        return found

    def adjoints_are_shorter(self, variables: Sequence[Expr]) -> bool:
        """Whether :meth:`reverse` gives less than one forward run per variable.

        Not where an adjoint is a long product that sums keep having to repeat, as in a chain
        whose every step has the variable: a forward run nests the same result. And not through
        selections: multiplied by the zero that stands for "not selected", an infinite derivative
        further down would be nan.
        """
        touched = self.touched(variables)
        if any(node.head in SELECTIONS for node, _ in touched):
            return False
        edges = sum(len(positions) for _, positions in touched)
        lengths: dict[Expr, list[int]] = {self.roots[0]: [0]}
        written = 0
        for node, positions in reversed(touched):
            mine = lengths[node]
            length = mine[0] if len(mine) == 1 else 1
            written += sum(mine) if len(mine) > 1 else 0
            for i in positions:
                lengths.setdefault(node.args[i], []).append(length + (node.head != "add"))
        written += sum(sum(lengths.get(var, ())) for var in set(variables))
        if written > _WORTH_IT * edges:
            return False
        visited = 0
        for var in set(variables):
            visited += sum(len(positions) for _, positions in self.touched([var]))
            if visited > _WORTH_IT * edges:
                return True
        return False

    def reverse(self, variables: Sequence[Expr]) -> list[Expr]:
        """The derivatives of the only root, without selections, by each of ``variables``."""
        (root,) = self.roots
        pool = root.pool
        adjoints: dict[Expr, list[_Scaled]] = {root: [_ONE]}
        for node, positions in reversed(self.touched(variables)):
            total = _total(adjoints.pop(node, ()), pool)
            if total.factor != 0:
                for (arg, p), count in self.edges(node, positions).items():
                    adjoints.setdefault(arg, []).append(total.times(p, count))
        return [_total(adjoints.get(var, ()), pool).built(pool) for var in variables]


def _ordered(what: str, values: object) -> list[Expr]:
    if isinstance(values, Sequence) and not isinstance(values, str):
        return list(values)
    raise InputError("E-INPUT-007", f"{what} must be a list or tuple, not {type(values).__name__}")


def _check(exprs: Sequence[object], variables: Sequence[object]) -> None:
    """Refuse everything but expressions, and symbols of their pool."""
    pools = []
    for node in (*exprs, *variables):
        if not isinstance(node, Expr):
            message = f"derivatives take expressions, not {type(node).__name__}"
            raise InputTypeError("E-INPUT-008", message)
        pools.append(node.pool)
    for var in variables:
        if isinstance(var, Expr) and var.head != "symbol":
            raise DiffError(
                "E-DIFF-002",
                f"the variable must be a symbol, not {var.head}",
                remediation="Put a symbol in its place with subs, differentiate, and put it back.",
            )
    if any(pool is not pools[0] for pool in pools):
        raise PoolError("E-POOL-001", "expression and variable belong to different pools")
