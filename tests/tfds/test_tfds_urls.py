"""Folders of TFDS at URLs: in a store that lists files, and of a web server, which does not."""

import pickle

import fsspec
import pytest

import tfwire.tfds
from helpers.prepared import pets
from helpers.remote.object_server import ObjectServer

pytestmark = pytest.mark.outside_c
pytest.importorskip("PIL")


@pytest.fixture(params=["memory", "objects"])
def url(request, tmp_path):
    """A prepared folder; of the server, one that nothing is known of but its URL."""
    files = {path.name: path.read_bytes() for path in pets(tmp_path / "pets" / "1.0.0").iterdir()}
    if request.param == "memory":
        fs = fsspec.filesystem("memory")
        for name, data in files.items():
            fs.pipe_file(f"/pets/1.0.0/{name}", data)
        yield "memory://pets/1.0.0"
        fs.store.clear()
        return
    with ObjectServer() as server:
        for name, data in files.items():
            server.add(f"/pets/1.0.0/{name}", data)
        yield server.url("/pets/1.0.0")


def test_a_folder_at_a_url_is_read(url):
    for folder in (url, f"{url}/"):
        data = tfwire.tfds.open(folder)
        assert ("cat", "dog") == data.info.classes["label"].names
        split = data["train[1:]"]
        assert [b"pet 1", b"pet 2", b"pet 3"] == [example["name"] for example in split]
        assert [0, 0, 1] == split.columns()["label"].tolist()
        assert b"pet 1" == pickle.loads(pickle.dumps(split))[0]["name"]
        assert (2, 3, 3) == next(iter(split.dataset()))["image"].shape


def test_a_store_finds_the_only_version():
    fs = fsspec.filesystem("memory")
    fs.pipe_file("/pets/1.0.0/dataset_info.json", b'{"splits": []}')
    fs.pipe_file(
        "/pets/1.0.0/features.json", b'{"featuresDict": {"features": {"a": {"text": {}}}}}'
    )
    assert {} == tfwire.tfds.open("memory://pets").info.splits
    fs.store.clear()


def test_what_is_not_there_is_named(url):
    with pytest.raises(FileNotFoundError, match=r"1\.0\.0x: no dataset of TFDS"):
        tfwire.tfds.open(url + "x")


def test_what_may_not_be_read_is_named():
    with ObjectServer() as server:
        server.token = "secret"
        with pytest.raises(OSError, match=r"could not be read.*pets/1\.0\.0"):
            tfwire.tfds.open(server.url("/pets/1.0.0"))
