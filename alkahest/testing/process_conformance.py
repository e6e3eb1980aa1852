"""The part of the kit about threads and processes; :class:`alkahest.testing.BackendConformance`
contains it.

What a process of its own is needed for runs in one: a fork, a cache that is cold, a library that
cannot be imported. The plugin is found there by its entry point, or registered where there is none.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from alkahest._plugins import calls
from alkahest._plugins.registry import registry
from alkahest.compiled import CompiledFn
from alkahest.plugin import Batch, Evaluator
from alkahest.program import Program, dumps
from alkahest.testing.programs import increment, several

if TYPE_CHECKING:
    from numpy.typing import NDArray

HEAVY_MODULES = ("numpy", "scipy", "llvmlite", "numba", "cuda", "cupy", "torch", "jax")


class ProcessConformance:
    """Tests in several threads and processes.

    Attributes:
        plugin_module: the module that the entry point names, or None when there is none.
        needs_modules: top-level modules without which the backend's bits have to be False.
        without: environment variables that hide what else it needs, a compiler for instance.
    """

    plugin_module: ClassVar[str | None] = None
    needs_modules: ClassVar[tuple[str, ...]] = ()
    without: ClassVar[Mapping[str, str]] = {}

    if TYPE_CHECKING:
        backend: ClassVar[str]
        options: ClassVar[Mapping[str, Any]]

        def evaluator(self, program: Program) -> Evaluator: ...

        def run(self, program: Program, *columns: Any) -> tuple[NDArray[Any], ...]: ...

        def lowers(self, program: Program) -> bool: ...

    # Threads

    def test_eight_threads_compile_and_evaluate_at_once(self) -> None:
        def work(seed: int) -> bool:
            (got,) = self.run(increment(), [float(seed)] * 1000)
            return bool((got == seed + 1).all())

        with ThreadPoolExecutor(8) as threads:
            assert all(threads.map(work, range(32)))

    def test_eight_threads_share_one_evaluator_from_its_first_call_on(self) -> None:
        import numpy as np

        evaluator, start = self.evaluator(increment()), threading.Barrier(8)

        def work(seed: int) -> bool:
            start.wait(60)
            right = True
            for n in (1, 1000, 37):
                column = np.arange(seed, seed + n, dtype=np.float64)
                (got,) = evaluator.evaluate(Batch(columns=(column,), n=n)).outputs
                right &= bool((got == column + 1).all())
            return right

        with ThreadPoolExecutor(8) as threads:
            assert all(threads.map(work, range(8)))

    # Processes

    def test_a_compiled_function_survives_pickling(self) -> None:
        fn = CompiledFn.from_program(increment(), backend=self.backend, options=self.options)
        copy = pickle.loads(pickle.dumps(fn))
        assert copy.backend == fn.backend
        assert copy.program == fn.program

    def test_importing_the_plugin_loads_nothing_heavy(self) -> None:
        if self.plugin_module is None:
            assert self.backend in registry.snapshot().backends
            return
        loaded = _child(
            f"import sys, {self.plugin_module}\n"
            "print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
        )
        assert not set(HEAVY_MODULES) & set(loaded)

    def test_another_process_gives_the_same_bits_with_and_without_a_cache(
        self, tmp_path: Path
    ) -> None:
        program = several("float64")
        if not self._runs_elsewhere(program):
            return
        x, y = [0.5, -1.25, 3.0] * 11, [2.0, 0.125, -0.75] * 11
        want = [o.tobytes().hex() for o in self.run(program, x, y)]
        code = (
            "import numpy as np\n"
            "columns = [np.array(c) for c in json.loads(sys.stdin.read())]\n"
            "print(json.dumps([o.tobytes().hex() for o in fn.call_batch(columns)]))"
        )
        for place in ("off", str(tmp_path / "cache"), str(tmp_path / "cache")):
            got = self._evaluating_child(
                program, code, given=json.dumps([x, y]), ALKAHEST_CACHE_DIR=place
            )
            assert got == want, place

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
    def test_a_forked_process_computes_or_refuses_and_does_not_hang(self) -> None:
        if not self._runs_elsewhere(increment()):
            return
        value, remedy = self._evaluating_child(
            increment(),
            "import os, select, signal\n"
            "fn.call_batch([[1.0] * 9000])\n"
            "reading, writing = os.pipe()\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    try:\n"
            "        answer = [fn.call_batch([[2.0] * 9000])[-1], '']\n"
            "    except alkahest.AlkahestError as error:\n"
            "        answer = [None, error.remediation]\n"
            "    os.write(writing, json.dumps(answer).encode())\n"
            "    os._exit(0)\n"
            "ready, _, _ = select.select([reading], [], [], 60)\n"
            "print(os.read(reading, 10_000).decode() if ready else json.dumps(['hangs', '']))\n"
            "os.kill(child, signal.SIGKILL)\n"
            "os.waitpid(child, 0)\n",
        )
        assert value == 3.0 or (value is None and remedy)

    def test_without_what_it_needs_every_bit_is_false_and_compiling_says_why(self) -> None:
        if not (self.needs_modules or self.without) or self.plugin_module is None:
            return
        answer = _child(
            _HIDE.format(modules=self.needs_modules)
            + self._loading()
            + "answer = {'features': alkahest.capabilities()['features'], 'error': ''}\n"
            "answer['names'] = dir(alkahest)\n"
            "from alkahest.testing.programs import increment\n"
            "try:\n"
            f"    fn = alkahest.CompiledFn.from_program(increment(), backend={self.backend!r})\n"
            "    fn.call_batch([[1.0] * 9000])\n"
            "except alkahest.AlkahestError as error:\n"
            "    answer['error'] = str(error)\n"
            "print(json.dumps(answer))",
            **self.without,
        )
        info = registry.snapshot().backends[self.backend]
        assert not any(answer["features"][feature.name] for feature in info.features)
        assert not set(info.exports) & set(answer["names"])
        assert answer["error"], "it computed without what it needs"

    # Children

    def _runs_elsewhere(self, program: Program) -> bool:
        """Whether a process of its own can evaluate: the plugin can be loaded, and has a device."""
        return (
            self.plugin_module is not None
            and bool(calls.devices(self.backend))
            and self.lowers(program)
        )

    def _loading(self) -> str:
        return (
            "import importlib, json, sys, alkahest\n"
            "from alkahest._plugins.registry import registry\n"
            f"if {self.backend!r} not in registry.snapshot().backends:\n"
            f"    alkahest.register(importlib.import_module({self.plugin_module!r}))\n"
        )

    def _evaluating_child(
        self, program: Program, code: str, given: str = "", **environment: str
    ) -> Any:
        """What ``code`` prints, as JSON; ``fn`` is a compiled function of ``program`` there."""
        text = base64.b64encode(dumps(program)).decode()
        return _child(
            self._loading() + "import base64\n"
            "from alkahest.program import loads\n"
            f"program = loads(base64.b64decode({text!r}))\n"
            f"options = json.loads({json.dumps(dict(self.options))!r})\n"
            "fn = alkahest.CompiledFn.from_program(\n"
            f"    program, backend={self.backend!r}, options=options,\n"
            "    single=len(program.outputs) == 1,\n"
            ")\n" + code,
            given,
            **environment,
        )


_HIDE = """
import sys

class WithoutThem:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {modules}:
            return self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = map(WithoutThem, sys.meta_path)
"""
"""Makes the import system know nothing of some modules, as if they were not installed."""


def _child(code: str, given: str = "", **environment: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", "import json\n" + code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
