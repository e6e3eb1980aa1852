"""The whole way through the CUDA driver: a fake of it runs the kernels' sources on the host."""

import shutil

import pytest
from childprocess import Failed
from fakedriver import COMPILER, FakeGpuChild, build
from hostkernels import HostKernels

from alkahest.backends.groebner_gpu import compiling

SETUP = """
from importlib import import_module
from importlib.metadata import entry_points
from alkahest.backends.groebner_gpu import compiling, probe

known = {{point.value for point in entry_points(group="alkahest.backends")}}
known |= {{entry["name"] for entry in ak.capabilities()["plugins"]}}
for name in ("alkahest.groebner.plugin", "alkahest.backends.groebner_gpu.plugin"):
    plugin = import_module(name)
    if name not in known and plugin.BACKEND not in ak.capabilities()["backends"]:
        ak.register(plugin)
LIBRARIES = {libraries}
compiling.machine_code = lambda file, group, target: (
    bytes([127]) + b"hosted " + LIBRARIES[file, group].encode() + bytes(1)
)
SYSTEM = ["x^2 + y*z - 2", "x*z + y^2 - 3", "x*y + z^2 - 5"]
"""


class KernelsChild(FakeGpuChild):
    """Such a process, whose code finds the names above."""

    setup = ""

    def ask(self, code, **settings):
        return super().ask(self.setup + code, **settings)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Where the fake driver is, and the kernels compiled for the host."""
    if shutil.which(COMPILER) is None:
        pytest.skip(f"no C compiler {COMPILER!r} to build the fake driver with")
    folder = tmp_path_factory.mktemp("hosted")
    made = {
        (file, group): str(HostKernels(compiling.FOLDER / file, kernels, folder, group).library)
        for file, kernels in compiling.SOURCES.items()
        for group in ((1, 8) if file in ("replay.cu", "inverse.cu", "products.cu") else (1,))
    }
    return build(tmp_path_factory.mktemp("fake-driver")), made


@pytest.fixture
def child(folders, tmp_path):
    drivers, libraries = folders

    def start(**settings):
        process = KernelsChild(drivers, tmp_path, **settings)
        process.setup = SETUP.format(libraries=libraries)
        return process

    return start


def test_bases_come_out_right_and_the_device_is_left_as_it_was(child):
    with child(FAKE_CUDA_COUNT="2") as process:
        process.calls()
        found = process.ask(
            """
result = []
for field in (None, ak.GF(65521)):
    for device in ("cuda", "cuda:1", 0):
        basis, report = ak.compute_groebner_basis_gpu(SYSTEM, "x y z", device=device, field=field)
        expected = ak.GroebnerBasis.compute(SYSTEM, "x y z", field=field)
        result.append([basis == expected, report.ran_on_gpu(), report.device_name])
"""
        )
        names = ["2 devices: Fake GPU 0", "Fake GPU 1", "Fake GPU 0"]
        assert found == [[True, True, name] for name in 2 * names]
        calls = process.calls()
        shared = [call for call in calls if call.startswith("attribute 8 ")]
        assert shared
        launches = [call for call in calls if call.startswith("launch hosted")]
        assert len(launches) > 20
        allocated = [call.split()[1] for call in calls if call.startswith("allocate")]
        released = [call.split()[1] for call in calls if call.startswith("release")]
        assert sorted(allocated) == sorted(released)


def test_the_witness_passes_on_a_device(child):
    with child() as process:
        code = "w = probe.witness()\nresult = [w.ok, w.detail]"
        ok, detail = process.ask(code)
        assert ok, detail
        assert "Fake GPU 0" in detail


def test_what_is_uploaded_lives_until_the_device_has_been_waited_for(child):
    with child() as process:
        found = process.ask(
            """
import weakref
import numpy as np
from alkahest.backends.groebner_gpu.gpu import open_gpu

def sent(count):
    values = np.arange(count, dtype=np.uint32)
    session.write(session.allocate(count), values)
    return weakref.ref(values)

with open_gpu(0).session() as session:
    first = sent(8)
    result = [first() is not None]
    session.wait()
    second = sent(9)
    result += [first() is None, second() is not None]
    session.read(session.allocate(1), np.empty(1, np.uint32))
    third = sent(10)
    result += [second() is None, third() is not None]
"""
        )
        assert found == [True] * 5
        calls = process.calls()
        uploaded = next(n for n, call in enumerate(calls) if call.startswith("upload 40"))
        after = [call.split()[0] for call in calls[uploaded + 1 :]]
        assert after.index("cuStreamSynchronize") < after.index("release")


def test_large_downloads_come_through_page_locked_memory_of_several_threads_that_is_kept(child):
    with child(ALKAHEST_COPY_THREADS="3") as process:
        found = process.ask(
            """
