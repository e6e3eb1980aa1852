"""Programs to C, C to a shared library, the library to an evaluator."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from alkahest.errors import CodegenError, InputError
from alkahest.ops import Kind
from alkahest.plugin import Artifact, Batch, Outcome
from alkahest.program import Program

_INFIX = dict(
    zip(
        "add sub mul div lt le gt ge eq ne and or".split(),
        "+ - * / < <= > >= == != && ||".split(),
        strict=True,
    )
)

TEMPLATES = {
    **{op: f"{{0}} {sign} {{1}}" for op, sign in _INFIX.items()},
    "neg": "-{0}",
    "not": "!{0}",
    "select": "{0} ? {1} : {2}",
    "abs": "fabs({0})",
    "fma": "fma({0}, {1}, {2})",
    "pow": "pow({0}, {1})",
    "atan2": "atan2({0}, {1})",
    "hypot": "hypot({0}, {1})",
    "round": "rint({0})",
    **{
        name: f"{name}({{0}})"
        for name in (
            "floor ceil trunc exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan asin acos "
            "atan sinh cosh tanh asinh acosh atanh erf erfc"
        ).split()
    },
}
"""Operation -> C expression over its operands."""

_LOOP = """#include <math.h>
#include <stdbool.h>
#include <stddef.h>
void evaluate(size_t n, const void *const *in, void *const *out) {{
  for (size_t i = 0; i < n; i++) {{
{body}
  }}
}}
"""
_FLAGS = ("-ffp-contract=off", "-fno-math-errno", "-shared", "-fPIC", "-w")


def find_compiler() -> str | None:
    """Path of the C compiler: ``$CC``, else the first of cc, gcc and clang."""
    return next(
        filter(None, map(shutil.which, (os.environ.get("CC", ""), "cc", "gcc", "clang"))), None
    )


def generate(program: Program, options: Mapping[str, Any]) -> Artifact:
    """Write ``program`` as one C function over arrays of columns."""
    if options:
        raise InputError("E-INPUT-011", f"cc has no option {sorted(options)[0]!r}")
    types = {Kind.REAL: "double", Kind.BOOL: "bool"}
    lines = [
        f"const double v{k} = ((const double *)in[{k}])[i];" for k in range(len(program.inputs))
    ]
    for k, value in enumerate(program.constants, len(program.inputs)):
        lines.append(f"const {types[program.kinds[k]]} v{k} = {_literal(value)};")
    for k, (op, args, _) in enumerate(program.code, program.first_instruction):
        right = TEMPLATES[op].format(*(f"v{a}" for a in args))
        lines.append(f"const {types[program.kinds[k]]} v{k} = {right};")
    for k, value in enumerate(program.outputs):
        lines.append(f"(({types[program.kinds[value]]} *)out[{k}])[i] = v{value};")
    code = _LOOP.format(body="\n".join("    " + line for line in lines))
    return Artifact(kind="c", code=code, entry="evaluate", program=program)


def _literal(value: float | complex | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = float(value.real).hex()
    return {"nan": "NAN", "inf": "INFINITY", "-inf": "-INFINITY"}.get(text, text)


class SharedLibrary:
    """The compiled loop; built by the first call, then called without the GIL."""

    def __init__(self, artifact: Artifact) -> None:
        self._artifact = artifact
        self._function: Any = None
        self._lock = threading.Lock()

    def evaluate(self, batch: Batch) -> Outcome:
        """Evaluate the batch; see :class:`alkahest.plugin.Evaluator`."""
        import numpy as np

        with self._lock:
            self._function = self._function or self._build()
        columns = [np.ascontiguousarray(column) for column in batch.columns]
        dtypes = self._artifact.program.output_dtypes
        outputs = [np.empty(batch.n, dtype) for dtype in dtypes]
        self._function(ctypes.c_size_t(batch.n), _pointers(columns), _pointers(outputs))
        for target, output in zip(batch.out or (), outputs, strict=False):
            target[...] = output
        return Outcome(outputs=batch.out or tuple(outputs))

    def _build(self) -> Any:
        compiler = find_compiler()
        if compiler is None:
            raise CodegenError("E-JIT-002", "cc: there is no C compiler", remediation="Set CC.")
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder, "program.c"), Path(folder, "program.so")
            source.write_text(str(self._artifact.code))
            # gcc takes minutes to optimise a straight line of twenty thousand statements.
            level = "-O2" if len(self._artifact.program.code) < 2000 else "-O0"
            command = [compiler, level, *_FLAGS, str(source), "-o", str(library), "-lm"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise CodegenError("E-JIT-002", f"cc: {compiler} failed: {done.stderr.strip()}")
            return getattr(ctypes.CDLL(str(library)), self._artifact.entry)


def _pointers(arrays: list[Any]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
