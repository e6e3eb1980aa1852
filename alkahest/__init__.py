"""Symbolic expressions in; fast, trustworthy numbers out, on whatever hardware is really there."""

from __future__ import annotations

try:
    from pkgutil import extend_path
    from typing import TYPE_CHECKING, Any

    # The portions of other distributions may be installed elsewhere: core editable and a plugin as
    # a wheel, or the reverse. Must come before anything of the package is imported.
    __path__ = extend_path(__path__, __name__)

    # Imported now: importing the submodule later would put the module in the function's place.
    from alkahest.capabilities import capabilities
except KeyboardInterrupt:
    # The command line has to import this before it can catch anything itself.
    from alkahest.cli import interrupted, is_this_process

    if not is_this_process():
        raise
    raise SystemExit(interrupted()) from None

__version__ = "0.1.0"

_HOMES = {
    "alkahest.errors": """
        AlkahestError CodegenError CudaError DiffError EvalError ExactDivisionError InputError
        InputTypeError IoError ParseDivisionError ParseError PluginError PluginLoadWarning
        PoolError SolverError
    """,
    "alkahest.expr": """
        Expr ExprPool default_pool symbol symbols functions parse latex subs eval_expr diff gradient
        jacobian hessian
        abs sign min max floor ceil round trunc mod exp exp2 expm1 log log2 log10 log1p sqrt rsqrt
        cbrt root hypot sin cos tan asin acos atan atan2 sec csc cot asec acsc acot sinh cosh tanh
        asinh acosh atanh sech csch coth asech acsch acoth erf erfc erfinv gamma lgamma digamma
        j0 j1 y0 y1 besselj bessely heaviside fma re im conjugate arg
        piecewise Eq Ne Lt Le Gt Ge And Or Not
    """,
    "alkahest.compiled": "CompiledFn compile_expr numpy_eval",
    "alkahest.emit": """
        emit_c emit_c_expr emit_c_header emit_c_vec to_llvm_ir to_ptx to_stablehlo
    """,
    "alkahest.interop": "from_sympy lambdify to_sympy",
    "alkahest._plugins.registry": "register",
}
"""Where the public names live, loaded when first used: `import alkahest` is to cost nothing."""

_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

PUBLIC_NAMES = frozenset({*_HOME_OF, "capabilities", "errors"})
"""Every name that is here without any plugin."""

_BUILTINS = frozenset({"abs", "min", "max", "round"})
"""Names that ``from alkahest import *`` leaves alone, so that it cannot break Python's own."""

if TYPE_CHECKING:
    from collections.abc import Callable

    from alkahest import errors, expr
    from alkahest._plugins.registry import register
    from alkahest.compiled import CompiledFn, compile_expr, numpy_eval
    from alkahest.emit import (
        emit_c,
        emit_c_expr,
        emit_c_header,
        emit_c_vec,
        to_llvm_ir,
        to_ptx,
        to_stablehlo,
    )
    from alkahest.errors import (
        AlkahestError,
        CodegenError,
        CudaError,
        DiffError,
        EvalError,
        ExactDivisionError,
        InputError,
        InputTypeError,
        IoError,
        ParseDivisionError,
        ParseError,
        PluginError,
        PluginLoadWarning,
        PoolError,
        SolverError,
    )
    from alkahest.expr import *  # noqa: F403  the list below names them
    from alkahest.expr import abs as abs
    from alkahest.expr import max as max
    from alkahest.expr import min as min
    from alkahest.expr import round as round
    from alkahest.expr.functions import *  # noqa: F403  mypy does not see a star through a star
    from alkahest.interop import from_sympy, lambdify, to_sympy

    # Names of plugins, here while their capability bit is True.
    CudaCompiledFn: type[CompiledFn]
    compile_cuda: Callable[..., CompiledFn]
    cuda_device_count: Callable[[], int]
    GF: Any
    GbPoly: Any
    GroebnerBasis: Any
    QQ: Any
    real_roots: Callable[..., Any]
    solve: Callable[..., Any]
    triangularize: Callable[..., Any]

    # pyright and mypy read this list; at run time __getattr__ answers for it.
    __all__ = [
        "GF",
        "QQ",
        "AlkahestError",
        "CodegenError",
        "CompiledFn",
        "CudaCompiledFn",
        "CudaError",
        "DiffError",
        "EvalError",
        "ExactDivisionError",
        "GbPoly",
        "GroebnerBasis",
        "InputError",
        "InputTypeError",
        "IoError",
        "ParseDivisionError",
        "ParseError",
        "PluginError",
        "PluginLoadWarning",
        "PoolError",
        "SolverError",
        "capabilities",
        "compile_cuda",
        "compile_expr",
        "cuda_device_count",
        "emit_c",
        "emit_c_expr",
        "emit_c_header",
        "emit_c_vec",
        "errors",
        "from_sympy",
        "lambdify",
        "numpy_eval",
        "real_roots",
        "register",
        "solve",
        "to_llvm_ir",
        "to_ptx",
        "to_stablehlo",
        "to_sympy",
        "triangularize",
    ]
    __all__ += expr.__all__
else:

    def __getattr__(name: str) -> Any:
        """Load a public name, or ask the plugins for it (PEP 562)."""
        from importlib import import_module
        from importlib.util import find_spec

        home = _HOME_OF.get(name)
        if home is not None:
            value = globals()[name] = getattr(import_module(home), name)
            return value
        if name.startswith("_") and name != "__all__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        if find_spec(f"{__name__}.{name}"):
            # `from alkahest import plugin` comes by here, and must not ask for plugins.
            return import_module(f"{__name__}.{name}")

        from alkahest._plugins.registry import registry

        if name == "__all__":
            return sorted((PUBLIC_NAMES - _BUILTINS).union(registry.exports()))
        # Not kept in globals(): what plugins provide may change with the plugins.
        return registry.resolve_export(name)

    def __dir__() -> list[str]:
        from alkahest._plugins.registry import registry

        return sorted({*globals(), *PUBLIC_NAMES, *registry.exports()})
