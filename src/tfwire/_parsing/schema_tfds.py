"""features.json, in which TensorFlow Datasets (TFDS) describes what it prepared.

A node is a feature connector of TFDS. What its serializer makes of one is known here alone:
``tfwire.tfds`` reads by these specifications, and makes values of the declared types of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfwire._parsing.features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    VarLenFeature,
    float32,
    int64,
    no_counterpart,
    string,
    to_dtype,
)

_CONNECTORS = "tensorflow_datasets.core.features."
# TFDS has no such feature. A Tensor with this description is one, and not a
# FixedLenSequenceFeature, which has the same shape in the file.
_VAR_LEN = "VarLenFeature"


def from_tfds(tree: Any) -> dict[str, Any]:
    """Specifications by key; names of nested features are joined by "/".

    Raises:
        ValueError: Not a features.json of TFDS, or a feature has no counterpart.
    """
    tree = modern(tree)
    if "featuresDict" not in tree:
        raise ValueError("expected a features.json of TFDS, found no featuresDict")
    features: dict[str, Any] = {}
    try:
        _flatten("", tree, features, ())
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not a features.json of TFDS: {error!r}") from None
    return dict(sorted(features.items()))


# ---- TFDS 4.5 and earlier -----------------------------------------------------------------------

_CONTENTS = {
    "FeaturesDict": "featuresDict",
    "Sequence": "sequence",
    "Dataset": "sequence",
    "Tensor": "tensor",
    "Scalar": "tensor",
    "Text": "text",
    "ClassLabel": "classLabel",
    "Image": "image",
    "LabeledImage": "image",
    "Video": "video",
    "Audio": "audio",
    "BBoxFeature": "boundingBox",
    "Translation": "translation",
    "TranslationVariableLanguages": "translation",
}


def modern(node: Any) -> Any:
    """A node of TFDS 4.5 or earlier, ``{"type": ..., "content": ...}``, as later ones write it."""
    if not isinstance(node, dict) or not {"type", "content"} <= set(node):
        return node
    name = str(node["type"]).split(".")[-1]
    content = node["content"] or {}
    if name not in _CONTENTS:
        return {"pythonClassName": str(node["type"])}
    if name == "FeaturesDict":
        content = {"features": {key: modern(child) for key, child in content.items()}}
    elif "feature" in content:
        length = content.get("length")
        content = {
            "feature": modern(content["feature"]),
            "length": -1 if length is None else length,
        }
    else:
        content = {_camel_case(key): _modern_value(key, value) for key, value in content.items()}
        if name == "TranslationVariableLanguages":
            content["variableLanguagesPerExample"] = True
    return {"pythonClassName": str(node["type"]), _CONTENTS[name]: content}


def _camel_case(key: str) -> str:
    first, *others = key.split("_")
    return first + "".join(map(str.capitalize, others))


def _modern_value(key: str, value: Any) -> Any:
    if key != "shape":
        return value
    return {"dimensions": [-1 if size is None else size for size in value or ()]}


# ---- Specifications -----------------------------------------------------------------------------


def _flatten(
    key: str, node: Mapping[str, Any], features: dict[str, Any], lengths: tuple[int, ...]
) -> None:
    """Adds the features of the node named key to features.

    Args:
        lengths: Of the sequences that the node is in, outermost first; -1: unknown.
    """
    if "featuresDict" in node:
        for name, child in node["featuresDict"]["features"].items():
            _flatten(f"{key}/{name}" if key else name, child, features, lengths)
    elif "sequence" in node:
        length = int(node["sequence"].get("length", -1))
        _flatten(key, node["sequence"]["feature"], features, (*lengths, length))
    elif "translation" in node:
        more = (-1,) if node["translation"].get("variableLanguagesPerExample") else ()
        for name in parts_of_translation(node["translation"]):
            features[f"{key}/{name}"] = _stored(f"{key}/{name}", (*lengths, *more), [], string)
    elif "video" in node:  # a sequence of encoded images
        length = (sizes_of(node["video"]) or [-1])[0]
        features[key] = _stored(key, (*lengths, length), [], string)
    elif is_dynamic(node):  # the bytes do not say the shape
        rank = len(sizes_of(tensor_content(node)))
        features[f"{key}/shape"] = _stored(f"{key}/shape", lengths, [rank], int64)
        features[f"{key}/value"] = _stored(f"{key}/value", lengths, [], string)
    else:
        features[key] = _leaf(key, node, lengths)


def parts_of_translation(node: Mapping[str, Any]) -> list[str]:
    """One text per language, or lists of languages and texts side by side."""
    if node.get("variableLanguagesPerExample"):
        return ["language", "translation"]
    return list(node["languages"])


def _leaf(key: str, node: Mapping[str, Any], lengths: tuple[int, ...]) -> Any:
    if "classLabel" in node:
        return _stored(key, lengths, [], int64)
    if "text" in node or "image" in node:
        if node.get("text") and node["text"].get("useEncoder"):
            raise no_counterpart(key, "a Text with an encoder")
        return _stored(key, lengths, [], string)
    if "boundingBox" in node:
        return _stored(key, lengths, [4], float32)
    if not {"audio", "tensor"} & set(node):
        raise no_counterpart(key, str(node.get("pythonClassName", "a feature")).split(".")[-1])
    content = tensor_content(node)
    name = content.get("dtype", "int64" if "audio" in node else None)
    default = _default(key, content, name) if content.get("optional") else None
    if is_encoded(node):
        return _stored(key, lengths, [], string, default if default is None else b"")
    dtype = _stored_dtype(key, name)
    shape = sizes_of(content) or ([-1] if "audio" in node else [])
    if shape == [-1] and not lengths and node.get("description") == _VAR_LEN:
        return VarLenFeature(dtype)
    return _stored(key, lengths, shape, dtype, default)


def _stored(
    key: str, lengths: tuple[int, ...], shape: list[int], dtype: Any, default: Any = None
) -> Any:
    """How TFDS stores values of a shape in sequences of these lengths."""
    if len(lengths) > 1:
        return _ragged(key, len(lengths), shape, dtype)
    sizes = [*lengths, *shape]
    unknown = sizes.count(-1)
    if unknown == 0:
        return FixedLenFeature(sizes, dtype, default)
    if unknown > 1:
        reason = "an unknown dimension in a sequence" if lengths else "several unknown dimensions"
        raise no_counterpart(key, f"{reason} without an encoding")
    # Where a later dimension is unknown: all values in a row.
    inner = sizes[1:] if sizes[0] == -1 else []
    return FixedLenSequenceFeature(inner, dtype, allow_missing=True)


def _ragged(key: str, rank: int, shape: list[int], dtype: Any) -> RaggedFeature:
    """A sequence of sequences: TFDS stores all values, and the lengths of rows level by level."""
    if -1 in shape:
        raise no_counterpart(key, "an unknown dimension in a sequence without an encoding")
    rows = [RaggedFeature.RowLengths(f"{key}/ragged_row_lengths_{n}") for n in range(rank - 1)]
    inner = [RaggedFeature.UniformRowLength(size) for size in shape]
    return RaggedFeature(dtype, f"{key}/ragged_flat_values", [*rows, *inner])


def tensor_content(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a Tensor or Audio says of itself."""
    content: Mapping[str, Any] = node.get("tensor") or node.get("audio") or {}
    return content


