"""The types of tensors, with the bytes that TensorFlow writes."""

import numpy as np
import pytest

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

# [0, 1, 2] of each type, as tf.io.serialize_tensor of TensorFlow 2.21 writes it.
GOLDEN = [
    ("bool", "080a1204120208032203000101"),
    ("int8", "08061204120208032203000102"),
    ("uint8", "08041204120208032203000102"),
    ("int16", "08051204120208032206000001000200"),
    ("uint16", "08111204120208032206000001000200"),
    ("int32", "0803120412020803220c000000000100000002000000"),
    ("uint32", "0816120412020803220c000000000100000002000000"),
    ("int64", "08091204120208032218000000000000000001000000000000000200000000000000"),
    ("uint64", "08171204120208032218000000000000000001000000000000000200000000000000"),
    ("float16", "081312041202080322060000003c0040"),
    ("float32", "0801120412020803220c000000000000803f00000040"),
    ("float64", "080212041202080322180000000000000000000000000000f03f0000000000000040"),
    ("complex64", "0808120412020803221800000000000000000000803f000000000000004000000000"),
    (
        "complex128",
        "0812120412020803223000000000000000000000000000000000000000000000f03f"
        "000000000000000000000000000000400000000000000000",
    ),
    ("bfloat16", "080e12041202080322060000803f0040"),
]
EXTENDED = ["bfloat16", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz"]
EXTENDED += ["float8_e5m2fnuz"]
DTYPES = [name for name, _ in GOLDEN if name != "bfloat16"]


def dtype_named(name):
    if name not in EXTENDED:
        return np.dtype(name)
    if ml_dtypes is None:
        pytest.skip("needs ml_dtypes")
    return np.dtype(getattr(ml_dtypes, name))
