"""A name of csrc/ means one thing. Static names too: a reader searches for them in all files.
And the core keeps its manners."""

import re
from collections import defaultdict

import pytest

from helpers.paths import CSRC
from helpers.products import check_each

pytestmark = pytest.mark.outside_c

C_SOURCES = sorted(CSRC.rglob("*.[ch]"))

# Macros, enumerators and static functions that several files define, with the reason.
NAMED_TWICE = {
    "each kernel of the checksum has its own, for the loops that include it": {
        *("KERNEL", "FEATURES", "TARGET", "VEC_SIZE", "BLOCK_FOLD", "BLOCK_ROWS"),
        *("STREAM_FACTORS", "STREAM_WORDS", "crc_bytes", "crc_word", "lane_of", "multiply_mod"),
        *("to_end",),
        *("vec_add", "vec_factors", "vec_fold", "vec_lane_sum", "vec_load", "vec_low"),
        *("vec_product", "vec_state", "vec_sum"),
    },
    "each matcher, for parse/match_template.h": {
        *("join_bits", "prefix_is", "read_number", "read_varint", "read_varints"),
        *("read_window", "widen", "window_ends"),
    },
    "each writer of numbers, for encode/numbers_template.h": {"put_template", "put_varint"},
    "what is asked of the headers of the system, before the first": {
        *("_POSIX_C_SOURCE", "_DARWIN_C_SOURCE"),
    },
    "each sink of wire/message.h": {
        *("value_bytes", "value_floats", "value_int64", "value_restart", "value_varints"),
    },
}


def code_of(path):
    """The text of a file without comments and with joined lines."""
    text = re.sub(r"/\*.*?\*/", " ", path.read_text(encoding="ascii"), flags=re.DOTALL)
    return text.replace("\\\n", " ")


def names_of(code):
    """The macros, enumerators and static functions that a file defines. `#define x OF_KERNEL(x)`
    only gives the x of each kernel a name of its own."""
    code = re.sub(r"^#define (\w+) OF_KERNEL\(\w+\)$", "", code, flags=re.MULTILINE)
    found = set(re.findall(r"^#define (\w+)", code, re.MULTILINE))
    for body in re.findall(r"\benum(?:\s+\w+)?\s*\{([^}]*)\}", code):
        found |= set(re.findall(r"(?:^|,)\s*(\w+)", body))
    function = r"^(?:\w+ )*(?:static|TFWI_INLINE)\b[^;{}=]*?\b(\w+)\([^;{}]*\)\s*\{"
    return found | set(re.findall(function, code, re.MULTILINE))


def homes_of_names():
    homes = defaultdict(set)
    for path in C_SOURCES:
        for name in names_of(code_of(path)):
            homes[name].add(path)
    return homes


def test_names_are_found():
    """The patterns know what they look for."""
    code = "#define ONE 1\nenum { TWO, THREE = 1 << 2 };\nTARGET TFWI_INLINE int four(int x) {\n"
    assert {"ONE", "TWO", "THREE", "four"} == names_of(code)
    assert len(homes_of_names()) > 1000


def test_macros_enumerators_and_static_functions_are_named_once():
    """Within a file, alternatives of a platform share a name."""
    twice = {name for name, homes in homes_of_names().items() if len(homes) > 1}
    assert sorted(twice) == sorted(name for names in NAMED_TWICE.values() for name in names)


def test_no_internal_name_looks_like_a_public_one():
    """TFWI_X beside a TFW_X of another meaning differs by one letter."""
    names = set(homes_of_names())
    assert set() == {f"TFWI_{name[4:]}" for name in names if name.startswith("TFW_")} & names


def test_flags_are_named_where_they_are_accepted():
    """In the function's own comment, or in the comment of its enum: others are refused."""
    for path in CSRC.glob("*.h"):
        text = path.read_text(encoding="ascii")
        enums = " ".join(re.findall(r"/\* (Flags of [^;{]*?)\*/\nenum", text))
        function = r"(/\*(?:(?!\*/).)*\*/\n)?TFW_API int (\w+)\(([^;]*)\);"
        for comment, name, parameters in re.findall(function, text, re.DOTALL):
            if "unsigned flags" in parameters:
                assert "lags" in comment or re.search(rf"\b{name}\b", enums), name


# Files that hold code for one instruction set say so in their name.
INSTRUCTION_SETS = r"(sse42|avx2|avx512|bmi2|armv8|neon)"
# What the core does not do, and the files that may.
MANNERS = {
    r"\b(printf|puts|abort|exit|getenv|assert|longjmp)\s*\(": "",
    r"\A((?!#ifdef TFW_PYTHON)[\s\S])*Python\.h": "",
    r"\b(malloc|calloc|realloc|free)\s*\(": r"base/memory\.c",
    r"tfwi_realloc\((?!NULL)": r"base/memory\.[ch]|records/window\.c",  # arrays: TFWI_RESERVE
    r"immintrin|nmmintrin|arm_neon|arm_acle|\b_mm\d*_": rf".*_{INSTRUCTION_SETS}\.[ch]",
    r"\b(open|read|pread|mmap|fstat|strerror_r)\s*\(": r"base/(system|threads)\.[ch]",
    r"_WIN32|<(unistd|fcntl|sys/stat|windows)\.h>": r"base/(cpu|system|threads)\.[ch]",
    # Tags are written by their fields, as TFWI_TAG(field, type) of wire/field.h.
    r"\b0x(0a|12|1a)\b": r"(base|crc32c|records|wire|arrow)/.*|tfwire.*",
}


def test_core_keeps_its_manners():
    """It never prints, aborts, reads the environment or knows of Python outside of the cffi module;
    memory only through the allocator of base/memory.c; intrinsics only in files named for their
    instruction set; what differs between systems only in base/cpu.c, system.c and threads.[ch]."""

    def check(path):
        name, code = path.relative_to(CSRC).as_posix(), code_of(path)
        for pattern, allowed in MANNERS.items():
            assert re.fullmatch(allowed, name) or not re.search(pattern, code), pattern

    check_each(check, C_SOURCES)
