"""Writes docs/api.md and docs/api/ from the sources: the names of __init__.pyi and of the public
modules by task, with their signatures and docstrings; and of these names src/tfwire/_exports.py, by
which __init__.py imports them. Imports nothing of what it describes.

Usage: ``python docs/make_api.py [--check]``; ``--check`` compares and writes nothing.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

from api_docstrings import render_doc, summary

DOCS = Path(__file__).resolve().parent
SOURCE = DOCS.parent / "src"
PAGE = DOCS / "api.md"
FOLDER = DOCS / "api"  # a page for each task
STUB = SOURCE / "tfwire" / "__init__.pyi"
TABLE = SOURCE / "tfwire" / "_exports.py"

MODULES = [
    "checksum",
    "sharding",
    "images",
    "tensorboard",
    "tfds",
    "view",
    "train",
    "arrow",
    "torch",
    "grain",
    "huggingface",
    "polars",
    "beam",
    "ray",
    "spark",
]
# Classes of results that programs read and seldom name; they are in tfwire.typing.
RESULTS = {
    "FileBatches": "tfwire._parsing.parse_file",
    "FeatureStatistics": "tfwire._parsing.infer",
    "RecordsByKey": "tfwire._records.index.records_by_key",
}
# What a reader may want to do, in the order of first use. Each public name is in one of them.
TASKS = {
    "Read records": "read_records RecordIterator follow_records RecordPosition",
    "Write records": "TFRecordWriter write_records TFRecordOptions",
    "Encode and decode Examples": """
        encode_example encode_examples encode_columns decode_example decode_examples
        encode_sequence_example decode_sequence_example bytes_feature float_feature int64_feature
        example_to_json decode_json_example tfwire.train""",
    "Parse Examples with a specification": """
        Parser SequenceParser FileBatches parse_example parse_single_example parse_sequence_example
        parse_single_sequence_example""",
    "Specifications": """
        FixedLenFeature FixedLenSequenceFeature VarLenFeature SparseFeature RaggedFeature
        int64 float32 string infer_schema InferredSchema FeatureStatistics
        read_schema write_schema""",
    "Columns that are not arrays": "BytesColumn SparseTensor RaggedTensor",
    "Tables for Arrow": "tfwire.arrow tfwire.polars",
    "Records by number": "TFRecordFile TFRecordFiles RecordIndex RecordsByKey",
    "Datasets": """
        TFRecordDataset Dataset DatasetIterator tfwire.tfds tfwire.torch tfwire.grain
        tfwire.huggingface""",
    "Engines for many machines": "tfwire.beam tfwire.ray tfwire.spark",
    "Shards": "ShardedWriter tfwire.sharding",
    "Look at files": "tfwire.view tfwire.tensorboard",
    "Verify and repair": """
        verify_file verify_files FileReport repair_file RepairReport SkippedRegions SkippedRegion
        TornTail FlippedBits FlippedBit""",
    "Checksums and receipts": "crc32c tfwire.checksum Receipt",
    "Tensors and images": "serialize_tensor parse_tensor decode_raw tfwire.images",
    "Errors and warnings": "DataLossError ParseError Error TfwireWarning",
}
HEADER = """\
# API reference

Made by `make docs` from the docstrings: change those. Every example runs as a test. The names are
those of the package `tfwire`, except within its modules, and three classes of results that are in
`tfwire.typing`: FileBatches, FeatureStatistics and RecordsByKey. `tfwire.compat` is in
[porting](porting.md), the command in [the command line](command-line.md).

