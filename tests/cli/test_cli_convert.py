"""tfwire convert between the formats of the standard library; tests/neighbours has the others."""

import gzip
import io
import itertools
import json
import os
import re
import shutil
import sys
import tarfile
import tempfile

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tfwire as tfw
from helpers.command import tfwire_main
from helpers.reading import damage

ROWS = [
    {"label": 1, "name": "cät", "tags": ["a", "b"], "weight": 0.1},
    {"label": 2, "tags": [], "weight": 3.0},
    {"label": 3, "name": "é\n", "tags": ["c"], "weight": -1e-30},
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps(row) for row in ROWS]
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    assert run("in.jsonl", "-o", "in.tfrecord")["lost"] == []
    return tmp_path


def run(*words, status=0):
    """The report of a conversion."""
    result = tfwire_main("convert", *words, "--json")
    assert (status, b"") == (result.returncode, result.stderr)
    return json.loads(result.stdout)


def refused(*words, status=2):
    """The complaint of a conversion that is refused, without a new file."""
    before = sorted(os.listdir())
    result = tfwire_main("convert", *words)
    assert (status, b"") == (result.returncode, result.stdout)
    assert before == sorted(os.listdir())
    message = result.stderr.decode()
    assert message.startswith("tfwire convert: ")
    assert "unexpected " not in message.replace("unexpected end of data", "")
    return message


def records(*paths):
    return [record for path in paths for record in tfw.read_records(path)]


def plain(example):
    """Kinds and bytes of what an Example holds; without features that have no kind."""
    found = {}
    for name, values in tfw.decode_example(example).items():
        if isinstance(values, np.ndarray) and values.dtype != object:
            found[name] = (values.dtype.name, values.tobytes())
        elif isinstance(values, np.ndarray) or values:
            found[name] = ("bytes", list(values))
    return found


# ---- What is written ----------------------------------------------------------------------------


def test_json_lines_are_plain_rows(folder):
    assert run("in.tfrecord", "-o", "out.jsonl")["rows"] == 3
    assert ROWS == [json.loads(line) for line in (folder / "out.jsonl").read_bytes().splitlines()]


def test_examples_as_json_keep_everything(folder):
    message = tfw.train.Example()
    message.features.feature["kindless"].SetInParent()
    message.features.feature["n"].float_list.SetInParent()
    tfw.write_records("odd.tfrecord", [message.SerializeToString(deterministic=True)])
    assert run("odd.tfrecord", "in.tfrecord", "-o", "out.jsonl", "--examples")["lost"] == []
    lines = (folder / "out.jsonl").read_text().splitlines()
    assert records("odd.tfrecord", "in.tfrecord") == list(map(tfw.decode_json_example, lines))
    report = run("odd.tfrecord", "-o", "rows.jsonl")
    assert ["'n': its kind, float, as it has no values; --schema gives it back"] == report["lost"][
        :1
    ]
    assert "1 empty feature without a type, left out" == report["lost"][1]


def test_csv_has_a_header_and_lists_as_json(folder):
    report = run("in.tfrecord", "-o", "out.csv")
    assert ["'tags': lists are written as JSON; --schema reads them back"] == report["lost"]
    text = (folder / "out.csv").read_text("utf-8")
    assert 'label,name,tags,weight\n1,cät,"[""a"", ""b""]",0.1\n2,,[],3.0\n' in text
    schema = {"label": tfw.FixedLenFeature([], tfw.int64), "tags": tfw.VarLenFeature(tfw.string)}
    schema |= {"name": tfw.VarLenFeature(tfw.string)}
    schema |= {"weight": tfw.FixedLenFeature([], tfw.float32)}
    tfw.write_schema(schema, "schema.pbtxt")
    run("out.csv", "--schema", "schema.pbtxt", "-o", "back.tfrecord")
    assert list(map(plain, records("in.tfrecord"))) == list(map(plain, records("back.tfrecord")))


