"""Builds tfwire._native: the marked regions of the headers are the cdef, csrc/*/*.c the source."""

import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from cffi import FFI

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SYSTEM = sysconfig.get_platform()  # what is built for
HEADERS = ["tfwire.h", "tfwire_pipeline.h", "tfwire_arrow.h", "tfwire_python.h"]


def cdef() -> str:
    """The declarations between the CDEF marks of the headers, without the export mark."""
    texts = [(HERE / name).read_text(encoding="ascii") for name in HEADERS]
    parts = [text.split("/* CDEF-BEGIN */")[1].split("/* CDEF-END */")[0] for text in texts]
    return "".join(parts).replace("TFW_API ", "")


# What frees the struct of an Arrow capsule, with what it holds unless a consumer has moved that
# out. Python calls it, in C: capsules are also dropped while the interpreter ends.
CAPSULES = """
#include "tfwire_arrow.h"

static void tfw_free_schema_capsule(PyObject *capsule) {
    tfw_arrow_schema_free(PyCapsule_GetPointer(capsule, "arrow_schema"));
}

static void tfw_free_array_capsule(PyObject *capsule) {
    tfw_arrow_array_free(PyCapsule_GetPointer(capsule, "arrow_array"));
}

static void tfw_free_stream_capsule(PyObject *capsule) {
    tfw_arrow_stream_free(PyCapsule_GetPointer(capsule, "arrow_array_stream"));
}

/* As PyCapsule_New takes them. */
static const uintptr_t tfw_capsule_destructors[] = {
    (uintptr_t)tfw_free_schema_capsule,
    (uintptr_t)tfw_free_array_capsule,
    (uintptr_t)tfw_free_stream_capsule,
};

/* They outlive every capsule. */
static const char *const tfw_capsule_names[] = {
    "arrow_schema", "arrow_array", "arrow_array_stream",
};
"""
CAPSULES_CDEF = """
static const uintptr_t tfw_capsule_destructors[3];
static const char *const tfw_capsule_names[3];
"""


# What makes an error in the core harder to use: checked stack frames and library calls, jumps to
# their targets only (CET, BTI). Compilers that do not have one of them go without.
HARDENING = [
    "-fstack-protector-strong",
    "-fstack-clash-protection",
    "-fcf-protection=full",
    "-mbranch-protection=standard",
]
FORTIFY = ["-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"]

# No symbol is bound, and no table of them written, once the module is loaded.
LINUX_LINKING = ["-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,noexecstack"]


def has_flag(flag: str) -> bool:
    """Whether the compiler knows a flag for the machine that it compiles for."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "")
    with tempfile.TemporaryDirectory() as folder:
        command = [*compiler, flag, "-Werror", "-c", "-x", "c", os.devnull, "-o", f"{folder}/o"]
        try:
            return bool(compiler) and subprocess.run(command, capture_output=True).returncode == 0
        except OSError:
            return False


def hardening() -> tuple[list[str], list[str]]:
    """Compiler and linker flags of a module that is not for debugging."""
    compile_args = [flag for flag in HARDENING if has_flag(flag)] + FORTIFY
    return compile_args, LINUX_LINKING if SYSTEM.startswith("linux") else []


def flags() -> tuple[list[str], list[str]]:
    """Compiler and linker flags. TFWIRE_SANITIZE names sanitizers ("address,undefined", "thread")
    and builds with faults, TFWIRE_COVERAGE=1 with gcov, TFWIRE_DEBUG=1 without optimisation."""
    # -g0: Python's own flags ask for debug information, which is four times the code.
    compile_args = ["-std=c11", "-O3", "-g0", "-fvisibility=hidden", "-Wall", "-Wextra"]
    link_args: list[str] = []
    if os.environ.get("TFWIRE_DEBUG"):
        compile_args += ["-O0", "-g"]
    if sanitizers := os.environ.get("TFWIRE_SANITIZE"):
        sanitize = [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"]
        compile_args += ["-g", "-O1", "-fno-omit-frame-pointer", "-DTFW_TEST_FAULTS"]
        compile_args += sanitize
        link_args += sanitize
    if os.environ.get("TFWIRE_COVERAGE"):
        compile_args += ["-O0", "--coverage"]
        link_args += ["--coverage"]
    if not link_args and "-O0" not in compile_args:
        for args, more in zip((compile_args, link_args), hardening(), strict=True):
            args += more
    if not SYSTEM.startswith("win"):  # before glibc 2.34 threads were a library of their own
        compile_args += ["-pthread"]
        link_args += ["-pthread"]
    return compile_args, link_args


# The limited API, as cffi chooses it, but of the oldest CPython that pyproject.toml allows.
# Free-threaded CPython has none (setup.py), nor has one with Python's own checks.
LIMITED = not sysconfig.get_config_var("Py_GIL_DISABLED") and not hasattr(sys, "gettotalrefcount")
PYTHON = [("TFW_PYTHON", "1"), *[("Py_LIMITED_API", "0x030A0000")] * LIMITED]

compile_args, link_args = flags()
ffi = FFI()
ffi.cdef(cdef() + CAPSULES_CDEF)
ffi.set_source(
    "tfwire._native",
    '#include "tfwire_pipeline.h"\n#include "tfwire_python.h"\n' + CAPSULES,
    # setuptools wants paths relative to the project; sorted, so that builds repeat.
    sources=sorted(os.path.relpath(path, ROOT) for path in HERE.glob("*/*.c")),
    define_macros=[("TFW_API", ""), *PYTHON],  # the module exports its init function only
    include_dirs=[os.path.relpath(HERE, ROOT)],
    depends=sorted(os.path.relpath(path, ROOT) for path in HERE.rglob("*.h")),
    extra_compile_args=compile_args,
    extra_link_args=link_args,
)
