"""Ship one folder of the shared source tree as this distribution.

The folder (``portion``) lies at the repository root while the project is built from a checkout,
and beside this file once it has been packed into an sdist. Every distribution under ``plugins/``
carries the same copy of this file, because a build hook must travel inside its own sdist.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# A list of suffixes, since ignore files do not apply to forced inclusions: without it, editor
# backups and generated files lying in the folder would be shipped.
SHIPPED = frozenset({".cu", ".py", ".pyi"})


class SharedTreeHook(BuildHookInterface):
    """Add the source files under ``portion`` to whatever is being built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # dev-mode-dirs points at the checkout instead
            return
        here = Path(self.root)
        portion = self.config["portion"]
        base = next((b for b in (here, *here.parents[1:2]) if (b / portion).is_dir()), None)
        if base is None:
            raise FileNotFoundError(f"{portion} is neither in {here} nor two folders above it")
        for path in sorted((base / portion).rglob("*")):
            if path.name == "py.typed" or path.suffix in SHIPPED:
                build_data["force_include"][str(path)] = path.relative_to(base).as_posix()