def test_kinds_of_cells_are_those_of_all_rows(folder):
    (folder / "in.csv").write_text(
        "int,zeros,float,text,big\n1,007,1,1,99999999999999999999\n,1,NaN,x,1\n"
    )
    run("in.csv", "-o", "out.jsonl")
    rows = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    first = {"int": 1, "zeros": "007", "float": 1.0, "text": "1", "big": "9" * 20}
    assert [first, {"zeros": "1", "float": "NaN", "text": "x", "big": "1"}] == rows


def test_samples_hold_bytes_numbers_and_the_class(folder):
    tfw.write_records("a.tfrecord", [{"cls": 5, "jpg": b"\xff\xd8", "box": [0.5, 1.0], "n": 3}])
    assert run("a.tfrecord", "-o", "a.tar")["lost"] == []
    with tarfile.open("a.tar") as archive:
        found = {m.name: archive.extractfile(m).read() for m in archive}
    names = {"cls": b"5", "jpg": b"\xff\xd8", "box.json": b"[0.5, 1.0]", "n.json": b"3"}
    assert {f"000000000.{name}": data for name, data in names.items()} == found


IMAGES = {
    "jpg": b"\xff\xd8\xff\xe0" + bytes(9),
    "png": b"\x89PNG\r\n\x1a\n" + bytes(9),
    "gif": b"GIF89a" + bytes(9),
    "webp": b"RIFF\n\0\0\0WEBPVP8 " + bytes(9),
    "wav": b"RIFF\n\n\0\0WAVEfmt " + bytes(9),
    "flac": b"fLaC" + bytes(9),
}


@pytest.mark.parametrize("kind", IMAGES)
def test_images_and_sounds_have_the_extension_by_which_they_are_decoded(folder, kind):
    """And the names of features come back."""
    names = {
        "image/encoded": f"image%2Fencoded.{kind}",
        "image": f"image.{kind}",
        kind: kind,
        f"left.{kind}": f"left.{kind}",
        "a.json": f"a%2Ejson.{kind}",
        "cls": f"%63ls.{kind}",
        "é.": f"é..{kind}",
        "": f".{kind}",
    }
    rows = [dict.fromkeys(names, IMAGES[kind]), {"image": b"no image", "n": 1}, {"image": b""}]
    rows.append({"image": IMAGES[kind], f"image.{kind}": b"no image"})
    tfw.write_records("a.tfrecord", rows)
    assert [] == run("a.tfrecord", "-o", "a.tar")["lost"]
    with tarfile.open("a.tar") as archive:
        found = [name.partition(".")[2] for name in archive.getnames()]
    others = ["image", "n.json", "image", "image", f"image.{kind}"]
    assert sorted([*names.values(), *others]) == sorted(found)
    run("a.tar", "-o", "b.tfrecord")
    assert list(map(plain, records("a.tfrecord"))) == list(map(plain, records("b.tfrecord")))
    run("b.tfrecord", "-o", "b.tar")
    assert (folder / "a.tar").read_bytes() == (folder / "b.tar").read_bytes()


