"""What a computation did, for those who ask."""

from __future__ import annotations

from typing import Any

import attrs

from alkahest.groebner.engine.records import RoundReport, RunReport


@attrs.frozen(kw_only=True)
class Report:
    """How a basis came about.

    Attributes:
        run: the engine's own record: rounds with their matrix sizes, primes, seconds by phase.
        requested_device: what ``device=`` was.
        total_seconds: wall time of the whole computation.
    """

    run: RunReport
    requested_device: str | int | None = None
    total_seconds: float = 0.0

    def after(self, earlier: Report) -> Report:
        """This report with what an earlier computation did, for the same result, added."""
        return attrs.evolve(
            self,
            run=self.run.after([earlier.run]),
            total_seconds=self.total_seconds + earlier.total_seconds,
        )

    @property
    def certainty(self) -> str:
        """``"exact"``, ``"certified"`` (both proved) or ``"probabilistic"``."""
        return self.run.certainty

    @property
    def rounds(self) -> tuple[RoundReport, ...]:
        """One record per matrix."""
        return self.run.rounds

    @property
    def primes(self) -> tuple[int, ...]:
        """The primes that went into a rational result."""
        return self.run.primes

    @property
    def dropped(self) -> tuple[int, ...]:
        """The primes that were found unlucky."""
        return self.run.dropped

    @property
    def seconds(self) -> dict[str, float]:
        """Wall seconds by phase."""
        return dict(self.run.seconds)

    @property
    def reductions_on_gpu(self) -> int:
        """Matrices, replays for a batch of primes, and the lifting, done on a GPU."""
        return self.run.reductions_on_gpu

    @property
    def reductions_on_cpu(self) -> int:
        """Those meant for a GPU that the processor did instead."""
        return self.run.reductions_on_cpu

    @property
    def planned_on_cpu(self) -> int:
        """Those that are the processor's by plan, such as small matrices beside a GPU."""
        return self.run.planned_on_cpu

    @property
    def device_name(self) -> str:
        """What did the linear algebra: the GPU's name, or ``"cpu"``."""
        return self.run.reducer

    @property
    def first_gpu_error(self) -> str:
        """What a GPU said that failed first, where the processor took over, or ""."""
        return self.run.first_gpu_error

    @property
    def choice(self) -> str:
        """Why ``device="auto"`` took the processor or a GPU, or ""."""
        return self.run.choice

    def ran_on_gpu(self) -> bool:
        """Whether everything meant for a GPU ran there, and something did."""
        return self.reductions_on_gpu > 0 and self.reductions_on_cpu == 0

    def fell_back_to_cpu(self) -> bool:
        """Whether something meant for a GPU ran on the processor."""
        return self.reductions_on_cpu > 0

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data that JSON takes."""
        return {
            **attrs.asdict(self.run),
            "requested_device": self.requested_device,
            "total_seconds": self.total_seconds,
            "ran_on_gpu": self.ran_on_gpu(),
            "fell_back_to_cpu": self.fell_back_to_cpu(),
        }

    def __str__(self) -> str:
        lines = [
            f"{self.certainty}; {self.total_seconds:.3g} s; linear algebra by {self.run.reducer}; "
            f"{len(self.primes)} primes, {len(self.dropped)} unlucky",
            *self._on_devices(),
            "degree  pairs      rows   columns    nonzeros    new   symbolic  reduction",
        ]
        lines += [
            f"{r.degree:6} {r.pairs:6} {r.rows:9} {r.columns:9} {r.nonzeros:11} {r.new:6} "
            f"{r.symbolic_seconds:9.3f}s {r.reduction_seconds:9.3f}s"
            for r in self.rounds
        ]
        return "\n".join(lines)

    def _on_devices(self) -> list[str]:
        """Lines about the device, where one was asked for."""
        if self.requested_device is None:
            return []
        counts = (
            f"device={self.requested_device!r}: {self.reductions_on_gpu} reductions on a GPU, "
            f"{self.reductions_on_cpu} by the processor instead, {self.planned_on_cpu} by plan"
        )
        failed = f"first failure: {self.first_gpu_error}" if self.first_gpu_error else ""
        return [line for line in (counts, self.choice, failed) if line]


__all__ = ["Report"]
