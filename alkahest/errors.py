"""Every exception of alkahest and the registry of their codes.

An error names the thing, the reason and the remedy, in that order, and carries a stable code.
The registry below is the only list of codes: the documentation renders it and a test provokes
each one through the public API.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

VERSION = "0.1.0"


def install(extra: str) -> str:
    """The command that brings an extra of ours.

    Pinned to this version: the bare name on the public package index is another project's, which
    has no release of this number, so that pip fails where our wheels are not rather than take it.
    """
    return f"pip install 'alkahest[{extra}]=={VERSION}'"


class AlkahestError(ValueError):
    """Base class of every error that alkahest raises on purpose.

    Args:
        code: a code of :data:`CODES`, for instance ``"E-CUDA-003"``.
        message: what is wrong, naming the symbol, column, backend or file.
        remediation: what the caller can do; the code's standard remedy when omitted.
        span: half-open character offsets ``(start, end)`` into a parsed text, or None.
    """

    families: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        code: str,
        message: str,
        *,
        remediation: str | None = None,
        span: tuple[int, int] | None = None,
    ) -> None:
        entry = CODES.get(code)
        if entry is None:
            raise KeyError(f"error code {code!r} is not in alkahest.errors.CODES")
        if not isinstance(self, entry.error):
            raise TypeError(f"{code} belongs to {entry.error.__name__}, not {type(self).__name__}")
        self.code = code
        self.message = message
        self.remediation = entry.remedy if remediation is None else remediation
        self.span = span
        super().__init__(message)

    def __str__(self) -> str:
        text = f"[{self.code}] {self.message}"
        return f"{text}\nRemediation: {self.remediation}" if self.remediation else text

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.code, self.message, self.remediation, self.span)


def _rebuild(
    cls: type[AlkahestError],
    code: str,
    message: str,
    remediation: str | None,
    span: tuple[int, int] | None,
) -> AlkahestError:
    return cls(code, message, remediation=remediation, span=span)


class InputError(AlkahestError):
    """Columns, inputs or options that do not fit the compiled function."""


class InputTypeError(InputError, TypeError):
    """An argument of the wrong type or dtype."""


class PoolError(AlkahestError):
    """A node that cannot be built: mixed pools, wrong arity, bad name or value."""


class ParseError(AlkahestError):
    """Text that is not an expression; ``span`` says where."""


class ParseDivisionError(ParseError, ZeroDivisionError):
    """Text that divides by a literal zero."""


class EvalError(AlkahestError):
    """An expression without a value at a point, or a batch that lost a worker of its executor."""


class ExactDivisionError(EvalError, ZeroDivisionError):
    """Exact zero raised to a negative power."""


class DiffError(AlkahestError):
    """An expression that cannot be differentiated."""


class CodegenError(AlkahestError):
    """A program that no backend, or not the requested one, can compile."""


class CudaError(AlkahestError):
    """Anything the CUDA side refuses."""


class PluginError(AlkahestError):
    """A plugin that cannot be used as asked."""


class IoError(AlkahestError):
    """A file that cannot be read or written as asked."""


class SolverError(AlkahestError):
    """Polynomial systems that cannot be solved as asked."""


class PluginLoadWarning(RuntimeWarning):
    """An installed plugin could not be used; the others could."""


@attrs.frozen
class ErrorCode:
    """One row of the registry.

    Attributes:
        error: the class raised with this code (or a subclass of it).
        meaning: what happened, for the documentation.
        remedy: the remedy shown when the raiser gives no better one.
    """

    error: type[AlkahestError]
    meaning: str
    remedy: str = ""


CODES: dict[str, ErrorCode] = {
    # Columns, inputs and options
    "E-INPUT-001": ErrorCode(
        InputError, "wrong number of columns", "Pass one column per input, in the order of inputs."
    ),
    "E-INPUT-002": ErrorCode(
        InputError,
        "columns of different lengths, or shapes that do not broadcast",
        "Give every column the same length; only 0-d scalars are spread.",
    ),
    "E-INPUT-003": ErrorCode(
        InputTypeError,
        "a column whose dtype cannot be converted",
        "Convert the column to bool, integer or floating point first.",
    ),
    "E-INPUT-004": ErrorCode(
        InputTypeError,
        "a column whose conversion would lose range or the imaginary part",
        'Compile for a wider dtype, convert the column, or pass casting="same_kind".',
    ),
    "E-INPUT-005": ErrorCode(
        InputError, "a column that is not one-dimensional", "Pass 1-D columns or scalars."
    ),
    "E-INPUT-006": ErrorCode(
        InputError, "the batch length is missing or contradicts the columns", "Pass n=."
    ),
    "E-INPUT-007": ErrorCode(
        InputError,
        "the list of inputs is unordered, repeats a symbol or holds something else",
        "Pass a list or tuple of distinct symbols; its order is the order of the columns.",
    ),
    "E-INPUT-008": ErrorCode(InputTypeError, "an argument of the wrong type"),
    "E-INPUT-009": ErrorCode(
        InputError,
        "out= has the wrong shape, dtype or layout, or is read-only",
        "Pass writeable arrays of the output's dtype and the batch's shape.",
    ),
    "E-INPUT-010": ErrorCode(
        InputTypeError,
        "a column lives on a device that the backend cannot read",
        "Copy the column to host memory, or choose a backend that runs on its device.",
    ),
    "E-INPUT-011": ErrorCode(InputError, "an option whose value is not one of those allowed"),
    # Building expressions
    "E-POOL-001": ErrorCode(
        PoolError,
        "expressions of different pools were combined",
        "Build every part of an expression in one ExprPool.",
    ),
    "E-POOL-002": ErrorCode(PoolError, "wrong number of arguments of a built-in function"),
    "E-POOL-003": ErrorCode(
        PoolError, "a symbol name that cannot be used", "Use a non-empty text."
    ),
    "E-POOL-004": ErrorCode(
        PoolError,
        "a function that the op table does not know",
        "alkahest.functions lists the functions that there are.",
    ),
    "E-POOL-005": ErrorCode(
        PoolError,
        "a condition where a number is needed, or the reverse",
        "Conditions go into piecewise, And, Or and Not; numbers everywhere else.",
    ),
    "E-POOL-006": ErrorCode(
        PoolError,
        "a sum, product or number too large or too precise to be held",
        "Write it in a shorter form.",
    ),
    "E-PARSE-001": ErrorCode(ParseError, "text that is not an expression"),
    "E-PARSE-002": ErrorCode(ParseDivisionError, "division by a literal zero"),
    "E-PARSE-003": ErrorCode(ParseError, "an unknown function, or a wrong number of arguments"),
    # Working with expressions
    "E-EVAL-001": ErrorCode(
        EvalError, "a symbol without a value", "Bind every free symbol of the expression."
    ),
    "E-EVAL-004": ErrorCode(ExactDivisionError, "exact zero raised to a negative power"),
    "E-EVAL-005": ErrorCode(
        EvalError,
        "an executor lost a worker during a batch",
        "A worker that was killed has mostly run out of memory: pass a smaller chunk=, or an "
        "executor that replaces its workers, such as a Dask client's.",
    ),
    "E-DIFF-001": ErrorCode(
        DiffError,
        "a function that has no derivative here",
        "Take it out of the expression, or write its derivative down yourself.",
    ),
    "E-DIFF-002": ErrorCode(DiffError, "the variable of a derivative is not a symbol"),
    # Programs and their compilation
    "E-JIT-001": ErrorCode(CodegenError, "an operation that the backend does not lower"),
    "E-JIT-002": ErrorCode(CodegenError, "code generation failed"),
    "E-JIT-004": ErrorCode(
        CodegenError,
        "no backend can compile this program here",
        f"Install a backend, for instance: {install('cpu')}.",
    ),
    "E-JIT-005": ErrorCode(
        CodegenError, "a free symbol is missing from inputs", "Add the symbol to inputs."
    ),
    "E-JIT-006": ErrorCode(
        CodegenError, "a constant lies outside the range of the dtype", "Use a wider dtype."
    ),
    "E-JIT-007": ErrorCode(
        CodegenError,
        "a program that breaks the rules of alkahest.program",
        "Build programs with alkahest.program.lower, whose results keep the rules.",
    ),
    "E-JIT-008": ErrorCode(
        CodegenError,
        "serialised program of an unknown version, or damaged",
        "Serialise the program again, with the alkahest that reads it.",
    ),
    "E-JIT-009": ErrorCode(CodegenError, "no backend of that name is loaded"),
    "E-JIT-010": ErrorCode(
        CodegenError,
        "an operation that has no meaning for its operands' kinds",
        "Ordering, rounding and real special functions take real operands; complex constants and "
        "the imaginary unit need dtype='complex128' or 'complex64'.",
    ),
    # CUDA; the meanings of 001 to 006 are those of the original system
    "E-CUDA-001": ErrorCode(
        CudaError,
        "no compiler: LLVM has no NVPTX target, or the kernels of Gröbner bases find no NVRTC",
        f"{install('nvptx')} brings LLVM, {install('groebner-gpu')} brings NVRTC.",
    ),
    "E-CUDA-002": ErrorCode(
        CudaError, "code generation refused: names the symbol, function or node"
    ),
    "E-CUDA-003": ErrorCode(
        CudaError,
        "no usable driver or device, or the driver refused a request",
        "Run `alkahest doctor`; check that nvidia-smi lists the device.",
    ),
    "E-CUDA-004": ErrorCode(CudaError, "not implemented on this device"),
    "E-CUDA-005": ErrorCode(
        CudaError,
        "libdevice was not found; lists where it was looked for",
        "pip install nvidia-nvvm, or set ALKAHEST_LIBDEVICE_PATH to libdevice.10.bc.",
    ),
    "E-CUDA-006": ErrorCode(CudaError, "a kernel launch failed"),
    # Polynomial systems; 001, 003 to 005, 010 and 011 mean what they meant in the original system
    "E-SOLVE-001": ErrorCode(
        SolverError,
        "a term that is no polynomial in the variables",
        "Name the term's parts as variables.",
    ),
    "E-SOLVE-003": ErrorCode(
        SolverError, "no polynomials were given", "Pass at least one polynomial; 0 counts as one."
    ),
    "E-SOLVE-004": ErrorCode(
        SolverError,
        "the system has infinitely many solutions where finitely many are needed",
        "Add equations. A GroebnerBasis has dimension() and eliminate() for any number of solutions, and "
        "reordered(order) instead of fglm(order).",
    ),
    "E-SOLVE-005": ErrorCode(
        SolverError,
        "a denominator is zero in the field",
        "Multiply the denominators out, or choose another prime.",
    ),
    "E-SOLVE-006": ErrorCode(
        SolverError,
        "a coefficient that is not exact",
        "Write decimals as ratios. GbPoly, GroebnerBasis.compute, solve and triangularize also take "
        "exact_floats=True (on the command line --exact-floats), for the decimals that floats print as.",
    ),
    "E-SOLVE-007": ErrorCode(
        SolverError,
        "a field that cannot be computed in, or polynomials over different fields",
        "Pass field=QQ or field=GF(p) with a prime p in the supported range.",
    ),
    "E-SOLVE-008": ErrorCode(
        SolverError,
        "an unknown monomial order",
        "Choose grevlex, lex, grlex, elimination(K), block(K, ...) or weights(W, ...).",
    ),
    "E-SOLVE-009": ErrorCode(
        SolverError,
        "a symbol that is no variable of the system, or a variable named twice",
        "List every symbol of the polynomials in vars, once.",
    ),
    "E-SOLVE-010": ErrorCode(
        SolverError,
        "the device failed during a reduction",
        'Pass fallback="cpu" to let the processor finish, or see `alkahest doctor`.',
    ),
    "E-SOLVE-011": ErrorCode(
        SolverError,
        "the rational coefficients could not be reconstructed from their residues",
        "Compute it again with another seed=, and report the system.",
    ),
    "E-SOLVE-012": ErrorCode(
        SolverError,
        "deadline= or memory= was reached before the result",
        "Allow more, or choose the order grevlex, which is the cheapest.",
    ),
    "E-SOLVE-013": ErrorCode(
        SolverError,
        "an exponent, or a number of terms, beyond what can be held",
        "Use smaller powers, or put a new variable in the place of one.",
    ),
    "E-SOLVE-014": ErrorCode(
        SolverError,
        "a result that did not pass its check",
        "Compute it again with another seed=, and report the system.",
    ),
    "E-SOLVE-015": ErrorCode(
        SolverError,
        "polynomials of different rings",
        "Build them over the same variables and the same field.",
    ),
    "E-SOLVE-016": ErrorCode(
        SolverError,
        "the executor, or a worker of it, failed",
        "Start a new executor whose workers have alkahest-groebner, and compute again.",
    ),
    "E-ROOT-001": ErrorCode(
        SolverError, "not a polynomial in one variable over the rationals", "Pass one variable."
    ),
    "E-ROOT-002": ErrorCode(
        SolverError,
        "every number is a root of the zero polynomial",
        "Pass a polynomial that is not zero.",
    ),
    # Plugins
    "E-PLUGIN-001": ErrorCode(
        PluginError,
        "ALKAHEST_STRICT_PLUGINS=1 and a plugin is neither active nor disabled",
        "Fix or uninstall the plugin, or name it in ALKAHEST_DISABLE_PLUGINS.",
    ),
    "E-PLUGIN-002": ErrorCode(PluginError, "a plugin that register() refuses"),
    "E-PLUGIN-003": ErrorCode(
        PluginError,
        "a hook returned something else than it promises",
        "Report it to the authors of the plugin; ALKAHEST_DISABLE_PLUGINS leaves it out.",
    ),
    "E-PLUGIN-004": ErrorCode(
        PluginError,
        "a plugin asked alkahest about plugins while it was itself being loaded or probed",
        "Use alkahest's plugin-provided names inside functions, and not in probes.",
    ),
    # Code for other compilers
    "E-EMIT-001": ErrorCode(
        CodegenError, "a name that the language of the emitted code does not allow"
    ),
    "E-EMIT-002": ErrorCode(
        CodegenError,
        "an operation that the language of the emitted code has no counterpart for",
        "Compile the expression for a backend instead, or keep that part out of it.",
    ),
    # Other libraries
    "E-SYMPY-001": ErrorCode(
        InputTypeError,
        "an object of SymPy that has no equivalent here",
        "Rewrite it in SymPy first: expr.rewrite(...), expr.doit(), expr.subs(...).",
    ),
    "E-SYMPY-002": ErrorCode(
        InputError,
        "different SymPy symbols of one name",
        "Use one symbol with one set of assumptions, or rename one: expr.subs(old, new).",
    ),
    # Files
    "E-IO-001": ErrorCode(
        IoError,
        "a file cannot be read",
        "Check the path and who may read it.",
    ),
    "E-IO-002": ErrorCode(
        IoError,
        "a file cannot be written",
        "Check the folder, who may write to it, and the space that is left.",
    ),
    "E-IO-003": ErrorCode(IoError, "a file is not in the format its name says"),
    "E-IO-004": ErrorCode(IoError, "a column is missing from a file, or named twice"),
    "E-IO-005": ErrorCode(IoError, "text in a column is not a number; names row and column"),
    "E-IO-006": ErrorCode(
        IoError,
        "a file format needs a package that is not installed",
        f"{install('io')}.",
    ),
}