def test_samples_of_others_are_read(folder):
    members = {
        "./train/a.jpg": b"\xff",
        "train/b.seg.png": b"1",
        "train/b.cls": b"7\n",
        "train/b.json": b'{"x": 1}',
        "../../etc/c.txt": b"hostile",
        "/abs.txt": b"absolute",
        "no_extension": b"",
    }
    with tarfile.open("in.tar.gz", "w:gz") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("link.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    assert "keys" in run("in.tar.gz", "-o", "out.tfrecord")["lost"][0]
    b = {"seg.png": [b"1"], "cls": [7], "json": [b'{"x": 1}']}
    expected = [{"jpg": [b"\xff"]}, b, {"txt": [b"hostile"]}, {"txt": [b"absolute"]}]
    found = [tfw.decode_example(record) for record in records("out.tfrecord")]
    assert expected == [{n: list(values) for n, values in row.items()} for row in found]
    report = run("in.tar.gz", "-o", "keys.tfrecord", "--key", "key")
    assert [] == report["lost"]
    keys = [tfw.decode_example(record)["key"] for record in records("keys.tfrecord")]
    assert [[b"./train/a"], [b"train/b"], [b"../../etc/c"], [b"/abs"]] == keys


def test_keys_stay_within_the_archive(folder):
    keys = [b"../x", b"/abs", b"a/b", b"a.b", b"..", b"a/../b", b"\xff", b"a//b", b"%2e"]
    tfw.write_records("a.tfrecord", [{"k": key, "n": i} for i, key in enumerate(keys)])
    run("a.tfrecord", "-o", "a.tar", "--key", "k")
    with tarfile.open("a.tar") as archive:
        for name in archive.getnames():
            assert not name.startswith("/")
            assert not {"..", "."} & set(name.removesuffix(".n.json").split("/"))
    run("a.tar", "-o", "b.tfrecord", "--key", "k")
    assert list(map(plain, records("a.tfrecord"))) == list(map(plain, records("b.tfrecord")))
    tfw.write_records("twice.tfrecord", [{"k": "a"}, {"k": "a"}])
    assert "'a'" in refused("twice.tfrecord", "-o", "c.tar", "--key", "k", status=1)


# ---- Shards, limit, compression, schema ---------------------------------------------------------


@pytest.mark.parametrize("ending", ["tfrecord", "jsonl", "csv", "tar", "jsonl.gz"])
def test_shards_are_those_of_split(folder, ending):
    tfw.write_records("a.tfrecord", [{"n": i, "s": "x" * (i % 9 + 1)} for i in range(100)])
    report = run("a.tfrecord", "-o", "s-{shard}-of-{shards}." + ending, "--num-shards", 3)
    assert ([f"s-{i}-of-3.{ending}" for i in range(3)], 100) == (report["files"], report["rows"])
    for i in range(3):
        run(f"s-{i}-of-3.{ending}", "-o", f"back-{i}.tfrecord")
        expected = list(map(plain, records("a.tfrecord")[i::3]))
        assert expected == list(map(plain, records(f"back-{i}.tfrecord")))
    report = run("a.tfrecord", "-o", "f-{shard:03d}." + ending, "--shard-size", "500")
    assert len(report["files"]) > 1
    run(*report["files"], "-o", "all.tfrecord")
    assert list(map(plain, records("a.tfrecord"))) == list(map(plain, records("all.tfrecord")))
    if ending in ("jsonl", "tfrecord"):
        assert all(os.path.getsize(path) <= 500 for path in report["files"])


FORMATS = ["tfrecord", "jsonl", "csv", "tar"]


@pytest.mark.parametrize("source", FORMATS)
def test_limit_and_many_files(folder, source):
    run("in.tfrecord", "-o", f"a.{source}")
    shutil.copy(f"a.{source}", f"b.{source}")
    for target, limit in itertools.product(FORMATS, (0, 2, 4, 99)):
        report = run(f"a.{source}", f"b.{source}", "-o", f"{limit}.{target}", "--limit", limit)
        assert min(limit, 6) == report["rows"]
        if limit:
            run(f"{limit}.{target}", "-o", f"{target}-{limit}.tfrecord")
            assert min(limit, 6) == len(records(f"{target}-{limit}.tfrecord"))


@pytest.mark.parametrize("source", FORMATS)
def test_empty_files(folder, source):
    tfw.write_records("none.tfrecord", [])
    run("none.tfrecord", "-o", f"a.{source}")
    for target in FORMATS:
        report = run(f"a.{source}", "-o", f"b.{target}")
        assert {"rows": 0, "files": [f"b.{target}"], "lost": []} == report


def test_bytes_are_base64_and_come_back(folder):
    tfw.write_records("a.tfrecord", [{"x": b"\xff", "n": [b"a", b"\xfe"]}, {"x": b"abc"}])
    for ending in ("jsonl", "csv"):
        lost = run("a.tfrecord", "-o", f"a.{ending}")["lost"]
        assert 2 == sum("base64" in line for line in lost)
        run(f"a.{ending}", "-o", f"{ending}.tfrecord", "--base64", "x", "--base64", "n")
        back = records(f"{ending}.tfrecord")
        assert list(map(plain, records("a.tfrecord"))) == list(map(plain, back))
    run("in.jsonl", "-o", "c.jsonl")
    assert "in.jsonl: line 1: 'name': expected base64" in refused(
        "in.jsonl", "-o", "d.jsonl", "--base64", "name", status=1
    )


def test_a_schema_chooses_columns_and_kinds(folder):
    schema = {"label": tfw.FixedLenFeature([], tfw.float32), "name": tfw.VarLenFeature(tfw.string)}
    tfw.write_schema(schema, "features.json")
    report = run("in.jsonl", "-o", "a.tfrecord", "--schema", "features.json")
    assert ["'tags': not in the schema, left out", "'weight': not in the schema, left out"] == (
        report["lost"]
    )
    first = tfw.decode_example(records("a.tfrecord")[0])
    assert ("float32", ["cät".encode()]) == (first["label"].dtype.name, first["name"])
    tfw.write_schema({"gone": tfw.FixedLenFeature([], tfw.int64)}, "gone.pbtxt")
    message = refused("in.jsonl", "-o", "b.tfrecord", "--schema", "gone.pbtxt", status=1)
    assert "'gone', which the schema requires" in message


def test_rounding_is_reported(folder):
    exact = float(np.float32(0.1))  # 0.10000000149011612
    (folder / "a.jsonl").write_text(f'{{"x": 0.1, "y": 0.123456789, "z": true, "w": {exact}}}\n')
    lost = run("a.jsonl", "-o", "a.tfrecord")["lost"]
    assert ["'y': numbers are rounded to float32", "'z': bool becomes int64"] == lost


# ---- Errors -------------------------------------------------------------------------------------


def test_damage_is_an_error_or_left_out(folder):
    damage(folder / "in.tfrecord", 20, folder / "bad.tfrecord")
    for target in ("jsonl", "tar", "tfrecord"):
        assert "bad.tfrecord: record 0" in refused("bad.tfrecord", "-o", f"a.{target}", status=1)
        words = ["bad.tfrecord", "-o", f"b.{target}", "--on-corrupt", "skip", "--json"]
        result = tfwire_main("convert", *words)
        assert 1 == result.returncode
        assert 1 == result.stderr.count(b"bad.tfrecord: left out bytes 0")
        report = json.loads(result.stdout)
        assert (2, ["bad.tfrecord: 1 damaged region, 100 bytes, left out"]) == (
            report["rows"],
            [re.sub("[0-9]+ bytes", "100 bytes", line) for line in report["lost"]],
        )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["in.what", "-o", "a.csv"], "in.what: unknown format: give"),
        (["in.jsonl", "-o", "a.what"], "a.what: unknown format: give"),
        (["in.jsonl", "-o", "csv"], "csv: unknown format: give"),
        (["in.jsonl", "in.tfrecord", "-o", "a.csv"], "in.tfrecord is tfrecord, and in.jsonl"),
        (["in.jsonl", "-o", "in.jsonl"], "in.jsonl: is one of the inputs"),
        (["in.jsonl", "-o", "in.jsonl", "--force"], "in.jsonl: is one of the inputs"),
        (["in.tfrecord", "-o", "in.jsonl"], "in.jsonl: exists; --force replaces it"),
        (["in.jsonl", "-o", "a.tar", "--num-shards", "2"], "{shard}"),
        (["-", "--from", "csv", "-o", "a.tar"], "cannot be read twice"),
        (["in.jsonl", "-o", "a.csv", "--output-compression", "zlib"], "zlib is not for csv"),
        (["in.jsonl", "-o", "a.csv", "--examples"], "--examples is for"),
        (["in.jsonl", "-o", "a.csv", "--key", "k"], "--key is for tar"),
        (["in.jsonl", "-o", "a.csv", "--on-corrupt", "skip"], "--on-corrupt is for"),
        (["in.tfrecord", "-o", "a.csv", "--base64", "x"], "--base64 is for"),
    ],
)
def test_wrong_usage(folder, words, said):
    (folder / "in.what").touch()
    assert said in refused(*words)


