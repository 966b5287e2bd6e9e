"""The code for torch of docs/datasets.md."""

from helpers.documents import run_page


def test_datasets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = run_page("datasets.md", "torch")
    assert 1000 == sum(len(batch["x"]) for batch in found["loader"])
