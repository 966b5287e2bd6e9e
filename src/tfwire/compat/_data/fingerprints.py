"""The fingerprint of a pipeline, by which ``snapshot`` knows whether it is another one.

It covers the stages and their arguments; arrays; the files that arguments name, by their names,
sizes and times; and the functions of users: their code, default arguments, the variables that they
enclose, and the globals and imported modules that they name, functions and classes of users among
them. Of what is installed (the standard library, site-packages, tfwire itself) the names and
versions count. What can be neither compared nor pickled, such as a lock or a generator, makes a
fingerprint impossible. What a function reads, a file for instance, does not count: it may write it,
too.
"""

from __future__ import annotations

import copyreg
import dis
import importlib
import os
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from hashlib import blake2b
from importlib.util import resolve_name
from typing import Any

import numpy as np

from tfwire import Dataset, TFRecordFiles
from tfwire._interface.pipelines import Stage

_DIGEST_BYTES = 16
# What a pipeline counts or keeps, and what it draws in every process anew.
_VARYING = {"next_epoch", "_ahead"}


class IncomparableError(Exception):
    """Something in the pipeline cannot be compared with that of another process."""


class DrawnSeed(int):
    """A seed that was drawn because none was given."""


def fingerprint(stage: Stage) -> str:
    """The fingerprint of a pipeline: that of another process with the same program, files and
    version of Python is the same.

    Raises:
        IncomparableError: It cannot be told; the message says of what.
    """
    try:
        return _Digests().of(stage).hex()
    except RecursionError:
        raise IncomparableError("objects nested too deeply") from None


