"""What pyproject.toml cannot say: the cffi module, a wheel per platform, the page on PyPI."""

import re
import sysconfig
from pathlib import Path

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

# The address of the repository, as soon as it has one: https://HOST/OWNER/NAME. Links of the README
# and the URLs of the project lead there; until then the page on PyPI has the texts of its links.
ADDRESS = ""

# cffi compiles against the stable ABI except on free-threaded CPython, whose own, abi3t, it does
# not know yet.
free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))

NEEDS = f"""
tfwire is built from source where it has no wheel for {sysconfig.get_platform()} and this Python.
That needs a C compiler, gcc or clang (CC names another), and the headers of Python (Python.h).
Debian and Ubuntu: apt-get install gcc python3-dev. Fedora: dnf install gcc python3-devel.
Alpine: apk add gcc musl-dev python3-dev. macOS: xcode-select --install."""


class BuildExt(build_ext):
    """Says what is needed where something is missing, and keeps flags of gcc from MSVC."""

    def get_ext_filename(self, fullname):
        name = super().get_ext_filename(fullname)
        windows = sysconfig.get_platform().startswith("win")
        return name.replace(".abi3.so", ".pyd") if windows else name  # made on Linux, too

    def build_extensions(self):
        if self.compiler.compiler_type == "msvc":
            for extension in self.extensions:
                extension.extra_compile_args = ["/std:c11", "/experimental:c11atomics", "/O2"]
                extension.extra_link_args = []
        try:
            super().build_extensions()
        except CompileError as error:
            raise CompileError(f"{error}\n{NEEDS}") from None


def page(readme, address):
    """The README as PyPI shows it, where its relative links lead nowhere."""
    if address:
        readme = re.sub(r"!\[([^]]*)\]\((?!http)", rf"![\1]({address}/raw/HEAD/", readme)
        return re.sub(r"(?<!!)\[([^]]+)\]\((?!http)", rf"[\1]({address}/blob/HEAD/", readme)
    readme = re.sub(r"^!\[[^]]*\]\((?!http)[^)]*\)\n\n", "", readme, flags=re.MULTILINE)
    return re.sub(r"\[([^]]+)\]\((?!http)[^)]*\)", r"\1", readme)


if __name__ == "__main__":  # tests import the page
    setup(
        cffi_modules=["csrc/ffi_build.py:ffi"],
        cmdclass={"build_ext": BuildExt},
        options={} if free_threaded else {"bdist_wheel": {"py_limited_api": "cp310"}},
        long_description=page(Path("README.md").read_text(encoding="utf-8"), ADDRESS),
        long_description_content_type="text/markdown",
        project_urls={"Source": ADDRESS, "Changelog": f"{ADDRESS}/blob/HEAD/CHANGELOG.md"}
        if ADDRESS
        else {},
    )
