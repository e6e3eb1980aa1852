"""Machine code that is kept on disk, with a driver whose machine code is the PTX (fake_driver.c)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakedriver import FakeGpuChild

StartChild = Callable[..., FakeGpuChild]

CALL = """
import sys
import numpy as np
x, y = ak.symbols("x y")
fn = ak.compile_expr(x + 2*y, [x, y], backend="nvptx")
values = fn.call_batch([[1.0, 2.0], [10.0, 20.0]])
result = [values, "llvmlite" in sys.modules, sorted(e.label for e in ak.cache.entries())]
"""
# The function is a slow path of sine, which few points take.
WITH_FUNCTION = CALL.replace("x + 2*y", "ak.sin(x) + 2*y").replace("[values,", "[None,")
VALUES = [21.0, 42.0]
PTX, CODE = "PTX for sm_90, float64", "machine code for sm_90, from sm_90"


def code_calls(process: FakeGpuChild) -> list[str]:
    """What was compiled and loaded since the last question, but for the kernel that does nothing."""
    wanted = ("compile sm_90", "load sm_90", "compile sm_80", "load sm_80")
    return [call for call in process.calls() if call.startswith(wanted)]


@pytest.fixture
def start(child: StartChild, tmp_path: Path) -> StartChild:
    """Starts a process whose cache is the test's."""

    def start(**settings: str) -> FakeGpuChild:
        return child(**{"ALKAHEST_CACHE_DIR": str(tmp_path / "cache"), **settings})

    return start


def ask(start: StartChild, code: str = CALL, **settings: str) -> tuple[Any, list[str]]:
    """The answer of a new process, and what was compiled and loaded in it."""
    with start(**settings) as process:
        return process.ask(code), code_calls(process)


def test_a_second_process_compiles_nothing_and_imports_no_compiler(start: StartChild) -> None:
    assert ask(start) == (
        [VALUES, True, [PTX, CODE]],
        ["compile sm_90 7.8", "load sm_90 7.8"],
    )
    assert ask(start) == ([VALUES, False, [PTX, CODE]], ["load sm_90 7.8"])


def test_kernels_with_functions_are_left_to_the_drivers_compiler_and_cache(
    start: StartChild,
) -> None:
    answer, calls = ask(start, WITH_FUNCTION)
    assert (answer, calls) == ([None, True, [PTX]], ["compile sm_90 7.8"])
    answer, calls = ask(start, WITH_FUNCTION)
    assert (answer, calls) == ([None, False, [PTX]], ["compile sm_90 7.8"])


def test_another_device_or_driver_gets_machine_code_of_its_own(start: StartChild) -> None:
    explicit = CALL.replace('backend="nvptx"', 'backend="nvptx", target="sm_80"')
    keys = "result = sorted(e.key for e in ak.cache.entries() if e.label.startswith('machine'))"
    found = []
    for settings in (
        {},
        {"FAKE_CUDA_CAPABILITY": "89"},
        {"FAKE_CUDA_VERSION": "12090", "CUDA_PYTHON_DISABLE_MAJOR_VERSION_WARNING": "1"},
    ):
        with start(**settings) as process:
            process.ask(explicit)
            assert code_calls(process) == ["compile sm_80 7.0", "load sm_80 7.0"]
            process.ask(explicit)
            assert code_calls(process) == ["load sm_80 7.0"]
            found.append(process.ask(keys))
    assert [len(keys) for keys in found] == [1, 2, 3]


def test_another_driver_file_is_another_key(start: StartChild) -> None:
    code = CALL + (
        "from alkahest.backends.nvptx import driver, machinecode\n"
        "from alkahest.backends.nvptx.device import open_device\n"
        "from pathlib import Path\n"
        "import attrs, os, shutil\n"
        "device = open_device(0)\n"
        "key = lambda: machinecode.key_of(b'ptx', device)\n"
        "keys = [key(), machinecode.key_of(b'other', device)]\n"
        "real = driver.started()\n"
        "for name in ('libcuda.so.580.1', 'libcuda.so.580.2'):\n"
        "    link = Path.cwd() / f'link{name}'\n"
        "    shutil.copyfile(real.library, name)\n"
        "    os.utime(name, (1, 1))\n"
        "    link.symlink_to(name)\n"
        "    driver._started = attrs.evolve(real, library=str(link))\n"
        "    keys.append(key())\n"
        "driver._started = attrs.evolve(real, library='nowhere')\n"
        "keys.append(key())\n"
        "driver._started = real\n"
        "result = [len(set(keys)), key() == keys[0]]"
    )
    with start() as process:
        assert process.ask(code) == [5, True]


def test_machine_code_that_the_driver_does_not_load_is_made_again(start: StartChild) -> None:
    with start() as process:
        process.ask(CALL)
        process.ask(
            "(entry,) = [e for e in ak.cache.entries() if e.label.startswith('machine')]\n"
            "ak.cache.store(entry.key, b'no machine code', label=entry.label)"
        )
        process.calls()
        assert process.ask(CALL)[0] == VALUES
        assert code_calls(process) == ["compile sm_90 7.8", "load sm_90 7.8"]
        assert process.ask(CALL)[0] == VALUES
        assert code_calls(process) == ["load sm_90 7.8"]


@pytest.mark.parametrize("cache", ["off", "a file"])
def test_without_a_cache_every_process_compiles(
    start: StartChild, tmp_path: Path, cache: str
) -> None:
    (tmp_path / "a file").write_text("")
    where = cache if cache == "off" else str(tmp_path / cache)
    for _ in range(2):
        assert ask(start, ALKAHEST_CACHE_DIR=where) == (
            [VALUES, True, []],
            ["compile sm_90 7.8", "load sm_90 7.8"],
        )


@pytest.mark.parametrize("stage", ["loading", "compiling"])
def test_refusals_of_kernels_with_functions_come_with_the_compilers_log(
    start: StartChild, stage: str
) -> None:
    setting = {"loading": "FAKE_CUDA_LOAD", "compiling": "FAKE_CUDA_COMPILE"}[stage]
    code = (
        "try:\n    " + WITH_FUNCTION.strip().replace("\n", "\n    ") + "\n"
        "except ak.CudaError as error:\n    result = [error.code, error.message]"
    )
    with start() as process:
        answer = process.ask(code, **{setting: "218", "FAKE_CUDA_JIT_LOG": "line 7"})
    assert answer[0] == "E-CUDA-003"
    assert "CUDA_ERROR_INVALID_PTX (218)" in answer[1]
    assert answer[1].endswith("says: line 7") is (stage == "compiling")
