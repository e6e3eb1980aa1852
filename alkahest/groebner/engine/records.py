"""What goes into the engine and what comes out: flat arrays, frozen records, no numba.

Polynomials travel as three arrays: the exponents of all terms, one row a term; the coefficients,
one a term; and the offsets at which each polynomial starts. Nothing here knows of names, rings or
expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST_PRIME = 2**31 - 1
"""Largest characteristic that the engine computes over."""


@attrs.frozen(kw_only=True, eq=False)
class PolynomialSystem:
    """Polynomials to compute with, in any order, terms in any order.

    Attributes:
        exponents: uint32, shape ``(terms, nvars)``; equal monomials within a polynomial are added.
        coefficients: one per term. Over GF(p): integers of any size or sign, or a uint64 array of
            residues. Over the rationals: Python integers (denominators cleared by the caller).
        offsets: int64, shape ``(polynomials + 1,)``; polynomial i owns the terms
            ``offsets[i]:offsets[i + 1]``. No terms means zero.
    """

    exponents: NDArray[np.uint32]
    coefficients: Sequence[int] | NDArray[Any]
    offsets: NDArray[np.int64]

    @property
    def nvars(self) -> int:
        """Number of variables."""
        return int(self.exponents.shape[1])

    def __len__(self) -> int:
        """Number of polynomials."""
        return len(self.offsets) - 1


def _weights(value: Any) -> NDArray[np.int64]:
    matrix = np.array(value, dtype=np.int64)
    matrix.setflags(write=False)
    return matrix


def _is_admissible(order: MonomialOrder, _: object, matrix: NDArray[np.int64]) -> None:
    nvars = matrix.shape[1]
    # Rows scaled to 1, or large weights would hide small ones.
    rows = matrix[matrix.any(axis=1)]
    if nvars and np.linalg.matrix_rank(rows / np.abs(rows).max(axis=1, keepdims=True)) < nvars:
        raise ValueError(f"the weights of order {order.name!r} leave different monomials equal")
    for column in matrix.T:
        nonzero = column[column != 0]
        if len(nonzero) and nonzero[0] < 0:
            raise ValueError(f"order {order.name!r} has monomials smaller than 1")


@attrs.frozen(kw_only=True, eq=False)
class MonomialOrder:
    """An admissible order, given by a weight matrix.

    Monomial ``a`` is greater than ``b`` when the first row ``w`` with ``w @ a != w @ b`` has
    ``w @ a > w @ b``. The matrix has full column rank, and the first non-zero entry of each column
    is positive (so that 1 is the least monomial).

    Attributes:
        name: for reports, for instance ``"grevlex"``.
        weights: int64, shape ``(rows, nvars)``.
    """

    name: str
    weights: NDArray[np.int64] = attrs.field(converter=_weights, validator=_is_admissible)

    @property
    def nvars(self) -> int:
        """Number of variables."""
        return int(self.weights.shape[1])

    @property
    def is_graded(self) -> bool:
        """Whether a monomial of larger (weighted) degree is always larger."""
        return bool(self.nvars) and bool((self.weights[0] > 0).all())

    @classmethod
    def grevlex(cls, nvars: int) -> MonomialOrder:
        """Total degree, ties broken by the smaller power of the last variable."""
        return cls.blocks((nvars,), name="grevlex")

    @classmethod
    def lex(cls, nvars: int) -> MonomialOrder:
        """The power of the first variable, then of the second, and so on."""
        return cls(name="lex", weights=np.eye(nvars, dtype=np.int64).reshape(nvars, nvars))

    @classmethod
    def grlex(cls, nvars: int) -> MonomialOrder:
        """Total degree, ties broken lexicographically."""
        rows = np.vstack([np.ones((1, nvars)), np.eye(nvars)[: max(nvars - 1, 0)]])
        return cls(name="grlex", weights=rows)

    @classmethod
    def blocks(cls, sizes: Sequence[int], *, name: str = "blocks") -> MonomialOrder:
        """Grevlex on the first ``sizes[0]`` variables, ties broken by the next block.

        Two blocks make an elimination order for the variables of the first.
        """
        nvars = sum(sizes)
        rows: list[NDArray[np.int64]] = []
        start = 0
        for size in sizes:
            degree = np.zeros(nvars, dtype=np.int64)
            degree[start : start + size] = 1
            rows.append(degree)
            for variable in range(start + size - 1, start, -1):
                row = np.zeros(nvars, dtype=np.int64)
                row[variable] = -1
                rows.append(row)
            start += size
        return cls(name=name, weights=np.array(rows, dtype=np.int64).reshape(len(rows), nvars))

    @classmethod
    def weighted(cls, weights: Sequence[int]) -> MonomialOrder:
        """Weighted degree with positive integer weights, ties broken as in grevlex."""
        if min(weights, default=1) < 1:
            raise ValueError("weights of a weighted order are positive integers")
        rows = MonomialOrder.grevlex(len(weights)).weights.copy()
        rows[0] = weights
        return cls(name="weighted", weights=rows)


def integers_of(limbs: NDArray[np.uint32], negative: NDArray[Any]) -> list[int]:
    """Python integers of rows of 32-bit limbs, least significant first, with their signs."""
    width = limbs.shape[1] * 4
    data = np.ascontiguousarray(limbs).tobytes()
    starts = range(0, len(limbs) * width, width)
    magnitudes = (int.from_bytes(data[at : at + width], "little") for at in starts)
    return [-m if sign else m for m, sign in zip(magnitudes, negative.tolist(), strict=True)]


@attrs.frozen(kw_only=True, eq=False)
class EngineBasis:
    """A reduced Gröbner basis, sorted by leading monomial, the largest first.

    The terms of each polynomial are sorted too, so that its leading term comes first. Over GF(p)
    polynomials are monic. Over the rationals each is the primitive integer multiple with a positive
    leading coefficient; dividing by the leading coefficient gives the monic polynomial.

    Attributes:
        exponents: uint32, shape ``(terms, nvars)``.
        offsets: int64, shape ``(polynomials + 1,)``.
        characteristic: the prime, or 0 for the rationals.
        residues: uint32, shape ``(terms,)``, below the prime; empty over the rationals.
        limbs: uint32, shape ``(terms, n)``: magnitudes of the coefficients over the rationals,
            least significant limb first; empty over GF(p).
        negative: bool, shape ``(terms,)``: signs that go with ``limbs``.
    """

    exponents: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    characteristic: int
    residues: NDArray[np.uint32] = attrs.field(factory=lambda: np.zeros(0, np.uint32))
    limbs: NDArray[np.uint32] = attrs.field(factory=lambda: np.zeros((0, 0), np.uint32))
    negative: NDArray[np.bool_] = attrs.field(factory=lambda: np.zeros(0, np.bool_))

    def __len__(self) -> int:
        """Number of polynomials."""
        return len(self.offsets) - 1

    @property
    def nvars(self) -> int:
        """Number of variables."""
        return int(self.exponents.shape[1])

    def leading_exponents(self) -> NDArray[np.uint32]:
        """Exponents of the leading monomials, shape ``(polynomials, nvars)``."""
        return self.exponents[self.offsets[:-1]]

    def integers(self, index: int) -> list[int]:
        """Coefficients of polynomial ``index`` as Python integers, made when asked for."""
        part = slice(int(self.offsets[index]), int(self.offsets[index + 1]))
        if self.characteristic:
            return [int(value) for value in self.residues[part]]
        return integers_of(self.limbs[part], self.negative[part])

    def equals(self, other: EngineBasis) -> bool:
        """Whether both are the same basis, in rings of as many variables."""
        width = min(self.limbs.shape[1], other.limbs.shape[1])
        return (
            self.characteristic == other.characteristic
            and np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.exponents, other.exponents)
            and np.array_equal(self.residues, other.residues)
            and np.array_equal(self.negative, other.negative)
            and np.array_equal(self.limbs[:, :width], other.limbs[:, :width])
            and not self.limbs[:, width:].any()
            and not other.limbs[:, width:].any()
        )

    def as_system(self) -> PolynomialSystem:
        """The same polynomials as an input of another computation."""
        coefficients = [c for index in range(len(self)) for c in self.integers(index)]
        return PolynomialSystem(
            exponents=self.exponents, coefficients=coefficients, offsets=self.offsets
        )


@attrs.frozen(kw_only=True)
class RoundReport:
    """One matrix of one run.

    Attributes:
        degree: (weighted) degree of the pairs taken, or -1 for the final interreduction.
        pairs: critical pairs taken.
        rows: rows of the matrix, known pivots included.
        reduced: rows or combinations that were reduced.
        columns: columns of the matrix.
        nonzeros: entries of the matrix.
        new: new basis elements found.
        symbolic_seconds: wall time to set the matrix up.
        reduction_seconds: wall time to reduce it.
    """

    degree: int
    pairs: int
    rows: int
    reduced: int
    columns: int
    nonzeros: int
    new: int
    symbolic_seconds: float
    reduction_seconds: float


@attrs.frozen(kw_only=True)
class RunReport:
    """What a computation did.

    Attributes:
        certainty: ``"exact"`` (a prime field with exact elimination), ``"probabilistic"`` (random
            row combinations, or a lift checked by a fresh prime) or ``"certified"`` (proved).
        rounds: of the learning run.
        primes: primes whose images went into the result, in order.
        dropped: primes found unlucky.
        seconds: wall time by phase, for instance ``"learn"``, ``"replay"``, ``"lift"``.
        reducer: name of what did the linear algebra.
        planned_on_cpu: reductions that belong to the host by plan (without a device all, else those
            of small matrices, or of learning where the device's reducer takes no part in it).
        reductions_on_cpu: reductions, and liftings, meant for a device that the host did.
        reductions_on_gpu: reductions, and liftings, done on a device.
        first_gpu_error: what a device said that failed first, where the host took over, or "".
        choice: why the host or a device was taken, where that was left to the library, or "".
    """

    certainty: str
    rounds: tuple[RoundReport, ...] = ()
    primes: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    seconds: dict[str, float] = attrs.field(factory=dict)
    reducer: str = "cpu"
    planned_on_cpu: int = 0
    reductions_on_cpu: int = 0
    reductions_on_gpu: int = 0
    first_gpu_error: str = ""
    choice: str = ""

    def after(self, earlier: Sequence[RunReport]) -> RunReport:
        """This report with what runs before it did, for the same result, added."""
        runs = [*earlier, self]
        phases = {phase for run in runs for phase in run.seconds}
        ranking = ("probabilistic", "exact", "certified")
        return attrs.evolve(
            self,
            certainty=min((run.certainty for run in runs), key=ranking.index),
            rounds=tuple(one for run in runs for one in run.rounds),
            dropped=tuple(p for run in runs for p in run.dropped),
            seconds={p: sum(run.seconds.get(p, 0.0) for run in runs) for p in sorted(phases)},
            planned_on_cpu=sum(run.planned_on_cpu for run in runs),
            reductions_on_cpu=sum(run.reductions_on_cpu for run in runs),
            reductions_on_gpu=sum(run.reductions_on_gpu for run in runs),
            first_gpu_error=next((run.first_gpu_error for run in runs if run.first_gpu_error), ""),
        )


@attrs.frozen(kw_only=True)
class Progress:
    """What a progress callback is told between rounds and between batches of primes.

    Attributes:
        phase: ``"learn"``, ``"replay"``, ``"lift"`` or ``"certify"``.
        step: rounds or primes done in this phase so far.
        degree: degree of the round, where there is one.
        basis: basis elements known.
        pairs: critical pairs left.
    """

    phase: str
    step: int
    degree: int = 0
    basis: int = 0
    pairs: int = 0


ProgressCallback = Callable[[Progress], None]
"""May raise to cancel; the exception reaches the caller of the engine."""
