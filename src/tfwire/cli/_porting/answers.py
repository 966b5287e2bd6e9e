"""What tfwire.compat says of the names of TensorFlow: what they stand for, what a call of them
gives, and what to use instead of those that are not there."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from tfwire import compat

# Names within namespaces that are not there, and those that are replaced alike.
_REPLACED_AS = {
    "distribute.cluster_resolver": "tpu",
    "keras.utils.get_file": "get_file",
    "random.set_seed": "set_random_seed",
}
NO_REPLACEMENT = "no replacement is known; docs/porting.md has what there is"


class Named(NamedTuple):
    """What a name of TensorFlow stands for; of the method of an object, its class is the owner."""

    path: str
    value: Any
    owner: type | None = None


class Made(NamedTuple):
    """An object of a class of tfwire.compat."""

    cls: type


TENSORFLOW = Named("tf", compat)


def module_of(parts: Iterable[str]) -> Named:
    """A module of TensorFlow, by the parts of its name after "tensorflow".

    Raises:
        AttributeError: There is none.
    """
    found = TENSORFLOW
    for part in parts:
        found = Named(f"{found.path}.{part}", getattr(found.value, part))
    return found


def attribute_of(base: Named | Made, name: str) -> Named | Made | None:
    """What an attribute is; None if that is not known.

    Raises:
        AttributeError: There is none.
    """
    if isinstance(base, Named):
        return Named(f"{base.path}.{name}", getattr(base.value, name))
    cls = base.cls
    try:
        value = getattr(cls, name)
    except AttributeError as error:
        if "tfwire.compat" not in str(error) or _may_have(cls, name):
            return None
        raise
    if isinstance(value, property):
        return result_of(value.fget, cls)
    return Named(f"{cls.__name__}.{name}", value, cls)


def _may_have(cls: type, name: str) -> bool:
    """Whether objects of a class, or of one derived from it, have an attribute of their own."""
    made = [getattr(vars(each).get("__init__"), "__code__", None) for each in cls.__mro__]
    sets = any(name in code.co_names for code in made if code is not None)
    derived: list[type] = cls.__subclasses__()
    return sets or any(name in vars(each) for each in derived)


def result_of_call(function: Named) -> Named | Made | None:
    """What a call gives."""
    value = function.value
    if not isinstance(value, type):
        return result_of(value, function.owner or getattr(value, "__self__", None))
    signature = _signature(value)
    if signature is not None and not signature.parameters:
        return Named(value.__name__, value())  # the options of a dataset, say
    return Made(value)


def result_of(function: Any, owner: Any) -> Made | None:
    """What a function returns, by its annotation, or that of the method that it overrides."""
    functions = [function]
    if isinstance(owner, type):
        name = getattr(function, "__name__", "")
        functions += [vars(cls)[name] for cls in owner.__mro__ if name in vars(cls)]
    for each in functions:
        found = _annotated(inspect.unwrap(getattr(each, "__func__", each)), owner)
        if found is not None:
            return found
    return None


def _annotated(function: Any, owner: Any) -> Made | None:
    annotation = getattr(function, "__annotations__", {}).get("return", "")
    name = re.sub(r"\W.*", "", str(annotation))
    if isinstance(owner, type) and name in {"P", "Self", *(cls.__name__ for cls in owner.__mro__)}:
        return Made(owner)
    found = getattr(function, "__globals__", {}).get(name)
    if isinstance(found, type) and found.__module__.startswith("tfwire."):
        return Made(found)
    return None


def _signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def refusal_of(function: Named, call: ast.Call) -> str:
    """Why a function does not take the arguments of a call, by their number and their names."""
    words = [each.arg for each in call.keywords]
    signature = _signature(function.value)
    spread = None in words or any(isinstance(each, ast.Starred) for each in call.args)
    if spread or signature is None:
        return ""
    earlier = getattr(function.value, "earlier_names", {})
    today = [str(earlier.get(word, word)) for word in words if earlier.get(word, word)]
    is_method = function.owner is not None and inspect.isfunction(function.value)
    try:
        signature.bind_partial(*[None] * (len(call.args) + is_method), **dict.fromkeys(today))
    except TypeError as error:
        return f"the call has {error}".replace("has got", "has")
    return ""


def fault_within(name: str, fault: str) -> str:
    """Why a name within a namespace that is not there does not run.

    Args:
        name: As the program has it.
        fault: Of the namespace.
    """
    path = re.sub(r"^tf\.(compat\.v[12]\.)?", "", name)
    last = path.rpartition(".")[2]
    if path == f"contrib.data.{last}" and hasattr(compat.data.experimental, last):
        return f"instead: tf.data.experimental.{last}"
    try:
        getattr(compat, _REPLACED_AS.get(path, "errors"))
    except AttributeError as error:
        return fault_of(error)
    return fault


def fault_of(error: AttributeError) -> str:
    _, found, instead = str(error).partition("; instead: ")
    return f"instead: {instead}" if found else NO_REPLACEMENT
