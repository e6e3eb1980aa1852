"""A cluster on this machine: two processes, each with one thread."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from daskworkers import Prepared
from distributed import Client, LocalCluster


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        client.register_plugin(Prepared())
        yield client
