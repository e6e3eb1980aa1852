"""Capabilities shown to people: tables in notebooks, a page for browsers."""

import json
import pickle
from xml.etree import ElementTree

import alkahest
from alkahest.capability_report import Capabilities, to_html, to_page
from alkahest.testing import NullPlugin, isolated_plugins


def texts(html):
    """The words in every cell of a fragment that is well-formed."""
    root = ElementTree.fromstring(f"<div>{html}</div>")
    return [[cell.text or "" for cell in row] for row in root.iter("tr")]


def test_capabilities_are_a_dictionary_that_notebooks_show_as_tables():
    with isolated_plugins(("null", NullPlugin())):
        facts = alkahest.capabilities()
    assert isinstance(facts, dict)
    assert json.loads(json.dumps(facts)) == facts == pickle.loads(pickle.dumps(facts))
    bundle = facts._repr_mimebundle_(include=None, exclude=None)
    assert bundle == {"text/plain": repr(facts), "text/html": facts._repr_html_()}
    rows = texts(bundle["text/html"])
    assert ["cpu", "no"] in rows
    assert ["null.compile", "yes"] in rows
    assert ["operation", "null"] in rows
    assert ["abs", "complex128, complex64, float32, float64"] in rows


def test_what_plugins_say_is_text_and_not_markup():
    facts = Capabilities(
        contract_version=4,
        features={"cpu": False},
        backends={},
        plugins=[
            {
                "name": "<script>",
                "distribution": "a & b",
                "version": None,
                "status": "failed",
                "detail": "x < y",
            }
        ],
        primitives=[],
    )
    assert ["<script>", "a & b", "", "failed", "x < y"] in texts(to_html(facts))


def test_without_plugins_the_tables_say_none():
    with isolated_plugins():
        page = to_page(alkahest.capabilities(), "1.0")
    assert page.startswith("<!doctype html>")
    assert page.count("<p>none</p>") == 3
