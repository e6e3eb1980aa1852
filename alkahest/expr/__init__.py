"""Symbolic expressions: making, reading, writing, changing and evaluating them.

Every name that users need is here; the submodules say how it works, from :mod:`.nodes` and
:mod:`.pool` up. ``abs``, ``max``, ``min`` and ``round`` are here as well, but not in ``__all__``:
importing star-wise leaves the built-in functions alone.
"""

from alkahest.expr import functions
from alkahest.expr.derivatives import diff, gradient, hessian, jacobian
from alkahest.expr.evaluate import eval_expr
from alkahest.expr.functions import *  # noqa: F403 - every function, listed in functions.__all__
from alkahest.expr.functions import abs as abs
from alkahest.expr.functions import max as max
from alkahest.expr.functions import min as min
from alkahest.expr.functions import round as round
from alkahest.expr.latex import latex
from alkahest.expr.nodes import Expr
from alkahest.expr.parser import parse
from alkahest.expr.pool import ExprPool, default_pool, symbol, symbols
from alkahest.expr.substitution import subs

__all__ = [
    "Expr",
    "ExprPool",
    "default_pool",
    "diff",
    "eval_expr",
    "functions",
    "gradient",
    "hessian",
    "jacobian",
    "latex",
    "parse",
    "subs",
    "symbol",
    "symbols",
]
__all__ += functions.__all__
