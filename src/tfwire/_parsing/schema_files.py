"""read_schema and write_schema: specifications in schema.pbtxt and features.json files.

The files and specifications can each say things that the other cannot. What has a clear counterpart
is translated; anything else is an error that names the feature.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tfwire._base.aliases import AnyFeature, AnyPath
from tfwire._base.arguments import check_type, file_path, integer, wrong_type
from tfwire._base.errors import parser_said
from tfwire._base.text import printable, shorten, show_path
from tfwire._parsing.features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    VarLenFeature,
    as_feature,
    float32,
    int64,
    no_counterpart,
    string,
    to_dtype,
)
from tfwire._parsing.infer import InferredSchema
from tfwire._parsing.schema_pbtxt import from_pbtxt, to_pbtxt
from tfwire._records.files.byte_sinks import replace_file

_MAX_SIZE = 1 << 26  # bytes of a schema file; bounds what is read of an endless device


def read_schema(path: AnyPath) -> InferredSchema:
    """Feature specifications from a schema file.

    schema.pbtxt (tensorflow_metadata.proto.v0.Schema as text): a feature that is always present
    (``min_fraction: 1``) and has a shape, or a value count with equal minimum and maximum, is a
    FixedLenFeature; any other is a VarLenFeature. Sparse features are SparseFeatures. Deprecated
    and planned features are left out. The features within ``##SEQUENCE##``, TFX's name for feature
    lists, are ``sequence_features``: a FixedLenSequenceFeature where there is a shape, else a
    VarLenFeature.

    features.json (TFDS 4.6 or later): nested names are joined by ``/``, as in the records. Integers
    and bool are int64, floats float32; text, images and encoded tensors are strings. An unknown
    first dimension gives a FixedLenSequenceFeature, as do Audio (samples) and Video (images). A
    Sequence in a Sequence is a RaggedFeature. An encoded tensor with several unknown dimensions is
    two features, ``name/shape`` and ``name/value``. A
    Translation has a string per language. A VarLenFeature written by ``write_schema`` is read back
    as one.

    Args:
        path: The file. JSON is recognized by its first character.

    Returns:
        A dict of specifications, for Parser; ``print`` shows it as code.

    Raises:
        ValueError: The file has another format or more than 64 MiB, or a feature has no
            counterpart.

    Example:
        >>> write_schema({"label": tfw.FixedLenFeature([], tfw.int64)}, "schema.pbtxt")
        >>> schema = read_schema("schema.pbtxt")
        >>> schema
        features = {
            "label": tfw.FixedLenFeature([], tfw.int64),
        }
        >>> tfw.Parser(schema).parse_single(tfw.encode_example({"label": 3}))
        {'label': np.int64(3)}
    """
    path = file_path("path", path)
    text = _read_text(path)
    lists: dict[str, Any] = {}
    try:
        if text.lstrip().startswith("{"):
            features = from_tfds(json.loads(text))
        else:
            features, lists = from_pbtxt(text)
    except (ValueError, RecursionError) as error:
        problem = printable(shorten(parser_said(error), 200))
        raise ValueError(f"{show_path(path)}: {problem}") from None
    if not (features or lists):
        raise ValueError(f"{show_path(path)} describes no features")
    return InferredSchema(features, lists)


def _read_text(path: str) -> str:
    """The text of a schema file, which may be a pipe."""
    with open(path, "rb") as file:
        data = file.read(_MAX_SIZE + 1)
    if len(data) > _MAX_SIZE:
        raise ValueError(f"{show_path(path)}: expected at most {_MAX_SIZE} bytes, found more")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{show_path(path)}: expected a schema as UTF-8 text") from None


def write_schema(features: Mapping[str, AnyFeature], path: AnyPath) -> None:
    """Writes feature specifications to a schema file, which appears only when complete.

    Args:
        features: Specifications by key, tfwire's or TensorFlow's, or an InferredSchema.
        path: A name ending in ``.json`` gives a TFDS features.json, any other a schema.pbtxt.

    Raises:
        TypeError: ``features`` is not a dict with keys of type str, or ``path`` is not a path.
        ValueError: There are no features, or a specification that the file cannot hold: a default
            value, a RaggedFeature, feature lists; a FixedLenSequenceFeature in a schema.pbtxt, a
            SparseFeature in a features.json.
        OSError: The file cannot be written; an old file stays as it was.
    """
    path = file_path("path", path)
    text = schema_as_text(features, as_json=path.endswith(".json"))
    replace_file(path, [text.encode()])


def schema_as_text(features: Mapping[str, AnyFeature], as_json: bool) -> str:
    """The content of a features.json or schema.pbtxt; raises as ``write_schema``."""
    check_type("features", features, Mapping, "a dict")
    if getattr(features, "sequence_features", None):
        raise ValueError("feature lists have no place in a schema file")
    if not features:
        raise ValueError("features must not be empty")
    strange = [key for key in features if not isinstance(key, str)]
    if strange:
        raise TypeError(f"keys of features must be str, found {type(strange[0]).__name__}")
    known = {key: _prepared(key, feature) for key, feature in sorted(features.items())}
    if as_json:
        return json.dumps(to_tfds(known), indent=4, sort_keys=True) + "\n"
    return to_pbtxt(known)


def _prepared(key: str, feature: Any) -> Any:
    """A feature as one of our classes, without a default value, with its sizes as a list of int."""
    feature = as_feature(key, feature)
    if getattr(feature, "default_value", None) is not None:
        raise no_counterpart(key, "a default value")
    for field in {"shape", "size"}.intersection(feature._fields):
        feature = feature._replace(**{field: _sizes(key, getattr(feature, field))})
    return feature


def _sizes(key: str, shape: Any) -> list[int]:
    """A shape as a list; an int means rank 1."""
    sizes = [shape] if hasattr(shape, "__index__") else shape
    if isinstance(sizes, (str, bytes)) or not hasattr(sizes, "__iter__"):
        raise wrong_type(f"shape of feature {key!r}", shape, "integers")
    return [integer(f"shape of feature {key!r}", size, 0) for size in sizes]


# ---- features.json, which TensorFlow Datasets (TFDS) writes ------------------------------------


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
        _flatten("", tree, features, in_sequence=False)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not a features.json of TFDS: {error!r}") from None
    return dict(sorted(features.items()))


def _flatten(key: str, node: Any, features: dict[str, Any], in_sequence: bool) -> None:
    """Adds the features of the node named key to features."""
    if "featuresDict" in node:
        for name, child in node["featuresDict"]["features"].items():
            _flatten(f"{key}/{name}" if key else name, child, features, in_sequence)
    elif "sequence" in node:
        steps: dict[str, Any] = {}
        _flatten(key, node["sequence"]["feature"], steps, in_sequence=True)
        length = int(node["sequence"].get("length", -1))
        features.update({name: _repeated(name, step, length) for name, step in steps.items()})
    elif "translation" in node:
        features.update(_translations(key, node["translation"]))
    elif _unknown_sizes(node) > 1 and _encoding(node) != "none":  # the bytes do not say the shape
        rank = len(_tfds_sizes(node.get("tensor") or node["audio"]))
        features[f"{key}/shape"] = FixedLenFeature([rank], int64)
        features[f"{key}/value"] = FixedLenFeature([], string)
    else:
        features[key] = _leaf(key, node)
        if in_sequence and "video" not in node and not isinstance(features[key], FixedLenFeature):
            raise no_counterpart(key, "an unknown dimension in a sequence")


def _translations(key: str, node: Mapping[str, Any]) -> dict[str, Any]:
    """One text per language, or lists of languages and texts side by side."""
    if node.get("variableLanguagesPerExample"):
        texts = FixedLenSequenceFeature([], string, allow_missing=True)
        return {f"{key}/language": texts, f"{key}/translation": texts}
    return {f"{key}/{language}": FixedLenFeature([], string) for language in node["languages"]}


def _repeated(key: str, step: Any, length: int) -> Any:
    if not isinstance(step, FixedLenFeature):
        if length >= 0:
            raise no_counterpart(key, "a sequence with a length, of sequences without one")
        return _ragged(key, step)
    shape: Any = step.shape
    if length >= 0:
        return FixedLenFeature([length, *shape], step.dtype)
    return FixedLenSequenceFeature(shape, step.dtype, allow_missing=True)


def _ragged(key: str, step: Any) -> RaggedFeature:
    """A sequence of sequences: TFDS stores all values, and the lengths of rows level by level."""
    if isinstance(step, RaggedFeature):
        rows = [part for part in step.partitions if isinstance(part, RaggedFeature.RowLengths)]
        inner = list(step.partitions[len(rows) :])
    else:
        rows, inner = [], [RaggedFeature.UniformRowLength(size) for size in step.shape]
    rows.append(RaggedFeature.RowLengths(f"{key}/ragged_row_lengths_{len(rows)}"))
    return RaggedFeature(step.dtype, f"{key}/ragged_flat_values", [*rows, *inner])


def _leaf(key: str, node: Mapping[str, Any]) -> Any:
    if "classLabel" in node:
        return FixedLenFeature([], int64)
    if "text" in node or "image" in node:
        return FixedLenFeature([], string)
    if "boundingBox" in node:
        return FixedLenFeature([4], float32)
    if "video" in node:  # a sequence of encoded images
        return _shaped(key, (_tfds_sizes(node["video"]) or [-1])[:1], string)
    if "audio" in node:
        return _audio(key, node)
    if "tensor" not in node:
        raise no_counterpart(key, str(node.get("pythonClassName", "a feature")).split(".")[-1])
    tensor = node["tensor"]
    if _encoding(node) != "none":
        return FixedLenFeature([], string)
    shape, dtype = _tfds_sizes(tensor), _tfds_dtype(key, tensor["dtype"])
    if shape == [-1] and node.get("description") == _VAR_LEN:
        return VarLenFeature(dtype)
    return _shaped(key, shape, dtype)


def _encoding(node: Mapping[str, Any]) -> str:
    """How a Tensor or Audio is stored; TFDS writes "none" for the one, "NONE" for the other."""
    content = node.get("tensor") or node.get("audio") or {}
    return str(content.get("encoding") or "none").lower()


def _unknown_sizes(node: Mapping[str, Any]) -> int:
    return _tfds_sizes(node.get("tensor") or node.get("audio") or {}).count(-1)


def _audio(key: str, node: Mapping[str, Any]) -> Any:
    """Samples; the bytes of the file where it stays encoded or the user decodes it."""
    audio = node["audio"]
    if audio.get("lazyDecode") or _encoding(node) != "none":
        return FixedLenFeature([], string)
    return _shaped(key, _tfds_sizes(audio) or [-1], _tfds_dtype(key, audio.get("dtype", "int64")))


def _tfds_sizes(node: Mapping[str, Any]) -> list[int]:
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