"""

TYPES_TITLE = "Types"
TYPES = """\
What the types in the signatures stand for. Annotations import them from `tfwire.typing`, which has
the classes of results that have no other name too: DType, FileBatches, FeatureStatistics,
FollowedRecords, ParallelMap and RecordsByKey. `Key` is the type of the keys of a specification, str
or bytes; `Element` that of a dataset's elements; `Batch` and `Single` those of what a parser makes
of many messages and of one. Overloads say more: type checkers know a batch by its features.
"""


class Found(NamedTuple):
    """A definition, and the module that holds it."""

    node: Any
    module: str


aliases: dict[str, str] = {}


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
                if alias.name == "*" and (found := find(node.module, name)):
                    return found
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
        if not found or part.id in aliases:
            continue
        if is_alias(found.node):
            value = ast.unparse(found.node.value)
            if isinstance(found.node.value, ast.Constant):  # a type that is named before it is made
                value = str(found.node.value.value)
            value = value.replace("np.ndarray[Any, Any]", "npt.NDArray[Any]")
            value = re.sub(r"Sequence\['(.*)'\]", r"Sequence[\1]", value).replace("'", '"')
            aliases[part.id] = f"`{value}`. {text_after(found)}"
            note_types(ast.parse(value), found.module)
        elif "Protocol" in map(base_name, getattr(found.node, "bases", [])):
            methods = [node.name for node in found.node.body if isinstance(node, ast.FunctionDef)]
            aliases[part.id] = f"{ast.get_docstring(found.node)} It has `{methods[0]}`."


def text_after(found: Found) -> str:
    """The string after an assignment, which documents it."""
    body = list(statements(tree_of(found.module)))
    after = body[body.index(found.node) + 1 :][:1]
    is_text = after and isinstance(after[0], ast.Expr) and isinstance(after[0].value, ast.Constant)
    return " ".join(str(after[0].value.value).split()).replace("``", "`") if is_text else ""


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


# ---- Definitions ---------------------------------------------------------------------------------


def fields(found: Found) -> dict[str, Found]:
    """The members of a class and its bases within the package."""
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
    if "__new__" in members:
        return signature(name, *members["__new__"])
    if "__init__" in members:
        has_arguments = "\nArgs:\n" in (ast.get_docstring(found.node) or "")
        return signature(name, *members["__init__"]) if has_arguments else name
    annotated = [node for node in found.node.body if isinstance(node, ast.AnnAssign)]
    tuple_like = "NamedTuple" in map(base_name, found.node.bases)
    decorated = any("dataclass" in ast.unparse(each) for each in found.node.decorator_list)
    if tuple_like or decorated:
        for node in annotated:
            note_types(node.annotation, found.module)
        shown = [re.sub(r" = field\(.*\)$", "", ast.unparse(node)) for node in annotated]
        return wrapped(name, shown)  # field(repr=False) is no default
    return name


def render_class(name: str, found: Found, level: str) -> str:
    members = {
        f"{name}.{member}": definition
        for member, definition in sorted(fields(found).items(), key=by_use)
        if not member.startswith("_") and member not in inherited(found)
        if name not in RESULTS or definition.node in found.node.body  # its bases are not public
        if ast.get_docstring(definition.node)
    }
    text = block(level, name, constructor(name, found, fields(found)), found.node)
    links = [*map(link, members), *(f"those of {link(base)}" for base in public_bases(found))]
    if links:
        text += "\n" + fill(f"Members: {', '.join(links)}", 100) + "\n"
    for full, member in members.items():
        if isinstance(member.node, ast.ClassDef):
            text += render_class(full, member, level + "#")
            continue
        decorators = map(ast.unparse, member.node.decorator_list)
        is_value = any("property" in each for each in decorators)
        line = value_line(full, member) if is_value else signature(full, *member)
        text += block(level + "#", full, line, member.node)
    return text


def by_use(member: tuple[str, Found]) -> int:
    """What makes an object first, what closes it last."""
    made = "classmethod" in map(ast.unparse, member[1].node.decorator_list)
    return 0 if made else 2 if member[0] == "close" else 1


def value_line(name: str, found: Found) -> str:
    note_types(found.node, found.module)
    return f"{name}: {ast.unparse(found.node.returns)}".replace("'", '"')


def link(title: str) -> str:
    return f"[{title.rpartition('.')[2]}](#{anchor(title)})"


def anchor(title: str) -> str:
    """The name of a heading in links, on GitHub."""
    return title.lower().replace(".", "").replace(" ", "-")


def block(level: str, title: str, line: str, node: ast.AST) -> str:
    code = f"```\n{line}\n```" if line != title else ""
    parts = [f"{level} {title}", summary(node), code, render_doc(node)]
    return "\n" + "\n\n".join(filter(None, parts)) + "\n"


def render(name: str, found: Found, level: str) -> str:
    if isinstance(found.node, ast.ClassDef):
        return render_class(name, found, level)
    if isinstance(found.node, ast.FunctionDef):
        return block(level, name, signature(name, *found), found.node)
    line = f"{name}: {ast.unparse(found.node.annotation)}"
    if is_plain(found.node.value):
        line += f" = {ast.unparse(found.node.value)}".replace("'", '"')
    return f"\n{level} {name}\n\n{text_after(found)}\n\n```\n{line}\n```\n"


def inherited(found: Found) -> set[str]:
    """The members that a class has from bases with a place of their own."""
    return {name for parent in public_bases(found).values() for name in fields(parent)}


def public_bases(found: Found) -> dict[str, Found]:
    parents = {base_name(base): find(found.module, base_name(base)) for base in found.node.bases}
    return {
        name: parent
        for name, parent in parents.items()
        if parent and isinstance(parent.node, ast.ClassDef) and is_public(parent.node)
    }


def is_public(node: ast.ClassDef) -> bool:
    return "public" in map(ast.unparse, node.decorator_list)


# ---- The pages -----------------------------------------------------------------------------------


def public_names() -> dict[str, Found]:
    """The names of __init__.pyi and the classes of results, with their definitions."""
    names = {}
    for name, module in exports().items():
        if module not in ("tfwire", "tfwire._version"):
            names[name] = find(module, name)
    return names | {name: find(module, name) for name, module in RESULTS.items()}


def exports() -> dict[str, str]:
    """The names of __init__.pyi, and the modules that define them."""
    body = ast.parse(STUB.read_text(encoding="utf-8")).body
    return {alias.name: node.module for node in body for alias in node.names}


def make_table() -> str:
    """The text of _exports.py: stubs are not everywhere where the package is."""
    rows = "".join(f'    "{name}": "{module}",\n' for name, module in sorted(exports().items()))
    text = "The public names, and the modules that define them: docs/make_api.py makes this."
    return f'''"""{text}"""

EXPORTS = {{
{rows}}}
'''


def has_text(node: ast.AST) -> bool:
    """Not a class made at run time, which the text of its module lists."""
    return not isinstance(node, ast.Assign) or isinstance(node.value, ast.Constant)


def all_of(module: str) -> list[str]:
    for node in tree_of(module).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def sections() -> dict[str, dict[str, str]]:
    """The text of every name and module, by task."""
    names = public_names()
    listed = [name for text in TASKS.values() for name in text.split()]
    modules = {f"tfwire.{module}" for module in MODULES}
    assert sorted(listed) == sorted({*names, *modules}), set(listed) ^ {*names, *modules}
    return {
        task: {
            name: module_text(name, names)
            if name.startswith("tfwire.")
            else render(name, names[name], "##")
            for name in text.split()
        }
        for task, text in TASKS.items()
    }


def module_text(module: str, documented: dict[str, Found]) -> str:
    tree = tree_of(module)
    text = block("##", module, module, tree)
    for name in all_of(module):
        found = find(module, name)
        if found and name not in documented and has_text(found.node):
            text += render(name, found, "###")
    return text


def contents(by_task: dict[str, dict[str, str]]) -> str:
    """A table for each task: its names, and the first sentence of each."""
    text = ""
    for task, texts in by_task.items():
        text += f"\n**[{task}]({page_of(task)})**\n\n| | |\n|---|---|\n"
        for name, body in texts.items():
            text += row(task, name, name, body)
            for title in re.findall(r"^### (\w+)$", body, re.M):  # of a module
                text += row(task, title, f"{name.removeprefix('tfwire.')}.{title}", body)
    return text + f"\n[Names of types in the signatures]({page_of(TYPES_TITLE)})\n"


def row(task: str, title: str, shown: str, body: str) -> str:
    """A line of a table: a name of a page, and the first sentence of its text."""
    paragraph = re.search(rf"^#+ {re.escape(title)}\n\n(.+(?:\n.+)*)", body, re.M)[1]
    sentence = " ".join(paragraph.split())
    return f"| [`{shown}`]({page_of(task)}#{anchor(title)}) | {sentence} |\n"


def page_of(task: str) -> str:
    """The page of a task, as the page of contents links to it."""
    return f"{FOLDER.name}/{anchor(task)}.md"


def make_pages() -> dict[Path, str]:
    """The page of contents, and a page for each task."""
    by_task = sections()
    bodies = {task: f"# {task}\n" + "".join(texts.values()) for task, texts in by_task.items()}
    types = "".join(listed(f"`{name}`: {meaning}") for name, meaning in sorted(aliases.items()))
    bodies[TYPES_TITLE] = f"# {TYPES_TITLE}\n\n{TYPES}\n{types}"
    entries = "\n".join(page_of(task).removesuffix(".md") for task in bodies)
    toctree = f"\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n"
    pages = {FOLDER / Path(page_of(task)).name: text for task, text in linked(bodies).items()}
    return {
        TABLE: make_table(),
        PAGE: HEADER + "## Contents\n" + contents(by_task) + toctree,
        **pages,
    }


def linked(bodies: dict[str, str]) -> dict[str, str]:
    """Pages whose links to a heading lead to the page that has it."""
    headings = {
        task: {anchor(title) for title in re.findall(r"^#+ (.+)$", body, re.M)}
        for task, body in bodies.items()
    }

    def target(task: str, found: re.Match[str]) -> str:
        homes = [other for other in (task, *bodies) if found[1] in headings[other]]
        page = "" if homes[0] == task else Path(page_of(homes[0])).name
        return f"]({page}#{found[1]})"

    return {
        task: re.sub(r"\]\(#([^)]+)\)", partial(target, task), body)
        for task, body in bodies.items()
    }


def listed(line: str) -> str:
    return fill(f"* {line}".strip(), 100, subsequent_indent="  ", break_long_words=False) + "\n"


def main(arguments: list[str]) -> int:
    pages = make_pages()
    known = (TABLE, PAGE, *FOLDER.glob("*.md"))
    old = {path: path.read_text(encoding="utf-8") for path in known if path.exists()}
    if "--check" in arguments:
        return int(pages != old)
    FOLDER.mkdir(exist_ok=True)
    for path in old.keys() - pages.keys():
        path.unlink()
    for path, text in pages.items():
        if old.get(path) != text:  # others may be reading the pages
            path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
