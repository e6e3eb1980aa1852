"""An emulated device: the kernel module itself, compiled for the host and run over a small grid.

What runs is the optimised module that PTX would be emitted from, not a second implementation: its
text is taken, the instructions that only a GPU has (NVVM intrinsics, inline PTX) become calls of
the host definitions below, the thread and block indices become parameters, and LLVM compiles the
result for this machine. A machine without a GPU thus executes the GPU's code path: libdevice,
every expansion, vectors of points and what is left at the end of a batch.

What it does not show: the instruction selection of LLVM's PTX backend, NVIDIA's assembler, and the
last bits of the hardware's approximate instructions (``rcp.approx``, ``ex2.approx``, ...), which
are accurate here except that results of which PTX defines only the upper word have a lower word
of 0, as on a device.
"""

from __future__ import annotations

import ctypes
import re
import weakref
from collections.abc import Sequence
from typing import Any

import attrs

from alkahest.backends.nvptx import accuracy, emit, module, targets
from alkahest.backends.nvptx.access import Access, arguments
from alkahest.backends.nvptx.block import type_name
from alkahest.backends.nvptx.layout import bare, slots
from alkahest.backends.nvptx.nvvm import HOST
from alkahest.backends.nvptx.shapes import ALIGNMENT
from alkahest.errors import CudaError
from alkahest.plugin import Batch, DeviceBatch, Outcome
from alkahest.program import Program
from alkahest.program.records import REAL_DTYPE

THREADS = 32
"""Threads per block of an emulated launch; any choice gives the same numbers."""


class EmulatedEvaluator:
    """Evaluates a program on the emulated device, whose memory is the host's; thread-safe.

    Attributes:
        program: what is evaluated.
        target: the GPU target that the kernel was built for.
        mode: the accuracy mode.
        threads: per block.
    """

    def __init__(
        self,
        program: Program,
        target: str | None = None,
        mode: str = accuracy.DEFAULT,
        threads: int = THREADS,
        points: int | None = None,
    ) -> None:
        """Build and compile the kernel of contiguous columns.

        Args:
            program: verified.
            target, mode, threads: see the attributes.
            points: that a thread computes; None is what the tables choose.

        Raises:
            InputError, CudaError: as :func:`alkahest.backends.nvptx.module.generate`.
        """
        self.program = program
        self.target = targets.resolve(target)
        self.mode = mode
        self.threads = threads
        self._plain = Access.plain(program, mode, points)
        self._kernels: dict[Access, _HostKernel] = {}
        self._kernel(self._plain)

    def evaluate(self, batch: Batch) -> Outcome:
        """Evaluate every output at every point; the interpreter lock is released meanwhile."""
        import numpy as np

        columns = [np.require(c, self.program.dtype, ["C", "A"]) for c in batch.columns]
        columns = [c if is_whole(c) else c.copy() for c in columns]
        wanted = batch.out or (None,) * len(self.program.outputs)
        results = [
            out
            if out is not None and out.flags.c_contiguous and is_whole(out)
            else np.empty(batch.n, dtype)
            for out, dtype in zip(wanted, self.program.output_dtypes, strict=True)
        ]
        addresses = [array.ctypes.data for array in columns + results]
        access = self._plain
        if any(address % ALIGNMENT for address in addresses):
            access = attrs.evolve(access, points=1)
        if not set(addresses[: len(columns)]).isdisjoint(addresses[len(columns) :]):
            access = attrs.evolve(access, in_place=True)
        self._kernel(access).run((*addresses, batch.n), self.threads)
        for out, result in zip(wanted, results, strict=True):
            if out is not None and out is not result:
                out[...] = result
        outputs = tuple(results) if batch.out is None else batch.out
        return Outcome(outputs=outputs, report=self._report())

    def evaluate_on_device(self, batch: DeviceBatch) -> dict[str, Any]:
        """As :meth:`evaluate`, where the columns are, with whatever kernel they need."""
        if batch.n == 0:
            return self._report()
        called = arguments(self.program, batch, self._plain.points)
        self._kernel(called.access).run(called.slots, self.threads)
        return {**self._report(), "access": called.access.text}

    def allocate(self, shape: tuple[int, ...], dtype: str, device: int, stream: int) -> HostMemory:
        """Memory of the emulated device."""
        return HostMemory(shape, dtype)

    def locate(self, pointer: int) -> int:
        """The emulated device is number 0."""
        return 0

    def _kernel(self, access: Access) -> _HostKernel:
        kernel = self._kernels.get(access)
        if kernel is None:
            kernel = self._kernels[access] = _HostKernel(
                self.program, self.target, access, self.mode
            )
        return kernel

    def _report(self) -> dict[str, Any]:
        return {"device": "emulated", "target": self.target, "accuracy": self.mode}


