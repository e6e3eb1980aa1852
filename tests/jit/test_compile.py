"""Kernels in memory and on disk, what they are stored under, and broken generators."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

import alkahest
from alkahest import ExprPool, cache
from alkahest.backends.cpu.jit import compile as kernels
from alkahest.backends.cpu.jit import engine, symbols
from alkahest.backends.cpu.jit.compile import Compiler
from alkahest.backends.cpu.jit.options import Options
from alkahest.program import lower

pool = ExprPool()
x, y = pool.symbol("x"), pool.symbol("y")


def compiler(expression: Any = None, **options: Any) -> Compiler:
    program = lower([pool.func("sin", [x]) * y if expression is None else expression], [x, y])
    return Compiler(program, Options(**options))


def test_a_kernel_is_made_once_in_a_process(empty_cache: Path) -> None:
    first = compiler().kernel()
    assert first.facts["code"] == "compiled"
    assert compiler().kernel() is first


def test_a_kernel_is_made_once_on_a_machine(empty_cache: Path) -> None:
    compiler().kernel()
    kernels.forget()
    assert compiler().kernel().facts["code"] == "disk"
    labels = [entry.label for entry in cache.entries()]
    assert any(label.startswith("cpu-jit") and label.endswith("default") for label in labels)


def test_without_a_cache_it_is_made_again(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALKAHEST_CACHE_DIR", "off")
    compiler().kernel()
    kernels.forget()
    assert compiler().found() is None
    assert compiler().kernel().facts["code"] == "compiled"


def test_a_kernel_of_another_mode_or_width_is_another(empty_cache: Path) -> None:
    makers = [
        compiler(),
        compiler(accuracy="strict"),
        compiler(accuracy="fast"),
        compiler(target="native/128"),
        compiler(x * y),
    ]
    assert len({maker.key for maker in makers}) == len(makers)


def test_names_of_inputs_and_tiers_do_not_matter(empty_cache: Path) -> None:
    a, b = pool.symbol("a"), pool.symbol("b")
    other = Compiler(lower([pool.func("sin", [a]) * b], [a, b]), Options(tier="compiled"))
    assert other.key == compiler().key


def test_only_so_many_kernels_are_kept(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "KEPT", 2)
    makers = [compiler(x * y + k) for k in range(3)]
    made = [maker.kernel() for maker in makers]
    assert kernels._kept.get(makers[0].key) is None
    assert kernels._kept.get(makers[2].key) is made[2]
    assert makers[0].kernel().facts["code"] == "disk"


def test_text_that_llvm_refuses_is_our_fault_and_says_so() -> None:
    with refused("E-JIT-002", "LLVM refuses the generated code"):
        engine.compile_ir("define void @f( {", kernels.target())


def test_a_function_that_the_system_lacks_is_named() -> None:
    code = engine.compile_ir(
        "declare void @nobody_has_this()\n"
        "define void @f() {\n  call void @nobody_has_this()\n  ret void\n}\n",
        kernels.target(),
    )
    with refused("E-JIT-002", "nobody_has_this()"):
        engine.Code(code, ["f"], ["nobody_has_this"])


def test_names_are_looked_up_in_the_libraries_of_the_system() -> None:
    assert symbols.address("sin") is not None
    assert symbols.address("nobody_has_this") is None
    assert symbols.missing(["cos", "nobody_has_this"]) == ("nobody_has_this",)


def test_the_processor_is_found_once_and_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernels.target() is kernels.target()
    assert kernels.target("native/128").vector_bits == 128
    monkeypatch.setenv("ALKAHEST_CPU_TARGET", "native/128")
    assert kernels.target().vector_bits == 128


def test_processes_share_what_is_on_disk(empty_cache: Path) -> None:
    code = (
        "import alkahest\n"
        "from alkahest._plugins.registry import registry\n"
        "if 'cpu-jit' not in registry.snapshot().backends:\n"
        "    from alkahest.backends.cpu import plugin\n"
        "    alkahest.register(plugin)\n"
        "x, y = alkahest.symbols('x y')\n"
        "fn = alkahest.compile_expr(alkahest.sin(x)*y, [x, y], backend='cpu-jit')\n"
        "print(fn([0.0], 1.0)[0], fn.report.get('code'))\n"
    )
    compiler().kernel()
    root = str(Path(alkahest.__file__).parents[1])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.stdout.split() == ["0.0", "disk"]


def test_a_damaged_entry_is_made_again(empty_cache: Path) -> None:
    compiler().kernel()
    kernels.forget()
    for path in empty_cache.rglob("*.code"):
        path.write_bytes(path.read_bytes()[:-7])
    kernel = compiler().kernel()
    assert kernel.facts["code"] == "compiled"
    assert np.isfinite(kernel.cost)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
@pytest.mark.usefixtures("empty_cache")
def test_a_child_forked_while_another_thread_compiles_can_compile(compiled: Any) -> None:
    compiled(x + y, [x, y])(
        1.0, 2.0
    )  # imports everything: forks during imports are Python's matter
    ended = threading.Event()

    def keep_compiling() -> None:
        for k in itertools.count(1):
            if ended.is_set():
                break
            compiled(pool.func("sin", [x]) * k + pool.func("exp", [y]), [x, y])(1.0, 2.0)

    def compiles(k: int) -> bool:
        return bool(compiled(x * y - k, [x, y])(3.0, 5.0) == 15 - k)

    other = threading.Thread(target=keep_compiling)
    other.start()
    try:
        codes = [_exit_code_of_a_child(compiles, k) for k in range(6)]
    finally:
        ended.set()
        other.join()
    assert codes == [0] * 6


def _exit_code_of_a_child(succeeds: Callable[[int], bool], k: int) -> int:
    """0 where that is true in a forked child, 1 where not, less where the child hangs."""
    time.sleep(0.03)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        os._exit(0 if succeeds(k) else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
