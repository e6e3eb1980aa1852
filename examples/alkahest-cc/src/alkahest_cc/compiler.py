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

from alkahest.emit import emit_c_program
from alkahest.errors import CodegenError, InputError
from alkahest.plugin import Artifact, Batch, Outcome
from alkahest.program import Program

_FLAGS = ("-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-shared", "-fPIC", "-w")


def find_compiler() -> str | None:
    """Path of the C compiler: ``$CC``, else the first of cc, gcc and clang."""
    return next(
        filter(None, map(shutil.which, (os.environ.get("CC", ""), "cc", "gcc", "clang"))), None
    )


def generate(program: Program, options: Mapping[str, Any]) -> Artifact:
    """Write ``program`` as C: a function for one point and a loop over columns."""
    if options:
        raise InputError("E-INPUT-011", f"cc has no option {sorted(options)[0]!r}")
    code = emit_c_program(program, "evaluate")
    return Artifact(kind="c", code=code, entry="evaluate_batch", program=program)


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
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*columns, *outputs)]
        self._function(ctypes.c_size_t(batch.n), *pointers)
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
            level = "-O1" if len(self._artifact.program.code) < 2000 else "-O0"
            command = [compiler, level, *_FLAGS, str(source), "-o", str(library), "-lm"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise CodegenError("E-JIT-002", f"cc: {compiler} failed: {done.stderr.strip()}")
            return getattr(ctypes.CDLL(str(library)), self._artifact.entry)
