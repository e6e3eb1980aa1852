"""The heads of expressions: which exist, how many arguments they take, what they mean as a set.

A head is the name of what a node does to its arguments. Functions share their names with the
operations of :data:`alkahest.ops.OPS`; the operators of programs that expressions write otherwise
(``sub`` as a sum, ``div`` as a power, ``select`` as a piecewise) are no heads.
"""

from __future__ import annotations

from alkahest.ops import OPS

LEAVES = ("symbol", "integer", "rational", "float", "constant", "boolean")
"""Heads without arguments; ``Expr.value`` holds what they stand for."""

EXACT = frozenset(("integer", "rational"))
"""Leaves whose arithmetic is exact, and which construction therefore folds."""

NAMED_CONSTANTS = ("pi", "E", "I")
"""Values of ``constant`` leaves."""

RELATIONS = ("lt", "le", "gt", "ge", "eq", "ne")
"""Conditions that compare two numbers."""

LOGIC = ("and", "or", "not")
"""Conditions made of conditions."""

CONDITIONS = frozenset((*RELATIONS, *LOGIC, "boolean"))
"""Heads whose value is true or false."""

COMMUTATIVE = frozenset(("add", "mul", "min", "max", "and", "or"))
"""Heads that are flattened and whose arguments are sorted."""

_OPERATORS = {
    *("add", "sub", "mul", "div", "neg", "powi", "pow", "select", "complex"),
    *RELATIONS,
    *LOGIC,
}

FUNCTIONS: dict[str, int] = {name: op.arity for name, op in OPS.items() if name not in _OPERATORS}
"""Function heads and their arity; ``min`` and ``max`` take two arguments or more."""