import numpy as np
from alkahest.backends.groebner_gpu import downloads
from alkahest.backends.groebner_gpu.gpu import open_gpu

device = open_gpu(0)
values = np.arange(3 * downloads.LEAST_BYTES // 4 + 5, dtype=np.uint32)
result = []
for _ in range(2):
    with device.session() as session:
        words = session.allocate(values.size)
        session.write(words, values)
        copy = np.zeros_like(values)
        session.read(words + 3, copy[3:])
        result.append(bool((copy[3:] == values[3:]).all()) and not copy[:3].any())
"""
        )
        assert found == [True, True]
        calls = process.calls()
        assert 1 <= sum(call.startswith("lock ") for call in calls) <= 3


def test_large_results_are_lifted_and_read_by_threads_and_what_was_kept_is_given_back(child):
    with child(ALKAHEST_COPY_THREADS="2") as process:
        process.calls()
        found = process.ask(
            """
from alkahest.backends.groebner_gpu import downloads, gpu

gpu.LEAST_BYTES = 64
basis, report = ak.compute_groebner_basis_gpu(SYSTEM, "x y z")
result = [basis == ak.GroebnerBasis.compute(SYSTEM, "x y z"), report.ran_on_gpu(),
          report.reductions_on_gpu]
"""
        )
        assert found == [True, True, 2]
        calls = process.calls()
        locked = sum(call.startswith("lock ") for call in calls)
        assert 1 <= locked <= 2
        allocated = sum(call.startswith("allocate") for call in calls)
        released = sum(call.startswith("release") for call in calls)
        assert allocated == released + locked  # a block of page-locked memory has a twin


def test_without_page_locked_memory_a_large_download_is_an_error_that_names_it(child):
    with child(FAKE_CUDA_LOCK="2") as process:
        code = """
from alkahest.backends.groebner_gpu import gpu

gpu.LEAST_BYTES = 64
ak.GroebnerBasis.compute(SYSTEM, "x y z", device="cuda")
"""
        with pytest.raises(Failed, match="page-locked") as caught:
            process.ask(code)
        assert caught.value.code == "E-SOLVE-010"


def test_a_forked_child_gives_back_nothing_of_its_parent_s(child):
    with child() as process:
        found = process.ask(
            """
import os
from pathlib import Path
import numpy as np
from alkahest.backends.groebner_gpu.gpu import open_gpu
from alkahest.backends.groebner_gpu.kept import Part

device = open_gpu(0)
with device.session() as session:
    words = session.allocate(8)
    part = Part(device, session, words, 4, np.array([7, 11], np.uint32))
pid = os.fork()
if not pid:
    part.close()
    os._exit(0)
os.waitpid(pid, 0)
log = Path(os.environ["FAKE_CUDA_LOG"])
before = log.read_text().count("release")
part.close()
part.close()
result = [before, log.read_text().count("release")]
"""
        )
        assert found == [0, 1]


@pytest.mark.parametrize("lost", [5])
def test_a_lost_context_is_an_error_and_with_fallback_the_processor_finishes(child, lost):
    with child(FAKE_CUDA_LOSES=str(lost)) as process:
        with pytest.raises(Failed, match="CUDA_ERROR_LAUNCH_FAILED") as caught:
            process.ask('ak.GroebnerBasis.compute(SYSTEM, "x y z", device="cuda")')
        assert caught.value.code == "E-SOLVE-010"
        found = process.ask(
            """
basis, report = ak.compute_groebner_basis_gpu(SYSTEM, "x y z", fallback="cpu")
result = [basis == ak.GroebnerBasis.compute(SYSTEM, "x y z"), report.fell_back_to_cpu(),
          report.first_gpu_error]
"""
        )
        assert found[:2] == [True, True]
        assert "CUDA_ERROR_LAUNCH_FAILED" in found[2]


def test_memory_that_runs_out_says_how_much_there_is(child):
    with child(FAKE_CUDA_MEMORY="1000") as process:
        with pytest.raises(Failed, match=r"bytes free|OUT_OF_MEMORY") as caught:
            process.ask('ak.GroebnerBasis.compute(SYSTEM, "x y z", device="cuda")')
        assert caught.value.code == "E-SOLVE-010"


def test_an_old_driver_is_refused_at_the_start(child):
    with child(FAKE_CUDA_VERSION="12080") as process:
        with pytest.raises(Failed, match=r"12\.8; .* need 13\.0") as caught:
            process.ask('ak.GroebnerBasis.compute(SYSTEM, "x y z", device="cuda", fallback="cpu")')
        assert caught.value.code == "E-CUDA-003"
