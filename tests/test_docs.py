"""The code of the documentation runs; tests/neighbours has what needs torch or grain."""

from pathlib import Path

import pytest

import tfwire as tfw
from documents import DOCS, run_page


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Where the pages write their files."""
    monkeypatch.chdir(tmp_path)


def test_readme():
    """Also the error that it shows, where one bit of its file's second record is flipped."""
    found = run_page("../README.md")
    assert [b"cat", b"dog", b"goat"] == found["batch"]["name"].tolist()
    assert {"legs", "name", "weight"} == tfw.decode_example(found["record"]).keys()
    content = bytearray(Path("pets.tfrecord").read_bytes())
    content[92] ^= 1
    Path("damaged.tfrecord").write_bytes(content)
    with pytest.raises(tfw.DataLossError) as raised:
        list(tfw.read_records("damaged.tfrecord"))
    page = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert f"\ntfwire.errors.DataLossError: {raised.value}\n" in page


def test_datasets():
    found = run_page("datasets.md")
    assert (256, 8) == found["first"]["x"].shape
    assert [256] * 10 + [184] == [len(batch["x"]) for batch in found["resumed"]]


def test_integrity():
    found = run_page("integrity.md")
    assert found["expected"] == found["epoch"] == tfw.Receipt.of(found["records"])
    assert found["found"].file_crc32c == tfw.crc32c(Path("train.tfrecord").read_bytes())


def test_damage():
    found = run_page("damage.md")
    assert (2, 2 * 19) == found["position"]
    assert found["records"].tail is None
