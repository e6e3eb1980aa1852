"""Expressions of SymPy in and out, and its calling convention. SymPy is imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from alkahest.errors import install

if TYPE_CHECKING:
    from alkahest.interop.lambdified import LambdifiedFunction, lambdify
    from alkahest.interop.sympy_reader import from_sympy
    from alkahest.interop.sympy_writer import to_sympy

_HOMES = {
    "from_sympy": "alkahest.interop.sympy_reader",
    "to_sympy": "alkahest.interop.sympy_writer",
    "lambdify": "alkahest.interop.lambdified",
    "LambdifiedFunction": "alkahest.interop.lambdified",
}

__all__ = ["LambdifiedFunction", "from_sympy", "lambdify", "to_sympy"]


def __getattr__(name: str) -> Any:
    """Load a name with the module that needs SymPy (PEP 562)."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "sympy":
            raise
        raise ModuleNotFoundError(
            f"{name} needs SymPy, which is not installed; {install('sympy')}", name="sympy"
        ) from error