def test_files_that_are_missing_are_named(folder):
    assert "gone.csv: No such file" in refused("gone.csv", "-o", "a.tar", status=1)
    assert "gone: No such file" in refused("gone", "-o", "a.tar", status=1)
    assert "-: which format" not in refused("-", "-o", "a.tar")
    assert "gone/a.tar: No such file" in refused("in.jsonl", "-o", "gone/a.tar", status=1)
    message = refused("in.jsonl", "-o", "a.tar", "--schema", "gone.pbtxt", status=1)
    assert "gone.pbtxt: No such file" in message


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.jsonl", b'{"x": 1}\n{"x": \n', "line 2: expected JSON: Expecting value: column 6\n"),
        ("a.jsonl", b"[1]", "line 1: expected an object, found a list\n"),
        ("a.jsonl", b'{"x": {"y": 1}}', "'x': expected a number, a string or a list"),
        ("a.jsonl", b'{"x": [1, null]}', "found null"),
        ("a.jsonl", b'{"x": 9223372036854775808}', "64 bits"),
        ("a.jsonl", b'{"x": 1, "x": 2}', "'x' occurs twice"),
        (
            "a.jsonl",
            b'\n{"x": 1}\n\n{"x": "y"}',
            "several kinds: int64 in line 2 of a.jsonl, bytes in line 4",
        ),
        ("a.jsonl", b'{"x": "\xff"}', "line 1: expected JSON in UTF-8"),
        ("a.jsonl", b"x,y\n1,2\n", "line 1: expected JSON: "),
        ("a.jsonl", b'{"x": "\\ud800"}', "line 1: "),
        ("a.jsonl", b"[" * 100_000, "line 1: "),
        ("a.jsonl", b"\x1f\x8b\x08broken", "damaged gzip"),
        ("a.jsonl", gzip.compress(b"{}", mtime=0)[:10] + b"broken", "a.jsonl: damaged gzip"),
        ("a.csv", b"a,b\n1\n", "a.csv: line 2: expected 2 cells, found 1"),
        ("a.csv", b"a,a\n1,2\n", "'a' occurs twice"),
        ("a.csv", b'a\n"x', "a.csv: line 2"),
        ("a.csv", b"a\n\xff\n", "line 2: expected UTF-8"),
        ("a.csv", b"\xff\n1\n", "line 1: expected UTF-8"),
        ("a.tar", b"x" * 1024, "a.tar: not a tar file: "),
        ("a.tar", b"", "a.tar: not a tar file: "),
        ("a.tfrecord", b"x" * 100, "a.tfrecord: record 0"),
    ],
)
def test_wrong_input(folder, name, text, said):
    (folder / name).write_bytes(text)
    assert said in refused(name, "-o", "out.tar" if name != "a.tar" else "out.csv", status=1)


