"""The figures of the plan in docs/remote.md, computed by what reads objects."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

import tfwire as tfw
from helpers.paths import DOCS
from helpers.remote.object_server import ObjectServer, file_of
from tfwire._records.index.index_files import Contents, write_index
from tfwire._records.remote import read_ahead

FILES, HOSTS, RECORDS, RECORD_BYTES = 10_000, 64, 1000, 150_000
DOLLARS_PER_REQUEST = 0.40 / 1e6
FILE_BYTES = RECORDS * (RECORD_BYTES + 16)


@pytest.fixture(scope="module")
def plan():
    text = (DOCS / "remote.md").read_text(encoding="utf-8")
    return text.split("## A plan")[1].split("\n## ")[0]


def test_what_each_host_reads(plan):
    files = [len(list(tfw.Dataset.range(FILES).shard(HOSTS, i))) for i in range(HOSTS)]
    shares = Counter(files)
    assert {156, 157} == set(shares)
    assert f"156 or 157: {shares[157]} hosts have one more" in plan
    assert FILES * RECORDS % HOSTS == 0
    assert f"| {FILES * RECORDS // HOSTS:,} |" in plan
    assert f"| {FILES * FILE_BYTES:,} |" in plan
    assert f"| {FILES * RECORDS:,} |" in plan


def test_requests_of_an_epoch(plan):
    ranges = read_ahead._Ranges(0, SimpleNamespace(size=FILE_BYTES)).count
    assert f"| {ranges + 2}: {ranges} ranges, and 2 for" in plan
    requests = FILES * (ranges + 2)
    assert f"| {requests:,}, or {requests * DOLLARS_PER_REQUEST:.2f} dollars |" in plan


def test_indexes(plan, tmp_path):
    lengths = np.full(RECORDS, RECORD_BYTES)
    version = f'{FILE_BYTES} bytes, ETag "{"0" * 32}-18"'
    write_index(str(tmp_path / "index"), Contents("", FILE_BYTES, 0, 0, lengths, version))
    size = (tmp_path / "index").stat().st_size
    assert f"| {size:,} bytes |" in plan
    assert f"| {FILES * size:,} bytes saved; {FILES * (RECORDS + 1) * 8:,} in memory |" in plan


def test_requests_to_open_the_files(plan, tmp_path):
    with ObjectServer() as server:
        server.add("/a", file_of([b"x"] * 10))
        tfw.RecordIndex.build(server.url("/a")).save(tmp_path / "index")
        server.add("/a.tfwindex", (tmp_path / "index").read_bytes())
        server.requests.clear()
        tfw.TFRecordFile(server.url("/a"))
        requests = FILES * sum(server.requests.values())
    assert f"on one host | {requests:,} |" in plan
    many = requests * HOSTS
    assert f"on 64 hosts | {many:,}, or {many * DOLLARS_PER_REQUEST:.2f} dollars |" in plan
