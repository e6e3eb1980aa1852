"""A cluster on this machine: two processes, each with one thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import workers
from distributed import Client, LocalCluster, WorkerPlugin


class Prepared(WorkerPlugin):
    """Every worker, also one that takes the place of another, has our plugins."""

    def setup(self, worker: Any) -> None:
        workers.prepare()


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        client.register_plugin(Prepared())
        yield client
