"""Imports of TensorFlow, and the statements to write in their place."""

from __future__ import annotations

import ast

_COMPAT_MODULES = {
    (): "tfwire.compat",
    ("compat", "v2"): "tfwire.compat",
    ("compat", "v1"): "tfwire.compat.v1",
}


def is_tensorflow(package: str) -> bool:
    return package == "tensorflow" or package.startswith("tensorflow_")


def import_of(parts: list[str], bound: str | None) -> str:
    """The statement for ``import tensorflow.PARTS as BOUND``."""
    module = _COMPAT_MODULES.get(tuple(parts))
    if bound is None or module is None:
        first = "import tfwire.compat as tensorflow"
        return first if bound is None else _by_names(parts[:-1], [ast.alias(parts[-1], bound)])
    return f"import {module} as {bound}"


def from_import_of(parts: list[str], aliases: list[ast.alias]) -> str:
    """The statement for ``from tensorflow.PARTS import ALIASES``."""
    module = _COMPAT_MODULES.get(tuple(parts))
    if parts == ["compat"]:
        found = [(_COMPAT_MODULES.get(("compat", each.name)), each) for each in aliases]
        if all(name for name, _ in found):
            return "; ".join(f"import {name} as {each.asname or each.name}" for name, each in found)
    if module is None:
        return _by_names(parts, aliases)
    return ast.unparse(ast.ImportFrom(module, aliases, 0))


def _by_names(parts: list[str], aliases: list[ast.alias]) -> str:
    """Names of what is no module in tfwire.compat."""
    if not parts:
        return ast.unparse(ast.ImportFrom("tfwire.compat", aliases, 0))
    names = [f"{each.asname or each.name} = tf.{'.'.join([*parts, each.name])}" for each in aliases]
    return "; ".join(["import tfwire.compat as tf", *names])
