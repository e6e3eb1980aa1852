"""The C backend passes the kit that every backend passes."""

from typing import ClassVar

import alkahest_cc
import pytest

from alkahest.testing import BackendConformance, isolated_plugins


@pytest.fixture(scope="module", autouse=True)
def only_the_compiler():
    with isolated_plugins(("cc", alkahest_cc)):
        yield


class TestC(BackendConformance):
    backend = "cc"
    plugin_module = "alkahest_cc"
    without: ClassVar[dict[str, str]] = {"PATH": "", "CC": ""}
