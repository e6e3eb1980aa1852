"""What the wheels do once installed: which set of distributions turns on which bits and names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

BITS = ("cpu", "llvm_jit", "cuda", "groebner", "groebner_cuda")
NAMES = {
    "cuda": ("compile_cuda", "CudaCompiledFn", "cuda_device_count"),
    "groebner": (
        "GroebnerBasis",
        "GbPoly",
        "QQ",
        "GF",
        "solve",
        "triangularize",
        "real_roots",
    ),
    "groebner_cuda": ("compute_groebner_basis_gpu", "GpuBackendReport"),
}


class Row(NamedTuple):
    """Distributions besides core, and the bits that must be on with them; all others are off."""

    plugins: tuple[str, ...]
    on: frozenset[str] = frozenset()


SETS = {
    "core": Row(()),
    "cpu": Row(("alkahest-cpu",), frozenset({"cpu"})),
    "cpu with llvmlite": Row(("alkahest-cpu",), frozenset({"cpu", "llvm_jit"})),
    "nvptx": Row(("alkahest-nvptx",), frozenset({"cuda"})),
    # llvmlite, which one plugin brings, is there for the other too.
    "cpu and nvptx": Row(
        ("alkahest-cpu", "alkahest-nvptx"), frozenset({"cpu", "cuda", "llvm_jit"})
    ),
    "groebner": Row(("alkahest-groebner",), frozenset({"groebner"})),
    "groebner for GPUs": Row(
        ("alkahest-nvptx", "alkahest-groebner", "alkahest-groebner-gpu"),
        frozenset({"cuda", "groebner", "groebner_cuda"}),
    ),
    "all": Row(
        ("alkahest-cpu", "alkahest-nvptx", "alkahest-groebner", "alkahest-groebner-gpu"),
        frozenset({"cpu", "cuda", "groebner", "groebner_cuda", "llvm_jit"}),
    ),
}

# Installed by requirement from the wheelhouse, as a user would, although the public index has a
# stranger of that name; the others by the wheels' paths.
BY_NAME = {
    "nvptx": ["alkahest[nvptx]==0.1.0"],
    "cpu with llvmlite": ["alkahest[jit]==0.1.0"],
}

SURFACE = f"""
import alkahest
answer = {{
    "features": alkahest.capabilities()["features"],
    "statuses": sorted({{p["status"] for p in alkahest.capabilities()["plugins"]}}),
    "has": [n for n in {[n for ns in NAMES.values() for n in ns]} if hasattr(alkahest, n)],
    "dir": dir(alkahest),
    "all": list(alkahest.__all__),
}}
"""


def assert_surface(surface: dict[str, Any], on: frozenset[str]) -> None:
    """The bits are exactly ``on``, and names, ``dir()`` and ``__all__`` follow from them."""
    assert surface["features"] == {bit: bit in on for bit in BITS}
    promised = {name for bit in on for name in NAMES.get(bit, ())}
    assert set(surface["has"]) == promised
    every = {name for names in NAMES.values() for name in names}
    assert every & set(surface["dir"]) == promised
    assert every & set(surface["all"]) == promised


@pytest.fixture(scope="module")
def environments(
    new_environment: Callable[[], Any], wheel: Callable[[str], Path]
) -> Callable[[str], Any]:
    """The environment with one of :data:`SETS` installed from wheels, made when first asked for."""
    made: dict[str, Any] = {}

    def get(name: str) -> Any:
        if name not in made:
            made[name] = new_environment()
            wheels = [wheel(dist) for dist in ("alkahest", *SETS[name].plugins)]
            what = BY_NAME.get(name, wheels)
            made[name].pip("install", "--quiet", "--find-links", wheels[0].parent, *what)
        return made[name]

    return get


@pytest.mark.parametrize("name", SETS)
def test_a_set_of_distributions_turns_on_exactly_its_bits_and_names(
    name: str, environments: Callable[[str], Any]
) -> None:
    surface = environments(name).evaluate(SURFACE)
    assert_surface(surface, SETS[name].on)
    assert surface["statuses"] == (["active"] if SETS[name].plugins else [])


@pytest.mark.parametrize("name", SETS)
def test_an_installed_set_has_no_broken_requirements(
    name: str, environments: Callable[[str], Any]
) -> None:
    assert "No broken requirements" in environments(name).pip("check")


@pytest.mark.parametrize(
    ("variables", "on"),
    [
        ({"ALKAHEST_DISABLE_PLUGINS": "nvptx"}, {"cpu", "groebner", "groebner_cuda", "llvm_jit"}),
        ({"ALKAHEST_DISABLE_PLUGINS": "alkahest-cpu"}, {"cuda", "groebner", "groebner_cuda"}),
        ({"ALKAHEST_DISABLE_PLUGINS": "cpu,nvptx,groebner,groebner_gpu"}, set()),
        ({"ALKAHEST_PLUGINS": "cpu"}, {"cpu", "llvm_jit"}),
        ({"ALKAHEST_PLUGINS": ""}, set()),
    ],
)
def test_a_disabled_plugin_is_as_good_as_not_installed(
    variables: dict[str, str], on: set[str], environments: Callable[[str], Any]
) -> None:
    assert_surface(environments("all").evaluate(SURFACE, **variables), frozenset(on))


@pytest.mark.parametrize("name", SETS)
def test_the_command_runs_isolated_in_every_set(
    name: str, environments: Callable[[str], Any]
) -> None:
    environment = environments(name)
    shown = environment.run("-m", "alkahest", "capabilities")
    for bit in SETS[name].on:
        assert bit in shown
    assert environment.script("alkahest", "capabilities") == shown


def test_without_a_backend_compiling_says_what_to_install(
    environments: Callable[[str], Any],
) -> None:
    code = """
