"""Rows of ``alkahest doctor`` about compiled code for the processor; they come whatever is broken."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

from alkahest.errors import AlkahestError
from alkahest.plugin import Diagnostic

ROOT = Path("/")
"""Where the file system begins; tests have one of their own."""


def diagnose() -> Iterator[Diagnostic]:
    """What code is generated with, what for, and on how many threads it runs."""
    yield _compiler("CPU compiler")
    yield _threads("CPU threads")


def _compiler(name: str) -> Diagnostic:
    try:
        from alkahest.backends.cpu.jit import compile, engine

        versions = engine.versions()
        target = compile.target()
    except AlkahestError as error:
        # Left out by whoever installed it: the extra is optional.
        left_out = importlib.util.find_spec("llvmlite") is None
        return Diagnostic(
            name=name,
            ok=None if left_out else False,
            detail=error.message,
            remedy=error.remediation or "",
        )
    return Diagnostic(
        name=name,
        ok=True,
        detail=f"llvmlite {versions['llvmlite']}, LLVM {versions['llvm']}; code for "
        f"{target.cpu} ({target.triple}), vectors of {target.vector_bits} bits",
    )


def _threads(name: str) -> Diagnostic:
    """How many threads run, and what keeps them fewer, or less busy, than the processors here."""
    from alkahest.backends.cpu.jit.threads import VARIABLE, default_threads, usable_processors

    try:
        count = default_threads()
    except AlkahestError as error:
        return Diagnostic(name=name, ok=False, detail=error.message, remedy=error.remediation or "")
    usable, all_of_them = usable_processors(), os.cpu_count() or 1
    detail = f"{count}, unless {VARIABLE} or threads= says else"
    if os.environ.get(VARIABLE):
        detail = f"{count}, by {VARIABLE}; this process may use {usable} processors"
    elif usable < all_of_them:
        detail = (
            f"{detail}; this process may use {usable} of the machine's {all_of_them} processors"
        )
    quota = processor_quota()
    if quota is None or quota >= count:
        return Diagnostic(name=name, ok=None, detail=detail)
    return Diagnostic(
        name=name,
        ok=None,
        detail=f"{detail}; the control group allows the time of {quota:g}",
        remedy=f"Set {VARIABLE}={max(1, round(quota))}: more threads only wait for each other.",
    )


def processor_quota() -> float | None:
    """Processors whose time the control groups of this process allow, or None for no limit."""
    limits = [*_quotas_of_version_2(), *_quota_of_version_1()]
    return min(limits, default=None)


def _quotas_of_version_2() -> Iterator[float]:
    """The limits of the group of this process and of all groups that it is in."""
    folder = ROOT / "sys/fs/cgroup"
    line = next((x for x in _text(ROOT / "proc/self/cgroup").splitlines() if x[:3] == "0::"), "")
    groups = [folder]
    for part in line[3:].strip("/").split("/"):
        groups.append(groups[-1] / part)
    for group in groups:
        quota, _, period = _text(group / "cpu.max").partition(" ")
        if quota.isdecimal() and period.isdecimal():
            yield int(quota) / int(period)


def _quota_of_version_1() -> Iterator[float]:
    folder = ROOT / "sys/fs/cgroup/cpu"
    quota, period = (_text(folder / f"cpu.cfs_{part}_us") for part in ("quota", "period"))
    if quota.isdecimal() and period.isdecimal():  # -1 is no limit
        yield int(quota) / int(period)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


__all__ = ["diagnose"]
