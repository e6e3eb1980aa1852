"""The CPU plugin as core sees it, and compiled functions on it in other processes."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

import alkahest
from alkahest._plugins import calls
from alkahest._plugins.registry import registry
from alkahest.backends.cpu import plugin
from alkahest.compiled import compile_expr
from alkahest.expr import ExprPool

pool = ExprPool()
x, y = pool.symbol("x"), pool.symbol("y")


def test_the_probe_and_the_witness_evaluate_a_special_function() -> None:
    probe = registry.probe("cpu")
    assert probe.ok
    assert probe.facts["numpy"] == np.__version__
    assert registry.witness("cpu").ok


@pytest.mark.parametrize("missing", ["numpy", "scipy"])
def test_the_probe_says_which_package_is_missing(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    answer = plugin._probe()
    assert not answer.ok
    assert missing in answer.detail


def test_the_only_device_is_this_processor() -> None:
    (device,) = calls.devices("cpu-reference")
    assert device.ordinal == 0
    assert device.name
    assert compile_expr(x, [x], backend="cpu-reference", device=0)(1.0) == 1.0
    with refused("E-INPUT-011", "no device 1"):
        compile_expr(x, [x], backend="cpu-reference", device=1)
    with refused("E-INPUT-011", "no device -1"):
        compile_expr(x, [x], backend="cpu-reference").call_batch([[]], device=-1)


def test_the_processor_has_a_name_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: Any, **__: Any) -> str:
        raise OSError

    monkeypatch.setattr(Path, "read_text", absent)
    assert plugin._processor()


@pytest.mark.parametrize(
    ("choices", "shown"),
    [({"unroll": 4}, "no option 'unroll'"), ({"target": "sm_90"}, "no target 'sm_90'")],
)
def test_options_and_targets_are_refused(choices: Any, shown: str) -> None:
    with refused("E-INPUT-011", shown):
        compile_expr(x, [x], backend="cpu-reference", **choices)


def test_cpu_stands_for_a_backend_of_the_group() -> None:
    fn = compile_expr(x + 1, [x], backend="cpu")
    assert registry.snapshot().backends[fn.backend].group == "cpu"
    assert fn([1.0]).tolist() == [2.0]


def test_importing_the_plugin_loads_nothing_heavy() -> None:
    code = (
        "import sys, alkahest.backends.cpu.plugin as p; p.alkahest_register_backends(); "
        "print([m for m in ('numpy', 'scipy', 'llvmlite') if m in sys.modules])"
    )
    assert in_child(code).strip() == b"[]"


def test_scipy_is_imported_by_the_first_special_function_only() -> None:
    code = (
        "import sys; from alkahest.backends.cpu import kernels; "
        "print([m for m in ('scipy',) if m in sys.modules])"
    )
    assert in_child(code).strip() == b"[]"


def test_a_compiled_function_runs_in_a_fresh_process() -> None:
    fn = compile_expr([x * y, x < y], [x, y], backend="cpu-reference", dtype="float32")
    answer = in_child(
        "import pickle, sys, alkahest\n"
        "from alkahest._plugins.registry import registry\n"
        "if 'cpu-reference' not in registry.snapshot().backends:\n"
        "    from alkahest.backends.cpu import plugin\n"
        "    alkahest.register(plugin)\n"
        "fn = pickle.loads(sys.stdin.buffer.read())\n"
        "sys.stdout.buffer.write(pickle.dumps((fn.call_batch([[2, 3], [4, 1]]), fn.report)))\n",
        pickle.dumps(fn),
    )
    results, report = pickle.loads(answer)
    assert results == ([8.0, 3.0], [True, False])
    assert report["dtype"] == "float32"


def in_child(code: str, data: bytes = b"") -> bytes:
    """Output of a fresh interpreter that imports the same alkahest."""
    root = str(Path(alkahest.__file__).parents[1])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=data,
        capture_output=True,
        check=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": path},
    )
    return done.stdout


def test_the_report_names_backend_device_and_block() -> None:
    fn = compile_expr(x + y, [x, y], backend="cpu-reference")
    fn(np.ones((2, 3)), 1.0)
    assert fn.report["backend"] == "cpu-reference"
    assert (fn.report["device"], fn.report["n"], fn.report["threads"]) == (0, 6, 1)