import alkahest
x, = alkahest.symbols("x")
try:
    alkahest.compile_expr(x + 1, [x])
except alkahest.AlkahestError as error:
    answer = [error.code, str(error)]
"""
    error, text = environments("core").evaluate(code)
    assert error == "E-JIT-004"
    assert "pip install 'alkahest[cpu]==0.1.0'" in text


def test_import_alkahest_loads_no_backend_and_no_numpy(environments: Callable[[str], Any]) -> None:
    code = "import sys, alkahest; answer = sorted({name.partition('.')[0] for name in sys.modules})"
    loaded = set(environments("all").evaluate(code))
    assert not loaded & {"numpy", "scipy", "llvmlite", "cuda", "numba", "pyarrow", "tqdm"}


def test_a_wheelhouse_gives_ours_although_the_index_has_a_stranger_of_that_name(
    environments: Callable[[str], Any],
) -> None:
    code = """
from importlib.metadata import metadata
answer = [metadata(name).get_all("Classifier") for name in ("alkahest", "alkahest-nvptx")]
"""
    for classifiers in environments("nvptx").evaluate(code):
        assert "Private :: Do Not Upload" in classifiers


def test_extras_of_a_checkout_take_the_plugins_named_beside_it(
    new_environment: Callable[[], Any],
) -> None:
    root = Path(__file__).resolve().parents[2]
    environment = new_environment()
    environment.pip("install", "--quiet", f"{root}[cpu,io]", root / "plugins" / "alkahest-cpu")
    assert_surface(environment.evaluate(SURFACE), SETS["cpu"].on)
    assert environment.evaluate("import pyarrow, tqdm; answer = True")


@pytest.mark.parametrize("editable", ["core", "plugin", "both"])
def test_editable_and_installed_distributions_mix(
    editable: str, wheel: Callable[[str], Path], new_environment: Callable[[], Any]
) -> None:
    root = Path(__file__).resolve().parents[2]
    core: list[str | Path] = [wheel("alkahest")]
    plugin: list[str | Path] = [wheel("alkahest-cpu")]
    if editable in ("core", "both"):
        core = ["--editable", root]
    if editable in ("plugin", "both"):
        plugin = ["--editable", root / "plugins" / "alkahest-cpu"]
    environment = new_environment()
    environment.pip("install", "--quiet", *core, *plugin)
    assert_surface(environment.evaluate(SURFACE), SETS["cpu"].on)
    places = "import alkahest, alkahest.backends.cpu as c; answer = [alkahest.__file__, c.__file__]"
    core_file, plugin_file = environment.evaluate(places)
    assert Path(core_file).is_relative_to(root) == (editable != "plugin")
    # An editable core brings the whole checkout, so the plugin's wheel is never looked at there.
    assert Path(plugin_file).is_relative_to(root)
