"""Writes docs/api.md from the sources: the names of __init__.pyi and of the public modules, with
their signatures and docstrings. Imports nothing of what it describes.

Usage: ``python docs/make_api.py [--check]``; ``--check`` compares and writes nothing.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import dedent, fill
from typing import Any, NamedTuple

DOCS = Path(__file__).resolve().parent
SOURCE = DOCS.parent / "src"
PAGE = DOCS / "api.md"

ROOMS = {
    "_records": "Records and files",
    "_examples": "Examples, tensors and JSON",
    "_parsing": "Parsing and schemas",
    "_data": "Datasets",
    "_base": "Errors and warnings",
}
MODULES = ["checksum", "sharding", "images", "train", "torch", "grain"]
SECTIONS = r"Args|Returns|Yields|Raises|Warns|Attributes|Example|Examples"
HEADER = """\
# API reference

Made by `make docs` from the docstrings: change those. Every example runs as a test. The names of
the package `tfwire` come first, then its public modules. `tfwire.compat` is in
[porting.md](porting.md). `tfwire --help` and `tfwire COMMAND --help` describe the command line;
what it does at damage is in [damage.md](damage.md).

"""


class Found(NamedTuple):
    """A definition, and the module that holds it."""

    node: Any
    module: str


aliases: set[str] = set()


@cache
def tree_of(module: str) -> ast.Module:
    path = SOURCE / Path(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8"))


def statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Those of a module, within `if TYPE_CHECKING` too."""
    for node in tree.body:
        yield from node.body if isinstance(node, ast.If) else [node]


@cache
def find(module: str, name: str) -> Found | None:
    """Where a name of a module is defined, within the package."""
    for node in statements(tree_of(module)):
        if getattr(node, "name", None) == name and not is_overload(node):
            return Found(node, module)
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                return Found(node, module)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tfwire"):
            for alias in node.names:
                if name == (alias.asname or alias.name):
                    return find(node.module, alias.name)
    return None


def is_overload(node: ast.AST) -> bool:
    return "overload" in map(ast.unparse, getattr(node, "decorator_list", []))


# ---- Signatures ----------------------------------------------------------------------------------


def constant(default: ast.expr, module: str) -> ast.expr:
    """The value of a default that is a name of a constant."""
    if isinstance(default, ast.Name):
        found = find(module, default.id)
        if found and isinstance(found.node, ast.Assign) and is_plain(found.node.value):
            return found.node.value
    return default


def is_plain(value: ast.expr) -> bool:
    return all(
        isinstance(part, ast.Constant | ast.BinOp | ast.operator | ast.UnaryOp | ast.unaryop)
        for part in ast.walk(value)
    )


def signature(name: str, function: ast.FunctionDef, module: str) -> str:
    arguments = function.args
    arguments.defaults = [constant(each, module) for each in arguments.defaults]
    arguments.kw_defaults = [each and constant(each, module) for each in arguments.kw_defaults]
    text = re.sub(r"^(self|cls)\b(: [^,]+)?(, )?(/, )?", "", ast.unparse(arguments)).replace(
        "'", '"'
    )
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    if function.name in ("__init__", "__new__"):
        returns = ""
    note_types(function, module)
    return wrapped(name, split_top(text) if text else [], returns)


def note_types(node: ast.AST, module: str) -> None:
    """Keeps what the names of types in a signature stand for, for the list at the end."""
    names = ast.walk(node.args if isinstance(node, ast.FunctionDef) else node)
    returns = ast.walk(getattr(node, "returns", None) or ast.Pass())
    for part in (*names, *returns):
        found = find(module, part.id) if isinstance(part, ast.Name) else None
        if found and is_alias(found.node):
            value = ast.unparse(found.node.value)
            value = value.replace("np.ndarray[Any, Any]", "npt.NDArray[Any]")
            line = wrapped_alias(f"{part.id} = {value}")
            if line not in aliases:
                aliases.add(line)
                note_types(found.node.value, found.module)


def wrapped_alias(line: str) -> str:
    return fill(line, 90, subsequent_indent="    ", break_long_words=False)


def is_alias(node: ast.AST) -> bool:
    if isinstance(node, ast.AnnAssign):
        return ast.unparse(node.annotation).endswith("TypeAlias")
    is_type = isinstance(node, ast.Assign) and not is_plain(node.value)
    return is_type and isinstance(node.value, ast.Subscript | ast.BinOp | ast.Attribute)


def wrapped(name: str, parameters: list[str], returns: str = "") -> str:
    """On one line, or each parameter on its own."""
    parameters = [re.sub(r"^(\w+: [^=]*[^= ])=", r"\1 = ", each) for each in parameters]
    line = f"{name}({', '.join(parameters)}){returns}"
    if len(line) <= 90 or not parameters:
        return line
    return f"{name}(\n    " + ",\n    ".join(parameters) + f",\n){returns}"


