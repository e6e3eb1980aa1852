"""The standard systems against bases on which several engines agree."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path

import pytest
from groebner_benchmark.systems import system

from alkahest import GF, QQ, GroebnerBasis

FOLDER = Path(__file__).parents[1] / "data" / "groebner"
INDEX = json.loads((FOLDER / "index.json").read_text(encoding="utf-8"))

LARGEST = 30_000
"""Terms of a basis that the ordinary run still computes."""

SMALL = [name for name, entry in INDEX.items() if entry["terms"] <= LARGEST]


def basis_of(name):
    system_name, field = name.split("@")
    polys, names = system(system_name)
    return GroebnerBasis.compute(polys, names, field=GF(2**31 - 1) if field == "gfp" else QQ)


def digests(basis):
    """SHA-256 of the leading monomials and of everything, smallest element first."""
    ascending = list(basis)[::-1]
    leading = json.dumps([list(p.leading_monomial) for p in ascending], separators=(",", ":"))
    whole = hashlib.sha256()
    for p in ascending:
        terms = (f"{','.join(map(str, e))}:{c}" for e, c in p.terms())
        whole.update(";".join(terms).encode() + b"\n")
    return hashlib.sha256(leading.encode()).hexdigest(), whole.hexdigest()


@pytest.mark.parametrize("name", SMALL)
def test_a_standard_system_has_the_agreed_basis(name):
    entry = INDEX[name]
    basis = basis_of(name)
    assert len(basis) == entry["size"]
    assert sum(p.n_terms for p in basis) == entry["terms"]
    assert digests(basis) == (entry["lm_sha256"], entry["basis_sha256"])


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*_*.json")), ids=lambda path: path.stem)
def test_a_reference_basis_equals_ours_term_by_term(path):
    reference = json.loads(path.read_text(encoding="utf-8"))
    name, _, field = path.stem.rpartition("_")
    basis = basis_of(f"{name}@{field}")
    assert list(basis.variables()) == reference["vars"]
    expected = [
        [(tuple(exponents), Fraction(c)) for exponents, c in element]
        for element in reference["basis"]
    ]
    found = [p.terms() for p in basis]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("name", ["katsura-4@qq", "cyclic-5@qq", "noon-4@gfp", "eco-6@gfp"])
def test_a_standard_basis_passes_buchberger_s_criterion(name):
    basis_of(name).verify()


@pytest.mark.huge
@pytest.mark.parametrize("name", [name for name in INDEX if name not in SMALL])
def test_a_large_standard_system_has_the_agreed_basis(name):
    entry = INDEX[name]
    basis = basis_of(name)
    assert len(basis) == entry["size"]
    assert digests(basis) == (entry["lm_sha256"], entry["basis_sha256"])