def test_tar_files_that_are_cut_or_repeat_are_refused(folder):
    run("in.tfrecord", "-o", "a.tar")
    (folder / "cut.tar").write_bytes((folder / "a.tar").read_bytes()[:1500])
    assert "cut.tar: " in refused("cut.tar", "-o", "b.csv", status=1)
    with tarfile.open("twice.tar", "w") as archive:
        for _ in range(2):
            archive.addfile(tarfile.TarInfo("a.txt"))
    assert "'txt' occurs twice" in refused("twice.tar", "-o", "b.csv", status=1)


def test_other_records_are_refused(folder):
    tfw.write_records("raw.tfrecord", [b"\xff\xff"])
    assert "raw.tfrecord: record 0 is not an Example" in refused(
        "raw.tfrecord", "-o", "a.csv", status=1
    )
    sequence = tfw.encode_sequence_example({"n": 1}, {"w": [[1], [2]]})
    tfw.write_records("seq.tfrecord", [sequence])
    said = "seq.tfrecord: record 0: a SequenceExample can be converted to JSON lines"
    assert said in refused("seq.tfrecord", "-o", "a.csv", status=1)
    assert "SequenceExample" in refused("seq.tfrecord", "-o", "a.tar", status=1)
    assert 1 == run("seq.tfrecord", "raw.tfrecord", "-o", "all.tfrecord", "--limit", 1)["rows"]


