"""Files of RECORDS."""

from __future__ import annotations

import pytest

from helpers.records.indexed import RECORDS, write


@pytest.fixture(params=["", "GZIP", "ZLIB"])
def file(request, path):
    return write(path, RECORDS, request.param)


@pytest.fixture
def plain(path):
    return write(path, RECORDS)
