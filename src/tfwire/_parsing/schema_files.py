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
from tfwire._parsing.features import as_feature, no_counterpart
from tfwire._parsing.infer import InferredSchema
from tfwire._parsing.schema_pbtxt import from_pbtxt, to_pbtxt
from tfwire._parsing.schema_tfds import from_tfds, to_tfds
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

    features.json (TensorFlow Datasets): nested names are joined by ``/``, as in the records.
    Integers and bool are int64, floats float32; text, images and encoded tensors are strings. An
    unknown first dimension gives a FixedLenSequenceFeature, as do Audio (samples) and Video
    (images); an unknown later one, a FixedLenSequenceFeature of all values in a row. A Sequence in
    a Sequence is a RaggedFeature. An encoded tensor with several unknown dimensions is two
    features, ``name/shape`` and ``name/value``. A Translation has a string per language. A
    VarLenFeature written by ``write_schema`` is read back as one. :func:`tfwire.tfds.open` reads
    the whole folder, with the types and the nesting that the file declares.

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
        path: A name ending in ``.json`` gives a TFDS features.json, any other a schema.pbtxt, where
            the feature lists of an InferredSchema are within ``##SEQUENCE##``.

    Raises:
        TypeError: ``features`` is not a dict with keys of type str, or ``path`` is not a path.
        ValueError: There are no features, or a specification that the file cannot hold: a default
            value, a RaggedFeature; in a schema.pbtxt a FixedLenSequenceFeature that is no feature
            list, in a features.json a SparseFeature and feature lists.
        OSError: The file cannot be written; an old file stays as it was.
    """
    path = file_path("path", path)
    text = schema_as_text(features, as_json=path.endswith(".json"))
    replace_file(path, [text.encode()])


def schema_as_text(features: Mapping[str, AnyFeature], as_json: bool) -> str:
    """The content of a features.json or schema.pbtxt; raises as ``write_schema``."""
    check_type("features", features, Mapping, "a dict")
    lists = getattr(features, "sequence_features", None) or {}
    if lists and as_json:
        raise ValueError("feature lists have no place in a features.json; write a schema.pbtxt")
    if not (features or lists):
        raise ValueError("features must not be empty")
    strange = [key for key in [*features, *lists] if not isinstance(key, str)]
    if strange:
        raise TypeError(f"keys of features must be str, found {type(strange[0]).__name__}")
    known, steps = (
        {key: _prepared(key, feature) for key, feature in sorted(part.items())}
        for part in (features, lists)
    )
    if as_json:
        return json.dumps(to_tfds(known), indent=4, sort_keys=True) + "\n"
    return to_pbtxt(known, steps)


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
