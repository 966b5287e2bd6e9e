"""Schemas in the files of others: TensorFlow Metadata's schema.pbtxt, TFDS's features.json.

Both say more than a parse specification does, and a specification can say what they cannot.
What has a clear counterpart is translated; anything else is an error that names the feature.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from google.protobuf import text_format

from tfwire._arguments import file_path
from tfwire._examples.schema_metadata import Metadata, from_metadata, to_metadata
from tfwire._examples.schema_tfds import from_tfds, to_tfds
from tfwire._records.file_sinks import write_file
from tfwire._text import printable, shorten, show_path
from tfwire.features import as_feature
from tfwire.inference import InferredSchema

__all__ = ["read_schema", "write_schema"]

_MOST = 1 << 26  # bytes of a schema file; an input without an end gives no more


def read_schema(path: str | os.PathLike[str]) -> InferredSchema:
    """Feature specifications from a schema file.

    Of a schema.pbtxt (tensorflow_metadata.proto.v0.Schema as text), a feature that is always
    present (``min_fraction: 1``) with a shape, or with a value count whose minimum and maximum
    are equal, is a FixedLenFeature; any other a VarLenFeature. Sparse features are
    SparseFeatures. Deprecated and planned features are left out. The features within one of the
    name ``##SEQUENCE##``, which TFX has for SequenceExamples, are ``sequence_features``: a
    FixedLenSequenceFeature where there is a shape, else a VarLenFeature.

    Of a features.json (TFDS 4.6 or later), nested names are joined by ``/``, as in the records.
    Integers and bool are int64, floats float32; text, images and encoded tensors are strings. A
    first dimension that is not known is a FixedLenSequenceFeature; Audio is one of samples, Video
    one of images. A Translation has a string per language. A VarLenFeature that ``write_schema``
    wrote is one again.

    Args:
        path: The file; JSON is told by its first character.

    Returns:
        A dict of specifications, for Parser; ``print`` shows it as code.

    Raises:
        ValueError: The file is neither or larger than 64 MiB, or a feature has no counterpart.

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
    text = _text_of(path)
    lists: dict[str, Any] = {}
    try:
        if text.lstrip().startswith("{"):
            features = from_tfds(json.loads(text))
        else:
            schema = text_format.Parse(text, Metadata(), allow_unknown_field=True)
            features, lists = from_metadata(schema)
    except (text_format.ParseError, ValueError, RecursionError) as error:
        raise ValueError(f"{show_path(path)}: {printable(shorten(str(error), 200))}") from None
    if not (features or lists):
        raise ValueError(f"{show_path(path)} describes no features")
    return InferredSchema(features, lists)


def _text_of(path: str) -> str:
    """The text of a schema file, which may be a pipe."""
    with open(path, "rb") as file:
        data = file.read(_MOST + 1)
    if len(data) > _MOST:
        raise ValueError(f"{show_path(path)}: expected at most {_MOST} bytes, found more")
    return data.decode()


def write_schema(features: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Writes feature specifications as a schema file, which appears when it is complete.

    Args:
        features: Specifications by key, of tfwire or TensorFlow; a InferredSchema.
        path: A name that ends in ``.json`` gives a TFDS features.json, any other a schema.pbtxt.

    Raises:
        TypeError: ``features`` is not a dict with keys of type str, or ``path`` is not a path.
        ValueError: There are no features, or a specification that the file cannot hold: a default
            value, a RaggedFeature, feature lists; a FixedLenSequenceFeature in a schema.pbtxt, a
            SparseFeature in a features.json.
        OSError: The file cannot be written; the old one stays.
    """
    path = file_path("path", path)
    if not isinstance(features, Mapping):
        raise TypeError(f"features must be a dict, found {type(features).__name__}")
    if getattr(features, "sequence_features", None):
        raise ValueError("feature lists have no place in a schema file")
    if not features:
        raise ValueError("features must not be empty")
    strange = [key for key in features if not isinstance(key, str)]
    if strange:
        raise TypeError(f"keys of features must be str, found {type(strange[0]).__name__}")
    known = {key: as_feature(key, feature) for key, feature in sorted(features.items())}
    if path.endswith(".json"):
        text = json.dumps(to_tfds(known), indent=4, sort_keys=True) + "\n"
    else:
        text = text_format.MessageToString(to_metadata(known))
    write_file(path, [text.encode()])
