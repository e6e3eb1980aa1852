"""Who evaluates: this library and its peers, all on the same arrays in device memory."""

from __future__ import annotations

import importlib
import itertools
import linecache
import math
import os
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

import alkahest
from alkahest import ExprPool
from alkahest.program import Program
from gpu_benchmark import rehearsal, statements
from gpu_benchmark.formulae import Row
from gpu_benchmark.timing import DeviceClock, Run

OURS = "alkahest"

ENVIRONMENT = {
    # Beside other libraries, JAX may not take three quarters of the memory at once.
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS": "0",
}
"""Environment variables that peers want; only what is not set already."""

_NUMBA_BLOCK = 256
_NUMBERS = itertools.count()


@attrs.frozen(kw_only=True)
class Problem:
    """A row with its data.

    Attributes:
        row: what is evaluated.
        program: its program.
        inputs: CuPy arrays, float64, shape (points,).
        outputs: CuPy arrays of the same kind, for whoever can write into given arrays.
        options: keyword arguments for ``alkahest.compile_expr``.
        jax_cache: folder of what JAX has compiled already, or "".
    """

    row: Row
    program: Program
    inputs: Sequence[Any]
    outputs: Sequence[Any]
    options: Mapping[str, Any] = attrs.field(factory=dict)
    jax_cache: str = ""


def _by_events(clock: DeviceClock, run: Run) -> float:
    return clock.event_time(run)


@attrs.frozen(kw_only=True)
class Contender:
    """One way to evaluate a problem; it may compile when it is first run.

    Attributes:
        run: queue one evaluation of every output at every point; returns what ``results`` takes.
        results: the outputs as CuPy arrays, given what ``run`` returned.
        time: milliseconds of one evaluation.
        clock: ``"device"`` or ``"wall"``.
        facts: what else it can tell, once it has run.
    """

    run: Run
    results: Callable[[Any], Sequence[Any]]
    time: Callable[[DeviceClock, Run], float] = _by_events
    clock: str = "device"
    facts: Callable[[], Mapping[str, Any]] = dict


def alkahest_arrays(problem: Problem) -> Contender:
    """``compile_expr(..., backend="nvptx")``, called with CuPy arrays and ``out=``."""
    outputs, symbols = problem.row.build(ExprPool())
    single = len(outputs) == 1
    expr = outputs[0] if single else outputs
    fn = alkahest.compile_expr(expr, symbols, backend="nvptx", **problem.options)
    out = problem.outputs[0] if single else tuple(problem.outputs)
    inputs = tuple(problem.inputs)
    return Contender(
        run=lambda: fn(*inputs, out=out),
        results=lambda _: problem.outputs,
        facts=lambda: {key: str(value) for key, value in fn.report.items()},
    )


def alkahest_kernel(problem: Problem) -> Contender:
    """The kernel alone, launched on raw pointers: no argument checks, no array protocol."""
    from gpu_benchmark import kernel_only

    launch, facts = kernel_only.prepare(
        problem.program, problem.inputs, problem.outputs, problem.options
    )
    return Contender(run=launch, results=lambda _: problem.outputs, facts=lambda: facts)


def cupy_elementwise(problem: Problem) -> Contender:
    """``cupy.ElementwiseKernel`` over the statements in CUDA C++."""
    import cupy

    kernel = cupy.ElementwiseKernel(
        ", ".join(f"float64 x{i}" for i in range(len(problem.inputs))),
        ", ".join(f"float64 o{i}" for i in range(len(problem.outputs))),
        statements.cuda_body(problem.program),
        f"benchmark_{problem.row.name}",
    )
    arguments = (*problem.inputs, *problem.outputs)
    return Contender(run=lambda: kernel(*arguments), results=lambda _: problem.outputs)


def torch_compile(problem: Problem) -> Contender:
    """``torch.compile`` of the statements on tensors that share the arrays' memory."""
    import cupy
    import torch

    torch.compiler.reset()
    torch.set_default_dtype(torch.float64)
    function = define("function", statements.array_function(problem.program), m=torch)
    compiled = torch.compile(function, dynamic=False, fullgraph=True)
    tensors = [torch.from_dlpack(array) for array in problem.inputs]
    return Contender(
        run=lambda: compiled(*tensors),
        results=lambda tensors: [cupy.from_dlpack(tensor) for tensor in tensors],
    )


