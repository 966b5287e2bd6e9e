"""How Sphinx builds the documentation site (`make docs`). It reads the pages, never the package."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent
_VERSION = (_ROOT / "src" / "tfwire" / "_version.py").read_text(encoding="utf-8")

sys.path.insert(0, str(_ROOT / "docs"))  # for make_api, which reads the sources

project = "tfwire"
author = "The tfwire authors"
version = release = re.findall(r'^__version__ = "(.+)"$', _VERSION, re.MULTILINE)[0]

extensions = ["myst_parser", "sphinx_copybutton"]
myst_heading_anchors = 6  # headings are linked to as on GitHub
smartquotes = False  # values in text are copied
nitpicky = True

html_theme = "furo"
html_title = f"tfwire {version}"
html_show_copyright = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


# ---- The inventory: what other projects link to by intersphinx ---------------------------------


def note_objects(app: Any, doctree: Any) -> None:
    """Makes the headings of docs/api objects of Python, by the names that users import."""
    from docutils import nodes
    from make_api import RESULTS, all_of

    if not app.env.docname.startswith("api/"):
        return
    found: dict[str, tuple[str, Any]] = {}
    module, python = "tfwire", app.env.get_domain("py")
    for section in doctree.findall(nodes.section):
        title = section[0].astext()
        if isinstance(section.parent.parent, nodes.document):  # of the second level
            module = title if title.startswith("tfwire.") else "tfwire"
        if title == module:
            python.note_module(title, section["ids"][0], "", "", False)
            found.update({f"{title}.{name}": (_kind(name, ""), section) for name in all_of(title)})
        elif not isinstance(section.parent, nodes.document):
            home = "tfwire.typing" if title.partition(".")[0] in RESULTS else module
            found[f"{home}.{title}"] = (_kind(title, _signature(section)), section)
    for name, (kind, section) in found.items():
        python.note_object(name, kind, section["ids"][0], location=section)


def _signature(section: Any) -> str:
    blocks = (node.astext() for node in section.children if node.tagname == "literal_block")
    return str(next(blocks, ""))


def _kind(title: str, signature: str) -> str:
    """What an object is, by its name and its signature."""
    name = title.rpartition(".")[2]
    if "." in title:
        return "method" if signature.startswith(f"{title}(") else "property"
    if name.isupper() or name.islower():
        return "function" if signature.startswith(f"{name}(") else "data"
    return "exception" if name.endswith(("Error", "Warning")) else "class"


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("doctree-read", note_objects)
