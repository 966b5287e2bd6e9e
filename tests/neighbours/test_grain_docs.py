"""The code for Grain of docs/datasets.md."""

from helpers.documents import run_page


def test_datasets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = run_page("datasets.md", "grain")
    assert [256, 256, 256] == [len(batch["x"]) for batch in found["pipeline"]][:3]
    assert (256, 8) == next(iter(found["stream"]))["x"].shape
