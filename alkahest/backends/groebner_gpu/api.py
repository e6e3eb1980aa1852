"""Gröbner bases that are asked for on a GPU by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from alkahest.groebner.basis import GroebnerBasis
from alkahest.groebner.report import Report


@attrs.frozen(kw_only=True)
class GpuBackendReport:
    """What a computation on a GPU did.

    Attributes:
        device_name: of the device, or how many there are and the first one's name.
        reductions_on_gpu: matrices, replays for a batch of primes, and the lifting to the rationals,
            done on a device.
        reductions_on_cpu: those meant for a device that the processor did instead.
        planned_on_cpu: those that are the processor's by plan, such as small matrices.
        first_gpu_error: what a device said that failed first, or "".
        seconds: wall seconds by phase: ``"learn"``, ``"replay"``, ``"lift"``, ``"fglm"`` and
            ``"follow"`` for the processor's and the devices' part of a change of order, ...
        total_seconds: wall seconds of the whole computation.
        primes: that went into the result.
        dropped: primes that were found unlucky.
        certainty: see :class:`alkahest.groebner.report.Report`.
    """

    device_name: str
    reductions_on_gpu: int
    reductions_on_cpu: int
    planned_on_cpu: int
    first_gpu_error: str
    seconds: dict[str, float]
    total_seconds: float
    primes: tuple[int, ...]
    dropped: tuple[int, ...]
    certainty: str

    def ran_on_gpu(self) -> bool:
        """Whether everything meant for a GPU ran there, and something did."""
        return self.reductions_on_gpu > 0 and self.reductions_on_cpu == 0

    def fell_back_to_cpu(self) -> bool:
        """Whether something meant for a GPU ran on the processor."""
        return self.reductions_on_cpu > 0

    @classmethod
    def of(cls, report: Report) -> GpuBackendReport:
        """The same facts, from the report of a basis."""
        names = [field.name for field in attrs.fields(cls)]
        return cls(**{name: getattr(report, name) for name in names})

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data that JSON takes."""
        return {
            **attrs.asdict(self),
            "ran_on_gpu": self.ran_on_gpu(),
            "fell_back_to_cpu": self.fell_back_to_cpu(),
        }


def compute_groebner_basis_gpu(
    polys: Iterable[object],
    vars: Sequence[object] | str,
    order: object = "grevlex",
    device: str | int = "cuda",
    **options: Any,
) -> tuple[GroebnerBasis, GpuBackendReport]:
    """The reduced Gröbner basis with its linear algebra on a GPU, and what was done where.

    Args:
        polys: the polynomials, as for :meth:`GroebnerBasis.compute`.
        vars: the variables, the largest first.
        order: the monomial order.
        device: ``"cuda"`` for every GPU here, ``"cuda:1"`` or an ordinal for one of them.
        options: further keyword arguments of :meth:`GroebnerBasis.compute`, such as ``field``,
            ``fallback`` and ``deadline``.

    Raises:
        CudaError: E-CUDA-003 where there is no such device.
        SolverError: E-SOLVE-010 where it fails and ``fallback`` is ``"error"``, and all others of
            :meth:`GroebnerBasis.compute`.
    """
    basis = GroebnerBasis.compute(polys, vars, order, device=device, **options)
    return basis, GpuBackendReport.of(basis.report)


__all__ = ["GpuBackendReport", "compute_groebner_basis_gpu"]
