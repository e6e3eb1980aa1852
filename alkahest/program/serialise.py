"""Programs as bytes: deterministic, versioned, checked on the way in.

The bytes are the pickle of a compiled function, the unit of work sent to other machines, and the
core of every cache key. They are JSON, so that nothing in them can run.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import attrs

from alkahest.errors import CodegenError
from alkahest.program.records import VERSION, Instruction, Program

_FORMAT = "alkahest-program"
_KEYS = {"format", "version", "dtype", "inputs", "constants", "code", "outputs"}


def dumps(program: Program) -> bytes:
    """Serialise ``program``; equal programs give equal bytes in every process."""
    document = {
        "format": _FORMAT,
        "version": VERSION,
        "dtype": program.dtype,
        "inputs": program.inputs,
        "constants": [_pack(value) for value in program.constants],
        "code": [
            (op, args) if parameter is None else (op, args, hex(parameter))
            for op, args, parameter in program.code
        ],
        "outputs": program.outputs,
    }
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()


def loads(data: bytes) -> Program:
    """The program that :func:`dumps` wrote as ``data``, verified.

    Raises:
        CodegenError: E-JIT-008 for damaged bytes or an unknown version, E-JIT-007 and E-JIT-010
            for a program that breaks the rules.
    """
    try:
        document = json.loads(data)
        if document["format"] != _FORMAT:
            raise ValueError("not a serialised program")
        version = document["version"]
        if version != VERSION:
            raise CodegenError(
                "E-JIT-008",
                f"program version {version!r}, this alkahest reads {VERSION}",
                remediation="Use the same alkahest version on both sides.",
            )
        if document.keys() != _KEYS:
            raise ValueError(f"fields {sorted(document)}")
        program = Program(
            dtype=_text(document["dtype"]),
            inputs=tuple(map(_text, document["inputs"])),
            constants=tuple(map(_unpack, document["constants"])),
            code=tuple(map(_instruction, document["code"])),
            outputs=tuple(map(_whole, document["outputs"])),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        if isinstance(error, CodegenError):
            raise
        raise CodegenError("E-JIT-008", f"damaged program: {error}", remediation="") from error
    return program.verify()


def digest(program: Program) -> str:
    """SHA-256 of the program as 64 hexadecimal digits; the names of the inputs do not count."""
    names = tuple(str(i) for i in range(len(program.inputs)))
    return sha256(dumps(attrs.evolve(program, inputs=names))).hexdigest()


def _pack(value: float | complex | bool) -> bool | str | list[str]:
    if isinstance(value, bool):
        return value
    if isinstance(value, complex):
        return [value.real.hex(), value.imag.hex()]
    return float(value).hex()


def _unpack(item: Any) -> float | complex | bool:
    if isinstance(item, bool):
        return item
    if isinstance(item, str):
        return float.fromhex(item)
    real, imaginary = item
    return complex(float.fromhex(real), float.fromhex(imaginary))


def _instruction(item: Any) -> Instruction:
    op, args, *rest = item
    (parameter,) = rest or (None,)
    return Instruction(
        _text(op),
        tuple(map(_whole, args)),
        None if parameter is None else int(parameter, 16),
    )


def _text(item: Any) -> str:
    if not isinstance(item, str):
        raise TypeError(f"{item!r} is not a text")
    return item


def _whole(item: Any) -> int:
    if type(item) is not int:
        raise TypeError(f"{item!r} is not an integer")
    return item