def test_rows_at_fault_are_named_with_their_file(folder):
    (folder / "a.jsonl").write_text('{"x": 1}\n')
    (folder / "b.jsonl").write_text('{"x": "y"}\n')
    message = refused("a.jsonl", "b.jsonl", "-o", "c.csv", status=1)
    assert "int64 in line 1 of a.jsonl, bytes in line 1 of b.jsonl" in message
    (folder / "schema.pbtxt").write_text(
        'feature { name: "x" type: INT presence { min_fraction: 1 } shape {} }'
    )
    (folder / "b.jsonl").write_text('{"x": 1}\n\n{"x": "y"}\n')
    words = ["--schema", "schema.pbtxt", "-o", "c.csv"]
    assert "b.jsonl: line 3: 'x': " in refused("a.jsonl", "b.jsonl", *words, status=1)
    (folder / "b.jsonl").write_text('{"y": 1}\n')
    message = refused("a.jsonl", "b.jsonl", *words, status=1)
    assert "b.jsonl: line 1: no 'x', which the schema requires" in message


def test_a_format_without_its_package_says_so(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    message = refused("in.jsonl", "-o", "a.parquet")
    assert "Parquet files need pyarrow; pip install 'tfwire[arrow]'" in message


# ---- There and back -----------------------------------------------------------------------------

NAMES = st.one_of(
    st.sampled_from(
        ["../x", "/abs", "a/b", "a.b", "a.json", "cls", ".", "", "é", "A", "%", "__key__"]
    ),
    st.text(st.characters(codec="utf-8"), max_size=4),
)
FLOATS = st.floats(width=32)
VALUES = {
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float32": FLOATS.filter(lambda x: x == x) | st.just(float("nan")),
    "bytes": st.binary(max_size=6) | st.sampled_from([b"1", b"NaN", b"[1]", b"", b"a\r\nb", b"{}"]),
}


@st.composite
def tables(draw):
    """Rows of columns that are present, missing or empty, of one kind each."""
    kinds = draw(st.dictionaries(NAMES, st.sampled_from(sorted(VALUES)), max_size=4))
    single = {name: draw(st.booleans()) for name in kinds}
    rows = []
    for _ in range(draw(st.integers(0, 5))):
        row = {}
        for name, kind in kinds.items():
            values = draw(
                st.lists(VALUES[kind], max_size=1, min_size=single[name])
                if single[name]
                else st.lists(VALUES[kind], max_size=3)
            )
            if draw(st.booleans()):
                row[name] = np.array(values, object if kind == "bytes" else kind)
        rows.append(row)
    return rows


@pytest.mark.parametrize("words", [["jsonl"], ["jsonl", "--examples"], ["csv"], ["tar"]], ids=str)
@settings(max_examples=25)
@given(rows=tables())
def test_what_is_not_reported_as_lost_comes_back(words, rows):
    ending, *flags = words
    with tempfile.TemporaryDirectory() as folder:
        names = [os.path.join(folder, name) for name in ("a.tfrecord", f"b.{ending}", "c.tfrecord")]
        tfw.write_records(names[0], [tfw.encode_example(row) for row in rows])
        lost = run(names[0], "-o", names[1], *flags)["lost"]
        run(names[1], "-o", names[2])
        assert not flags or not lost
        before, after = (list(map(plain, records(names[i]))) for i in (0, 2))
        if not lost:
            assert before == after
        elif not any("without any value" in line for line in lost):
            assert len(before) == len(after)
            named = {name for name in all_names(rows) if any(repr(name) in line for line in lost)}
            for old, new in zip(before, after, strict=True):
                assert {n: v for n, v in old.items() if n not in named} == {
                    n: v for n, v in new.items() if n not in named
                }


def all_names(rows):
    return {name for row in rows for name in row}
