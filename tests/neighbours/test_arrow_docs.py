"""The code of docs/arrow.md."""

import tfwire as tfw
from helpers.documents import run_page


def test_arrow(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page("arrow.md", "polars")
    first, second = tfw.decode_examples(list(tfw.read_records("pets.tfrecord")))
    assert [b"a", b"b"] == first["tags"]
    assert {"id"} == second.keys()
