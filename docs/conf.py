"""How Sphinx builds these pages: ``make docs``, to build/docs."""

from __future__ import annotations

import synrisk

project = "synrisk"
author = "The synrisk developers"
copyright = author  # noqa: A001 - Sphinx' name for it
release = version = synrisk.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["conf.py"]
html_theme = "furo"
html_title = "synrisk"
html_copy_source = False
html_show_sourcelink = False

myst_heading_anchors = 3
default_role = "py:obj"  # `Name` in docstrings
napoleon_google_docstring = False
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_display_short_literal_types = True
python_maximum_signature_line_length = 80
