"""The benchmark's comparison of bases, and its tables."""

from __future__ import annotations

import json

import groebner
import pytest
from groebner_benchmark import results
from groebner_benchmark.contenders import Run
from groebner_benchmark.systems import FAMILIES, msolve_text, system

from alkahest import GF, GroebnerBasis
from alkahest.groebner.formats import write_msolve

NAMES = ["x", "y"]


@pytest.mark.parametrize(
    "text",
    [
        "[2*x^2-1,\n3*x*y+y]:",
        "x^2-1/2, x*y+1/3*y",
        "# a comment\n[x**2 - 1/2, (1/3)*y + y*x]",
        "x*y+y/3,-2*x^2+1",
    ],
)
def test_a_basis_has_one_digest_whoever_wrote_it(text):
    assert results.digest(text, NAMES, 0) == results.digest("2*x^2-1,3*y*x+y", NAMES, 0)
    assert results.digest(text, NAMES, 0) != results.digest("2*x^2-1,3*y*x-y", NAMES, 0)


def test_over_a_prime_field_residues_are_compared():
    a = results.digest("3*x^2+1,x*y", NAMES, 7)
    assert a == results.digest("x^2+5, -x*y", NAMES, 7) == results.digest("x^2+1/3,x*y", NAMES, 7)
    assert a[0] == 2


def test_bases_are_read_only_where_their_texts_differ(monkeypatch):
    different = {"a": "2*x^2-1,3*x*y+y", "b": "-2*x^2+1,x*y+y/3", "c": "2*x^2+1,3*x*y+y"}
    found = results.digests(different, NAMES, 0)
    assert found["a"] == found["b"] != found["c"]
    monkeypatch.setattr(results, "digest", None)  # is not called
    found = results.digests({"a": "3*x*y+y,\n2*x^2-1", "b": "[2*x^2-1, 3*x^1*y+1*y]:"}, NAMES, 0)
    assert found["a"] == found["b"]
    assert found["a"][0] == 2


def test_our_own_output_is_read():
    polys, names = system("katsura-3")
    basis = GroebnerBasis.compute(polys, names, field=GF(65521))
    text = write_msolve(basis).split("\n", 2)[2]
    assert results.digest(text, names, 65521)[0] == len(basis)


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - {"henrion"}))
def test_every_family_has_a_system_of_every_size(family):
    polys, names = system(f"{family}-4")
    assert len({len(e) for p in polys for e in p}) == 1
    assert len(names) == len(next(iter(polys[0])))
    assert msolve_text(polys, names, 101).startswith(",".join(names) + "\n101\n")


@pytest.fixture
def document():
    def entry(seconds, text):
        run = Run(seconds=seconds, wall=1.0, peak=2**20, basis=text)
        return results.summary([run, run], results.digest(text, NAMES, 0))

    slow = results.summary([Run(seconds=None, wall=9.0, peak=0, failure="more than 9 s")])
    return {
        "machine": {"processor": "a processor", "python": "3.11"},
        "date": "2026-01-01",
        "contenders": ["alkahest", "peer", "slow"],
        "rows": [
            {
                "system": "katsura-3",
                "field": "qq",
                "contenders": {
                    "alkahest": entry(0.5, "x-1"),
                    "peer": entry(1.25, "2*x-2"),
                    "slow": slow,
                },
            }
        ],
    }


def test_the_table_shows_seconds_and_megabytes_and_who_took_too_long(document):
    assert results.tables(document).splitlines()[-1] == (
        "| katsura-3 | 1 | 0.5 / 1 | 1.25 / 1 | > 9 s |"
    )
    assert results.disagreements(document) == []


def test_with_a_device_the_tables_show_wall_seconds_and_phases(document):
    run = Run(
        seconds=9.0,
        wall=8.0,
        peak=2**20,
        basis="x-1",
        call=0.25,
        phases={"learn": 0.1, "lift": 0.02},
    )
    row = document["rows"][0]
    row["contenders"] = {"alkahest cuda": results.summary([run])}
    document.update(device="cuda", contenders=["alkahest cuda"])
    assert results.tables(document).splitlines() == [
        "| QQ, grevlex | elements | alkahest cuda |",
        "|---|---|---|",
        "| katsura-3 |  | 0.25 / 1 |",
        "",
        "| alkahest cuda, by phase | learn | lift |",
        "|---|---|---|",
        "| katsura-3, qq | 0.1 | 0.02 |",
    ]


def test_different_bases_are_reported(document):
    document["rows"][0]["contenders"]["peer"]["digest"] = "other"
    assert results.disagreements(document) == ["katsura-3 over qq"]


def test_tables_go_between_the_markers_of_a_page(document, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- begin here -->\nold\n<!-- end here -->\nafter\n")
    file = tmp_path / "run.json"
    file.write_text(json.dumps(document))
    command = ["--table", str(file), "--page", str(page), "--section", "here"]
    assert groebner.main(command) == 0
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "a processor, Python 3.11" in text
    page.write_text("nothing")
    with pytest.raises(SystemExit):
        groebner.main(command)
