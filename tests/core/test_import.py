"""What ``import alkahest`` does, and above all what it does not."""

import ast
import json
import subprocess
import sys
import types
from importlib import metadata
from pathlib import Path

import pytest

import alkahest
from alkahest import errors

HEAVY = ("numpy", "scipy", "llvmlite", "numba", "cuda", "pyarrow", "sympy")
SOURCE = Path(alkahest.__file__)


def fresh(code):
    """What ``code`` assigns to ``answer`` in a fresh interpreter that finds this alkahest."""
    root = str(SOURCE.parents[1])
    text = (
        f"import sys\nsys.path.insert(0, {root!r})\n{code}\nimport json; print(json.dumps(answer))"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_importing_loads_no_heavy_module_no_plugin_and_no_metadata():
    loaded = fresh(
        "before = set(sys.modules)\nimport alkahest\nanswer = sorted(set(sys.modules) - before)"
    )
    tops = {name.partition(".")[0] for name in loaded}
    assert not tops & {*HEAVY, "pluggy", "attr", "attrs"}
    assert "importlib.metadata" not in loaded
    assert {name for name in loaded if name.startswith("alkahest")} == {
        "alkahest",
        "alkahest.capabilities",
    }


def test_listing_plugins_loads_no_heavy_module():
    loaded = fresh(
        "before = set(sys.modules)\n"
        "from alkahest._plugins.registry import registry\nregistry.snapshot()\n"
        "answer = sorted(set(sys.modules) - before)"
    )
    assert not {name.partition(".")[0] for name in loaded} & {*HEAVY}


def test_names_with_an_underscore_never_load_plugins():
    assert fresh(
        "import alkahest\n"
        "answer = [hasattr(alkahest, name) for name in ('__wrapped__', '_x', '__path__')]\n"
        "answer.append('alkahest._plugins.registry' in sys.modules)"
    ) == [False, False, True, False]


@pytest.mark.parametrize(
    "statement",
    [
        "import alkahest.capabilities",
        "from alkahest.capabilities import capabilities",
        "import importlib; importlib.import_module('alkahest.capabilities')",
    ],
)
def test_the_function_capabilities_keeps_its_place_whoever_imports_its_module(statement):
    assert fresh(f"{statement}\nimport alkahest\nanswer = callable(alkahest.capabilities)") is True


@pytest.mark.parametrize("name", sorted(alkahest.PUBLIC_NAMES))
def test_every_public_name_resolves_and_is_listed(name):
    value = getattr(alkahest, name)
    assert getattr(alkahest, name) is value
    assert name in dir(alkahest)
    if not isinstance(value, types.ModuleType):
        assert value.__name__.rpartition(".")[2].lower().rstrip("_") == name.lower()


def test_every_name_that_the_expression_package_offers_is_public():
    from alkahest import expr

    names = {*expr.__all__, *alkahest._BUILTINS}
    assert names == set(alkahest._HOMES["alkahest.expr"].split())


def test_every_error_class_is_public():
    classes = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, Exception | Warning)
    }
    assert classes == set(alkahest._HOMES["alkahest.errors"].split())


def test_type_checkers_read_the_names_that_exist():
    (branch,) = (
        node
        for node in ast.parse(SOURCE.read_text(encoding="utf-8")).body
        if isinstance(node, ast.If)
    )
    declared = next(
        ast.literal_eval(node.value)
        for node in branch.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__"
    )
    from alkahest._plugins.builtin import BUILTIN_FEATURES

    assert len(declared) == len(set(declared))
    assert set(declared) == (
        set(alkahest.PUBLIC_NAMES) - set(alkahest._HOMES["alkahest.expr"].split())
    ).union(BUILTIN_FEATURES["cuda"].exports, BUILTIN_FEATURES["groebner"].exports)


def test_a_star_import_leaves_the_names_of_python_alone():
    namespace = {}
    exec("from alkahest import *", namespace)
    assert {"abs", "min", "max", "round"}.isdisjoint(namespace)
    assert {"sin", "Expr", "capabilities", "errors"} <= namespace.keys()


def test_submodules_can_be_imported_from_the_package():
    assert fresh(
        "from alkahest import plugin, hookspecs\nimport alkahest\n"
        "answer = [plugin.__name__, hookspecs.__name__, alkahest.ops.__name__,"
        " 'alkahest._plugins.registry' in sys.modules]"
    ) == ["alkahest.plugin", "alkahest.hookspecs", "alkahest.ops", False]


def test_a_name_that_does_not_exist_is_an_attribute_error_naming_it():
    with pytest.raises(AttributeError, match="module 'alkahest' has no attribute 'compyle_expr'"):
        _ = alkahest.compyle_expr


def test_a_portion_installed_elsewhere_is_found(tmp_path):
    portion = tmp_path / "alkahest" / "backends" / "elsewhere"
    portion.mkdir(parents=True)
    (portion / "__init__.py").write_text("here = True\n")
    assert (
        fresh(
            f"sys.path.append({str(tmp_path)!r})\n"
            "from alkahest.backends import elsewhere\nanswer = elsewhere.here"
        )
        is True
    )


def test_the_version_needs_no_metadata():
    assert alkahest.__version__.count(".") == 2
    try:
        installed = metadata.version("alkahest")
    except metadata.PackageNotFoundError:
        return
    assert installed == alkahest.__version__
