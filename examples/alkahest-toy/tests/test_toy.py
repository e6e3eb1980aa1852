"""The toy passes the kit that every backend passes."""

import alkahest_toy.plugin
import pytest

from alkahest.testing import BackendConformance, isolated_plugins


@pytest.fixture(scope="module", autouse=True)
def only_the_toy():
    with isolated_plugins(("toy", alkahest_toy.plugin)):
        yield


class TestToy(BackendConformance):
    backend = "toy"
    plugin_module = "alkahest_toy.plugin"
