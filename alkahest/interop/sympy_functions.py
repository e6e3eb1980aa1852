"""Operations that SymPy has no name for, as SymPy functions with NumPy code of their own."""

from __future__ import annotations

from typing import Any

import sympy


class round_half_even(sympy.Function):
    """The nearest integer, ties to the even one: ``round`` here."""

    nargs = 1

    @classmethod
    def eval(cls, *args: Any) -> Any:
        """Numbers are rounded, integers are themselves."""
        (x,) = args
        if x.is_integer:
            return x
        if isinstance(x, (sympy.Rational, sympy.Float)):
            return sympy.Integer(round(sympy.Rational(x)))
        return None

    def fdiff(self, argindex: int = 1) -> Any:
        """A step function: 0 wherever there is a derivative."""
        return sympy.S.Zero

    def _numpycode(self, printer: Any) -> str:
        return f"{printer._module_format('numpy.rint')}({printer._print(self.args[0])})"


class truncate(sympy.Function):
    """The integer part, towards zero: ``trunc`` here."""

    nargs = 1

    @classmethod
    def eval(cls, *args: Any) -> Any:
        """Numbers are truncated, integers are themselves."""
        (x,) = args
        if x.is_integer:
            return x
        if isinstance(x, (sympy.Rational, sympy.Float)):
            return sympy.Integer(int(x))
        return None

    def fdiff(self, argindex: int = 1) -> Any:
        """A step function: 0 wherever there is a derivative."""
        return sympy.S.Zero

    def _numpycode(self, printer: Any) -> str:
        return f"{printer._module_format('numpy.trunc')}({printer._print(self.args[0])})"
