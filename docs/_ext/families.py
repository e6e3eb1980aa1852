"""What each family of error codes is about: when it comes, and what to do about it first."""

from __future__ import annotations

FAMILIES = {
    "E-INPUT": (
        "Columns, inputs or options that do not fit the function. It comes before anything runs, "
        "and names the column or the option.",
        "Compare the columns with `inputs`: their number, lengths and dtypes; [the table of "
        "dtypes](batch.md#dtypes) says what is converted.",
    ),
    "E-POOL": (
        "A node that cannot be built, while an expression is written.",
        "Make all symbols in one pool, and look at the function's number of arguments.",
    ),
    "E-PARSE": (
        "A text that is not an expression. `span` says where, and the command line points at it.",
        "Correct the text there; [the spellings](expressions.md#text) are few.",
    ),
    "E-EVAL": (
        "`eval_expr` cannot give a value at this point (001 and 004), or a batch lost a worker of "
        "its executor (005).",
        "Give every free symbol a value; compiled functions have IEEE rules instead. See why the "
        "worker died: [executors](clusters.md#any-executor).",
    ),
    "E-DIFF": (
        "A derivative that does not exist, or that no table can express.",
        "Differentiate by symbols, and leave conditions and `round`-like functions out.",
    ),
    "E-JIT": (
        "A program that no backend, or not the one asked for, can compile. It comes from "
        "`compile_expr`, never from a call.",
        "See `alkahest capabilities` for what each backend lowers; without `backend=` the others "
        "are tried.",
    ),
    "E-CUDA": (
        "Whatever GPUs refuse. 001, 002 and 005 come when code is generated and need no GPU; "
        "003, 004 and 006 come when a device is used.",
        "Run `alkahest doctor`; [Troubleshooting](troubleshooting.md) has its answers.",
    ),
    "E-SOLVE": (
        "Polynomial systems that cannot be computed with as asked.",
        "The message names the polynomial and its term; [Gröbner bases](groebner.md) says what "
        "counts as a polynomial, a field and an order.",
    ),
    "E-ROOT": (
        "`real_roots` was given something else than one polynomial in one variable.",
        "Use `solve` for systems.",
    ),
    "E-PLUGIN": (
        "A plugin that cannot be used, or that breaks a promise.",
        "`alkahest plugins` names it; `ALKAHEST_DISABLE_PLUGINS` leaves it out.",
    ),
    "E-EMIT": (
        "An expression that the other language cannot say.",
        "Rename the symbol with `var_names=`, or keep that operation in a compiled function.",
    ),
    "E-SYMPY": (
        "An object of SymPy without an equivalent.",
        "Rewrite it in SymPy first; [the table](sympy.md#expressions-in-and-out) says what has one.",
    ),
    "E-IO": (
        "A file that the command line cannot read or write as asked. Nothing is left half-written.",
        "The message names file, row and column.",
    ),
}
"""Family -> (when it comes, what to do first), both Markdown; a test compares it with the codes."""
