"""How Sphinx builds the documentation site (`make docs`). It reads the pages, never the package."""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_VERSION = (_ROOT / "src" / "tfwire" / "_version.py").read_text(encoding="utf-8")

project = "tfwire"
author = "The tfwire authors"
version = release = re.findall(r'^__version__ = "(.+)"$', _VERSION, re.MULTILINE)[0]

extensions = ["myst_parser"]
myst_heading_anchors = 6  # headings are linked to as on GitHub
smartquotes = False  # values in text are copied
nitpicky = True

html_theme = "furo"
html_title = f"tfwire {version}"
html_show_copyright = False
html_copy_source = False
