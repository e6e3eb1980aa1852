"""What this run promised to reach, and the tiers that follow from it.

The folders under ``tests`` are tiers. ``ALKAHEST_EXPECT`` lists the capability bits that the
environment promises: tests of a promised tier are never skipped, and
``tests/core/test_capabilities.py`` demands that these bits and no others are True.
``ALKAHEST_GPU_TESTS=1`` promises a device.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import signal
import tempfile
from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import alkahest
from alkahest._plugins.builtin import BY_MODULE
from alkahest._plugins.discovery import GROUP
from alkahest._plugins.registry import registry

if importlib.util.find_spec("hypothesis"):  # not in the environment that only packages
    from hypothesis import settings

    # Machines are slow at times, and a test suite that decides about a release draws no lots.
    settings.register_profile("local", deadline=None)
    settings.register_profile("ci", deadline=None, derandomize=True)
    settings.load_profile("ci" if os.environ.get("CI") else "local")


HERE = Path(__file__).parent

BIT_OF_TIER = {
    "cpu": "cpu",
    "jit": "llvm_jit",
    "nvptx": "cuda",
    "gpu": "cuda",
    "groebner": "groebner",
    "groebner_gpu": "groebner_cuda",
    "gpu_bases": "groebner_cuda",
}
PROMISED = frozenset(filter(None, os.environ.get("ALKAHEST_EXPECT", "").split(",")))
DEVICE_PROMISED = os.environ.get("ALKAHEST_GPU_TESTS") == "1"


def pytest_configure(config: pytest.Config) -> None:
    """Register our own plugins where nothing is installed and the tree is being tested.

    The cache of generated code is a folder of this run, which its workers share and the user's own
    has nothing to do with. Ctrl-C is tested too, in children as well, and a job in the background
    starts with it ignored.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        folder = tempfile.mkdtemp(prefix="alkahest-tests-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        os.environ["ALKAHEST_CACHE_DIR"] = folder
    os.environ.pop("ALKAHEST_CACHE_SIZE", None)
    if os.environ.get("ALKAHEST_INSTALLED") == "1":
        return
    installed = {point.value for point in entry_points(group=GROUP)}
    # In the order in which installed ones are found.
    for module in sorted(BY_MODULE.keys() - installed, key=lambda name: BY_MODULE[name].plugin):
        try:
            plugin = importlib.import_module(module)
        except ModuleNotFoundError as missing:
            if missing.name is None or not module.startswith(missing.name):
                raise  # ours is there, and something that it needs is not
        else:
            alkahest.register(plugin)


def pytest_report_header() -> list[str]:
    """Say what is tested, and with which plugins."""
    lines = [f"alkahest: {alkahest.__version__} in {Path(alkahest.__file__).parent}"]
    for record in registry.snapshot(strict=False).records:
        lines.append(f"  {record.label}: {record.status} {record.detail}".rstrip())
    promise = ", ".join(sorted(PROMISED)) or "nothing"
    device = "promised" if DEVICE_PROMISED else "optional"
    return [*lines, f"  bits promised: {promise}; device {device}"]


class UnreachableModule(pytest.Module):
    """A test module of a tier that is neither reachable nor promised; it is not even imported."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Skip, with the reason."""
        bit = BIT_OF_TIER[self.path.relative_to(HERE).parts[0]]
        pytest.skip(f"{bit!r} is False: {registry.probe(bit).detail}", allow_module_level=True)


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    """Skip the tiers whose bit is neither reachable nor promised."""
    if not module_path.is_relative_to(HERE):
        return None
    bit = BIT_OF_TIER.get(module_path.relative_to(HERE).parts[0])
    if bit is None or bit in PROMISED or (bit == "cuda" and DEVICE_PROMISED):
        return None
    if registry.probe(bit).ok:
        return None
    return UnreachableModule.from_parent(parent, path=module_path)


@pytest.fixture(scope="session")
def gpu() -> int:
    """Number of usable devices; without one, a skip, or an error where the run promised one."""
    count: int = alkahest.cuda_device_count() if registry.probe("cuda").ok else 0
    if count == 0 and DEVICE_PROMISED:
        pytest.fail("ALKAHEST_GPU_TESTS=1 promises a device and none is usable", pytrace=False)
    if count == 0:
        pytest.skip("no CUDA device here")
    return count
