"""The messages of tf.train as protobuf classes, without TensorFlow.

    >>> from tfwire import train
    >>> feature = train.Feature(int64_list=train.Int64List(value=[True, 2]))
    >>> example = train.Example(features=train.Features(feature={"x": feature}))
    >>> print(train.Example.FromString(example.SerializeToString()).features.feature["x"], end="")
    int64_list {
      value: 1
      value: 2
    }

These are the classes of example.proto and feature.proto (package ``tensorflow``) with everything
that protobuf gives a message. In addition:

* The lists take more types than protobuf does. Int64List also takes bool, ``np.bool_`` and any
  integer (never a float); FloatList any real number; BytesList also str (as UTF-8), bytearray,
  memoryview and numpy arrays (their bytes, row-major).
* Constructors take TensorFlow's own messages as parts.
* ``SerializeToString()`` and ``str()`` sort features by key, as the tutorials show. protobuf's own
  order changes from run to run (``deterministic=False`` keeps it). Floats print in protobuf's form,
  the shortest digits that give the same float32 (``0.1``, ``1e+10``).
* Messages pickle, and an Example or SequenceExample has ``to_dict()``.

The classes are not TensorFlow's own: ``isinstance(tfwire_example, tf.train.Example)`` is False.
Their bytes are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from textwrap import indent
from typing import Any

from google.protobuf.message import Message
from google.protobuf.text_encoding import CEscape

from tfwire._base.aliases import BytesLike, SupportsSerialize, Value
from tfwire._examples.protobuf import byte_strings, floats, int64s, message_classes, parse_message

__all__ = [
    "BytesList",
    "Example",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FloatList",
    "Int64List",
    "SequenceExample",
    "to_dict",
]

_CLASSES = message_classes(
    "tensorflow",
    {
        "BytesList": ["repeated bytes value = 1"],
        "FloatList": ["repeated float value = 1"],
        "Int64List": ["repeated int64 value = 1"],
        "Feature": [
            "oneof kind: BytesList bytes_list = 1",
            "oneof kind: FloatList float_list = 2",
            "oneof kind: Int64List int64_list = 3",
        ],
        "Features": ["map<string, Feature> feature = 1"],
        "FeatureList": ["repeated Feature feature = 1"],
        "FeatureLists": ["map<string, FeatureList> feature_list = 1"],
        "Example": ["Features features = 1"],
        "SequenceExample": ["Features context = 1", "FeatureLists feature_lists = 2"],
    },
)

BytesList = _CLASSES["BytesList"]
FloatList = _CLASSES["FloatList"]
Int64List = _CLASSES["Int64List"]
Feature = _CLASSES["Feature"]
Features = _CLASSES["Features"]
FeatureList = _CLASSES["FeatureList"]
FeatureLists = _CLASSES["FeatureLists"]
Example = _CLASSES["Example"]
SequenceExample = _CLASSES["SequenceExample"]


# ---- What the classes add to protobuf's -------------------------------------------------------


def _coercing(native: Callable[..., None], coerce: Callable[[Any], Any]) -> Callable[..., None]:
    def __init__(self: Any, **fields: Any) -> None:
        # To protobuf, None is a field that is not given.
        native(self, **{name: v if v is None else coerce(v) for name, v in fields.items()})

    return __init__


def _finish(cls: Any, name: str) -> None:
    """Gives a class its constructor, its text and, for pickle, its module.

    protobuf forbids subclasses of messages, but no one else uses the classes of our pool.
    """
    coerce = {"BytesList": byte_strings, "FloatList": floats, "Int64List": int64s}
    maps = {"Features": "feature", "FeatureLists": "feature_list"}
    cls.__init__ = _coercing(cls.__init__, coerce.get(name, _adopted))
    if name in (*maps, "Example", "SequenceExample"):
        cls.SerializeToString = _sorting(cls.SerializeToString)
    if name in maps:
        cls.__str__ = cls.__repr__ = _map_text(cls.__str__, maps[name])
    elif name in ("Example", "SequenceExample"):
        cls.__str__ = cls.__repr__ = _parts_text
    cls.__module__ = __name__


def _sorting(native: Callable[..., bytes]) -> Callable[..., bytes]:
    def SerializeToString(self: Any, *, deterministic: bool = True) -> bytes:
        return native(self, deterministic=deterministic)

    return SerializeToString


def _adopted(value: Any) -> Any:
    """Converts messages of other descriptor pools (TensorFlow's), also inside dicts and lists."""
    if isinstance(value, Message):
        ours = _CLASSES.get(value.DESCRIPTOR.name)
        if ours is None or isinstance(value, ours):
            return value
        if value.DESCRIPTOR.full_name != ours.DESCRIPTOR.full_name:
            return value
        return ours.FromString(value.SerializeToString())
    if isinstance(value, Mapping) and any(isinstance(item, Message) for item in value.values()):
        return {key: _adopted(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_adopted(item) for item in value]
    return value


# ---- Text ---------------------------------------------------------------------------------------


def _map_text(native: Callable[[Any], str], name: str) -> Callable[[Any], str]:
    """A ``__str__`` for a message that is one map: entry by entry, sorted by key. Strings are left
    out of what protobuf writes, and escaped all at once: that is several times as fast."""

    def entry_text(self: Any, key: str) -> str:
        alone = type(self)(**{name: {key: getattr(self, name)[key]}})
        entry, strings = getattr(alone, name)[key], list[bytes]()
        for feature in getattr(entry, "feature", [entry]):
            if values := feature.bytes_list.value:
                strings += values
                values[:] = [b""] * len(values)
        first, *rest = native(alone).split('value: ""') if strings else [native(alone)]
        escaped = (CEscape(string, as_utf8=False) for string in strings)
        return first + "".join(
            f'value: "{text}"{after}' for text, after in zip(escaped, rest, strict=True)
        )

    def text(self: Any) -> str:
        return "".join(entry_text(self, key) for key in sorted(getattr(self, name)))

    return text


def _parts_text(self: Any) -> str:
    """A ``__str__`` for a message that consists of messages: each by its own ``str()``."""
    parts = ((field.name, str(value)) for field, value in self.ListFields())
    return "".join(f"{name} {{\n{indent(text, '  ')}}}\n" for name, text in parts)


for _name, _cls in _CLASSES.items():
    _finish(_cls, _name)


# ---- Plain Python -------------------------------------------------------------------------------


def to_dict(message: BytesLike | SupportsSerialize) -> dict[str, Value]:
    """The contents of a message as dicts and lists.

    Args:
        message: An Example or SequenceExample, ours or TensorFlow's, or a serialized Example.

    Returns:
        For an Example ``{key: values}`` with lists of int, float (the exact value of the float32)
        or bytes; a feature without a kind is ``[]``. For a SequenceExample
        ``{"context": {key: values}, "feature_lists": {key: [values of a step, ...]}}``.

    Raises:
        ParseError: The bytes are not an Example.
        TypeError: Another type of message or object.

    Example:
        >>> to_dict(b"\\n\\x0c\\n\\n\\n\\x01x\\x12\\x05\\x1a\\x03\\n\\x01\\x07")
        {'x': [7]}
    """
    if not isinstance(message, Message):
        message = parse_message(Example, message)
    name = message.DESCRIPTOR.full_name
    if name == "tensorflow.Example":
        return _values_by_key(message.features)
    if name == "tensorflow.SequenceExample":
        lists = message.feature_lists.feature_list
        return {
            "context": _values_by_key(message.context),
            "feature_lists": {
                key: [_values(step) for step in lists[key].feature] for key in sorted(lists)
            },
        }
    raise TypeError(f"expected an Example or a SequenceExample, found {name}")


Example.to_dict = SequenceExample.to_dict = to_dict


def _values_by_key(features: Any) -> dict[str, list[Any]]:
    return {key: _values(features.feature[key]) for key in sorted(features.feature)}


def _values(feature: Any) -> list[Any]:
    kind = feature.WhichOneof("kind")
    return list(getattr(feature, kind).value) if kind else []
