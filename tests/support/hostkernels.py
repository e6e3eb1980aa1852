"""CUDA C++ kernels compiled for the host, so that their very source runs without a GPU."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from pathlib import Path

import numpy as np

COMPILER = os.environ.get("CXX", "c++")
SHARED_WORDS = 1 << 16
_SHARED = re.compile(r"extern __shared__ (\w+) (\w+)\[\];")


class HostKernels:
    """The kernels of one file, for one group; what an emulated device can call as ``launch``.

    Args:
        file: the source.
        kernels: names of its kernels.
        folder: for the library.
        group: the value of ``LANES``.
        backward: whether the last thread of a block runs first.
    """

    def __init__(self, file: Path, kernels, folder: Path, group: int, *, backward: bool = False):
        self.backward = backward
        self.group = group
        library = folder / f"{file.stem}-{group}.so"
        command = [COMPILER, "-std=c++17", "-O1", "-shared", "-fPIC", "-w", "-fwrapv", "-x", "c++"]
        source = _translated(file, kernels)
        subprocess.run(
            [*command, "-", f"-DLANES={group}", "-o", str(library)],
            input=source, text=True, check=True,
        )  # fmt: skip
        self.library = library
        self._library = ctypes.CDLL(str(library))

    def __call__(self, kernel, group, grid, block, shared, arguments) -> None:
        """Run a kernel; ``arguments`` are arrays of words, integers and None."""
        assert group == self.group
        assert shared <= 4 * SHARED_WORDS
        shape = (ctypes.c_uint * 5)(*(*grid, 1, 1)[:3], *(*block, 1)[:2])
        values = [_value(argument) for argument in arguments]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
        self._library.host_poison()
        getattr(self._library, f"host_{kernel}")(shape, int(self.backward), pointers)


def _value(argument):
    if argument is None:
        return ctypes.c_void_p(None)
    if isinstance(argument, np.ndarray):
        return ctypes.c_void_p(argument.ctypes.data)
    return ctypes.c_int(argument)


def _translated(file: Path, kernels) -> str:
    """The source as C++: shared memory that is static, and a function that starts each kernel."""
    text = file.read_text(encoding="utf-8")
    while included := re.search(r'#include "(\S+)"', text):
        part = (file.parent / included[1]).read_text(encoding="utf-8")
        text = text.replace(included[0], part)
    names = {name for _, name in _SHARED.findall(text)}
    text = _SHARED.sub(r"extern \1 \2[];", text).replace("__shared__", "static")
    head = f'#include "{Path(__file__).with_name("cuda_on_host.h")}"\n'
    head += "".join(f"extern uint32_t {name}[{SHARED_WORDS}];\n" for name in names)
    tail = "".join(f"u32 {name}[{SHARED_WORDS}];\n" for name in names)
    # What is in shared memory when a kernel starts is nothing to rely on.
    fills = "".join(f"memset({name}, 0xEE, sizeof {name});" for name in names)
    tail += f'extern "C" void host_poison() {{ {fills} }}\n'
    for kernel in kernels:
        tail += (
            f'extern "C" void host_{kernel}(const unsigned *shape, int backward, void **values)'
            f"{{ host::start({kernel}, shape, backward, values); }}\n"
        )
    return head + text + tail
