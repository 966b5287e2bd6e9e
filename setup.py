"""What pyproject.toml cannot say: the cffi module, and one abi3 wheel per platform."""

import sysconfig

from setuptools import setup

# cffi compiles against the stable ABI except on free-threaded CPython, whose own, abi3t, it does
# not know yet.
free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))

setup(
    cffi_modules=["csrc/ffi_build.py:ffi"],
    options={} if free_threaded else {"bdist_wheel": {"py_limited_api": "cp310"}},
)