class _Digests:
    """Digests of values. What is met again within itself counts by how far up that is."""

    def __init__(self) -> None:
        self._within: list[int] = []  # the objects whose digests are being made
        self._functions = 0  # how many of these are functions
        # By their ids, and whether within a function. It keeps the objects, and so their ids.
        self._known: dict[tuple[int, bool], tuple[Any, bytes]] = {}

    def of(self, value: Any) -> bytes:
        """The digest of a value.

        Raises:
            IncomparableError: It has none.
        """
        if value is None or type(value) in (bool, int, float, complex, range, type(...)):
            return self._joined(type(value).__name__, repr(value).encode())
        if isinstance(value, (str, bytes)) and type(value) in (str, bytes):
            return self._text(value)
        identity = id(value)
        key = identity, self._functions > 0
        if key in self._known:
            return self._known[key][1]
        if identity in self._within:
            return self._joined("above", len(self._within) - self._within.index(identity))
        self._within.append(identity)
        try:
            found = self._joined(type(value).__qualname__, *self._parts(value))
        finally:
            self._within.pop()
        self._known[key] = (value, found)
        return found

    def _joined(self, *parts: Any) -> bytes:
        """One digest of several: of bytes, of texts, and of numbers."""
        state = blake2b(digest_size=_DIGEST_BYTES)
        for part in parts:
            data = part if isinstance(part, bytes) else str(part).encode()
            state.update(b"%d:" % len(data))
            state.update(data)
        return state.digest()

    def _text(self, text: str | bytes) -> bytes:
        data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
        facts = () if self._functions else _file_facts(text)
        return self._joined(type(text).__name__, data, *facts)

    def _all(self, values: Iterable[Any]) -> Iterator[bytes]:
        return map(self.of, values)

    def _parts(self, value: Any) -> Iterator[Any]:
        """What the digest of a value is made of."""
        if type(value) in _EXACT:
            return iter(_EXACT[type(value)](self, value))
        for kinds, parts in _PARTS:
            if isinstance(value, kinds):
                return iter(parts(self, value))
        return self._reduced(value)

    def _set(self, value: Any) -> Iterator[bytes]:
        return iter(sorted(self._all(value)))

    def _mapping(self, value: Any) -> Iterator[bytes]:
        for key, item in value.items():
            yield self.of(key)
            yield self.of(item)

    def _array(self, value: Any) -> Iterator[Any]:
        array = np.asarray(value)
        yield f"{array.dtype!r} {array.shape}"
        if array.dtype.hasobject:
            yield from self._all(array.ravel().tolist())
        else:
            yield array.tobytes()

    def _stage(self, stage: Stage) -> Iterator[bytes]:
        """A stage: its attributes, but for what varies without changing its elements."""
        left_out = set(_VARYING)
        if not stage.seeded:
            left_out.add("seed")
        kept = getattr(stage, "kept", None)
        if kept is not None:  # the function of such a stage holds what it has kept
            left_out |= {"_generate", "given"}
        yield self.of(_name_of(type(stage)))
        for name, value in sorted(vars(stage).items()):
            if name not in left_out:
                yield self.of(name)
                yield self.of(value)

    def _named(self, value: Any) -> Iterator[Any]:
        """A function written in C, or a module: its name and version."""
        if isinstance(value, np.ufunc) and value.__name__.endswith(" (vectorized)"):
            raise IncomparableError("a function that np.frompyfunc made")
        owner = getattr(value, "__self__", None)
        if owner is not None and not isinstance(owner, types.ModuleType):
            yield self.of(owner)  # a method of an object
        yield _name_of(value)

    def _class(self, value: Any) -> Iterator[Any]:
        yield _name_of(value)
        if not _is_installed(value.__module__):
            yield from self._all(value.__bases__)
            yield from self._mapping(
                {
                    name: item
                    for name, item in sorted(vars(value).items())
                    if not (name.startswith("__") and name.endswith("__")) or callable(item)
                    if name not in ("__weakref__", "__dict__", "__doc__", "__annotate__")
                }
            )

    def _wrapped(self, value: Any) -> Iterator[bytes]:
        if isinstance(value, property):
            return self._all((value.fget, value.fset, value.fdel))
        return self._all((value.__func__,))

    def _function(self, function: types.FunctionType) -> Iterator[Any]:
        yield _name_of(function)
        installed = _is_installed(function.__module__) and _is_written_in_installed(function)
        if installed and "<locals>" not in function.__qualname__:
            return
        self._functions += 1
        try:
            yield from self._meaning(function)
        finally:
            self._functions -= 1

    def _meaning(self, function: types.FunctionType) -> Iterator[Any]:
        """The digests of all that says what a function does."""
        yield self.of(function.__code__)
        yield from self._all((function.__defaults__, function.__kwdefaults__, function.__dict__))
        for cell in function.__closure__ or ():
            try:
                yield self.of(cell.cell_contents)
            except ValueError:  # it has no value yet
                yield b""
        if not _is_written_in_installed(function):
            yield from self._globals(function)

    def _globals(self, function: types.FunctionType) -> Iterator[bytes]:
        """The values of the globals that a function names, and the modules that it imports."""
        found = function.__globals__
        codes = list(_codes(function.__code__))
        names = sorted({name for code in codes for name in code.co_names})
        modules: set[str] = set()
        for name in names:
            if name in found:
                yield from self._named_value(name, found[name], names, modules)
        for name in sorted({name for code in codes for name in _imports(code, found)}):
            yield from self._named_value(name, _imported(name), names, modules)

    def _named_value(
        self, name: str, value: Any, names: list[str], modules: set[str]
    ) -> Iterator[bytes]:
        """A value by its name; of a module of the user, which is added to those that were met, also
        the values of the attributes that are named."""
        yield self.of(name)
        yield self.of(value)
        if not isinstance(value, types.ModuleType) or _is_installed(value.__name__):
            return
        if value.__name__ not in modules:
            modules.add(value.__name__)
            for one in names:
                if one in vars(value):
                    yield from self._named_value(one, vars(value)[one], names, modules)

    def _code(self, code: types.CodeType) -> Iterator[bytes]:
        """What a function does; not where its source is."""
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        return self._all((code.co_code, code.co_consts, *names, counts))

    def _reduced(self, value: Any) -> Iterator[bytes]:
        """Any other object, by what pickling makes of it."""
        reduce = copyreg.dispatch_table.get(type(value))
        try:
            reduced: Any = value.__reduce_ex__(4) if reduce is None else reduce(value)
        except IncomparableError:
            raise
        except Exception as error:
            shown = f"{type(value).__module__}.{type(value).__qualname__}"
            raise IncomparableError(f"an object of {shown}, which cannot be pickled") from error
        if isinstance(reduced, str):
            yield self.of(f"{type(value).__module__}.{reduced}")
            yield self.of(getattr(value, "__wrapped__", None))  # of functools.lru_cache
            return
        for part in reduced:
            yield self.of(list(part) if isinstance(part, Iterator) else part)


