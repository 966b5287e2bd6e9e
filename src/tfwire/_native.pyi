# The cffi module is untyped; _base/native.py is its only importer, so that untyped code ends there.
from typing import Any

ffi: Any
lib: Any
