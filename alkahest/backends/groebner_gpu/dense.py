"""The host's part of dense linear algebra on a device: products, and inverses of squares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from alkahest.errors import CudaError

if TYPE_CHECKING:
    from alkahest.backends.groebner_gpu.sessions import Argument, Device, Session, Words

TILE, STRIPE = 32, 8
"""Shape of a tile of a product by integers, and rows of it that a block covers at once."""

TENSOR_TILE, TENSOR_THREADS = 64, 256
"""Side of a tile of a product on tensor cores, and threads of its block."""

LEAST_SIDE = 32
"""Matrices with a shorter side are multiplied by integers: tiles would be empty for the most part."""

MOST_TERMS = 1 << 16
"""Terms of a sum that is exact on tensor cores; see ``fragments.cu``."""

LARGEST_OF_A_BLOCK = 96
"""Rows of a square that one block inverts by itself."""

PANEL = 32
"""Columns of a larger square that are eliminated before the others are, by products."""

_GATHER_THREADS, _EXCHANGE_THREADS = 128, 256


def pays_on_tensor_cores(device: Device, rows: int, columns: int, terms: int) -> bool:
    """Whether a product of ``rows`` x ``terms`` and ``terms`` x ``columns`` goes to tensor cores.

    ``tools/groebner_dense.py products`` times both.
    """
    return device.tensor_cores and min(rows, columns, terms) >= LEAST_SIDE and terms <= MOST_TERMS


def launch_product(
    session: Session,
    kernel: str,
    group: int,
    shape: tuple[int, int, int],
    tensor: bool,
    *arguments: Argument,
) -> None:
    """Launch a kernel of ``products.cu`` or its form on tensor cores.

    Args:
        session: of the device.
        kernel: its name, without the ending of the other form.
        group: that it is compiled for.
        shape: rows, columns and lanes.
        tensor: whether tensor cores multiply.
        arguments: of the kernel.
    """
    rows, columns, lanes = shape
    tile, block = TILE, (TILE, STRIPE)
    if tensor:
        kernel, tile, block = f"{kernel}_tensor", TENSOR_TILE, (TENSOR_THREADS, 1)
    grid = (-(-columns // tile), -(-rows // tile), lanes)
    session.launch(kernel, group, grid, block, 0, *arguments)


@attrs.frozen(kw_only=True)
class Dense:
    """Dense matrices of some lanes.

    Attributes:
        session: of the device.
        device: where.
        field: what the kernels need of the primes.
        lanes: number of them.
        bad: a word for each lane, set where a matrix has no inverse or an entry is not as recorded.
        group: that kernels are compiled for.
    """

    session: Session
    device: Device
    field: Words
    lanes: int
    bad: Words
    group: int = 1

    def multiply(self, kernel: str, shape: tuple[int, int, int], *arguments: Argument) -> None:
        """Launch a kernel of ``products.cu``, in the form that pays, for rows, columns and terms."""
        rows, columns, terms = shape
        tensor = pays_on_tensor_cores(self.device, rows, columns, terms)
        size = (rows, columns, self.lanes)
        launch_product(self.session, kernel, self.group, size, tensor, *arguments)

    def gather(
        self, rows: Words, nrows: int, width: int, first: int, count: int, columns: Words, n: int,
        chosen: Words,
    ) -> None:  # fmt: skip
        """``n`` columns of ``count`` rows from ``first`` on, of ``nrows`` in each lane."""
        self.session.launch(
            "gather_columns", self.group, (count, self.lanes), (_GATHER_THREADS,), 0,
            rows, nrows, width, first, columns, n, chosen,
        )  # fmt: skip

    def invert(self, squares: Words, n: int, panel: int | None = None) -> None:
        """Invert squares of ``n`` rows, one for each lane, in place; lanes that have none are bad.

        ``panel`` columns are eliminated at once, by default as many as suit ``n``. See
        :func:`check_inverse`.
        """
        session, lanes = self.session, self.lanes
        panel, block = panel or panel_of(n), (min(1024, 32 * -(-n // 4)),)  # four rows to a warp
        exchanged = session.allocate(n * lanes)
        before = session.allocate(panel * n * lanes)
        for first in range(0, n, panel):
            count = min(panel, n - first)
            session.launch(
                "invert_panel", self.group, (lanes,), block, _shared_bytes(n, count),
                squares, n, first, count, self.field, lanes, exchanged, self.bad,
            )  # fmt: skip
            if count == n:
                break
            session.launch(
                "exchange_rows", self.group, (-(-n // _EXCHANGE_THREADS), lanes),
                (_EXCHANGE_THREADS,), 0,
                squares, n, first, count, exchanged, before, self.bad,
            )  # fmt: skip
            self.multiply(
                "update_squares", (n, n, count),
                squares, n, first, count, before, self.field, lanes,
            )  # fmt: skip
        session.launch(
            "restore_columns", self.group, (lanes,), block, 0, squares, n, exchanged, self.bad
        )
        session.free(exchanged)
        session.free(before)


def words_to_invert(n: int) -> int:
    """Words of memory, for each lane, that :meth:`Dense.invert` takes beside the square."""
    return (panel_of(n) + 1) * n


def check_inverse(device: Device, n: int) -> None:
    """Foresee whether :meth:`Dense.invert` can invert squares of ``n`` rows on a device.

    Raises:
        CudaError: E-CUDA-003, a column does not fit into the shared memory of a block.
    """
    needed = _shared_bytes(n, panel_of(n))
    if needed > device.shared_bytes:
        raise CudaError(
            "E-CUDA-003",
            f"device {device.ordinal} has {device.shared_bytes} bytes of shared memory for a block, "
            f"and inverting a square of {n} rows needs {needed}",
            remediation="Compute with device=None.",
        )


def _shared_bytes(n: int, count: int) -> int:
    """What ``invert_panel`` needs for ``count`` columns of ``n`` rows; see the kernel."""
    return 4 * (count + n + 2)


def panel_of(n: int) -> int:
    """Columns of a square of ``n`` rows that are eliminated before the others are."""
    return n if n <= LARGEST_OF_A_BLOCK else PANEL


__all__ = [
    "Dense",
    "check_inverse",
    "launch_product",
    "panel_of",
    "pays_on_tensor_cores",
    "words_to_invert",
]