# Of these types themselves; those derived from them may hold more.
_EXACT: dict[type, Any] = {
    np.ndarray: _Digests._array,
    list: _Digests._all,
    tuple: _Digests._all,
    set: _Digests._set,
    frozenset: _Digests._set,
    dict: _Digests._mapping,
    types.MappingProxyType: _Digests._mapping,
}
_PARTS: list[tuple[Any, Any]] = [
    (DrawnSeed, lambda digests, value: ()),
    (Stage, _Digests._stage),
    (Dataset, lambda digests, value: (digests.of(type(value)), digests.of(value._stage))),
    (np.generic, _Digests._array),
    (partial, lambda digests, value: digests._all((value.func, value.args, value.keywords))),
    (types.FunctionType, _Digests._function),
    (types.CodeType, _Digests._code),
    (types.MethodType, lambda digests, value: digests._all((value.__self__, value.__func__))),
    ((types.BuiltinFunctionType, types.ModuleType, np.ufunc), _Digests._named),
    (type, _Digests._class),
    ((staticmethod, classmethod, property), _Digests._wrapped),
    (os.PathLike, lambda digests, value: (digests.of(os.fspath(value)),)),
    (TFRecordFiles, lambda digests, files: digests._all(files.paths)),
]


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function, and of those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _imports(code: types.CodeType, variables: dict[str, Any]) -> Iterator[str]:
    """The full names of the modules that a function imports, given its globals."""
    steps = [step for step in dis.get_instructions(code) if step.opname != "EXTENDED_ARG"]
    for i, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            level = steps[i - 2].argval  # the instruction before says what to take of it
            try:
                yield resolve_name("." * level + step.argval, variables.get("__package__"))
            except (ImportError, TypeError, ValueError):  # beyond the package: the function fails
                continue


def _imported(name: str) -> types.ModuleType | None:
    """A module that a function imports; None if it is not there."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
    except Exception as error:
        raise IncomparableError(f"the module {name}, which cannot be imported") from error


def _file_facts(text: str | bytes) -> tuple[Any, ...]:
    """The size and time of the file that a text names; nothing if there is none."""
    if not 0 < len(text) < 4096:
        return ()
    try:
        status = os.stat(text)
    except (OSError, ValueError):
        return ()
    return (status.st_size, status.st_mtime_ns) if os.path.isfile(text) else ()


def _name_of(value: Any) -> str:
    """The full name of a function, class or module, with the version of its package."""
    module: str = getattr(value, "__module__", None) or ""
    name: str = getattr(value, "__qualname__", None) or value.__name__
    if isinstance(value, types.ModuleType):
        module, name = value.__name__, ""
    package = sys.modules.get(module.partition(".")[0])
    return f"{module}.{name} {getattr(package, '__version__', '')}"


def _is_written_in_installed(function: types.FunctionType) -> bool:
    """True for a function of a module that is installed, whatever functools.wraps made of it."""
    return _is_installed(function.__globals__.get("__name__"))


@lru_cache(maxsize=1024)
def _is_installed(module: str | None) -> bool:
    """True for a module of the standard library, of an installed package or of tfwire."""
    if module is None:
        return False
    top = module.partition(".")[0]
    if top in ("tfwire", "builtins") or top in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return module in sys.builtin_module_names
    folders = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    return any(os.path.abspath(file).startswith(folder + os.sep) for folder in folders if folder)
