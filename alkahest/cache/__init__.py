"""Generated code on disk, shared by every backend and process of a user.

A backend stores what it compiled under a key made of everything that the code depends on, and loads
it instead of compiling again::

    key = cache.key({"program": digest(program), "target": "sm_90", ...})
    code = cache.load(key)
    if code is None:
        code = compile_it()
        cache.store(key, code, label="nvptx sm_90")

The cache only ever saves time. Where it is off, full, read-only, refused or damaged, :func:`load`
finds nothing and :func:`store` does nothing, and neither raises; :func:`status` says why.

What is loaded gets executed, so the folder is private (:mod:`alkahest.cache.private_folder`), and an
entry counts only if it names its key and its digest is right (:mod:`alkahest.cache.record`). Nothing
is locked: files appear whole or not at all, and any of them may vanish at any time.
"""

from alkahest.cache.entries import Entry, Status, clear, directory, entries, load, status, store
from alkahest.cache.keys import key, sources

__all__ = [
    "Entry",
    "Status",
    "clear",
    "directory",
    "entries",
    "key",
    "load",
    "sources",
    "status",
    "store",
]
