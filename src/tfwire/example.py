"""tf.train.Example and SequenceExample messages from Python values, and back."""

from tfwire._examples.decode import decode_example, decode_examples, decode_sequence_example
from tfwire._examples.encode import (
    FramedRows,
    encode_columns,
    encode_example,
    encode_examples,
    encode_framed,
    encode_sequence_example,
)
from tfwire._examples.feature_helpers import bytes_feature, float_feature, int64_feature

__all__ = [
    "FramedRows",
    "bytes_feature",
    "decode_example",
    "decode_examples",
    "decode_sequence_example",
    "encode_columns",
    "encode_example",
    "encode_examples",
    "encode_framed",
    "encode_sequence_example",
    "float_feature",
    "int64_feature",
]
