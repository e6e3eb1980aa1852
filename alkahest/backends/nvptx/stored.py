"""PTX from the disk cache, or generated and left there for later processes.

A process that finds its code here imports no llvmlite and reads no libdevice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from alkahest import cache
from alkahest.backends.nvptx import accuracy, targets, toolchain
from alkahest.backends.nvptx.shapes import UNTUNED
from alkahest.plugin import Artifact
from alkahest.program import digest

if TYPE_CHECKING:
    from alkahest.backends.nvptx.access import Access
    from alkahest.backends.nvptx.shapes import Tuning
    from alkahest.program import Program

_PLAIN = "plain"


def generate(
    program: Program,
    target: str | None,
    options: Mapping[str, Any],
    access: Access | None = None,
    tuning: Tuning = UNTUNED,
) -> Artifact:
    """As :func:`alkahest.backends.nvptx.module.generate`, from the cache where it is there.

    Raises:
        InputError, CudaError: as there.
    """
    name = targets.resolve(target)
    key = key_of(program, name, options, access, tuning)
    found = None if key is None else _read(cache.load(key), program, name)
    if found is not None:
        return found
    from alkahest.backends.nvptx import module

    artifact = module.generate(program, name, options, access, tuning)
    if key is not None:
        cache.store(key, _packed(artifact), label=f"PTX for {name}, {program.dtype}")
    return artifact


def key_of(
    program: Program,
    target: str,
    options: Mapping[str, Any],
    access: Access | None,
    tuning: Tuning = UNTUNED,
) -> str | None:
    """The key of a program's PTX, or None where it cannot be kept.

    Without an access the number of points per thread depends on the tuning. The names of the inputs
    do not count, and neither does how default options are written.

    Raises:
        InputError: E-INPUT-011 for an unknown option.
    """
    wanted = {**options, accuracy.OPTION: accuracy.mode_of(options)}
    compilers = toolchain.compilers()
    if compilers is None:
        return None
    return cache.key(
        {
            **compilers,
            "kind": "ptx",
            "program": digest(program),
            "target": target,
            "options": repr(sorted(wanted.items())),
            "access": _PLAIN if access is None else access.text,
            "tuning": tuning.text(program.dtype) if access is None else "",
        }
    )


def _packed(artifact: Artifact) -> bytes:
    facts = {"entry": artifact.entry, "metadata": dict(artifact.metadata), "code": artifact.code}
    return json.dumps(facts).encode()


def _read(data: bytes | None, program: Program, target: str) -> Artifact | None:
    """An artifact as it was stored, or None for anything that is none."""
    if data is None:
        return None
    try:
        facts = json.loads(data)
        code, entry, metadata = facts["code"], facts["entry"], facts["metadata"]
        if not (isinstance(code, str) and isinstance(entry, str) and metadata["ptx_version"]):
            return None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return Artifact(
        kind="ptx", code=code, program=program, entry=entry, target=target, metadata=metadata
    )


__all__ = ["generate", "key_of"]
