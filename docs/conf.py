"""Settings of the documentation site: ``make docs`` builds it, with every warning an error."""

from __future__ import annotations

import sys
from pathlib import Path

from gapview import __version__

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "gapview"
author = "The gapview developers"
copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "commands",  # this one and those below are ours, in _extensions
    "mathml",
    "notebooks",
    "public_names",
    "site_links",
]
nitpicky = False  # types in docstrings are written for people: "list of arrays of shape (n_samples,)"
smartquotes = False  # "unit" can be copied as it stands

# Markdown: $mathematics$, links to headings as code hosts make them
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

# The public names and their parameters
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say types in words, with shapes
autosummary_generate = False  # one page for a module: names are listed and described on it
numpydoc_show_class_members = False  # autodoc does
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"

# The pages: nothing is fetched from anywhere, so that the site works from a folder
html_theme = "furo"
html_title = f"gapview {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
templates_path: list[str] = []
