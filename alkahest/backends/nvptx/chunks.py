"""How a batch is cut, and where the columns of one chunk lie in a block of memory.

A block has two copies, one in page-locked host memory and one on the device, with the same
offsets. What the host copies is at its two ends, so that one transfer each way carries it::

    | addresses | staged inputs | locked inputs | locked outputs | staged outputs |
    |<------ one upload ------->|                                |<- one download ->|

Locked columns are in page-locked memory of the caller; their place in the host's copy is unused.
Spread columns, one value for the whole batch, are not in the block.
"""

from __future__ import annotations

import enum
import os

import attrs

from alkahest.errors import InputError

CHUNK_VARIABLE = "ALKAHEST_CUDA_CHUNK"
"""Environment variable: the largest number of points of one launch."""

ALIGNMENT = 256
"""Bytes that every column of a block is aligned to."""

ADDRESS_BYTES = 8

SPREAD_POINTS = 1 << 16
"""How often the value of a spread column is uploaded at most; the device makes the rest of it."""

_ROUND_POINTS = 512


class Place(enum.Enum):
    """How a column gets to the device, or a result from it."""

    STAGED = "staged"
    LOCKED = "locked"
    SPREAD = "spread"


@attrs.frozen
class Track:
    """One input or output of a program, as far as its place in a block goes.

    Attributes:
        itemsize: bytes of one value.
        place: how it travels.
        is_output: whether the kernel writes it.
    """

    itemsize: int
    place: Place = Place.STAGED
    is_output: bool = False


@attrs.frozen
class Layout:
    """Where everything lies in a block.

    Attributes:
        points: points of the chunk.
        offsets: one per track, in bytes; None for what is spread.
        up: the bytes before it are uploaded.
        down: the bytes from it on are downloaded.
        end: bytes of the block that are used.
    """

    points: int
    offsets: tuple[int | None, ...]
    up: int
    down: int
    end: int


@attrs.frozen(cache_hash=True)
class Manifest:
    """What travels in each chunk.

    Attributes:
        tracks: of every input, then of every output.
        with_table: whether the addresses of all travel too.
    """

    tracks: tuple[Track, ...]
    with_table: bool = False

    def positions(self, place: Place, *, outputs: bool) -> list[int]:
        """Positions of the inputs, or of the outputs, that travel in this way."""
        return [
            k
            for k, track in enumerate(self.tracks)
            if track.place is place and track.is_output is outputs
        ]

    def layout(self, points: int) -> Layout:
        """The block of a chunk of ``points`` points."""
        offsets: list[int | None] = [None] * len(self.tracks)
        position = self.table_bytes
        up = down = position
        for place, outputs in ORDER:
            if (place, outputs) == ORDER[-1]:
                down = position
            for k in self.positions(place, outputs=outputs):
                offsets[k] = position
                position += padded(self.tracks[k].itemsize * points)
            if (place, outputs) == ORDER[0]:
                up = position
        return Layout(points, tuple(offsets), up, down, position)

    def most_points(self, size: int) -> int:
        """Most points, at least 1, whose block takes no more than ``size`` bytes.

        Spread columns count as if they were in the block: they take as much memory elsewhere. One
        point alone may need more than ``size``.
        """
        fixed = self.table_bytes + ALIGNMENT * len(self.tracks)
        points = (size - fixed) // sum(track.itemsize for track in self.tracks)
        if points > _ROUND_POINTS:
            points -= points % _ROUND_POINTS
        return max(1, points)

    @property
    def table_bytes(self) -> int:
        """Bytes of a block before the columns."""
        return padded(ADDRESS_BYTES * len(self.tracks)) if self.with_table else 0


ORDER = (
    (Place.STAGED, False),
    (Place.LOCKED, False),
    (Place.LOCKED, True),
    (Place.STAGED, True),
)


@attrs.frozen
class Cut:
    """How the points of a batch are cut into chunks.

    Attributes:
        n: number of points, at least 1.
        points: of every chunk but the first and the last, which may have fewer.
        first: of the first chunk, at least 1, if there are as many.
    """

    n: int
    points: int
    first: int

    @classmethod
    def even(cls, n: int, points: int) -> Cut:
        """Chunks of ``points`` points, all but the last."""
        return cls(n, points, points)

    @property
    def chunks(self) -> int:
        """How many there are."""
        return 1 + max(0, -(-(self.n - self.first) // self.points))

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Points of chunks in general, of the first and of the last one."""
        first = min(self.first, self.n)
        return self.points, first, (self.n - first - 1) % self.points + 1


def padded(size: int) -> int:
    """``size`` rounded up to the alignment of columns."""
    return size + -size % ALIGNMENT


def rounded(points: int) -> int:
    """``points`` rounded up, so that chunks begin where columns are well aligned."""
    return points + -points % _ROUND_POINTS


def limit_of_environment() -> int | None:
    """The largest number of points of one launch that the environment allows, or None.

    Raises:
        InputError: E-INPUT-011 where the variable is not a positive integer.
    """
    return positive_setting(CHUNK_VARIABLE, "the largest number of points per launch")


def positive_setting(name: str, meaning: str) -> int | None:
    """Value of an environment variable that is a positive integer, or None where it is unset.

    Raises:
        InputError: E-INPUT-011 where it is something else.
    """
    text = os.environ.get(name, "").strip()
    if not text:
        return None
    if not text.isdecimal() or int(text) == 0:
        raise InputError(
            "E-INPUT-011",
            f"{name}={text!r} is not a positive integer",
            remediation=f"Unset {name}, or give {meaning}.",
        )
    return int(text)
