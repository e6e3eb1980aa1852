"""An emulated device: the kernel module itself, compiled for the host and run over a small grid.

What runs is the optimised module that PTX would be emitted from, not a second implementation: its
text is taken, the instructions that only a GPU has (NVVM intrinsics, inline PTX) become calls of
the host definitions below, the thread and block indices become parameters, and LLVM compiles the
result for this machine. A machine without a GPU thus executes the GPU's code path: libdevice,
every expansion, the grid-stride loop.

What it does not show: the instruction selection of LLVM's PTX backend, NVIDIA's assembler, and the
last bits of the hardware's approximate instructions (``rcp.approx``, ``ex2.approx``, ...), which
are accurate here except that results of which PTX defines only the upper word have a lower word
of 0, as on a device.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any

from alkahest.backends.nvptx import emit, module, targets
from alkahest.backends.nvptx.nvvm import HOST
from alkahest.errors import CudaError
from alkahest.plugin import Batch, Outcome
from alkahest.program import Program

GRID = (3, 32)
"""Blocks and threads per block of an emulated launch; any choice gives the same numbers."""


class EmulatedEvaluator:
    """Evaluates a program on the emulated device; thread-safe.

    Attributes:
        program: what is evaluated.
        target: the GPU target that the kernel was built for.
        grid: blocks and threads per block.
    """

    def __init__(
        self, program: Program, target: str | None = None, grid: tuple[int, int] = GRID
    ) -> None:
        """Build and compile the kernel.

        Raises:
            InputError, CudaError: as :func:`alkahest.backends.nvptx.module.generate`.
        """
        self.program = program
        self.target = targets.resolve(target)
        self.grid = grid
        built = module.build(program, self.target)
        pointers = len(program.inputs) + len(program.outputs)
        text = host_text(str(built.ref), pointers if built.metadata["abi"] == "pointers" else None)
        self._engine = _compile(text)
        address = self._engine.get_function_address("emulate")
        self._run = ctypes.CFUNCTYPE(
            None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint32
        )(address)

    def evaluate(self, batch: Batch) -> Outcome:
        """Evaluate every output at every point; the interpreter lock is released meanwhile."""
        import numpy as np

        columns = [np.ascontiguousarray(c, self.program.dtype) for c in batch.columns]
        wanted = batch.out or (None,) * len(self.program.outputs)
        results = [
            out if out is not None and out.flags.c_contiguous else np.empty(batch.n, dtype)
            for out, dtype in zip(wanted, self.program.output_dtypes, strict=True)
        ]
        arrays = columns + results
        table = (ctypes.c_void_p * max(len(arrays), 1))(*[a.ctypes.data for a in arrays])
        self._run(table, batch.n, *self.grid)
        for out, result in zip(wanted, results, strict=True):
            if out is not None and out is not result:
                out[...] = result
        outputs = tuple(results) if batch.out is None else batch.out
        report = {"device": "emulated", "target": self.target, "grid": list(self.grid)}
        return Outcome(outputs=outputs, report=report)


def host_text(text: str, pointers: int | None) -> str:
    """The module ``text`` for the host, with an entry point ``emulate``.

    ``void emulate(ptr table, i64 n, i32 blocks, i32 threads)`` runs the kernel once per thread of
    the grid; ``table`` holds the pointers of columns and outputs.

    Args:
        text: an optimised kernel module, as LLVM prints it.
        pointers: number of pointer parameters of the kernel, or None where it takes a table.

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
        f"define ptx_kernel void @{emit.ENTRY}(", f"define internal void @{emit.ENTRY}({parameters}, "
    )
    unknown = sorted(set(_USED.findall(text)) - _DEFINED)
    if unknown:
        raise CudaError(
            "E-CUDA-004",
            f"the emulated device has no instruction {', '.join(unknown)}",
            remediation="Run the program on a GPU.",
        )
    return "\n".join([text, _driver(pointers), HOST])


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


_SREGS = ("tid", "ntid", "ctaid", "nctaid")
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


def _driver(pointers: int | None) -> str:
    if pointers is None:
        loads, arguments = [], ["ptr addrspace(1) %table"]
    else:
        loads = [
            f"  %s{k} = getelementptr ptr, ptr addrspace(1) %table, i64 {k}\n"
            f"  %p{k} = load ptr addrspace(1), ptr addrspace(1) %s{k}"
            for k in range(pointers)
        ]
        arguments = [f"ptr addrspace(1) %p{k}" for k in range(pointers)]
    return _DRIVER.format(
        entry=emit.ENTRY, loads="\n".join(loads), arguments=", ".join([*arguments, "i64 %n"])
    )


_DRIVER = """
define void @emulate(ptr addrspace(1) %table, i64 %n, i32 %nctaid, i32 %ntid) {{
entry:
{loads}
  br label %block
block:
  %ctaid = phi i32 [ 0, %entry ], [ %ctaid.next, %block.end ]
  br label %thread
thread:
  %tid = phi i32 [ 0, %block ], [ %tid.next, %thread ]
  call void @{entry}(i32 %tid, i32 %ntid, i32 %ctaid, i32 %nctaid, {arguments})
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
