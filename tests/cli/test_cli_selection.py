"""tfwire head and cat with --where and --features."""

import json

import pytest

import tfwire as tfw
from helpers.products import check_each
from tfwire.cli import main


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.tfrecord"
    rows = [{"label": i % 3, "name": f"item {i}", "w": [i / 2, 0.1], "a=b": "x"} for i in range(9)]
    lists = {"words": [[1], [7, 8]], "tags": [["t"], ["tail"]]}
    sequence = tfw.encode_sequence_example({"label": 2, "n": 1}, lists)
    tfw.write_records(path, [*tfw.encode_examples(rows), sequence, b"no message \xff"])
    return str(path)


@pytest.fixture
def shown(path, capsys):
    """The lines of JSON that a command prints."""

    def show(command, *options):
        assert 0 == main([command, path, "--format", "json", *options])
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return show


def names(lines):
    return [line["name"] for line in lines]


FOUND = {
    0: ["label=7", "label=x", "label=1.5", "label~1", "label=99999999999999999999", "name=item"],
    1: ["w=1.5", "name=item 4", "n=1", "words=8", "tags=tail", "tags~ai"],  # also steps of lists
    3: ["label=1", "label=1.0", "label=10e-1"],
    4: ["label=2"],  # with the context of the sequence
    9: ["w=0.1", "name~item", "name~"],
}
FOUND[0] += ["missing=", "words=9", "tags~b"]


def test_where(shown):
    def check(count, condition):
        assert count == len(shown("cat", "--where", condition))

    check_each(check, [(count, each) for count, some in FOUND.items() for each in some])


def test_all_conditions_must_hold(shown):
    lines = shown("cat", "--where", "label=1", "--where", "name~7")
    assert ["item 7"] == names(lines)


def test_head_counts_the_records_that_it_shows(shown):
    assert 2 == len(shown("head", "-n", "2", "--where", "label=1"))


def test_features(shown):
    first, *_, sequence, other = shown("cat", "--features", "label,missing,words")
    assert {"label": 0} == first
    assert {"context": {"label": 2}, "feature_lists": {"words": [[1], [7, 8]]}} == sequence
    assert "other" in other


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--features", "label"], ""),
        (["--features", "words,tags"], ""),  # feature lists of the only record that has them
        (["--features", "label,nosuch"], "--features: no record that is shown has nosuch"),
        (["--features", "n", "--where", "label=1"], "--features: no record that is shown has n"),
        (["--where", "nosuch=1"], "--where: no record has nosuch"),
        (["--where", "label=7"], ""),
        (["--where", "label=abc"], "--where: label has int64 values, and no int64 is abc"),
        (["--where", "label=1.5"], "--where: label has int64 values, and no int64 is 1.5"),
        (["--where", "label=1e99"], "--where: label has int64 values, and no int64 is 1e99"),
        (["--where", "w=abc"], "--where: w has float values, and no float is abc"),
        (["--where", "w~0.5"], "--where: w has float values, and ~ is for strings"),
        (["--where", "words=x"], "--where: words has int64 values, and no int64 is x"),
        (["--where", "w=nan"], ""),
        (["--where", "tags=7"], ""),
        (["--features", "a\x1bb"], r"--features: no record that is shown has a\x1bb"),
    ],
)
def test_names_that_no_record_has_are_told(path, capsys, options, complaint):
    assert 0 == main(["cat", path, *options])
    assert f"tfwire cat: {complaint}\n" * bool(complaint) == capsys.readouterr().err


def test_a_file_without_records_lacks_no_features(tmp_path, capsys):
    (tmp_path / "empty").touch()
    tfw.write_records(tmp_path / "other", [b"no message \xff"])
    for name in ("empty", "other"):
        assert 0 == main(["head", str(tmp_path / name), "--features", "a", "--where", "b=1"])
        assert not capsys.readouterr().err


def test_features_as_text(path, capsys):
    assert 0 == main(["head", "-n", "1", "--features", "name", path])
    out = capsys.readouterr().out
    assert 'value: "item 0"' in out
    assert "label" not in out


def test_raw_records_that_are_chosen(path, tmp_path, capfdbinary):
    assert 0 == main(["cat", "--format", "raw", "--where", "name=item 4", path])
    assert tfw.TFRecordFile(path)[4] == capfdbinary.readouterr().out


def test_wrong_usage(path, capsys):
    assert 2 == main(["cat", "--format", "raw", "--features", "label", path])
    assert "--features needs" in capsys.readouterr().err
    for text in ("label", "=1", "~", ""):
        with pytest.raises(SystemExit, match="2"):
            main(["cat", "--where", text, path])
        assert "NAME=VALUE or NAME~TEXT" in capsys.readouterr().err