def split_top(text: str) -> list[str]:
    """The parts between the commas that are in no bracket."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


# ---- Docstrings ----------------------------------------------------------------------------------


def prose(text: str) -> str:
    """Text with its sessions of Python as blocks."""
    text = re.sub(r":\w+:(?=`)", "", text.replace("``", "`").strip("\n"))
    text = re.sub(r"(?:^ *>>> .*\n?)(?:^.*\S.*\n?)*", session, text, flags=re.MULTILINE)
    return text.strip()


def session(found: re.Match[str]) -> str:
    return f"```pycon\n{dedent(found[0]).rstrip()}\n```\n"


def render_doc(node: ast.AST) -> str:
    """A docstring as Markdown: sections as lists, examples as blocks."""
    doc = ast.get_docstring(node) or ""
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
    return "\n\n".join(rendered)


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


# ---- Definitions ---------------------------------------------------------------------------------


def fields(found: Found) -> dict[str, Found]:
    """The members of a class and its bases within the package, the class's own first."""
    members = {}
    for node in found.node.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not is_overload(node):
            members.setdefault(node.name, Found(node, found.module))
    for base in found.node.bases:
        parent = find(found.module, base_name(base))
        if parent and isinstance(parent.node, ast.ClassDef):
            members = {**fields(parent), **members}
    return members


def base_name(base: ast.expr) -> str:
    """The name of a base class, without its type parameters."""
    return ast.unparse(base.value if isinstance(base, ast.Subscript) else base)


def constructor(name: str, found: Found, members: dict[str, Found]) -> str:
    for method in ("__new__", "__init__"):
        if method in members:
            return signature(name, *members[method])
    annotated = [node for node in found.node.body if isinstance(node, ast.AnnAssign)]
    tuple_like = "NamedTuple" in map(base_name, found.node.bases)
    decorated = any("dataclass" in ast.unparse(each) for each in found.node.decorator_list)
    if tuple_like or decorated:
        for node in annotated:
            note_types(node.annotation, found.module)
        return wrapped(name, [ast.unparse(node) for node in annotated])
    return name


def render_class(name: str, found: Found, level: str) -> str:
    members = fields(found)
    text = block(level, name, constructor(name, found, members), found.node)
    for method, member in members.items():
        if (
            method.startswith("_")
            or method in inherited(found)
            or not ast.get_docstring(member.node)
        ):
            continue
        full = f"{name}.{method}"
        if isinstance(member.node, ast.ClassDef):
            text += render_class(full, member, level + "#")
            continue
        decorators = map(ast.unparse, member.node.decorator_list)
        is_value = any("property" in each for each in decorators)
        line = full if is_value else signature(full, *member)
        text += block(level + "#", full, line, member.node)
    return text


def block(level: str, title: str, line: str, node: ast.AST) -> str:
    return f"\n{level} {title}\n\n```\n{line}\n```\n\n{render_doc(node)}\n"


def render(name: str, found: Found) -> str:
    if isinstance(found.node, ast.ClassDef):
        return render_class(name, found, "###")
    if isinstance(found.node, ast.FunctionDef):
        return block("###", name, signature(name, *found), found.node)
    return f"\n### {name}\n\n```\n{ast.unparse(found.node)}\n```\n"


def inherited(found: Found) -> set[str]:
    """The members that a class has from bases with a place of their own on the page."""
    parents = [find(found.module, base_name(base)) for base in found.node.bases]
    return {
        name
        for parent in parents
        if parent and isinstance(parent.node, ast.ClassDef) and is_public(parent.node)
        for name in fields(parent)
    }


def is_public(node: ast.ClassDef) -> bool:
    return "public" in map(ast.unparse, node.decorator_list)


# ---- The page ------------------------------------------------------------------------------------


def public_names() -> dict[str, list[tuple[str, str]]]:
    """The names of __init__.pyi by room, each with the module that it comes from."""
    names: dict[str, list[tuple[str, str]]] = {room: [] for room in ROOMS}
    stub = SOURCE / "tfwire" / "__init__.pyi"
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.ImportFrom):
            continue
        room = node.module.split(".")[1] if "." in node.module else ""
        for alias in node.names:
            if room in names:
                names[room].append((node.module, alias.name))
    return names


def has_text(node: ast.AST) -> bool:
    """Not a class made at run time, which the text of its module lists."""
    return not isinstance(node, ast.Assign) or isinstance(node.value, ast.Constant)


def all_of(module: str) -> list[str]:
    for node in tree_of(module).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def make_page() -> str:
    text = HEADER
    for room, names in public_names().items():
        links = ", ".join(f"[{name}](#{name.lower()})" for _, name in names)
        text += fill(f"* {ROOMS[room]}: {links}", 100, subsequent_indent="  ") + "\n"
    text += f"* Modules: {', '.join(f'`tfwire.{module}`' for module in MODULES)}\n"
    documented = set()
    for room, names in public_names().items():
        text += f"\n## {ROOMS[room]}\n"
        for module, name in names:
            documented.add(name)
            text += render(name, find(module, name))
    for module in MODULES:
        full = f"tfwire.{module}"
        text += f"\n## {full}\n\n{render_doc(tree_of(full))}\n"
        for name in all_of(full):
            found = find(full, name)
            if found and name not in documented and has_text(found.node):
                text += render(name, found)
    types = "\n".join(sorted(aliases)).replace("'", '"')
    return f"{text}\n## Types\n\nNames of types in the signatures:\n\n```\n{types}\n```\n"


def main(arguments: list[str]) -> int:
    page = make_page()
    if "--check" in arguments:
        return int(page != PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
