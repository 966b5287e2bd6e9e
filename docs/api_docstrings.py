"""Docstrings as Markdown, for make_api.py."""

from __future__ import annotations

import ast
import re
from textwrap import dedent, fill

__all__ = ["render_doc", "summary"]

SECTIONS = r"Args|Returns|Yields|Raises|Warns|Attributes|Example|Examples"


def prose(text: str) -> str:
    """Text with its sessions of Python as blocks."""
    text = re.sub(r":\w+:(?=`)", "", text.replace("``", "`").strip("\n"))
    text = re.sub(r"(?:^ *>>> .*\n?)(?:^.*\S.*\n?)*", session, text, flags=re.MULTILINE)
    return text.strip()


def session(found: re.Match[str]) -> str:
    return f"```pycon\n{dedent(found[0]).rstrip()}\n```\n"


def summary(node: ast.AST) -> str:
    """The first sentence of a docstring."""
    return filled(prose(first_sentence(node)))


def filled(text: str) -> str:
    return fill(" ".join(text.split()), 100, break_long_words=False, break_on_hyphens=False)


def first_sentence(node: ast.AST) -> str:
    paragraph = (ast.get_docstring(node) or "").partition("\n\n")[0]
    return re.split(r"(?<=\.)\s+(?=[A-Z`])", paragraph, maxsplit=1)[0]


def render_doc(node: ast.AST) -> str:
    """A docstring after its first sentence as Markdown: sections as lists, examples as blocks."""
    rest = (ast.get_docstring(node) or "").removeprefix(first_sentence(node))
    paragraph, blank, more = rest.partition("\n\n")
    doc = (filled(paragraph) + blank + more).strip("\n")
    parts = re.split(rf"^({SECTIONS}):\n", doc, flags=re.MULTILINE)
    rendered = [prose(parts[0])]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        body, rest = re.fullmatch(r"((?:    [^\n]*\n?|\n)*)(.*)", body, re.DOTALL).groups()
        body = dedent(body).rstrip()
        if title.startswith("Example"):
            rendered.append(prose(body))
        elif title in ("Returns", "Yields"):
            rendered.append(f"{title}: {prose(body)}")
        else:
            rendered.append(f"{title}:\n\n{items(body)}")
        if rest:
            rendered.append(prose(rest))
    return "\n\n".join(filter(None, rendered))


def items(body: str) -> str:
    """``name: text`` with indented further lines, as a list."""
    lines = []
    for line in prose(body).splitlines():
        name = re.match(r"(\*{0,2}[\w.*`]+(?:, \*{0,2}[\w.`]+)*): ", line)
        if name:
            lines.append(f"* `{name[1].replace('`', '')}`: {line[name.end() :]}")
        elif line.startswith(" ") or (lines and not lines[-1].startswith(("* `", "  "))):
            lines.append(f"  {line.strip()}")
        elif line:
            lines.append(f"* {line}")
    return "\n".join(lines)
