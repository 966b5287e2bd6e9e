"""What a program uses of TensorFlow, and which of it tfwire.compat has. The program is not run: its
syntax tree is read, and every name in it that leads to TensorFlow is asked of tfwire.compat, whose
errors say what to use instead."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple

from tfwire import compat
from tfwire.cli._porting.answers import (
    NO_REPLACEMENT,
    TENSORFLOW,
    Made,
    Named,
    attribute_of,
    fault_of,
    fault_within,
    module_of,
    refusal_of,
    result_of,
    result_of_call,
)
from tfwire.cli._porting.imports import from_import_of, import_of, is_tensorflow

# Packages over TensorFlow whose place something takes.
_OVER_TENSORFLOW = {"tensorflow_datasets": "tfwire.tfds.open(folder), for what it has prepared"}
_ALL_NAMES = "instead: import tensorflow as tf, so that its names can be told from others"


class Use(NamedTuple):
    """A name of TensorFlow in a program.

    Attributes:
        line, column: Where it ends, and where its last part begins, from 1.
        name: As in tf.io.TFRecordWriter, or Dataset.map of an object.
        fault: Why it does not run, and what to use instead; empty if it runs.
    """

    line: int
    column: int
    name: str
    fault: str


class Import(NamedTuple):
    """A statement that imports TensorFlow, and the one to write in its place."""

    line: int
    old: str
    new: str


class _Parts(NamedTuple):
    """What the elements of a tuple or a list stand for."""

    values: list[Any]


def find_uses(tree: ast.Module) -> tuple[list[Import], list[Use], list[int]]:
    """The imports of TensorFlow in a program, and what it uses of it, by lines; and the lines after
    which it is not followed: docs/porting.md says where that is."""
    program = _NameFollower()
    program.run(tree)
    return program.imports, sorted(program.uses), sorted(program.lost)


# ---- The program ---------------------------------------------------------------------------------
class _NameFollower(ast.NodeVisitor):
    """Follows the names of TensorFlow through a program. Visiting an expression returns what it
    stands for: Named, Made, _Parts, or None if that is not known."""

    def __init__(self) -> None:
        self.imports: list[Import] = []
        self.uses: list[Use] = []
        self.lost: set[int] = set()  # lines
        self._scopes: list[dict[str, Any]] = [{}]
        self._later: list[Callable[[], None]] = []

    def run(self, tree: ast.Module) -> None:
        """The bodies of functions come after what is around them, whose names they see."""
        self._each(tree.body)
        while self._later:
            self._later.pop(0)()

    def _each(self, nodes: Iterable[ast.AST | None]) -> list[Any]:
        return [None if node is None else self.visit(node) for node in nodes]

    def _note(self, node: ast.AST, name: str, fault: str = "") -> None:
        self.uses.append(_use_at(node, name, fault))

    def _lose(self, node: ast.AST, value: Any) -> None:
        """Notes that something which may be of TensorFlow is not followed."""
        values = value.values if isinstance(value, _Parts) else [value]
        if any(isinstance(each, Named | Made) for each in values):
            self.lost.add(getattr(node, "lineno", 1))

    def _lose_modules(self, node: ast.AST, values: Iterable[Any]) -> None:
        for each in values:
            if isinstance(each, Named) and isinstance(each.value, ModuleType):
                self._lose(node, each)

    # ---- Expressions ----
    def visit_Name(self, node: ast.Name) -> Any:
        return next((scope[node.id] for scope in reversed(self._scopes) if node.id in scope), None)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        value, use = self._chain(node)
        self.uses += [use] if use else []
        return value

    def _chain(self, node: ast.expr) -> tuple[Any, Use | None]:
        """What attributes of attributes stand for, and the one use of TensorFlow that they are."""
        if not isinstance(node, ast.Attribute):
            return self.visit(node), None
        base, use = self._chain(node.value)
        if use is not None and use.fault:
            name = f"{use.name}.{node.attr}"
            return None, use._replace(name=name, fault=fault_within(name, use.fault))
        if not isinstance(base, Named | Made) or not _is_read(node):
            return None, use
        name = f"{base.path if isinstance(base, Named) else base.cls.__name__}.{node.attr}"
        try:
            value = attribute_of(base, node.attr)
        except AttributeError as error:
            return None, _use_at(node, name, fault_of(error))
        return value, _use_at(node, name) if value else use

    def visit_Call(self, node: ast.Call) -> Any:
        function, use = self._chain(node.func)
        result = None
        if isinstance(function, Named) and callable(function.value):
            refusal = refusal_of(function, node)
            if refusal:
                use = _use_at(node.func, function.path, refusal)
            result = result_of_call(function)
        self.uses += [use] if use else []
        values = self._each([*node.args, *(each.value for each in node.keywords)])
        if function is None:  # of the program: the methods of objects are seen when it runs
            self._lose_modules(node, values)
        name = ast.unparse(node.func)
        if name == "getattr":
            self._lose(node, values[0] if values else None)
        elif name in ("importlib.import_module", "import_module", "__import__"):
            first = node.args[0] if node.args else None
            is_ours = isinstance(first, ast.Constant) and "tensorflow" in str(first.value)
            self._lose(node, TENSORFLOW if is_ours else None)
        return result

    def visit_Return(self, node: ast.Return) -> None:
        self._lose(node, None if node.value is None else self.visit(node.value))

    visit_Yield: Any = visit_Return

    def visit_Dict(self, node: ast.Dict) -> None:
        self._each(node.keys)
        self._lose_modules(node, self._each(node.values))

    def visit_Subscript(self, node: ast.Subscript) -> None:
        value = self.visit(node.value)
        self.visit(node.slice)
        self._lose(node, value if isinstance(value, _Parts) else None)

    def visit_Tuple(self, node: ast.Tuple | ast.List) -> Any:
        return _Parts(self._each(node.elts))

    visit_List = visit_Tuple

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        value = self.visit(node.value)
        self._bind(node.target, value)
        return value

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        self.visit(node.test)
        return _joined(self._each([node.body, node.orelse]))

    def visit_Lambda(self, node: ast.Lambda) -> None:
        with self._inner(self._parameters(node.args)):
            self.visit(node.body)

    def visit_ListComp(self, node: Any) -> None:
        with self._inner():
            for part in node.generators:
                self._lose(part.iter, _parts_of(self.visit(part.iter)))
                self._bind(part.target, None)
                self._each(part.ifs)
            self._each(getattr(node, name, None) for name in ("key", "value", "elt"))

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp

    # ---- Names ----
    def _bind(self, target: ast.AST | None, value: Any) -> None:
        if isinstance(target, ast.Name):
            self._scopes[-1][target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            parts = value.values if isinstance(value, _Parts) else []
            fits = len(parts) == len(target.elts)
            for i, each in enumerate(target.elts):
                self._bind(each, parts[i] if fits else None)
        elif isinstance(target, ast.Starred):
            self._bind(target.value, None)
        elif target is not None:
            self._lose(target, value)
            self.visit(target)

    @contextmanager
    def _inner(self, names: Iterable[str] = ()) -> Iterator[None]:
        self._scopes.append(dict.fromkeys(names))
        try:
            yield
        finally:
            self._scopes.pop()

    def _parameters(self, found: ast.arguments) -> list[str]:
        """Their names; their defaults and annotations are of the scope around the function."""
        every = [*found.posonlyargs, *found.args, *found.kwonlyargs]
        every += [each for each in (found.vararg, found.kwarg) if each is not None]
        self._each(each.annotation for each in every)
        for default in (*found.defaults, *found.kw_defaults):
            self._lose_modules(default or found, self._each([default]))
        return [each.arg for each in every]

    # ---- Statements ----
    def visit_Import(self, node: ast.Import) -> None:
        statements, changed = [], False
        for alias in node.names:
            root, *parts = alias.name.split(".")
            bound = alias.asname or root
            found = self._imported(node, root, parts) if is_tensorflow(root) else None
            if found is not None:
                changed = True
                statements.append(import_of(parts, alias.asname))
            else:
                statements.append(ast.unparse(ast.Import([alias])))
            self._scopes[-1][bound] = found if alias.asname or not found else TENSORFLOW
        if changed:
            self._replace(node, "; ".join(statements))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        root, *parts = (node.module or "").split(".")
        ours = node.level == 0 and is_tensorflow(root)
        kept = []
        for alias in node.names:
            if ours and alias.name == "*":
                self._note(node, ast.unparse(node), _ALL_NAMES)
                continue
            found = self._imported(node, root, [*parts, alias.name]) if ours else None
            self._scopes[-1][alias.asname or alias.name] = found
            kept += [alias] if found else []
        if kept:
            self._replace(node, from_import_of(parts, kept))

    def _imported(self, node: ast.stmt, root: str, parts: list[str]) -> Named | None:
        """A module or a name of one; what is not there is noted."""
        if root != "tensorflow":
            instead = _OVER_TENSORFLOW.get(root)
            self._note(node, root, f"instead: {instead}" if instead else NO_REPLACEMENT)
            return None
        try:
            found = module_of(parts)
        except AttributeError as error:
            public = parts[0] == "python" and hasattr(compat, parts[-1])
            fault = f"instead: tf.{parts[-1]}" if public else fault_of(error)
            self._note(node, ".".join(["tf", *parts]), fault)
            return None
        if parts and not isinstance(node, ast.Import):
            self._note(node, found.path)
        return found

    def _replace(self, node: ast.stmt, new: str) -> None:
        self.imports.append(Import(node.lineno, ast.unparse(node), new))

    def visit_Assign(self, node: ast.Assign) -> None:
        value = self.visit(node.value)
        for target in node.targets:
            self._bind(target, value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.annotation)
        self._bind(node.target, None if node.value is None else self.visit(node.value))

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        self._bind(node.target, None)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self._bind(target, None)

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            found = self.visit(item.context_expr)
            entered = getattr(found.cls, "__enter__", None) if isinstance(found, Made) else None
            self._bind(item.optional_vars, entered and result_of(entered, found.cls))
        self._each(node.body)

    visit_AsyncWith = visit_With

    def visit_If(self, node: ast.If) -> None:
        """With its elif clauses, of which there may be more than calls can be nested."""
        bodies: list[list[ast.stmt]] = []
        rest: list[ast.stmt] = [node]
        while len(rest) == 1 and isinstance(rest[0], ast.If):
            self.visit(rest[0].test)
            bodies.append(rest[0].body)
            rest = rest[0].orelse
        self._branches(*bodies, rest)

    def visit_For(self, node: ast.For | ast.AsyncFor | ast.While) -> None:
        """A loop: what it binds is not known at its beginning."""
        value = self.visit(node.test if isinstance(node, ast.While) else node.iter)
        self._lose(node, _parts_of(value))
        for part in ast.walk(node):
            name = part.id if isinstance(part, ast.Name) and not _is_read(part) else ""
            if isinstance(self._scopes[-1].get(name), Made):
                self._scopes[-1][name] = None
        self._bind(getattr(node, "target", None), None)
        self._branches(node.body, [])
        self._each(node.orelse)

    visit_AsyncFor = visit_While = visit_For

    def visit_Try(self, node: Any) -> None:
        self._branches([*node.body, *node.orelse], *([handler] for handler in node.handlers))
        self._each(node.finalbody)

    visit_TryStar = visit_Try

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self._each([node.type])
        if node.name:
            self._scopes[-1][node.name] = None
        self._each(node.body)

    def visit_Match(self, node: ast.Match) -> None:
        self._lose(node, self.visit(node.subject))
        for part in ast.walk(node):
            for name in ("name", "rest"):  # of patterns that bind
                if isinstance(part, ast.pattern) and getattr(part, name, None):
                    self._scopes[-1][getattr(part, name)] = None
        self._branches(*([case] for case in node.cases), [])

    def _branches(self, *bodies: Iterable[ast.AST]) -> None:
        """Statements of which these or those run."""
        scope = self._scopes[-1]
        before, ends = dict(scope), []
        for body in bodies:
            scope.clear()
            scope.update(before)
            self._each(body)
            ends.append(dict(scope))
        names = {name for end in ends for name in end}
        scope.update({name: _joined([end.get(name) for end in ends]) for name in names})

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._each([*node.decorator_list, node.returns])
        names = self._parameters(node.args)
        self._scopes[-1][node.name] = None
        scopes = list(self._scopes)

        def body() -> None:
            self._scopes = scopes
            with self._inner(names):
                self._each(node.body)

        self._later.append(body)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._each([*node.decorator_list, *node.bases, *node.keywords])
        self._scopes[-1][node.name] = None
        with self._inner():
            self._each(node.body)
            self._lose_modules(node, self._scopes[-1].values())  # attributes of the class


def _parts_of(value: Any) -> _Parts | None:
    """A tuple or a list, whose elements a loop takes; None: of other objects it is not known."""
    return value if isinstance(value, _Parts) else None


def _is_read(node: ast.Name | ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Load)


def _joined(values: list[Any]) -> Any:
    """What a name stands for after branches: of several imports, the first."""
    named = [value for value in values if isinstance(value, Named)]
    return named[0] if named else values[0] if all(v == values[0] for v in values) else None


def _use_at(node: ast.AST, name: str, fault: str = "") -> Use:
    """At the end of an expression: a chain of calls may have many lines. A statement begins."""
    line, column = int(getattr(node, "lineno", 1)), int(getattr(node, "col_offset", 0))
    if isinstance(node, ast.Attribute):
        line = node.end_lineno or line
        column = (node.end_col_offset or 0) - len(node.attr)
    return Use(line, column + 1, name, fault)
