"""The code for Hugging Face of docs/huggingface.md."""

import pytest
from builders import use_folder

import tfwire as tfw
from helpers.documents import run_page


def test_datasets(tmp_path, monkeypatch):
    pytest.importorskip("PIL")
    monkeypatch.chdir(tmp_path)
    use_folder(monkeypatch, tmp_path)
    found = run_page("huggingface.md", "datasets", "huggingface")
    assert 1000 == len(found["rows"]) == sum(1 for _ in found["stream"])
    assert (32, 32) == found["picture"].size
    assert 1000 == sum(1 for _ in tfw.read_records("shuffled.tfrecord"))
    written, first = tfw.read_records("written.tfrecord"), tfw.read_records("images.tfrecord")
    assert list(first) == list(written)
