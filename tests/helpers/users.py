"""For tests that depend on who runs them, which are left out on Windows."""

import os

import pytest

_USER = os.geteuid() if hasattr(os, "geteuid") else None

only_root = pytest.mark.skipif(_USER != 0, reason="only root can give files away")
not_root = pytest.mark.skipif(not _USER, reason="this user may read and write everything")
