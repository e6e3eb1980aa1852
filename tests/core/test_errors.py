"""The registry of error codes, and that every raise in the tree keeps to it."""

import ast
import pickle
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import attrs
import pytest

from alkahest import errors
from alkahest.errors import CODES, AlkahestError

TREE = sorted((Path(__file__).resolve().parents[2] / "alkahest").rglob("*.py"))
CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, AlkahestError)
}


@attrs.frozen
class Site:
    """One construction of an error in the sources."""

    place: str
    error: str
    code: str


def sites() -> Iterator[Site]:
    """Every call of an error class whose first argument is a literal."""
    for path in TREE:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            callee = node.func
            name = callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")
            first = node.args[0]
            if name in CLASSES and isinstance(first, ast.Constant):
                yield Site(f"{path.name}:{node.lineno}", name, first.value)


def test_every_code_is_of_its_form_and_codes_are_sorted_within_their_family():
    assert all(re.fullmatch(r"E-[A-Z]+-\d{3}", code) for code in CODES)
    families = [family for family, _ in groupby(CODES, key=lambda code: code.rpartition("-")[0])]
    assert len(families) == len(set(families))
    for family in families:
        own = [code for code in CODES if code.startswith(f"{family}-")]
        assert own == sorted(own)


def test_a_family_belongs_to_one_area():
    roots = {}
    for code, entry in CODES.items():
        area = next(c for c in entry.error.__mro__ if AlkahestError in c.__bases__)
        roots.setdefault(code.split("-")[1], set()).add(area)
    assert all(len(areas) == 1 for areas in roots.values())


@pytest.mark.parametrize("code", CODES)
def test_every_error_pickles_with_all_that_it_says(code):
    entry = CODES[code]
    error = entry.error(code, "what", remediation="do this", span=(3, 5))
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is entry.error
    assert (copy.code, copy.message, copy.remediation, copy.span) == (
        code,
        "what",
        "do this",
        (3, 5),
    )
    assert str(copy) == f"[{code}] what\nRemediation: do this"
    assert isinstance(copy, ValueError)


def test_every_error_has_a_meaning_and_the_standard_remedy_is_used():
    for code, entry in CODES.items():
        assert entry.meaning
        assert not entry.meaning.endswith(".")
        assert entry.error(code, "what").remediation == entry.remedy


def test_an_error_without_a_remedy_is_one_line():
    error = errors.InputTypeError("E-INPUT-008", "inputs must be symbols")
    assert str(error) == "[E-INPUT-008] inputs must be symbols"


def test_a_code_that_is_not_registered_cannot_be_raised():
    with pytest.raises(KeyError, match="E-CUDA-099"):
        errors.CudaError("E-CUDA-099", "what")
    with pytest.raises(TypeError, match="E-CUDA-003 belongs to CudaError, not PoolError"):
        errors.PoolError("E-CUDA-003", "what")


def test_the_classes_are_also_what_python_calls_such_errors():
    assert issubclass(errors.InputTypeError, TypeError)
    assert issubclass(errors.ParseDivisionError, ZeroDivisionError)
    assert issubclass(errors.ExactDivisionError, ZeroDivisionError)
    assert issubclass(errors.PluginLoadWarning, RuntimeWarning)


def test_every_error_in_the_sources_uses_a_registered_code_of_its_class():
    wrong = [
        site
        for site in sites()
        if site.code not in CODES or not issubclass(CLASSES[site.error], CODES[site.code].error)
    ]
    assert wrong == []
    assert len(list(sites())) > 40


def test_every_code_is_used_somewhere():
    text = "".join(p.read_text(encoding="utf-8") for p in TREE if p.name != "errors.py")
    assert [code for code in CODES if code not in text] == []


def test_the_install_command_names_this_very_version() -> None:
    import alkahest
    from alkahest.errors import install

    assert install("cpu") == f"pip install 'alkahest[cpu]=={alkahest.__version__}'"
