"""Running the command line, and reading what it draws."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import image

from alkahest.cli import main


@pytest.fixture
def drawn(tmp_path: Path) -> Callable[..., Any]:
    """Pixels of ``alkahest plot ARGUMENTS...``: shape (height, width, 4), from 0 to 1."""

    def draw(*arguments: str) -> Any:
        target = tmp_path / "picture.png"
        assert main(["plot", *arguments, "-o", str(target)]) == 0
        return np.asarray(image.imread(target))

    return draw
