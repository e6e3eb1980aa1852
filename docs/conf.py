"""Sphinx configuration; warnings are errors (see the ``docs`` environment of tox.ini)."""

from __future__ import annotations

import sys
from pathlib import Path

import alkahest

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "alkahest"
author = "The alkahest authors"
version = release = alkahest.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "tables",
]
exclude_patterns = ["_build"]
smartquotes = False  # quotes around commands and keywords are meant to be copied

myst_enable_extensions = ["attrs_inline", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_numpy_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"alkahest {release}"
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["tables.css"]
# The empty line that ends an example is for doctest.
highlight_options = {"pycon": {"stripall": True}}
