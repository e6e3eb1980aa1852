"""Tables, means and the picture, from a document with known numbers."""

from __future__ import annotations

import json
import math
import sys
import types
from pathlib import Path
from typing import Any

import pages
import plot
import pytest
from gpu_benchmark import results


def contender(ms: float, spread: float = 0.01, clock: str = "device") -> dict[str, Any]:
    return {"ms": ms, "spread": spread, "clock": clock, "samples": [ms] * 4}


@pytest.fixture
def document() -> dict[str, Any]:
    return {
        "schema": 1,
        "machine": {
            "device": "Pretended GPU",
            "driver": "580.1",
            "driver_cuda": "13.0",
            "date": "2030-01-02 03:04 UTC",
            "python": "3.12.1",
            "versions": {"cupy-cuda13x": "14.2.0", "torch": "2.11.0", "numpy": "2.5"},
        },
        "rows": [
            {
                "name": "product",
                "group": "small",
                "points": 1 << 27,
                "floor_ms": 0.8,
                "copy_gb_per_s": 4000.0,
                "contenders": {
                    "alkahest": contender(1.0, 0.002),
                    "alkahest kernel": contender(0.9),
                    "cupy": contender(2.0),
                    "jax": contender(8.0, clock="wall"),
                },
            },
            {
                "name": "waves",
                "group": "small",
                "points": 1 << 27,
                "floor_ms": 0.8,
                "copy_gb_per_s": 4100.0,
                "contenders": {
                    "alkahest": contender(2.0),
                    "cupy": {"error": "Wrong: all"},
                    "jax": contender(1.0, clock="wall"),
                },
            },
            {
                "name": "chain",
                "group": "heavy",
                "points": 1 << 24,
                "floor_ms": 0.2,
                "copy_gb_per_s": 4100.0,
                "contenders": {"alkahest": {"error": "E-CUDA-002"}, "cupy": contender(1.0)},
            },
            {"name": "polynomial", "group": "heavy", "error": "MemoryError: no message"},
        ],
        "host": {
            "sizes": [
                {
                    "points": 1024,
                    "link_ms": 1.0,
                    "reused_ms": 1.25,
                    "fresh_error": "E-CUDA-003",
                    "cupy_ms": 10.0,
                }
            ]
        },
        "first_call": {
            "contenders": {
                "alkahest": {"cold_ms": 80.0, "cached_ms": 12.0},
                "cupy": {"error": "RuntimeError: gone"},
            }
        },
        "small_batches": {"us": {"alkahest": 11.0, "cupy": 9.5}, "errors": {}},
        "errors": {},
    }


def test_a_row_is_judged_by_the_best_peer(document: dict[str, Any]) -> None:
    line = results.judge(document["rows"][0])
    assert (line.peer, line.best, line.ours) == ("cupy", 2.0, 1.0)
    assert (line.ratio, line.floor, line.noise) == (2.0, 0.8, 0.01)


def test_a_row_that_we_failed_has_no_ratio(document: dict[str, Any]) -> None:
    for row in document["rows"][2:]:
        line = results.judge(row)
        assert line.ours is None
        assert line.ratio is None


def test_means_are_geometric_and_by_group(document: dict[str, Any]) -> None:
    lines = [results.judge(row) for row in document["rows"]]
    assert results.means(lines) == {"small": pytest.approx(math.sqrt(2.0 * 0.5))}


def test_what_we_failed_is_listed_and_what_others_failed_is_not(document: dict[str, Any]) -> None:
    assert results.failures(document) == [
        "row chain: E-CUDA-002",
        "row polynomial: MemoryError: no message",
        "host arrays, 1024 points, fresh: E-CUDA-003",
    ]
    assert results.failures({"errors": {"host": "OSError: x"}}) == ["host: OSError: x"]


def test_a_terminals_table_has_straight_columns(document: dict[str, Any]) -> None:
    text = results.plain(results.summary_table(document)).splitlines()
    assert text[1].split() == "row ours, ms best peer, ms peer ratio spread of copy".split()
    assert text[2].split() == ["product", "1.000", "2.000", "cupy", "2.00", "1.0", "%", "0.80"]
    assert text[-1].split() == ["geometric", "mean,", "small", "rows", "1.00"]


def test_everybodys_table_says_who_failed_and_whose_clock_is_the_walls(
    document: dict[str, Any],
) -> None:
    table = results.contenders_table(document)
    assert table.heading == (
        "row",
        "points",
        "copy",
        "alkahest",
        "alkahest kernel",
        "cupy",
        "jax (wall)",
    )
    assert table.cells[1] == ("waves", "134,217,728", "0.800", "2.000", "", "failed", "1.000")
    assert table.cells[3] == ("polynomial", "", "", "", "", "", "")


def test_the_host_table_compares_with_the_link_and_with_cupy(document: dict[str, Any]) -> None:
    (cells,) = results.host_table(document).cells
    assert cells == ("1,024", "1.000", "1.250", "0.80", "", "", "10.000", "8.0")


def test_the_overhead_table_has_a_line_for_everybody(document: dict[str, Any]) -> None:
    cells = results.overhead_table(document).cells
    assert cells == [("alkahest", "80", "12", "11.0"), ("cupy", "", "", "9.5")]


