"""Who may import whom, read off the sources."""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "alkahest"
MODULES = {
    ".".join(("alkahest", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in sorted(ROOT.rglob("*.py"))
}

NVPTX = "alkahest.backends.nvptx"

PORTIONS = {
    "alkahest.backends.cpu": (),
    NVPTX: (),
    "alkahest.groebner": (),
    "alkahest.backends.groebner_gpu": ("alkahest.groebner", NVPTX),
}
"""Portion of another distribution -> portions of distributions that it requires."""

FOR_PLUGINS = (
    "alkahest.cache",
    "alkahest.calibration",
    "alkahest.compiled",
    "alkahest.errors",
    "alkahest.expr",
    "alkahest.forks",
    "alkahest.ops",
    "alkahest.plugin",
    "alkahest.program",
    "alkahest.result_memory",
    "alkahest.streams",
)
"""The public modules of core that a plugin may import."""

NVPTX_RUNTIME = {
    f"{NVPTX}.{name}"
    for name in (
        "api",
        "arrays",
        "bench",
        "carrier",
        "carrier_code",
        "carrier_copies",
        "carrier_desk",
        "carrier_loop",
        "carrier_places",
        "chunks",
        "command",
        "convoy",
        "crew",
        "desk",
        "device",
        "doctor",
        "driver",
        "evaluator",
        "fastcalls",
        "faults",
        "hostbatch",
        "hostlink",
        "kernel",
        "launcher",
        "machinecode",
        "memory",
        "order",
        "plugin",
        "probe",
        "staging",
        "transit",
    )
}
"""The modules of nvptx that know devices; every other one is code generation."""


@cache
def imports(module: str) -> frozenset[str]:
    """Every module that ``module`` names in an import, wherever in the file."""
    return frozenset(_imports(module))


def _imports(module: str) -> Iterator[str]:
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parts, *filter(None, [base])])
            # `from package import module` imports the module, `from module import name` does not.
            yield from {
                full if (full := f"{base}.{alias.name}") in MODULES else base
                for alias in node.names
            }


def within(module: str, packages) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def reachable(module: str) -> set[str]:
    """Everything that importing ``module`` may import, function bodies included."""
    seen, todo = set(), [module]
    while todo:
        current = todo.pop()
        if current not in seen:
            seen.add(current)
            if current in MODULES:
                todo.extend(imports(current))
    return seen


CORE = [module for module in MODULES if not within(module, PORTIONS)]
PLUGINS = [module for module in MODULES if within(module, PORTIONS)]


def test_core_never_imports_the_code_of_a_plugin():
    found = {
        (m, i) for m in CORE for i in imports(m) if within(i, [*PORTIONS, "alkahest.backends"])
    }
    assert found == set()


def test_core_needs_nothing_but_its_three_requirements_when_imported():
    allowed = {*sys.stdlib_module_names, "alkahest", "attrs", "numpy", "pluggy"}
    optional = {
        "alkahest.cli": {"pyarrow", "tqdm"},
        "alkahest.interop": {"sympy"},
        "alkahest.testing": {"pytest", "mpmath", "hypothesis"},
    }
    for module in CORE:
        tops = {name.partition(".")[0] for name in imports(module)}
        extras = {top for part, tops in optional.items() if within(module, [part]) for top in tops}
        assert tops - extras <= allowed, module


def test_plugins_import_only_public_modules_of_core_and_what_they_require():
    found = set()
    for module in PLUGINS:
        (portion,) = (p for p in PORTIONS if within(module, [p]))
        allowed = (portion, *PORTIONS[portion], *FOR_PLUGINS)
        found |= {
            (module, name)
            for name in imports(module)
            if within(name, ["alkahest"]) and not within(name, allowed)
        }
    assert found == set()


@pytest.mark.parametrize("portion", [p for p in PORTIONS if f"{p}.plugin" in MODULES])
def test_the_module_of_an_entry_point_imports_only_the_plugin_interface_at_its_top(portion):
    path = MODULES[f"{portion}.plugin"]
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names = (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        for name in names:
            top = name.partition(".")[0]
            assert top in sys.stdlib_module_names or name == "alkahest.plugin", name


def test_code_generation_for_nvptx_never_imports_a_driver():
    for module in MODULES:
        if not within(module, [NVPTX]) or module in NVPTX_RUNTIME:
            continue
        seen = reachable(module)
        assert not seen & NVPTX_RUNTIME, module
        assert not {name for name in seen if within(name, ["cuda"])}, module
