"""A pytest plugin: the package on a system that has what Windows has.

`tfwire._base.system` is loaded again, with an `os` that lacks the functions of POSIX. Files
that are open can be neither removed nor renamed.
"""

from __future__ import annotations

import errno
import importlib
import os
import select
import sys
import types

from tfwire._base import system

MISSING = {
    *("pread", "preadv", "readv", "writev", "fchmod", "fchown", "geteuid", "sched_getaffinity"),
    *("register_at_fork", "setxattr", "getxattr", "O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY"),
}


class Os(types.ModuleType):
    """`os` without the names that are missing. All others are looked up there, at each use."""

    supports_follow_symlinks = frozenset()

    def __getattr__(self, name):
        if name in MISSING:
            raise AttributeError(name)
        return getattr(os, name)


def open_here():
    """The paths of the files that this process has open."""
    for fd in os.listdir("/proc/self/fd"):
        try:
            yield os.readlink(f"/proc/self/fd/{fd}")
        except FileNotFoundError:
            continue


def refusing(call):
    def refused(*paths, **options):
        real = {
            os.path.join(os.path.realpath(os.path.dirname(p)), os.path.basename(p)) for p in paths
        }
        if real & set(open_here()):
            raise PermissionError(errno.EACCES, "the file is open", os.fspath(paths[0]))
        return call(*paths, **options)

    return refused


def load():
    fakes = {"os": Os("os"), "select": types.ModuleType("select")}
    before = {name: sys.modules.get(name) for name in fakes}
    sys.modules.update(fakes)
    try:
        importlib.reload(system)
    finally:
        sys.modules.update(before)
    for name in ("replace", "rename", "unlink", "remove"):
        setattr(os, name, refusing(getattr(os, name)))


load()
assert not system.REMOVES_OPEN_FILES
assert select.poll
