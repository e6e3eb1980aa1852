"""The file of one entry: a header, the label, the data.

The digest guards against damage, not against forgery: who can write to the private folder could as
well replace alkahest itself.
"""

from __future__ import annotations

import hashlib
import os
import struct
from typing import BinaryIO

# Magic, version of this format, length of the label, length of the data, key, SHA-256 of label and
# data.
_HEADER = struct.Struct("<8sHHQ32s32s")
_MAGIC = b"alkahest"
_VERSION = 1
_LONGEST_LABEL = 200


def pack(key: str, data: bytes, label: str) -> tuple[bytes, bytes, bytes]:
    """The parts of an entry's file, in order."""
    text = label.encode(errors="replace")[:_LONGEST_LABEL]
    header = _HEADER.pack(
        _MAGIC, _VERSION, len(text), len(data), bytes.fromhex(key), _digest(text, data)
    )
    return header, text, data


def read(file: BinaryIO, key: str) -> tuple[bytes, str]:
    """Data and label of the entry that ``file`` should be.

    Raises:
        ValueError: it is damaged, cut, of another format, or belongs to another key.
        OSError: it cannot be read.
    """
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size:
        raise ValueError("the header is cut")
    magic, version, label_size, data_size, owner, digest = _HEADER.unpack(header)
    if (magic, version, owner) != (_MAGIC, _VERSION, bytes.fromhex(key)):
        raise ValueError("another format, or the entry of another key")
    # Compared before anything is read, because a damaged length may be larger than the memory.
    if os.fstat(file.fileno()).st_size != _HEADER.size + label_size + data_size:
        raise ValueError("the size is wrong")
    text, data = file.read(label_size), file.read(data_size)
    if _digest(text, data) != digest:
        raise ValueError("the digest is wrong")
    return data, text.decode(errors="replace")


def _digest(text: bytes, data: bytes) -> bytes:
    found = hashlib.sha256(text)
    found.update(data)
    return found.digest()
