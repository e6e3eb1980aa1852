"""Who is compared: every tool's way to a function of columns.

A builder gets a straight-line program (:mod:`cpu_benchmark.formulae`) and returns a
:class:`Contender`. What it needs of SymPy or of source text is made before the clock of ``build``
starts, so that only the tool's own work counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from cpu_benchmark.formulae import rebuild

Program = Sequence[Sequence[Any]]
Columns = Any
"""Points as an array of shape (inputs, n), C order."""


@attrs.define
class Contender:
    """A tool's function for one row.

    Attributes:
        prepare: gives the arguments that the tool likes best, from the columns; not timed.
        call: evaluates; fresh results unless said otherwise.
        rows: one array per output, from what ``call`` returned.
    """

    prepare: Callable[[Columns], Any]
    call: Callable[[Any], Any]
    rows: Callable[[Any], Any] = list


Build = Callable[[], Contender]
"""The timed part of building."""

Builder = Callable[[Program, int], Build]
"""From a program and a number of threads to the timed part; raises where the tool cannot."""


def _symbols(program: Program) -> list[str]:
    return [operands[0] for operation, *operands in program if operation == "symbol"]


def source(program: Program, module: str) -> tuple[list[str], list[str]]:
    """Assignments and results as Python source; functions are ``module.name``."""
    lines: list[str] = []
    names: list[str] = []

    def line(text: str) -> str:
        lines.append(f"t{len(lines)} = {text}")
        return f"t{len(lines) - 1}"

    for operation, *operands in program:
        if operation == "symbol":
            names.append(operands[0])
        elif operation == "number":
            names.append(repr(operands[0] / operands[1]))
        elif operation == "outputs":
            return lines, [names[k] for k in operands]
        elif operation == "power":
            names.append(line(_power(names[operands[0]], operands[1])))
        elif operation == "root-power":
            root = line(f"{module}.sqrt({names[operands[0]]})")
            names.append(line(_power(root, operands[1])))
        elif operation in ("add", "mul"):
            sign = " + " if operation == "add" else " * "
            names.append(line(sign.join(names[k] for k in operands)))
        else:
            names.append(line(f"{module}.{operation}({', '.join(names[k] for k in operands)})"))
    raise ValueError("a program ends with its outputs")


def _power(base: str, exponent: int) -> str:
    if 0 < abs(exponent) <= 4:
        product = " * ".join([base] * abs(exponent))
        return product if exponent > 0 else f"1.0 / ({product})"
    return f"{base} ** {exponent}"


def numpy_(program: Program, threads: int) -> Build:
    """NumPy, straight-line; SciPy where NumPy has no such function."""
    from scipy import special

    lines, results = source(program, "np")

    class Functions:
        erf = special.erf
        atan2 = np.arctan2

        def __getattr__(self, name: str) -> Any:
            return getattr(np, name)

    text = _function(_symbols(program), lines, f"return ({', '.join(results)},)")

    def build() -> Contender:
        namespace: dict[str, Any] = {"np": Functions()}
        exec(text, namespace)
        return Contender(list, lambda c: namespace["f"](*c))

    return build


def numba_(program: Program, threads: int) -> Build:
    """numba with fastmath, one loop; prange for several threads."""
    import numba

    lines, results = source(program, "math")
    names = _symbols(program)
    loop = "numba.prange" if threads > 1 else "range"
    body = [
        f"n = c_{names[0]}.shape[0]",
        f"out = np.empty(({len(results)}, n))",
        f"for i in {loop}(n):",
        *(f"    {name} = c_{name}[i]" for name in names),
        *(f"    {line}" for line in lines),
        *(f"    out[{k}, i] = {result}" for k, result in enumerate(results)),
    ]
    text = _function([f"c_{name}" for name in names], body, "return out")
    namespace: dict[str, Any] = {"np": np, "numba": numba, "math": math}
    exec(text, namespace)
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))

    def build() -> Contender:
        function = numba.njit(parallel=threads > 1, fastmath=True)(namespace["f"])
        return Contender(list, lambda c: function(*c))

    return build


def _function(parameters: Sequence[str], lines: Sequence[str], last: str) -> str:
    body = "\n".join(f"    {line}" for line in [*lines, last])
    return f"def f({', '.join(parameters)}):\n{body}\n"


def _heyoka(**options: Any) -> Builder:
    def builder(program: Program, threads: int) -> Build:
        import heyoka

        variables = {name: heyoka.expression(name) for name in _symbols(program)}
        operations: dict[str, Any] = {
            "symbol": lambda name: variables[name],
            "number": lambda p, q: heyoka.expression(p / q),
            "add": lambda a, b: a + b,
            "mul": lambda a, b: a * b,
            "power": lambda a, k: a**k,
            "pow": lambda a, b: a**b,
        }
        for name in ("sin", "cos", "exp", "log", "sqrt", "sinh", "erf", "atan2"):
            operations[name] = getattr(heyoka, name)
        outputs = rebuild(program, operations)
        heyoka.set_nthreads(threads)

        def build() -> Contender:
            heyoka.llvm_state.clear_memcache()
            function = heyoka.cfunc(
                outputs, list(variables.values()), parallel_mode=threads > 1, **options
            )
            return Contender(np.ascontiguousarray, function)

        return build

    return builder


def symengine(program: Program, threads: int) -> Build:
    """symengine through LLVM; its input is an array of points."""
    import symengine as se

    operations: dict[str, Any] = {
        "symbol": se.Symbol,
        "number": lambda p, q: se.Rational(p, q) if isinstance(p, int) else se.Float(p),
        "add": lambda a, b: a + b,
        "mul": lambda a, b: a * b,
        "power": lambda a, k: a**k,
        "pow": lambda a, b: a**b,
    }
    for name in ("sin", "cos", "exp", "log", "sqrt", "sinh", "erf", "atan2"):
        operations[name] = getattr(se, name)
    outputs = rebuild(program, operations)
    symbols = [se.Symbol(name) for name in _symbols(program)]

    def build() -> Contender:
        function = se.Lambdify(symbols, outputs, backend="llvm", cse=True)
        return Contender(
            lambda c: np.ascontiguousarray(np.asarray(c).T),
            function,
            lambda out: list(np.asarray(out).reshape(-1, len(outputs)).T),
        )

    return build


def jax(program: Program, threads: int) -> Build:
    """JAX, compiled by XLA, in double precision."""
    import jax
    import jax.numpy as jnp
    from jax.scipy import special

    jax.config.update("jax_enable_x64", True)
    lines, results = source(program, "jnp")

    class Functions:
        erf = staticmethod(special.erf)
        atan2 = staticmethod(jnp.arctan2)

        def __getattr__(self, name: str) -> Any:
            return getattr(jnp, name)

    spread = ", ".join(f"jnp.broadcast_to({result}, n)" for result in results)
    names = _symbols(program)
    text = _function(names, [f"n = {names[0]}.shape", *lines], f"return ({spread},)")
    namespace: dict[str, Any] = {"jnp": Functions()}
    exec(text, namespace)

    def build() -> Contender:
        function = jax.jit(namespace["f"])
        return Contender(list, lambda c: [np.asarray(o) for o in function(*c)])

    return build


def numexpr_(program: Program, threads: int) -> Build:
    """numexpr: one expression in text for every output."""
    import numexpr

    texts: list[str] = []
    used: list[frozenset[str]] = []
    functions = {"atan2": "arctan2"}
    for operation, *operands in program:
        if operation == "symbol":
            text, names = operands[0], frozenset({operands[0]})
        elif operation == "number":
            text, names = repr(operands[0] / operands[1]), frozenset()
        elif operation == "outputs":
            break
        elif operation in ("power", "root-power"):
            base = texts[operands[0]]
            base = f"sqrt({base})" if operation == "root-power" else f"({base})"
            text, names = f"({base}**{operands[1]})", used[operands[0]]
        else:
            if operation == "erf":
                raise ValueError("it has no erf")
            parts = [texts[k] for k in operands]
            names = frozenset().union(*(used[k] for k in operands))
            if operation in ("add", "mul"):
                text = f"({(' + ' if operation == 'add' else ' * ').join(parts)})"
            else:
                text = f"{functions.get(operation, operation)}({', '.join(parts)})"
        if len(text) > _LONGEST_TEXT:
            raise ValueError("the text has no shared parts and gets too long")
        texts.append(text)
        used.append(names)
    outputs = [(texts[k], used[k]) for k in program[-1][1:]]
    order = _symbols(program)
    numexpr.set_num_threads(threads)

    def build() -> Contender:
        made: list[Any] = []
        for text, names in outputs:
            mine = [name for name in order if name in names]
            if not mine:
                made.append((None, [], float(eval(text))))
                continue
            signature = [(name, np.float64) for name in mine]
            made.append((numexpr.NumExpr(text, signature), [order.index(m) for m in mine], 0.0))
        return Contender(
            list,
            lambda c: [
                np.full(len(c[0]), constant) if f is None else f(*[c[k] for k in places])
                for f, places, constant in made
            ],
        )

    return build


_LONGEST_TEXT = 20_000


def ours(
    *, accuracy: str = "default", kept: bool = False, tier: str = "compiled", alone: bool = False
) -> Builder:
    """This library, from compiling to the first result; nothing comes from the cache.

    Args:
        accuracy: the mode.
        kept: results go to arrays that are kept from call to call.
        tier: ``"auto"`` lets the reference give the first results, in an ordinary call.
        alone: calls use one thread, however many there may be.
    """

    def builder(program: Program, threads: int) -> Build:
        import alkahest
        from alkahest.backends.cpu.jit import compile as kernels

        pool = alkahest.ExprPool()
        symbols = {name: pool.symbol(name) for name in _symbols(program)}
        operations: dict[str, Any] = {
            "symbol": lambda name: symbols[name],
            "number": lambda p, q: pool.rational(p, q) if isinstance(p, int) else pool.constant(p),
            "add": lambda a, b: a + b,
            "mul": lambda a, b: a * b,
            "power": lambda a, k: a**k,
            "pow": lambda a, b: a**b,
        }
        for name in ("sin", "cos", "exp", "log", "sqrt", "sinh", "erf", "atan2"):
            operations[name] = getattr(alkahest, name)
        outputs = rebuild(program, operations)

        def build() -> Contender:
            kernels.forget()
            fn = alkahest.compile_expr(
                outputs,
                list(symbols.values()),
                backend="cpu-jit",
                tier=tier,
                accuracy=accuracy,
            )
            call = fn.fast_call if tier == "compiled" else fn
            if alone:
                return Contender(list, lambda c: fn.call_batch(c, threads=1))
            if not kept:
                return Contender(list, lambda c: call(*c))
            results: dict[int, tuple[Any, ...]] = {}

            def into(c: Any) -> Any:
                n = len(c[0])
                out = results.get(n)
                if out is None:
                    results.clear()
                    out = results[n] = tuple(np.empty(n) for _ in outputs)
                return call(*c, out=out)

            return Contender(list, into)

        return build

    return builder


OURS = "alkahest"

ALONE = "alkahest alone"
"""One thread, where the others have several."""

FIRST = "alkahest auto"
"""Built only, not timed: what a user waits for who does not ask for compiled code."""

BUILDERS: dict[str, Builder] = {
    OURS: ours(),
    "alkahest out=": ours(kept=True),
    "alkahest strict": ours(accuracy="strict"),
    "alkahest fast": ours(accuracy="fast"),
    FIRST: ours(tier="auto"),
    ALONE: ours(alone=True),
    "numpy": numpy_,
    "numexpr": numexpr_,
    "numba": numba_,
    "heyoka": _heyoka(),
    "heyoka512": _heyoka(batch_size=8, force_avx512=True),
    "heyoka512 fast": _heyoka(batch_size=8, force_avx512=True, fast_math=True),
    "symengine": symengine,
    "jax": jax,
}

PEERS = tuple(name for name in BUILDERS if not name.startswith(OURS))
"""Names of the tools that this library is compared with."""

MODULES = {
    "numpy": "scipy",
    "heyoka512": "heyoka",
    "heyoka512 fast": "heyoka",
}
"""What a peer needs, where it is not called like the peer."""