def is_whole(array: Any) -> bool:
    """Whether the address of complex numbers is a multiple of their size."""
    return bool(array.dtype.kind != "c" or array.ctypes.data % array.itemsize == 0)


class HostMemory:
    """A result that the emulated device has allocated, as an array of that device.

    Attributes:
        array: the NumPy array that it is.
    """

    def __init__(self, shape: tuple[int, ...], dtype: str) -> None:
        import numpy as np

        self.array = np.empty(shape, dtype)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.array.__array_interface__, "stream": None, "version": 3}

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0  # what a CUDA device 0 says of its memory


class _HostKernel:
    """The kernel of one access, compiled for the host."""

    def __init__(self, program: Program, target: str, access: Access, mode: str) -> None:
        built = module.build(program, target, access, mode)
        kinds = list(slots(access, type_name(REAL_DTYPE[program.dtype])).values())
        text = host_text(str(built.ref), kinds if built.metadata["abi"] == "pointers" else None)
        self._packing = access.packing
        self._points = access.points
        engine = _compile(text)
        # A context of LLVM must outlive its modules, and in a cycle of garbage finalizers run in any
        # order. So no kernel refers to its engine: it is closed when the kernel is gone, and takes
        # the module and then the context with it.
        weakref.finalize(self, engine.close).atexit = False
        self._run = ctypes.CFUNCTYPE(
            None, ctypes.c_char_p, ctypes.c_uint64, *[ctypes.c_uint32] * 3
        )(engine.get_function_address("emulate"))

    def run(self, numbers: Sequence[float], threads: int, first: int = 0) -> None:
        """Run blocks of ``threads`` for all points, of which the last slot is the number.

        Args:
            numbers: one per slot.
            threads: of a block.
            first: the block to begin with; what is before its points is not touched.
        """
        n = int(numbers[-1])
        blocks = -(-n // (threads * self._points))
        if blocks > first:
            self._run(self._packing.pack(*numbers), n, first, blocks, threads)


def host_text(text: str, kinds: Sequence[str] | None) -> str:
    """The module ``text`` for the host, with an entry point ``emulate``.

    ``void emulate(ptr table, i64 n, i32 first, i32 blocks, i32 threads)`` runs the kernel once per
    thread of a grid of ``blocks``, from the block ``first`` on; ``table`` holds the slots.

    Args:
        text: an optimised kernel module, as LLVM prints it.
        kinds: LLVM types of the slots that are parameters, or None where the kernel takes a table.

    Raises:
        CudaError: E-CUDA-004 naming an instruction that has no host definition.
    """
    text = _DECLARED.sub(lambda m: "" if m[1] in _DEFINED or "llvm.nvvm" in m[1] else m[0], text)
    text = _TARGET.sub("", text)
    text = _SREG.sub(r"add i32 %sreg.\1, 0", text)
    text = text.replace("@llvm.nvvm.", "@nvvm.")
    text = _ASM.sub(lambda m: f"call {m[1]} @{_asm_name(m[2], m[3])}(", text)
    parameters = ", ".join(f"i32 %sreg.{name}" for name in _SREGS)
    text = text.replace(
        f"define ptx_kernel void @{emit.ENTRY}(",
        f"define internal void @{emit.ENTRY}({parameters}, ",
    )
    unknown = sorted(set(_USED.findall(text)) - _DEFINED)
    if unknown:
        raise CudaError(
            "E-CUDA-004",
            f"the emulated device has no instruction {', '.join(unknown)}",
            remediation="Run the program on a GPU.",
        )
    return "\n".join([text, _driver(kinds), HOST])


def _compile(text: str) -> Any:
    """An execution engine that owns the compiled ``text``."""
    binding = targets.llvm()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=1,
        jit=True,
    )
    ref = binding.parse_assembly(text, context=binding.create_context())
    ref.triple, ref.data_layout = machine.triple, str(machine.target_data)
    ref.verify()
    passes = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(1))
    passes.getModulePassManager().run(ref, passes)
    engine = binding.create_mcjit_compiler(ref, machine)
    engine.finalize_object()
    return engine


