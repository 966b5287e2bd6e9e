"""The dtypes under the names that TensorFlow gives them."""

from __future__ import annotations

import numpy as np

int8, int16, int32 = (np.dtype(name) for name in ("int8", "int16", "int32"))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64))
float16, float64 = np.dtype("float16"), np.dtype("float64")
complex64, complex128 = np.dtype("complex64"), np.dtype("complex128")
bool = np.dtype("bool")  # the name TensorFlow gives it
half, double = float16, float64