def encoding_of(node: Mapping[str, Any]) -> str:
    """How a Tensor or Audio is stored; TFDS writes "none" for the one, "NONE" for the other."""
    return str(tensor_content(node).get("encoding") or "none").lower()


def is_encoded(node: Mapping[str, Any]) -> bool:
    """Whether a value is stored as bytes. An Audio may stay the file that it was."""
    return encoding_of(node) != "none" or bool(tensor_content(node).get("lazyDecode"))


def is_dynamic(node: Mapping[str, Any]) -> bool:
    """Whether a Tensor or Audio has its shape beside it."""
    return sizes_of(tensor_content(node)).count(-1) > 1 and encoding_of(node) != "none"


def sizes_of(content: Mapping[str, Any]) -> list[int]:
    """The shape of a feature; -1: unknown."""
    return [int(size) for size in content.get("shape", {}).get("dimensions", [])]


def _stored_dtype(key: str, name: str) -> Any:
    """The type in which TFDS stores values of the named type."""
    if name.startswith(("int", "uint", "bool")):
        return int64
    if name.startswith(("float", "bfloat")):
        return float32
    if name in ("string", "object"):
        return string
    raise no_counterpart(key, f"the type {name}")


def _default(key: str, content: Mapping[str, Any], name: str) -> Any:
    """What TFDS gives for an optional value that is not there: the least of its type."""
    shape = sizes_of(content)
    if -1 in shape:
        raise no_counterpart(key, "an optional value with an unknown dimension")
    dtype = _stored_dtype(key, name)
    least: Any = b"" if dtype is string else 0
    if dtype is float32:
        least = np.finfo(np.float32).min
        if name == "float16":
            least = np.finfo(np.float16).min
    elif name.startswith("int"):
        least = np.iinfo(name).min
    return np.full(shape, least, object).tolist() if shape else least


# ---- Writing ------------------------------------------------------------------------------------


def to_tfds(features: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON tree of prepared features, a FeaturesDict of Tensors.

    Raises:
        ValueError: A specification has no counterpart.
    """
    return {
        "pythonClassName": f"{_CONNECTORS}features_dict.FeaturesDict",
        "featuresDict": {
            "features": {key: _connector(key, feature) for key, feature in features.items()}
        },
    }


def _connector(key: str, feature: Any) -> dict[str, Any]:
    if isinstance(feature, VarLenFeature):
        shape: Any = [-1]
    elif isinstance(feature, (FixedLenFeature, FixedLenSequenceFeature)):
        unknown: Any = [] if isinstance(feature, FixedLenFeature) else [-1]
        shape = unknown + feature.shape
    else:
        raise no_counterpart(key, type(feature).__name__)
    described = {"description": _VAR_LEN} if isinstance(feature, VarLenFeature) else {}
    return {
        **described,
        "pythonClassName": f"{_CONNECTORS}tensor_feature.Tensor",
        "tensor": {
            "dtype": to_dtype(feature.dtype).name,
            "encoding": "none",
            "shape": {"dimensions": [str(size) for size in shape]} if shape else {},
        },
    }
