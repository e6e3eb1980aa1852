"""What the workers of a Dask cluster import: they cannot import tests."""

from __future__ import annotations

from typing import Any

import workers
from distributed import WorkerPlugin


class Prepared(WorkerPlugin):
    """Every worker, also one that takes the place of another, has our plugins."""

    def setup(self, worker: Any) -> None:
        workers.prepare()
