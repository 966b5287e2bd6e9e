"""Names of new files that say another compression than the files have."""

import gzip
import os
import warnings

import pytest

import tfwire as tfw
from tfwire._records.files.compression import split_name


def write(path, *options, **more):
    tfw.write_records(path, [b"a", b"b"], *options, **more)


def write_rows(path, *options, **more):
    with tfw.TFRecordWriter(path, *options, **more) as writer:
        writer.write_columns({"a": [1, 2]})


def write_shards(path, options=None, **more):
    pattern = f"{os.fspath(path)}-{{shard:05d}}-of-{{shards:05d}}"
    with tfw.ShardedWriter(pattern, num_shards=2, options=options, **more) as writer:
        writer.write_many([b"a", b"b"])


WRITERS = [write, write_rows, write_shards]


def written(folder):
    """The compression of all files in a folder, which is that of each of them."""
    (found,) = {tfw.verify_file(path).compression for path in folder.iterdir()}
    return found


def warnings_of(call, *arguments, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*arguments, **options)
    assert {tfw.TfwireWarning} >= {warning.category for warning in caught}
    assert {__file__} >= {warning.filename for warning in caught}
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("name", ["a.gz", "a.tfrecord.GZ", "a.gzip", "a.tfrecord.zlib", "a.tgz"])
@pytest.mark.parametrize("options", [(), (None,), (tfw.TFRecordOptions(),)], ids=str)
def test_a_plain_file_of_such_a_name_is_warned_of_once(tmp_path, write, name, options):
    """As in TensorFlow it stays plain; "" says that this is meant."""
    (message,) = warnings_of(write, tmp_path / name, *options)
    said = "ZLIB" if name.endswith("zlib") else "GZIP"
    assert f"{tmp_path / name}" in message
    assert f'compression_type="{said}", or ""' in message
    assert "" == written(tmp_path)
    assert [] == warnings_of(write, tmp_path / name, "")
    assert [] == warnings_of(write, tmp_path / name, compression_type="")
    assert [] == warnings_of(write, tmp_path / name, said)
    assert said == written(tmp_path)


@pytest.mark.parametrize("write", WRITERS)
def test_another_compression_than_the_name_says_is_warned_of(tmp_path, write):
    for name, options in ("a.gz", "ZLIB"), ("a.zlib", tfw.TFRecordOptions("GZIP")):
        (message,) = warnings_of(write, tmp_path / name, options)
        assert "the name says " in message
        assert "but compression_type is" in message


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("name", ["a", "a.tfrecord", "gz", "a.gz.tfrecord", "a.gz.d/x", "a.xz"])
def test_a_name_that_says_nothing_is_not_warned_of(tmp_path, write, name):
    """TensorFlow's own examples call compressed files a.tfrecord."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    for options in None, "", "GZIP", "ZLIB":
        assert [] == warnings_of(write, tmp_path / name, options)


def test_file_objects_are_not_asked_for_their_names(tmp_path):
    """They may compress by themselves."""
    with gzip.open(tmp_path / "a.gz", "wb") as file:
        assert [] == warnings_of(write, file)
    assert [b"a", b"b"] == list(tfw.read_records(tmp_path / "a.gz"))


def test_urls_are_warned_of(tmp_path):
    pytest.importorskip("fsspec")
    assert 1 == len(warnings_of(write, f"memory://names{tmp_path}/a.gz"))
    assert 1 == len(warnings_of(write_shards, f"memory://names{tmp_path}/b.gz"))


@pytest.mark.parametrize("write", WRITERS)
def test_where_the_warning_is_an_error_nothing_is_written(tmp_path, write):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(tfw.TfwireWarning):
            write(tmp_path / "a.gz")
    assert [] == list(tmp_path.iterdir())


NO_TEXT = pytest.mark.posix("names are Unicode")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("x/Train.TFRecord.gz", ("train.tfrecord", "GZIP")),
        ("train.tfrecord.gz-00000-of-00010", ("train.tfrecord", "GZIP")),
        ("train-00000-of-00010.tfrecord.gzip", ("train.tfrecord", "GZIP")),
        ("a.zlib-{shard:05d}-of-{shards}", ("a", "ZLIB")),
        ("a.tgz", ("a.tar", "GZIP")),
        ("a.csv", ("a.csv", "")),
        (".gz", (".gz", "")),
        pytest.param(b"\xff.gz", ("\udcff", "GZIP"), marks=NO_TEXT),
    ],
)
def test_the_compression_is_split_off_a_name(path, found):
    assert found == split_name(path)