def test_markdown_has_a_rule_of_as_many_columns(document: dict[str, Any]) -> None:
    for table in results.tables(document):
        caption, empty, *lines = results.markdown(table).splitlines()
        assert caption == f"**{table.caption}**"
        assert empty == ""
        assert len({line.count("|") for line in lines}) == 1
    assert len(results.tables({})) == 0


def test_the_machine_is_one_line(document: dict[str, Any]) -> None:
    assert results.about(document) == (
        "Pretended GPU, driver 580.1 (CUDA 13.0), 2030-01-02 03:04 UTC; Python 3.12.1, "
        "CuPy 14.2.0, torch 2.11.0. Copies on the device: 4,100 GB/s."
    )


def test_documents_are_written_whole_and_read_back(
    document: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "result.json"
    results.write(document, path)
    assert results.read(path) == document
    assert list(tmp_path.iterdir()) == [path]
    path.write_text(json.dumps({**document, "schema": 0}))
    with pytest.raises(ValueError, match="no result of this benchmark"):
        results.read(path)


def test_bars_are_times_over_ours_or_over_the_fastest(document: dict[str, Any]) -> None:
    bars = plot.series(document)
    assert list(bars) == ["alkahest", "alkahest kernel", "cupy", "jax"]
    assert bars["alkahest"] == [1.0, 1.0, 0.0, 0.0]
    assert bars["cupy"] == [2.0, 0.0, 1.0, 0.0]
    assert bars["jax"] == [8.0, 0.5, 0.0, 0.0]


class Recorder:
    """Stands for any object of matplotlib; notes what is called."""

    def __init__(self, calls: list[tuple[str, Any]]) -> None:
        self.calls = calls

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **keywords: Any) -> None:
            self.calls.append((name, arguments))

        return call


def test_the_picture_has_bars_for_every_contender(
    document: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, Any]] = []
    recorder = Recorder(calls)
    pyplot = types.SimpleNamespace(subplots=lambda **_: (recorder, recorder), close=lambda _: None)
    matplotlib = types.SimpleNamespace(use=lambda _: None, rcParams={}, pyplot=pyplot)
    monkeypatch.setitem(sys.modules, "matplotlib", matplotlib)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", pyplot)
    source, target = tmp_path / "result.json", tmp_path / "result.svg"
    results.write(document, source)
    assert plot.main([str(source), str(target)]) == 0
    drawn = [arguments for name, arguments in calls if name == "barh"]
    shares = plot.series(document)
    assert shares["jax"][0] == 8
    shares["jax"][0] = plot.LONGEST
    assert [arguments[1] for arguments in drawn] == list(shares.values())
    assert [arguments[2] for name, arguments in calls if name == "text"] == [" 8.0"]
    marks = [arguments[0][0] for name, arguments in calls if name == "plot"]
    assert marks == [0.8, 0.4, 0.2]
    first, last = drawn[0][0][0], drawn[-1][0][0]
    assert first == pytest.approx(-last)  # bars of one row are centred on its tick
    assert ("savefig", (target,)) in calls


def test_the_page_gets_the_tables_and_the_picture_between_its_marks(
    document: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, source = tmp_path / "page.md", tmp_path / "result.json"
    page.write_text("before\n<!-- begin results -->\nold\n<!-- end results -->\nafter\n")
    monkeypatch.setattr(plot, "PAGE", page)
    pictures: list[Path] = []
    monkeypatch.setattr(plot, "draw", lambda document, target: pictures.append(target))
    results.write(document, source)
    for _ in range(2):
        assert plot.main([str(source), "--docs"]) == 0
    text = page.read_text()
    assert pictures == [tmp_path / "benchmarks.svg"] * 2
    assert "old" not in text
    assert text.startswith("before\n<!-- begin results -->\n")
    assert text.endswith("<!-- end results -->\nafter\n")
    assert "(benchmarks.svg)" in text
    for table in results.tables(document):
        assert results.markdown(table) in text
    assert f"- {results.left_out(document)[0]}" in text


def test_a_run_in_parts_is_put_together_and_says_what_is_older(document: dict[str, Any]) -> None:
    rows = {key: document[key] for key in ("schema", "machine", "rows")}
    older = {**document, "machine": {"date": "the day before"}, "rows": []}
    whole = results.merged([rows, older])
    assert whole["rows"] == document["rows"]
    assert whole["host"] == document["host"]
    assert whole["machine"] == document["machine"]
    captions = [table.caption for table in results.tables(whole)]
    assert "Host arrays, in and out (the day before)" in captions
    assert "Device arrays: milliseconds" in captions
    assert results.merged([document])["dates"] == {}


def test_a_page_without_marks_is_refused(
    document: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing\n")
    with pytest.raises(ValueError, match="needs one line '<!-- begin results -->'"):
        pages.replace(page, "results", "text")


def test_a_picture_of_nothing_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "result.json"
    results.write({"schema": 1, "rows": []}, source)
    with pytest.raises(SystemExit):
        plot.main([str(source), str(tmp_path / "result.svg")])
    assert "there are no times to draw" in capsys.readouterr().err
