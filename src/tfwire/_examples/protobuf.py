"""Protobuf message classes made at run time, and the values that their fields take.

The classes live in a private descriptor pool. There is no generated code that would tie tfwire to a
version of protobuf, and TensorFlow may register messages of the same full names.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto
from google.protobuf.message import DecodeError

from tfwire._base.errors import ParseError
from tfwire._base.strings import as_message

_POOL = descriptor_pool.DescriptorPool()

# A field in the syntax of .proto files, e.g. "repeated int64 value = 1".
_FIELD_LINE = re.compile(
    r"(?:oneof (?P<oneof>\w+): )?(?P<repeated>repeated )?"
    r"(?:map<string, (?P<entry>\w+)>|(?P<type>[\w.]+)) (?P<name>\w+) = (?P<number>\d+)"
)


def message_classes(
    package: str,
    messages: Mapping[str, Iterable[str]],
    enums: Mapping[str, Mapping[str, int]] | None = None,
    syntax: str = "proto3",
) -> dict[str, Any]:
    """Makes message classes.

    Args:
        package: The package of all names. Calls for the same package must differ in names.
        messages: The fields of every message: ``"repeated int64 value = 1"``,
            ``"map<string, Feature> feature = 1"``, ``"oneof kind: BytesList bytes_list = 1"``.
            Types are scalar types, and names in ``messages`` and ``enums``.
        enums: The values of every enumeration by name.
        syntax: ``"proto2"`` or ``"proto3"``; decides packing and presence.

    Returns:
        The class of each message, by name.
    """
    enums = enums or {}
    file = descriptor_pb2.FileDescriptorProto(
        name=f"tfwire/{package}/{next(iter(messages))}.proto", package=package, syntax=syntax
    )
    for name, values in enums.items():
        enum = file.enum_type.add(name=name)
        for label, number in values.items():
            enum.value.add(name=label, number=number)
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for field in fields:
            _add_field(message, field, package, enums)
    _POOL.AddSerializedFile(file.SerializeToString())
    return {name: _message_class(f"{package}.{name}") for name in messages}


def _add_field(
    message: DescriptorProto, line: str, package: str, enums: Mapping[str, Mapping[str, int]]
) -> None:
    match = _FIELD_LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"not a field: {line!r}")
    parts = match.groupdict()
    field = message.field.add(name=parts["name"], number=int(parts["number"]))
    repeated = parts["repeated"] or parts["entry"]
    field.label = (
        FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
    )
    if parts["oneof"]:
        if parts["oneof"] not in [oneof.name for oneof in message.oneof_decl]:
            message.oneof_decl.add(name=parts["oneof"])
        field.oneof_index = len(message.oneof_decl) - 1
    kind = parts["type"]
    if parts["entry"]:  # a map is a repeated message of key and value on the wire
        kind = f"{message.name}.{parts['name'].title().replace('_', '')}Entry"
        entry = message.nested_type.add(name=kind.split(".")[1])
        entry.options.map_entry = True
        _add_field(entry, "string key = 1", package, enums)
        _add_field(entry, f"{parts['entry']} value = 2", package, enums)
    scalar = getattr(FieldDescriptorProto, f"TYPE_{kind.upper()}", None)
    if scalar is not None:
        field.type = scalar
    else:
        field.type = (
            FieldDescriptorProto.TYPE_ENUM if kind in enums else FieldDescriptorProto.TYPE_MESSAGE
        )
        field.type_name = f".{package}.{kind}"


def _message_class(full_name: str) -> Any:
    descriptor = _POOL.FindMessageTypeByName(full_name)
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    factory: Any = message_factory.MessageFactory(_POOL)  # protobuf 4.21
    return factory.GetPrototype(descriptor)


def parse_message(cls: Any, serialized: Any) -> Any:
    """Parses a message of class ``cls``.

    Args:
        cls: One of our message classes.
        serialized: A bytes-like object, or another message.

    Raises:
        ParseError: The bytes are not such a message.
        TypeError: ``serialized`` is not bytes-like.
    """
    data = as_message(serialized, f"a serialized {cls.DESCRIPTOR.name}")
    try:
        return cls.FromString(data)
    except DecodeError:
        raise ParseError(
            f"{len(data)} bytes that are not a valid {cls.DESCRIPTOR.name} message",
            reason="malformed",
        ) from None


# ---- Values of any type, as protobuf takes them ------------------------------------------------


def int64s(value: Any) -> list[int]:
    """Integers of any type as ints. protobuf checks their range.

    Raises:
        TypeError: An item that is not an integer.
    """
    return _converted(value, {int}, _int64)


def _int64(value: Any) -> int:
    if hasattr(value, "numpy"):
        value = value.numpy()
    if isinstance(value, np.bool_):  # it has no __index__
        return int(value)
    try:
        return int(operator.index(value))  # floats have no __index__
    except TypeError:
        raise TypeError(f"expected integers, found {_type_name(value)}") from None


def floats(value: Any) -> list[float]:
    """Real numbers of any type as floats, or ints.

    Raises:
        TypeError: An item that is not a real number.
    """
    return _converted(value, {float, int}, _float)


def _float(value: Any) -> float:
    # float() would parse text.
    if not isinstance(value, (str, bytes, bytearray, complex, np.complexfloating)):
        try:
            return float(value)
        except TypeError:
            pass
    raise TypeError(f"expected real numbers, found {_type_name(value)}")


def byte_strings(value: Any) -> list[bytes]:
    """Text (as UTF-8), buffers and arrays (their memory, row-major) as bytes.

    Raises:
        TypeError: A single string, or an item that is none of these.
    """
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"expected a list of byte strings, found {_type_name(value)}")
    return _converted(value, {bytes}, byte_string)


def byte_string(value: Any) -> bytes:
    """One item, as byte_strings takes them."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if hasattr(value, "numpy"):
        return byte_string(value.numpy())
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "OSU":
            return value.tobytes()
        if value.ndim == 0:
            return byte_string(value.item())
    raise TypeError(f"expected byte strings, found {_type_name(value)}")


def _converted(value: Any, exact: set[type], convert: Callable[[Any], Any]) -> list[Any]:
    """The items as a list; each is converted unless all are of the exact types."""
    if hasattr(value, "numpy"):
        value = value.numpy()
    if isinstance(value, np.ndarray):
        if value.ndim != 1:
            raise TypeError(f"expected values of rank 1, found an array of rank {value.ndim}")
        if value.dtype.kind not in "mM":  # the tolist() of timedeltas would pass for integers
            value = value.tolist()
    values = list(value)
    return values if exact.issuperset(map(type, values)) else [convert(item) for item in values]


def _type_name(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} and shape {list(value.shape)}"
    return type(value).__name__
