"""The benchmark without its peers: everybody's form of the rows, checks, ratios, tables."""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import cpu  # noqa: E402 - needs the path
from cpu_benchmark import contenders, formulae, published, results, session  # noqa: E402

ROWS = {row.name: row for row in formulae.rows()}


def chain(x: float, y: float) -> list[float]:
    """The row ``chain200``."""
    u = x
    for k in range(40):
        u = math.sqrt(1 + math.sin(u * y + (k + 1) / 41) ** 2) - x / (k + 2)
        u = 1 / (2 + u**2)
    return [u]


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("form", ["same", "nested"])
def test_every_form_of_a_row_is_the_rows_formula(name: str, form: str) -> None:
    row = ROWS[name]
    program = row.program(form)
    if program is None:
        assert row.nested is None
        return
    columns = row.columns(3, seed=1)
    contender = contenders.numpy_(program, 1)()
    got = contender.rows(contender.call(contender.prepare(columns)))
    formula = chain
    if name != "chain200":  # which is nested too deeply for SymPy's printer
        formula = sp.lambdify(row.symbols, list(row.outputs), modules=["math"], cse=True)
    for k in range(3):
        want = formula(*columns[:, k].tolist())
        shown = [np.broadcast_to(value, 3)[k] for value in got]
        np.testing.assert_allclose(shown, want, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", ["poly3", "special", "black-scholes"])
def test_our_contenders_give_what_numpy_gives(name: str) -> None:
    row = ROWS[name]
    program = row.program("same")
    assert program is not None
    columns = row.columns(100)
    right = session._rows(contenders.numpy_(program, 1)(), columns)
    for ours in (n for n in contenders.BUILDERS if n.startswith(contenders.OURS)):
        rows = session._rows(contenders.BUILDERS[ours](program, 1)(), columns)
        assert session._difference(rows, right) < 1e-11


def test_the_published_package_gets_the_same_program(tmp_path: Path) -> None:
    """Played by this one, which has the names that are used."""
    import alkahest

    program = ROWS["seed"].program("same")
    other = published.Published.__new__(published.Published)
    other._library, other._functions, other._columns = alkahest, {}, {}
    assert other.build({"row": "seed", "program": program})["seconds"] > 0
    columns = ROWS["seed"].columns(10)
    np.save(tmp_path / "10.npy", columns)
    path = str(tmp_path / "10.npy")
    (got,) = np.load(other.values({"row": "seed", "columns": path})["outputs"])
    x, y = columns
    np.testing.assert_allclose(got, np.sin(x) * np.cos(y) + (x * x + y * y) / 100, rtol=1e-13)
    request = {"row": "seed", "columns": path, "warm": 1, "calls": 2, "clock": "cpu"}
    assert other.time(request)["seconds"] >= 0


def test_a_session_times_everybody_in_turns_and_names_who_is_missing(tmp_path: Path) -> None:
    options = argparse.Namespace(
        threads=1, json=tmp_path / "x.json", rows=[], peers=["numpy", "nobody"], sizes=[1, 64],
        turns=2, published="", clock="processor",
    )  # fmt: skip
    run = session.Session(options)
    run.measure(ROWS["poly3"])
    run.close()
    document = run.document
    assert document["skipped"].keys() == {"nobody"}
    same = document["rows"]["poly3"]["forms"]["same"]
    assert same["failed"] == {}
    assert {"numpy", "alkahest", "alkahest out=", contenders.FIRST} <= same["build"].keys()
    assert same["sizes"].keys() == {"1", "64"}
    assert contenders.FIRST not in same["sizes"]["64"]
    assert all(seconds > 0 for seconds in same["sizes"]["64"].values())


@pytest.fixture
def document() -> dict[str, Any]:
    """A run with known numbers."""
    sizes = {
        "1": {"alkahest": 3e-7, "alkahest out=": 2e-7, "heyoka": 2e-6},
        "100000": {"alkahest": 1e-4, "alkahest out=": 8e-5, "heyoka": 2e-4, "numba": 4e-4,
                   "published": 2e-3},
        "1000000": {"alkahest": 1e-3, "alkahest out=": 5e-4, "heyoka": 2e-3},
    }  # fmt: skip
    nested = {"100000": {"alkahest": 1e-4, "heyoka": 1.25e-4}}
    build = {"alkahest": 1e-2, "heyoka": 8e-3, "published": 2e-3}
    two = {
        "100000": {"alkahest": 5e-5, "alkahest alone": 1e-4, "heyoka": 2e-4},
        "1000000": {"alkahest": 6e-4, "alkahest alone": 1e-3},
    }
    return {
        "machine": {
            "processor": "Some",
            "system": "Any",
            "date": "today",
            "versions": {"numpy": "2"},
        },
        "one": {
            "rows": {
                "seed": {
                    "forms": {
                        "same": {"build": build, "sizes": sizes},
                        "nested": {"build": build, "sizes": nested},
                    }
                }
            }
        },
        "two": {"rows": {"seed": {"forms": {"same": {"build": {}, "sizes": two}}}}},
    }


def test_ratios_are_ours_over_the_best_peers_in_the_same_form_and_in_the_best(
    document: dict[str, Any],
) -> None:
    row = document["one"]["rows"]["seed"]
    same, best = (results.times(row, "100000", form) for form in ("same", "best"))
    assert results.ratio(same) == pytest.approx(0.5)
    assert results.ratio(best) == pytest.approx(0.8)
    assert results.ratio(best, results.OUT) == pytest.approx(0.64)
    assert results.best_peer(best) == ("heyoka", 1.25e-4)
    assert results.ratio({"alkahest": 1.0}) is None


def test_the_tables_say_it(document: dict[str, Any]) -> None:
    text = results.tables(document)
    assert "| `seed` | 0.50 | 0.80 | 0.64 | heyoka | 0.50 | 0.50 | 0.25 | heyoka |" in text
    assert "| `seed` | 2.00 | 0.25 | heyoka | 1.67 | - | - |" in text
    assert "| `seed` | 20 | 20.0 |" in text
    assert "Some, Any, today; numpy 2" in text


def test_tables_go_between_the_markers_of_a_page(document: dict[str, Any], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("above\n<!-- begin here -->\nold\n<!-- end here -->\nbelow\n")
    source = tmp_path / "run.json"
    source.write_text(json.dumps(document))
    command = ["--from", str(source), "--page", str(page), "--section", "here"]
    assert cpu.main(command) == 0
    text = page.read_text()
    assert text.startswith("above\n")
    assert text.endswith("below\n")
    assert "old" not in text
    assert "| `seed` |" in text
    page.write_text("no markers")
    with pytest.raises(SystemExit):
        cpu.main(command)


def test_there_is_no_picture_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no times"):
        results.draw({"one": {"rows": {}}}, tmp_path / "x.svg")
