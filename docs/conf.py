"""The documentation site: ``make docs`` builds it into build/site, offline, warnings as errors."""

from __future__ import annotations

from typing import Any

import ranmask

project = "ranmask"
author = "the ranmask authors"
version = release = ranmask.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
highlight_language = "none"  # where a block of code names none
smartquotes = False  # they make a dash of two hyphens
html_theme = "furo"
html_title = "ranmask"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False

# The pages are read on a forge, too: its anchors, and links between files.
myst_heading_anchors = 4
# Notebooks are shown as they are stored; `tools/notebooks.py` runs them and compares.
nb_execution_mode = "off"

autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
default_role = "py:obj"  # what `name` is in docstrings


def _as_code(app: Any, environment: Any, node: Any, shown: Any) -> Any:
    """Names and types without an entry on these pages are shown as code."""
    return shown if node.get("reftype") in ("obj", "class", "data") else None


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("missing-reference", _as_code)
