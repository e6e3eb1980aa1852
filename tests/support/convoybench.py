"""Programs on the emulated device, reached through the copy threads' machine code."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np
from fakelink import FakeDriver, FakeLane, at

from alkahest.backends.nvptx.chunks import Cut, Manifest, Place, Track
from alkahest.backends.nvptx.convoy import Convoy
from alkahest.backends.nvptx.crew import Crew
from alkahest.backends.nvptx.emulate import EmulatedEvaluator
from alkahest.plugin import Batch, Evaluator, Outcome
from alkahest.program import Program

POINTS = 64
"""Points of a chunk."""

LANE = 1 << 14
"""Bytes of a lane."""

emulated = cache(partial(EmulatedEvaluator, mode="strict"))


class ProductAndSum:
    """A device that multiplies and adds two columns of any dtype."""

    def __init__(self, program: Program) -> None:
        pass

    def evaluate(self, batch: Batch) -> Outcome:
        (xs, ys), out = batch.columns, batch.out
        assert out is not None
        out[0][:], out[1][:] = xs * ys, xs + ys
        return Outcome(outputs=out)


class Bench:
    """A program on the emulated device, behind a driver and lanes made of Python."""

    def __init__(
        self,
        program: Program,
        *,
        with_table: bool = False,
        device: Callable[[Program], Evaluator] = emulated,
    ) -> None:
        evaluator = device(program)
        inputs = len(program.inputs)

        def kernel(addresses: Sequence[int], n: int) -> None:
            columns = tuple(at(a, program.dtype, n) for a in addresses[:inputs])
            results = zip(addresses[inputs:], program.output_dtypes, strict=True)
            out = tuple(at(a, dtype, n) for a, dtype in results)
            evaluator.evaluate(Batch(columns=columns, n=n, out=out))

        self.program = program
        self.with_table = with_table
        self.kernel = kernel
        self.driver = FakeDriver(kernel, len(self.arrays), with_table=with_table)
        self.lanes: list[FakeLane] = []
        self.crew: Crew[FakeLane] = Crew(
            "test-convoy",
            open_lane=self._open,
            within=contextlib.nullcontext,
            driver=lambda: self.driver.record,
            threads=3,
            depth=2,
        )

    def _open(self) -> FakeLane:
        lane = FakeLane(LANE)
        self.lanes.append(lane)
        return lane

    def convoy(
        self,
        columns: Sequence[np.ndarray],
        outputs: Sequence[np.ndarray],
        places: Sequence[Place] = (),
        points: int = POINTS,
        *,
        cut: Cut | None = None,
        copied: int | None = None,
        threads: int | None = None,
    ) -> Convoy:
        """The chunks of a batch whose arrays travel as ``places`` says; staged by default."""
        arrays = (*columns, *outputs)
        places = places or [Place.STAGED] * len(arrays)
        spread = {
            k: np.repeat(arrays[k][:1], points)
            for k, place in enumerate(places)
            if place is Place.SPREAD
        }
        self._kept = spread
        tracks = tuple(
            Track(array.itemsize, place, is_output=k >= len(columns))
            for k, (array, place) in enumerate(zip(arrays, places, strict=True))
        )
        return Convoy(
            Manifest(tracks, self.with_table),
            arrays,
            cut=Cut.even(len(arrays[0]), points) if cut is None else cut,
            spread={k: values.ctypes.data for k, values in spread.items()},
            kernel=1,
            block=128,
            grids=(7, 6, 5),
            where="device 3, Bench",
            copied=copied,
            threads=threads,
        )

    def run(
        self,
        columns: Sequence[np.ndarray],
        outputs: Sequence[np.ndarray],
        places: Sequence[Place] = (),
        points: int = POINTS,
        *,
        cut: Cut | None = None,
        copied: int | None = None,
    ) -> Convoy:
        """Carry a batch; no thread may have written behind the memory of a lane."""
        made = self.convoy(columns, outputs, places, points, cut=cut, copied=copied)
        assert self.crew.run(made)
        made.check()
        assert all(lane.is_intact() for lane in self.lanes)
        return made

    def run_on(self, other: Bench, made: Convoy) -> bool:
        """Carry a batch of ours with the threads and lanes of another."""
        count = made.record.arrays
        other.driver.load(self.kernel, count, with_table=self.with_table)
        try:
            return other.crew.run(made)
        finally:
            other.driver.load(other.kernel, len(other.arrays), with_table=other.with_table)

    @property
    def arrays(self) -> tuple[object, ...]:
        """What the kernel reads and writes."""
        return (*self.program.inputs, *self.program.outputs)

    def close(self) -> None:
        """End the threads."""
        assert self.crew.close(lambda lane: None)
