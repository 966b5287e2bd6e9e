"""Protobuf message classes made at run time, in a descriptor pool of our own.

No generated code ties tfwire to a protobuf version, and since the process-wide default pool is
not touched, TensorFlow may register messages of the same full names before or after.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto
from google.protobuf.message import DecodeError, Message

from tfwire._spans import bytes_of
from tfwire.errors import ParseError

__all__ = ["as_bytes", "message_classes", "parse_message"]

_POOL = descriptor_pool.DescriptorPool()

# A field as .proto files write it, e.g. "repeated int64 value = 1".
_FIELD = re.compile(
    r"(?:oneof (?P<oneof>\w+): )?(?P<repeated>repeated )?"
    r"(?:map<string, (?P<entry>\w+)>|(?P<type>[\w.]+)) (?P<name>\w+) = (?P<number>\d+)"
)


def message_classes(
    package: str,
    messages: Mapping[str, Iterable[str]],
    enums: Mapping[str, Mapping[str, int]] | None = None,
    syntax: str = "proto3",
) -> dict[str, Any]:
    """Message classes, declared in the words of the protobuf language.

    Args:
        package: The package of all names; two calls may use the same one, with other names.
        messages: For every message its fields: ``"repeated int64 value = 1"``,
            ``"map<string, Feature> feature = 1"``, ``"oneof kind: BytesList bytes_list = 1"``.
            Types are scalar types, or names among ``messages`` and ``enums``.
        enums: For every enumeration its values by name.
        syntax: ``"proto2"`` or ``"proto3"``, which decides on packing and presence.

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
    return {name: _class_of(f"{package}.{name}") for name in messages}


def _add_field(
    message: DescriptorProto, line: str, package: str, enums: Mapping[str, Mapping[str, int]]
) -> None:
    match = _FIELD.fullmatch(line)
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


def _class_of(full_name: str) -> Any:
    descriptor = _POOL.FindMessageTypeByName(full_name)
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    factory: Any = message_factory.MessageFactory(_POOL)  # protobuf 4.21
    return factory.GetPrototype(descriptor)


def as_bytes(message: Any) -> Any:
    """The wire form of a message, ours or TensorFlow's; anything else comes back as it is."""
    return message.SerializeToString() if isinstance(message, Message) else message


def parse_message(cls: Any, serialized: Any) -> Any:
    """A message from its wire form.

    Raises:
        ParseError: The bytes are no such message.
        TypeError: ``serialized`` is no bytes-like object.
    """
    data = bytes_of(as_bytes(serialized), f"a serialized {cls.DESCRIPTOR.name}")
    try:
        return cls.FromString(bytes(data))
    except DecodeError:
        raise ParseError(
            f"{len(data)} bytes that are no valid {cls.DESCRIPTOR.name} message",
            reason="malformed",
        ) from None