def jax_jit(problem: Problem) -> Contender:
    """``jax.jit`` of the statements; by the wall clock, because JAX has streams of its own."""
    import cupy
    import jax

    use_jax_cache(problem.jax_cache)
    compiled = jax_function(problem.program)
    arrays = [jax.dlpack.from_dlpack(array) for array in problem.inputs]

    def results(given: Any) -> list[Any]:
        return [cupy.from_dlpack(array) for array in jax.block_until_ready(given)]

    return Contender(
        run=lambda: compiled(*arrays),
        results=results,
        time=lambda clock, run: clock.wall_time(run, jax.block_until_ready),
        clock="wall",
    )


def use_jax_cache(folder: str) -> None:
    """Double precision, and compiled functions kept in ``folder`` unless it is ""."""
    import jax

    jax.config.update("jax_enable_x64", True)
    if folder:
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def jax_function(program: Program) -> Any:
    """The statements of a program under ``jax.jit``."""
    import jax

    return jax.jit(define("function", statements.array_function(program), m=_jax_names()))


def _jax_names() -> types.SimpleNamespace:
    import jax.numpy
    import jax.scipy.special as special

    names = {**vars(jax.numpy), "erf": special.erf, "erfc": special.erfc}
    return types.SimpleNamespace(**names)


def numba_cuda(problem: Problem) -> Contender:
    """``numba.cuda.jit`` of the statements, one point a thread."""
    cuda = import_numba()
    kernel = cuda.jit(define("kernel", statements.scalar_kernel(problem.program), cuda=cuda))
    arrays = [cuda.as_cuda_array(a) for a in (*problem.inputs, *problem.outputs)]
    blocks = -(-len(problem.inputs[0]) // _NUMBA_BLOCK)
    configured = kernel[blocks, _NUMBA_BLOCK]
    return Contender(run=lambda: configured(*arrays), results=lambda _: problem.outputs)


def import_numba() -> Any:
    """The module ``numba.cuda``."""
    import numpy

    if not hasattr(numpy, "row_stack"):
        # Releases of numba from before NumPy 2.5 look for the name when they are imported.
        numpy.row_stack = numpy.vstack  # type: ignore[attr-defined, unused-ignore]
    from numba import cuda

    return cuda


def define(name: str, source: str, **names: Any) -> Any:
    """The function ``name`` that ``source`` defines, in a module of its own.

    ``math`` is always among its names. Compilers look a function's module up by its name, and its
    lines by its file's.
    """
    module = types.ModuleType(f"benchmark_function_{next(_NUMBERS)}")
    file = f"<{module.__name__}>"
    sys.modules[module.__name__] = module
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    vars(module).update(math=math, **names)
    exec(compile(source, file, "exec"), vars(module))
    return vars(module)[name]


@attrs.frozen
class Peer:
    """A library to compare with.

    Attributes:
        module: what is imported to see whether it is there.
        distribution: whose version is noted.
        make: prepares a problem.
        rehearse: compiles a row in a process of its own, where that cannot be interrupted in this
            one: ``rehearse(row, points, folder)``, see :mod:`gpu_benchmark.rehearsal`.
    """

    module: str
    distribution: str
    make: Callable[[Problem], Contender]
    rehearse: Callable[..., None] | None = None


PEERS: Mapping[str, Peer] = {
    "cupy": Peer("cupy", "cupy", cupy_elementwise),
    "torch": Peer("torch", "torch", torch_compile),
    "jax": Peer("jax", "jax", jax_jit, rehearsal.jax_compiled),
    "numba": Peer("numba.cuda", "numba-cuda", numba_cuda),
}
"""The peers by name."""


def missing(names: Sequence[str]) -> dict[str, str]:
    """Peers that cannot be used here, with the reason.

    Raises:
        ValueError: a name is none of :data:`PEERS`.
    """
    for variable, value in ENVIRONMENT.items():
        os.environ.setdefault(variable, value)
    reasons = {}
    for name in names:
        if name not in PEERS:
            raise ValueError(f"no peer {name!r}; there are {', '.join(PEERS)}")
        try:
            if name == "numba":
                import_numba()
            else:
                importlib.import_module(PEERS[name].module)
        except ImportError as error:
            reasons[name] = f"not installed: {error}"
        except Exception as error:  # noqa: BLE001 - what a foreign import raises is anybody's guess
            reasons[name] = f"cannot be imported: {describe(error)}"
    return reasons


def describe(error: BaseException) -> str:
    """An error in one line."""
    first = (str(error).strip() or "no message").splitlines()[0]
    return f"{type(error).__name__}: {first[:300]}"


def register_plugins() -> None:
    """In a checkout where nothing is installed, register the two plugins that are needed."""
    for backend, module in (
        ("cpu-reference", "alkahest.backends.cpu.plugin"),
        ("nvptx", "alkahest.backends.nvptx.plugin"),
    ):
        if backend not in alkahest.capabilities()["backends"]:
            alkahest.register(importlib.import_module(module))
