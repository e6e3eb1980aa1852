"""Memory of large results, taken over from results that are gone.

The system clears every page when it is first written, which costs more than many a kernel. So the
memory of a large array that we made is kept when the array and all its views are gone, and the next
result that fits takes it over. Meanwhile the system is told that it may have the pages back whenever
it needs them (``MADV_FREE``): but for a little, what is kept is missing nowhere. On systems that
cannot be told, nothing is kept.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import sys
from collections import deque
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alkahest.errors import InputError

VARIABLE = "ALKAHEST_KEPT_MEMORY"
"""Environment variable: bytes that are kept at most; 0 keeps nothing."""

SMALLEST = 4 << 20
"""Bytes of an array from which its memory is kept; the C library reuses smaller ones by itself."""

_SMALLEST_PART, _SEVERAL = 128 << 10, 31 << 20
"""The same of one of several arrays, and bytes that all of them have at least.

So much the C library can be made to reuse, see :func:`let_the_library_reuse`.
"""

_AT_HAND = 64 << 20
"""Bytes, used last, that are kept without telling the system, which takes time too."""

_MOST = 1 << 30
_SHARE_OF_ALL = 8
_HUGE_PAGE = 2 << 20
_PAGE = 4096
_STEP = 37 * 64
_WASTE = 1.25
"""How many times larger than an array the memory that it takes over may be."""


_made = itertools.count()


class _Block:
    """Memory of the system; large blocks in huge pages where it has them.

    Attributes:
        size: bytes.
        address: of the first, a multiple of 64, and another one within a page for every block: lines
            of many columns at the same place of a page would push each other out of the cache.
    """

    def __init__(self, size: int) -> None:
        unit = _unit(size)
        self.size = -(-size // unit) * unit
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._pages = mmap.mmap(-1, self.size + unit + _PAGE, flags=flags)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))
        self.address = -(-start // unit) * unit + _STEP * next(_made) % _PAGE
        if unit == _HUGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
            self._advise(mmap.MADV_HUGEPAGE)

    def lend_back(self) -> None:
        """Let the system have the pages until they are written again."""
        self._advise(mmap.MADV_FREE)

    def _advise(self, what: int) -> None:
        try:
            self._pages.madvise(what)
        except OSError:  # a kernel without it, or pages that are locked: only time is lost
            return


def _unit(size: int) -> int:
    """Bytes of which a block for ``size`` has a multiple."""
    return _HUGE_PAGE if size >= SMALLEST else _SMALLEST_PART


class _Lease:
    """What an array refers to as the owner of its memory; gives it back when it is gone."""

    def __init__(self, block: _Block, n: int, dtype: np.dtype[Any]) -> None:
        self._block = block
        self.__array_interface__ = {
            "version": 3,
            "data": (block.address, False),
            "shape": (n,),
            "typestr": dtype.str,
        }

    def __del__(self) -> None:
        give_back(self._block)


_spare: deque[_Block] = deque()
_lent: deque[_Block] = deque()
"""Blocks that nobody uses, the last one used at the end: at hand, and such that the system may have.

Deques, whose single operations are safe in any thread: arrays go away at any time, also while a
tuple of blocks is being made, where the interpreter collects garbage; not while a deque is copied.
Whoever takes a block out has it alone.
"""


def outputs_for(n: int, dtypes: Sequence[np.dtype[Any]]) -> tuple[NDArray[Any], ...]:
    """One uninitialised array of shape ``(n,)`` per dtype."""
    least = SMALLEST if n <= ordinary(dtypes) else _SMALLEST_PART
    return tuple([column(n, dtype, least) for dtype in dtypes])


def ordinary(dtypes: Sequence[np.dtype[Any]]) -> int:
    """The most points for which arrays of these dtypes are made as ever."""
    sizes = [dtype.itemsize for dtype in dtypes]
    several = max((_SMALLEST_PART - 1) // max(sizes), (_SEVERAL - 1) // sum(sizes))
    return min((SMALLEST - 1) // max(sizes), several)


@cache
def let_the_library_reuse() -> None:
    """Have the C library keep what results up to ``_SEVERAL`` bytes in all leave free.

    What is free at the end of its memory, glibc gives back to the system when that is more than twice
    the largest piece that it ever mapped and let go, of at most 32 MiB (``M_TRIM_THRESHOLD`` in
    mallopt(3)). In a process that had none, a function of three outputs would have each of its
    results in new pages, at ten times the cost of computing it. So it maps a piece here and lets it
    go: no page of it is ever touched.
    """
    np.empty(_SEVERAL, np.uint8)


def column(n: int, dtype: np.dtype[Any], least: int = SMALLEST) -> NDArray[Any]:
    """An uninitialised array of shape ``(n,)``, of memory that is kept from ``least`` bytes on."""
    size = n * dtype.itemsize
    if size < least or size > limit():
        return np.empty(n, dtype)
    try:
        return np.asarray(_Lease(_take(size) or _Block(size), n, dtype))
    except (OSError, ValueError):  # the system has no more such memory; NumPy says so if need be
        return np.empty(n, dtype)


def give_back(block: _Block) -> None:
    """Keep a block that nobody uses, in place of the ones that have been kept longest."""
    if sys.is_finalizing():
        return
    _spare.append(block)
    most, at_hand = limit(), _bytes(_spare)
    try:  # another thread may be quicker
        while at_hand > min(_AT_HAND, most):
            oldest = _spare.popleft()
            at_hand -= oldest.size
            oldest.lend_back()
            _lent.append(oldest)
        kept = at_hand + _bytes(_lent)
        while kept > most:
            kept -= _lent.popleft().size
    except IndexError:
        return


def _bytes(blocks: deque[_Block]) -> int:
    return sum([block.size for block in blocks.copy()])


def _take(size: int) -> _Block | None:
    """A kept block for ``size`` bytes, the last one used first."""
    most = max(size * _WASTE, size + _unit(size))
    for blocks in (_spare, _lent):
        for block in reversed(blocks.copy()):
            if size <= block.size <= most:
                try:
                    blocks.remove(block)
                except ValueError:  # another thread was quicker
                    continue
                return block
    return None


@cache
def limit() -> int:
    """Bytes that are kept at most, 0 where nothing is.

    Raises:
        InputError: E-INPUT-011, the environment variable is no number of bytes.
    """
    if sys.platform != "linux" or not hasattr(mmap, "MADV_FREE"):
        return 0
    text = os.environ.get(VARIABLE, "")
    if not text:
        pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
        return min(_MOST, pages * page // _SHARE_OF_ALL)
    if not text.isdecimal():
        raise InputError(
            "E-INPUT-011",
            f"{VARIABLE}={text!r} is not a number of bytes",
            remediation=f"Set it to 0 or more, or unset {VARIABLE}.",
        )
    return int(text)


__all__ = [
    "SMALLEST",
    "VARIABLE",
    "column",
    "let_the_library_reuse",
    "limit",
    "ordinary",
    "outputs_for",
]
