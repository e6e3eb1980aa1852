"""Which shapes of kernels are quickest on a device: asked by `alkahest calibrate`, kept with it.

A program stands for each kind of work and dtype. It is timed in every shape that may suit, in turns;
a shape is kept where it wins against what the tables of :mod:`alkahest.backends.nvptx.shapes` choose
by more than the times vary.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from alkahest import calibration
from alkahest.backends.nvptx.accuracy import DEFAULT
from alkahest.backends.nvptx.shapes import (
    COMPUTE,
    FUNCTION,
    MEMORY,
    UNTUNED,
    WIDEST,
    Shape,
    Tuning,
    points_per_thread,
    resident_threads,
    threads_per_block,
)
from alkahest.plugin import Tuned
from alkahest.program import Instruction, Program

BACKEND = "nvptx"

THREADS = (64, 128, 192, 256, 384, 512)
"""Threads of a block that are tried."""

LEAST_GAIN = 1.05
"""What a shape has to win at least. A kind of work has one shape for programs that differ: on an H200
one that won 2 % on the program that was measured lost 2 % on a longer one."""

NOISE = 3.0
"""How many times the usual deviation of its ratios a shape has to win."""

ROUNDS, QUICK_ROUNDS = 15, 7

_CHAIN = 12


class Kernel(Protocol):
    """A kernel on a device that can be timed.

    Attributes:
        registers: that a thread takes.
    """

    @property
    def registers(self) -> int: ...

    def seconds(self, threads: int) -> float:
        """Time of one launch over columns that fill the device, in blocks of ``threads``."""
        ...


Build = Callable[[Program, int], Kernel]
"""Builds the kernel of a program with a number of points per thread, for a device."""


class Archetype(NamedTuple):
    """A program that stands for others.

    Attributes:
        work: kind of work.
        program: what is timed.
    """

    work: str
    program: Program

    @property
    def case(self) -> str:
        """How the calibration names what it stands for."""
        return f"{self.program.dtype} {self.work}"


def archetypes() -> Iterator[Archetype]:
    """A program for each kind of work and dtype."""
    chain: list[tuple[str, tuple[int, ...]]] = [("mul", (0, 1))]
    for step in range(_CHAIN):
        chain += [("sin", (2 + 2 * step,)), ("add", (3 + 2 * step, step % 2))]
    for dtype in WIDEST:
        yield Archetype(MEMORY, _program(dtype, [("mul", (0, 1))]))
        yield Archetype(FUNCTION, _program(dtype, [("exp", (0,)), ("add", (2, 1))]))
        yield Archetype(COMPUTE, _program(dtype, chain))


def tune(device: str, build: Build, *, quick: bool = False) -> tuple[Tuned, ...]:
    """Time every archetype on one device.

    Args:
        device: its kind, see :func:`kind`.
        build: builds kernels for it.
        quick: whether to take fewer times.

    Raises:
        CudaError: what the device refuses.
    """
    rounds = QUICK_ROUNDS if quick else ROUNDS
    return tuple(_tuned(device, archetype, build, rounds) for archetype in archetypes())


def kind(name: str, capability: tuple[int, int], release: str) -> str:
    """The kind of a device: what tuned shapes hold for.

    Args:
        name: the vendor's.
        capability: compute capability.
        release: of CUDA that its driver supports, for instance ``"13.0"``.
    """
    major, minor = capability
    return f"{name}, sm_{major}{minor}, driver for CUDA {release}"


def of_device(device: str) -> Tuning:
    """What this machine's calibration holds about a kind of device."""
    return shapes_of(found for found in calibration.tuned(BACKEND) if found.device == device)


def winner(times: Mapping[Shape, Sequence[float]], own: Shape) -> tuple[Shape, float]:
    """The shape that wins against ``own`` by more than noise, else ``own``; and by how much.

    Args:
        times: of every shape that was tried, as many each, taken in turns.
        own: the shape that is chosen without tuning; one of them.
    """
    best, gain = own, 1.0
    for shape, taken in times.items():
        ratio, deviation = compared(times[own], taken)
        if ratio > max(LEAST_GAIN, 1 + NOISE * deviation, gain):
            best, gain = shape, ratio
    return best, gain


def compared(own: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """The median ratio of times that were taken in turns, and the median deviation from it."""
    ratios = [mine / others for mine, others in zip(own, other, strict=True)]
    ratio = statistics.median(ratios)
    return ratio, statistics.median(abs(value - ratio) for value in ratios)


def in_turns(
    kernels: Mapping[int, Kernel], shapes: Iterable[Shape], rounds: int
) -> dict[Shape, list[float]]:
    """Times of every shape, round after round.

    Args:
        kernels: points per thread -> kernel.
        shapes: to time.
        rounds: times of each.
    """
    times: dict[Shape, list[float]] = {shape: [] for shape in shapes}
    for _ in range(rounds):
        for shape, taken in times.items():
            taken.append(kernels[shape.points].seconds(shape.threads))
    return times


def _tuned(device: str, archetype: Archetype, build: Build, rounds: int) -> Tuned:
    program = archetype.program
    kernels = {points: build(program, points) for points in _points(program.dtype)}
    points = points_per_thread(program, DEFAULT)
    own = Shape(points, threads_per_block(kernels[points].registers))
    tried = (
        Shape(points, threads)
        for points, kernel in kernels.items()
        for threads in THREADS
        if resident_threads(kernel.registers, threads)
    )
    times = in_turns(kernels, tried, rounds)
    best, gain = winner(times, own)
    settings = {} if best == own else {"points": best.points, "threads": best.threads}
    return Tuned(device=device, case=archetype.case, settings=settings, gain=gain)


def _points(dtype: str) -> list[int]:
    """Points per thread that are tried: as many as move 16 bytes at once, and fewer."""
    return [points for points in (1, 2, 4) if points <= WIDEST.get(dtype, 0)]


def _program(dtype: str, steps: Sequence[tuple[str, tuple[int, ...]]]) -> Program:
    """A program of two inputs, whose last value is its output."""
    return Program(
        dtype=dtype,
        inputs=("x", "y"),
        constants=(),
        code=tuple(Instruction(op, args) for op, args in steps),
        outputs=(1 + len(steps),),
    ).verify()


def shapes_of(found: Iterable[Tuned]) -> Tuning:
    """The shapes that entries of one kind of device name; what no kernel has is left out."""
    shapes = {}
    for entry in found:
        dtype, _, work = entry.case.partition(" ")
        points, threads = (entry.settings.get(name, 0) for name in ("points", "threads"))
        if points in _points(dtype) and threads in THREADS:
            shapes[dtype, work] = Shape(points, threads)
    return Tuning(shapes) if shapes else UNTUNED


__all__ = [
    "Archetype",
    "Kernel",
    "archetypes",
    "compared",
    "in_turns",
    "kind",
    "of_device",
    "shapes_of",
    "tune",
    "winner",
]
