"""The rows about strings of docs/differences.md, a test each."""

import numpy as np
import pytest
import tensorflow as tf

import tfwire.compat as tfc


def test_regular_expressions():
    for pattern, found in [("a(?=b)", b"xb"), (r"(a)\1", b"ab")]:
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.strings.regex_replace("ab", pattern, "x")
        assert found == tfc.strings.regex_replace("ab", pattern, "x").numpy()
    for pattern in (r"\pL", r"\C", "a(?i)B"):
        assert b"x" in tf.strings.regex_replace("ab", pattern, "x").numpy()
        with pytest.raises(tfc.errors.InvalidArgumentError, match="regular expression"):
            tfc.strings.regex_replace("ab", pattern, "x")


def test_regular_rewrite():
    for rewrite in (r"x\y", r"x\1"):
        assert tf.strings.regex_replace("ab", "a", rewrite).numpy() in (b"ab", b"xb")
        with pytest.raises(tfc.errors.InvalidArgumentError, match="rewrite"):
            tfc.strings.regex_replace("ab", "a", rewrite)


def test_text_case():
    assert b"A" == tf.strings.upper("a\0b", encoding="utf-8").numpy()
    assert b"A\0B" == tfc.strings.upper("a\0b", encoding="utf-8").numpy()
    assert b"\0" == tfc.strings.lower("\0", encoding="utf-8").numpy()


def test_numpy_strings():
    for value in (np.bytes_(b"a\0"), np.str_("a\0")):
        assert b"a" == tf.constant(value).numpy()
        assert b"a\0" == tfc.constant(value).numpy()
    for tensor in (tf.constant(np.array([b"a\0b\0"])), tfc.constant(np.array([b"a\0b\0"]))):
        assert [b"a\0b"] == tensor.numpy().tolist()
    texts = np.array(["a\0", "é"], np.dtypes.StringDType())
    with pytest.raises(ValueError, match="numpy"):
        tf.constant(texts)
    assert [b"a\0", "é".encode()] == tfc.constant(texts).numpy().tolist()


def test_where_strings():
    strings = np.array(["a", ""], object)
    assert [[0]] == tf.where(strings).numpy().tolist()
    for lib, given in [(tf, ["a", ""]), (tfc, ["a", ""]), (tfc, strings)]:
        with pytest.raises(lib.errors.InvalidArgumentError):
            lib.where(given)


def test_zero_in_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tf.io.write_file("name\0other", "content")
    assert b"content" == tf.io.read_file("name").numpy()
    for use in (tfc.io.read_file, lambda path: tfc.io.write_file(path, "")):
        with pytest.raises(ValueError, match="null"):
            use("name\0other")


def test_ragged_batch():
    def rows(lib):
        return lib.data.Dataset.from_tensor_slices(lib.strings.split(["a b", "c"]))

    expected = [[b"a", b"b"], [b"c"]]
    (batch,) = rows(tf).batch(2)
    assert expected == batch.to_list()
    with pytest.raises(tfc.errors.InvalidArgumentError, match="shapes"):
        list(rows(tfc).batch(2))
    (batch,) = rows(tfc).ragged_batch(2)
    assert expected == batch.to_list()
    kinds = [
        type(next(iter(lib.data.Dataset.from_tensor_slices([[1, 2]]).ragged_batch(1))))
        for lib in (tf, tfc)
    ]
    assert not issubclass(kinds[0], tf.RaggedTensor)
    assert kinds[1] is tfc.RaggedTensor