_SREGS = ("tid", "ntid", "ctaid")
_TARGET = re.compile(r"^target .*\n", re.MULTILINE)
_DECLARED = re.compile(r"^declare .*@([\w.]+)\(.*\n", re.MULTILINE)
_DEFINED = set(re.findall(r"^(?:define|declare) .*@([\w.]+)\(", HOST, re.MULTILINE))
_USED = re.compile(r"@(nvvm\.[\w.]+)\(")
_SREG = re.compile(r"(?:tail )?call [^@\n]*@llvm\.nvvm\.read\.ptx\.sreg\.(\w+)\.x\(\).*")
_ASM = re.compile(r'call ([^"\n]*?) asm (?:sideeffect )?"([^"]*)", "([^"]*)"\(')
_NOT_AN_OPERATION = re.compile(r"[{}]|\\0A|\\09|\.reg [^;]*;|mov\.b64 [^;]*;")


def _asm_name(code: str, constraints: str) -> str:
    """Inline PTX is named by its first arithmetic instruction and the class of its result."""
    operations = _NOT_AN_OPERATION.sub("", re.sub(r"\s+", " ", code)).split()
    return f"nvvm.asm.{operations[0]}.{constraints[1]}"


def _driver(kinds: Sequence[str] | None) -> str:
    loads: list[str] = []
    arguments = ["ptr addrspace(1) %table"]
    if kinds is not None:
        kinds = [bare(kind) for kind in kinds]
        loads = [
            f"  %s{k} = getelementptr i64, ptr addrspace(1) %table, i64 {k}\n"
            f"  %p{k} = load {kind}, ptr addrspace(1) %s{k}"
            for k, kind in enumerate(kinds)
        ]
        arguments = [f"{kind} %p{k}" for k, kind in enumerate(kinds)]
    return _DRIVER.format(
        entry=emit.ENTRY, loads="\n".join(loads), arguments=", ".join([*arguments, "i64 %n"])
    )


_DRIVER = """
define void @emulate(ptr addrspace(1) %table, i64 %n, i32 %first, i32 %nctaid, i32 %ntid) {{
entry:
{loads}
  br label %block
block:
  %ctaid = phi i32 [ %first, %entry ], [ %ctaid.next, %block.end ]
  br label %thread
thread:
  %tid = phi i32 [ 0, %block ], [ %tid.next, %thread ]
  call void @{entry}(i32 %tid, i32 %ntid, i32 %ctaid, {arguments})
  %tid.next = add i32 %tid, 1
  %more.threads = icmp ult i32 %tid.next, %ntid
  br i1 %more.threads, label %thread, label %block.end
block.end:
  %ctaid.next = add i32 %ctaid, 1
  %more.blocks = icmp ult i32 %ctaid.next, %nctaid
  br i1 %more.blocks, label %block, label %exit
exit:
  ret void
}}
"""
