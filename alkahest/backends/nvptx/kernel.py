"""Loading generated code on a device, and launching it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from alkahest.backends.nvptx import driver, faults, machinecode, targets, tuning
from alkahest.backends.nvptx.shapes import UNTUNED, threads_per_block
from alkahest.backends.nvptx.stored import generate
from alkahest.errors import CudaError

if TYPE_CHECKING:
    from alkahest.backends.nvptx.access import Access
    from alkahest.backends.nvptx.device import Device
    from alkahest.backends.nvptx.shapes import Tuning
    from alkahest.plugin import Artifact
    from alkahest.program import Program

MOST_BLOCKS = 2**31 - 1
"""Largest grid of a device."""

EXPLICIT_TARGET = "explicit_target"
"""Key of ``Artifact.metadata``: whether the caller chose the target."""

OPTIONS = "options"
"""Key of ``Artifact.metadata``: the options that the code was generated with."""


@attrs.frozen(kw_only=True, eq=False)
class Kernel:
    """A kernel on a device.

    Attributes:
        device: where it is loaded.
        artifact: the code that was loaded, whose target may differ from the compiled function's.
        core: the ``cuda.core.Kernel``.
        registers: that a thread takes.
        block: threads of a block.
    """

    device: Device
    artifact: Artifact
    core: Any
    registers: int
    block: int

    @property
    def points(self) -> int:
        """Points that a thread computes."""
        return int(self.artifact.metadata["points"])

    @property
    def takes_table(self) -> bool:
        """Whether the addresses are passed as one array in device memory."""
        return bool(self.artifact.metadata.get("abi") == "table")

    def launch(self, addresses: Sequence[int], n: int, stream: Any) -> None:
        """Queue one launch over ``n`` points.

        Args:
            addresses: of the inputs, then of the outputs; or of the one array of addresses.
            n: number of points, at least 1.
            stream: the ``cuda.core.Stream``.
        """
        import numpy as np
        from cuda.core import LaunchConfig, launch

        config = LaunchConfig(grid=self.grid(n), block=self.block)
        launch(stream, config, self.core, *addresses, np.uint64(n))

    def grid(self, n: int) -> int:
        """Number of blocks for ``n`` points.

        Raises:
            CudaError: E-CUDA-004, more points than a launch has threads for, above 2**37.
        """
        blocks = -(-n // (self.block * self.points))
        if blocks > MOST_BLOCKS:
            raise CudaError(
                "E-CUDA-004",
                f"{n} points are more than one launch computes",
                remediation="Split the batch.",
            )
        return blocks


def compile_for(program: Program, target: str | None, options: Mapping[str, Any]) -> Artifact:
    """Generate code for ``target``, or for device 0, or without one for the oldest target.

    Raises:
        CudaError: E-CUDA-001, 002, 005; see :func:`alkahest.backends.nvptx.module.generate`.
        InputError: E-INPUT-011 for an unknown target or option.
    """
    first = _first_device() if target is None else None
    chosen, found = first or (target, UNTUNED)
    artifact = generate(program, chosen, options, tuning=found)
    facts = {EXPLICIT_TARGET: target is not None, OPTIONS: dict(options)}
    return attrs.evolve(artifact, metadata={**artifact.metadata, **facts})


def _first_device() -> tuple[str, Tuning] | None:
    """The target of device 0, and the shapes that were measured there."""
    found = driver.started()
    if not found.count:
        return None
    from cuda.bindings import driver as cu

    with faults.translated("E-CUDA-003", "asking device 0 for its compute capability"):
        capability = driver.device_capability(cu, 0)
        name = driver.device_name(cu, 0)
    target = targets.choose(capability, targets.ptx_of_driver(found.version))
    return target, tuning.of_device(_kind(name, capability))


def _kind(name: str, capability: tuple[int, int]) -> str:
    return tuning.kind(name, capability, driver.cuda_release(driver.started().version))


def target_of(device: Device) -> str:
    """The target of code for a device."""
    return targets.choose(device.capability, targets.ptx_of_driver(driver.started().version))


def kind_of(device: Device) -> str:
    """What tuned shapes hold for; see :func:`alkahest.backends.nvptx.tuning.kind`."""
    return _kind(device.name, device.capability)


def fitted(artifact: Artifact, device: Device) -> Artifact:
    """``artifact``, or the same program compiled for this very device.

    Code for a target that the caller chose stays as it is; the driver translates it.

    Raises:
        CudaError: E-CUDA-003, the target is newer than the device; what generating code raises.
    """
    facts, program = artifact.metadata, artifact.program
    if facts.get(EXPLICIT_TARGET):
        _check_target(artifact.target, device)
        return artifact
    target = target_of(device)
    found = tuning.of_device(kind_of(device))
    if target == artifact.target and found.text(program.dtype) == facts["tuning"]:
        return artifact
    options = facts.get(OPTIONS, {})
    made = generate(program, target, options, tuning=found)
    return attrs.evolve(made, metadata={**made.metadata, OPTIONS: options})


def load(artifact: Artifact, device: Device, access: Access | None = None) -> Kernel:
    """Load code on a device.

    Args:
        artifact: for contiguous columns, as :func:`fitted` gave it for the device.
        device: current.
        access: how columns and outputs are reached, where it is not as in the artifact.

    Raises:
        CudaError: E-CUDA-003 naming target, PTX version, driver and remedy where the driver
            refuses the code, or the target is newer than the device.
    """
    version = driver.started().version
    program = artifact.program
    if access is not None:
        options = artifact.metadata.get(OPTIONS, {})
        artifact = generate(program, artifact.target, options, access)
    doing = (
        f"loading code for {artifact.target} (PTX ISA {artifact.metadata.get('ptx_version')}) on "
        f"device {device.ordinal}, {device.name}, driver for CUDA {driver.cuda_release(version)}"
    )
    core = machinecode.load(artifact, device, doing, driver.UPDATE_DRIVER)
    with faults.translated("E-CUDA-003", doing, driver.UPDATE_DRIVER):
        registers = _registers(core, device)
    found = tuning.of_device(kind_of(device))
    block = threads_per_block(registers, found.threads(program.dtype, artifact.metadata["work"]))
    return Kernel(device=device, artifact=artifact, core=core, registers=registers, block=block)


def _registers(core: Any, device: Device) -> int:
    """What a thread of a loaded kernel takes."""
    from cuda.bindings import driver as cu

    wanted = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS
    registers = faults.check(
        cu.cuKernelGetAttribute(wanted, core.handle, device.ordinal), "cuKernelGetAttribute"
    )
    return int(registers)


def _check_target(target: str, device: Device) -> None:
    if targets.capability(target) <= device.capability:
        return
    shown = ".".join(map(str, device.capability))
    raise CudaError(
        "E-CUDA-003",
        f"code for {target} does not run on device {device.ordinal}, {device.name}, of compute "
        f"capability {shown}",
        remediation="Omit target=, or name one that the device has.",
    )
