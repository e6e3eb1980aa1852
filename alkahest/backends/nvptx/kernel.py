"""Loading generated code on a device, and launching it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from alkahest.backends.nvptx import driver, faults, machinecode, targets
from alkahest.backends.nvptx.shapes import threads_per_block
from alkahest.backends.nvptx.stored import generate
from alkahest.errors import CudaError

if TYPE_CHECKING:
    from alkahest.backends.nvptx.access import Access
    from alkahest.backends.nvptx.device import Device
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
        block: threads of a block.
    """

    device: Device
    artifact: Artifact
    core: Any
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
    chosen = target if target is not None else _target_of_first_device()
    artifact = generate(program, chosen, options)
    facts = {EXPLICIT_TARGET: target is not None, OPTIONS: dict(options)}
    return attrs.evolve(artifact, metadata={**artifact.metadata, **facts})


def _target_of_first_device() -> str | None:
    found = driver.started()
    if not found.count:
        return None
    from cuda.bindings import driver as cu

    with faults.translated("E-CUDA-003", "asking device 0 for its compute capability"):
        capability = driver.device_capability(cu, 0)
    return targets.choose(capability, targets.ptx_of_driver(found.version))


def load(artifact: Artifact, device: Device, access: Access | None = None) -> Kernel:
    """Load ``artifact``, or the same program compiled for this very device, which is current.

    Args:
        artifact: as :func:`compile_for` made it, for contiguous columns.
        device: current.
        access: how columns and outputs are reached, where it is not as in the artifact.

    Code for a target that the caller chose is loaded as it is; the driver translates it.

    Raises:
        CudaError: E-CUDA-003 naming target, PTX version, driver and remedy where the driver
            refuses the code, or the target is newer than the device.
    """
    version = driver.started().version
    target = artifact.target
    if artifact.metadata.get(EXPLICIT_TARGET):
        _check_target(target, device)
    else:
        target = targets.choose(device.capability, targets.ptx_of_driver(version))
    if target != artifact.target or access is not None:
        options = artifact.metadata.get(OPTIONS, {})
        artifact = generate(artifact.program, target, options, access)
    doing = (
        f"loading code for {artifact.target} (PTX ISA {artifact.metadata.get('ptx_version')}) on "
        f"device {device.ordinal}, {device.name}, driver for CUDA {driver.cuda_release(version)}"
    )
    core = machinecode.load(artifact, device, doing, driver.UPDATE_DRIVER)
    with faults.translated("E-CUDA-003", doing, driver.UPDATE_DRIVER):
        registers = _registers(core, device)
    return Kernel(device=device, artifact=artifact, core=core, block=threads_per_block(registers))


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
