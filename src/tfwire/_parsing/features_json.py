"""Specifications from and to features.json, which TensorFlow Datasets (TFDS) writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfwire._parsing.features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
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
    if "featuresDict" not in tree:
        raise ValueError("expected a features.json of TFDS 4.6 or later, found no featuresDict")
    features: dict[str, Any] = {}
    try:
        _flatten("", tree, features)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not a features.json of TFDS: {error!r}") from None
    return dict(sorted(features.items()))


def _flatten(key: str, node: Any, features: dict[str, Any]) -> None:
    """Adds the features of the node named key to features."""
    if "featuresDict" in node:
        for name, child in node["featuresDict"]["features"].items():
            _flatten(f"{key}/{name}" if key else name, child, features)
    elif "sequence" in node:
        steps: dict[str, Any] = {}
        _flatten(key, node["sequence"]["feature"], steps)
        length = int(node["sequence"].get("length", -1))
        features.update({name: _repeated(name, step, length) for name, step in steps.items()})
    elif "translation" in node:
        features.update(_translations(key, node["translation"]))
    else:
        features[key] = _leaf(key, node)


def _translations(key: str, node: Mapping[str, Any]) -> dict[str, Any]:
    """One text per language, or lists of languages and texts side by side."""
    if node.get("variableLanguagesPerExample"):
        texts = FixedLenSequenceFeature([], string, allow_missing=True)
        return {f"{key}/language": texts, f"{key}/translation": texts}
    return {f"{key}/{language}": FixedLenFeature([], string) for language in node["languages"]}


def _repeated(key: str, step: Any, length: int) -> Any:
    if not isinstance(step, FixedLenFeature):
        raise no_counterpart(key, "a sequence of sequences")
    shape: Any = step.shape
    if length >= 0:
        return FixedLenFeature([length, *shape], step.dtype)
    return FixedLenSequenceFeature(shape, step.dtype, allow_missing=True)


def _leaf(key: str, node: Mapping[str, Any]) -> Any:
    if "classLabel" in node:
        return FixedLenFeature([], int64)
    if "text" in node or "image" in node:
        return FixedLenFeature([], string)
    if "boundingBox" in node:
        return FixedLenFeature([4], float32)
    if "video" in node:  # a sequence of encoded images
        return _shaped(key, (_sizes(node["video"]) or [-1])[:1], string)
    if "audio" in node:
        return _audio(key, node["audio"])
    if "tensor" not in node:
        raise no_counterpart(key, str(node.get("pythonClassName", "a feature")).split(".")[-1])
    tensor = node["tensor"]
    if tensor.get("encoding", "none") != "none":
        return FixedLenFeature([], string)
    shape, dtype = _sizes(tensor), _tfds_dtype(key, tensor["dtype"])
    if shape == [-1] and node.get("description") == _VAR_LEN:
        return VarLenFeature(dtype)
    return _shaped(key, shape, dtype)


def _audio(key: str, audio: Mapping[str, Any]) -> Any:
    """Samples; the bytes of the file where it stays encoded or the user decodes it."""
    if audio.get("lazyDecode") or audio.get("encoding", "none") != "none":
        return FixedLenFeature([], string)
    return _shaped(key, _sizes(audio) or [-1], _tfds_dtype(key, audio.get("dtype", "int64")))


def _sizes(node: Mapping[str, Any]) -> list[int]:
    return [int(size) for size in node.get("shape", {}).get("dimensions", [])]


def _shaped(key: str, shape: list[int], dtype: Any) -> Any:
    if -1 in shape[1:]:
        raise no_counterpart(key, "an unknown dimension that is not the first")
    if shape[:1] == [-1]:
        return FixedLenSequenceFeature(shape[1:], dtype, allow_missing=True)
    return FixedLenFeature(shape, dtype)


def _tfds_dtype(key: str, name: str) -> Any:
    """The type in which TFDS stores values of the named type."""
    if name.startswith(("int", "uint", "bool")):
        return int64
    if name.startswith(("float", "bfloat")):
        return float32
    if name in ("string", "object"):
        return string
    raise no_counterpart(key, f"the type {name}")


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
