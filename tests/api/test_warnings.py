"""Warnings: their category, and the line that they point to."""

import warnings

import pytest

import tfwire as tfw
from helpers.reading import damage
from tfwire import sharding


@pytest.fixture
def damaged(tmp_path):
    path = tmp_path / "damaged.tfrecord"
    tfw.write_records(path, [b"one", b"two", tfw.encode_example({"a": 1})])
    damage(path, 12)
    return path


@pytest.fixture
def conflicting(tmp_path):
    path = tmp_path / "conflicting.tfrecord"
    tfw.write_records(path, [tfw.encode_example({"a": 1}), tfw.encode_example({"a": "x"})])
    return path


SOURCES = {
    "read": "list(tfw.read_records(path, on_corrupt='skip'))",
    "threads": """
parser = tfw.Parser({"a": tfw.FixedLenFeature([], tfw.int64)})
list(parser.parse_file(path, on_corrupt="skip", on_parse_error="skip", num_threads=2))
""",
    "dataset": "list(tfw.TFRecordDataset(path, on_corrupt='skip'))",
    "shards": "sharding.recommend_num_shards(10**6, 5)",
    "schema": "tfw.infer_schema(path)",
}


def run(name, damaged, conflicting, more):
    path = conflicting if name == "schema" else damaged
    exec(
        compile(SOURCES[name], "user code", "exec"),
        {"tfw": tfw, "sharding": sharding, "path": path, **more},
    )


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("more", [{"__name__": "user"}, {}, {"__name__": 5}], ids=str)
def test_a_warning_points_to_the_code_that_uses_the_library(name, more, damaged, conflicting):
    """Also where its globals have no name, as in a plain ``exec``."""
    with pytest.warns(tfw.TfwireWarning) as caught:
        run(name, damaged, conflicting, more)
    assert {"user code"} == {warning.filename for warning in caught}


@pytest.mark.parametrize("name", SOURCES)
def test_our_warnings_can_be_silenced_by_their_category(name, damaged, conflicting):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", tfw.TfwireWarning)
        run(name, damaged, conflicting, {})
    with warnings.catch_warnings():
        warnings.simplefilter("error", tfw.TfwireWarning)
        with pytest.raises(tfw.TfwireWarning):
            run(name, damaged, conflicting, {})
    assert issubclass(tfw.TfwireWarning, UserWarning)
