"""The native module is built so that an error in it is hard to use (csrc/ffi_build.py)."""

import os
import platform
import re
import shutil
import sys
from pathlib import Path

import pytest

from helpers.command import output_of
from tfwire import _native

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="reads ELF"),
    pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf is not installed"),
    pytest.mark.skipif(
        bool(os.environ.get("LD_PRELOAD")), reason="a module for debugging is not hardened"
    ),
]


def readelf(*options):
    return output_of("readelf", "--wide", *options, _native.__file__)


def test_no_table_is_writable_once_the_module_is_loaded():
    assert "GNU_RELRO" in readelf("--program-headers")
    assert re.search(r"BIND_NOW|FLAGS.*\bNOW\b", readelf("--dynamic"))


def test_no_memory_is_writable_and_executable():
    headers = readelf("--program-headers")
    assert re.search(r"GNU_STACK\s.*\bRW\s", headers)
    assert not re.search(r"\bRWE\b", headers)


def test_stack_frames_and_library_calls_are_checked():
    symbols = readelf("--dyn-syms")
    assert "__stack_chk_fail" in symbols
    assert re.search(r"__\w+_chk\b", symbols.replace("__stack_chk_fail", ""))


# What a function that can be jumped to begins with. The module's property note is not asked: it is
# missing where the C library's own start files do not have theirs.
LANDING = {"x86_64": b"\xf3\x0f\x1e\xfa", "aarch64": b"\x3f\x23\x03\xd5"}


@pytest.mark.skipif(platform.machine() not in LANDING, reason="neither CET nor BTI here")
def test_jumps_only_reach_their_targets():
    landings = Path(_native.__file__).read_bytes().count(LANDING[platform.machine()])
    assert landings > 50
