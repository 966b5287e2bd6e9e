"""tfwire stats."""

import contextlib
import io
import json
import re
import sys

import numpy as np
import pytest

import tfwire as tfw
from helpers.command import tfwire_command, tfwire_main
from helpers.reading import damage
from tfwire import train
from tfwire._interface.contents import RecordSample
from tfwire._records.reading.batch_reader import BatchReader
from tfwire._records.reading.options import make_options
from tfwire.cli import main
from tfwire.view._records import BrowsedFile
from tfwire.view._summary import FeatureSummary

ROWS = [
    {"label": 1, "name": "cat", "x": [0.5, float("nan")]},
    {"label": [2, -300], "x": [float("inf")]},
    {"label": 3, "name": ["a", "\N{SNOWMAN}"], "nothing": []},
]
TABLE = """\
3 records of 160 bytes: 49 to 59, mean 53.3
feature  kind     records   values   min   mean  max         distribution of 3 records
label    int64    3 (100 %) 1 to 2   -300  -73.5 3           ▃              █
name     string   2 (67 %)  1 to 2   1 B   2.3 B  3 B        ▄              █ all different
nothing  empty    1 (33 %)  0
x        float32  2 (67 %)  1 to 2   0.5   inf   inf  1 NaN
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Where the commands run."""
    monkeypatch.chdir(tmp_path)
    tfw.write_records("in", ROWS)
    return tmp_path


def words(text):
    return [line.split() for line in text.splitlines()]


def test_the_table():
    result = tfwire_command("stats", "in")
    assert (0, "") == (result.returncode, result.stderr)
    lines = words(result.stdout)
    sizes = [len(tfw.encode_example(row)) for row in ROWS]
    assert f"{sum(sizes)} bytes: {min(sizes)} to {max(sizes)}," in result.stdout
    assert words(TABLE)[1:] == lines[1:]


def test_distributions():
    rng = np.random.default_rng(1)
    rows = [
        {
            "kind": "cat" if i % 4 else "dog",
            "number": rng.standard_normal(3).astype(np.float32),
            "constant": 7,
            "picture": bytes(1000 + i % 3),
            "empty": b"",
            "code": b"\xff\xfe\0",
        }
        for i in range(400)
    ]
    tfw.write_records("rows", rows)
    lines = tfwire_main("stats", "rows").stdout.decode().splitlines()
    cells = {line.split()[0]: line for line in lines[2:]}
    assert lines[1].endswith("distribution of 400 records")
    assert cells["kind"].endswith("  cat 75 %, dog 25 %")
    assert cells["empty"].endswith("   100 %")
    assert cells["constant"].endswith(" 7")
    assert re.search(r"  ▁[▁-█]*█[▁-█]*▁$", cells["number"])
    assert re.search(r" B +█ {7}█ {6}█$", cells["picture"])
    features = json.loads(tfwire_main("stats", "--json", "rows").stdout)["features"]
    kinds = {name: feature["kinds"] for name, feature in features.items()}
    assert [{"value": "cat", "count": 300}, {"value": "dog", "count": 100}] == (
        kinds["kind"]["string"]["frequent"]
    )
    assert cells["code"].endswith("  3 B: ff fe 00 100 %")
    assert [{"value": {"base64": "//4A"}, "count": 400}] == kinds["code"]["string"]["frequent"]
    histogram = kinds["number"]["float32"]["histogram"]
    numbers = np.concatenate([row["number"] for row in rows]).astype(float)
    assert histogram["counts"] == np.histogram(numbers, 16)[0].tolist()
    assert (numbers.min(), numbers.max()) == (histogram["low"], histogram["high"])
    assert "histogram" not in kinds["constant"]["int64"]
    assert "distinct" not in kinds["picture"]["string"]


def test_different_strings_are_counted():
    """Of which three are shown: the most frequent."""
    names = ["cat"] * 50 + ["dog"] * 30 + ["goat"] * 10 + [f"user{i}" for i in range(10)] * 2
    tfw.write_records("rows", [{"name": name} for name in names])
    shown = tfwire_main("stats", "rows").stdout.decode()
    assert shown.endswith("  13 different: cat 45 %, dog 27 %, goat 9 %\n")
    found = json.loads(tfwire_main("stats", "--json", "rows").stdout)["features"]["name"]
    assert 13 == found["kinds"]["string"]["distinct"]


def test_distributions_are_those_of_records_from_everywhere():
    tfw.write_records("many", [{"i": i, "s": f"{i // 2500}"} for i in range(10_000)])
    found = json.loads(tfwire_main("stats", "--json", "many").stdout)
    assert 1000 == found["sampled"]
    kinds = found["features"]["i"]["kinds"]["int64"]
    assert all(30 < count < 100 for count in kinds["histogram"]["counts"])  # 62.5, give or take
    frequent = found["features"]["s"]["kinds"]["string"]["frequent"]
    assert ["0", "1", "2", "3"] == sorted(each["value"] for each in frequent)
    assert 1000 == sum(each["count"] for each in frequent)


def sample_of(path, num_records):
    """Of a file, whose records come so many at a time."""
    sample = RecordSample()
    with BatchReader([path], make_options(max_record_size=None)) as reader:
        while (batch := reader.next(num_records)) is not None:
            sample.add(batch, batch.count)
    return sample


def test_the_sample_does_not_depend_on_the_batches():
    tfw.write_records("many", [{"i": i} for i in range(20_000)])
    samples = [sample_of("many", num_records) for num_records in (1, 7, 999, 1000, 0)]
    assert {1000} == set(map(len, samples))
    numbers = [
        np.concatenate(sample.features().of("i", is_list=False)["int64"].numbers)
        for sample in samples
    ]
    assert all(np.array_equal(numbers[0], found) for found in numbers)
    assert 1000 == len(set(numbers[0].tolist()))


def test_every_record_is_drawn_with_the_same_chance():
    tfw.write_records("many", [{"i": i} for i in range(300_000)])
    drawn = sample_of("many", 0).features().of("i", is_list=False)["int64"]
    assert all(60 < count < 140 for count in drawn.histogram(10).counts)  # 100, give or take


def test_the_sample_has_what_the_records_have():
    """Features of several kinds and of none, feature lists, and records of many values."""
    rng = np.random.default_rng(1)
    kinds = [
        lambda: rng.integers(0, 9, rng.integers(0, 4)),
        lambda: rng.random(2, np.float32),
        lambda: [b"x" * int(n) for n in rng.integers(0, 500, rng.integers(0, 3))],
        list,
        lambda: np.arange(40_000),  # longer than a record that is decoded at the end
    ]
    rows = [{name: kinds[rng.integers(5)]() for name in "ab"} for _ in range(300)]
    lists = [{"l": [kinds[i]() for _ in range(3)]} for i in rng.integers(4, size=len(rows))]
    tfw.write_records("rows", map(tfw.encode_sequence_example, rows, lists))
    found = sample_of("rows", 0).features()
    for name, steps in (
        ("a", [row["a"] for row in rows]),
        ("b", [row["b"] for row in rows]),
        ("l", [step for each in lists for step in each["l"]]),
    ):
        samples = found.of(name, is_list=name == "l")
        assert {"int64", "float32", "string"} == samples.keys()
        some = [step[:: -(-len(step) // 64) or 1] for step in steps]
        for kind in ("int64", "float32"):
            expected = [v for v in some if not isinstance(v, list) and str(v.dtype) == kind]
            numbers = np.concatenate(samples[kind].numbers)
            assert kind == str(numbers.dtype)
            assert np.array_equal(np.sort(np.concatenate(expected)), np.sort(numbers))
        strings = [s for v in some if isinstance(v, list) for s in v]
        assert sorted(map(len, strings)) == sorted(samples["string"].lengths)
        short = [s for s in strings if len(s) <= 256]
        assert sorted(short) == sorted(samples["string"].strings.elements())


def test_large_integers_that_lie_close_together():
    """As times in nanoseconds do: float64 has one value for 256 of them."""
    first = 1_700_000_000_000_000_000
    extremes = [-(2**63), 2**63 - 1, 0]
    tfw.write_records("t", [{"t": first + i, "e": extremes[i % 3]} for i in range(64)])
    features = json.loads(tfwire_main("stats", "--json", "t").stdout)["features"]
    histograms = {name: f["kinds"]["int64"]["histogram"] for name, f in features.items()}
    assert {"low": first, "high": first + 63, "counts": [4] * 16} == histograms["t"]
    assert [22, *[0] * 7, 21, *[0] * 6, 21] == histograms["e"]["counts"]


def test_bars_and_strings_where_the_terminal_has_ascii_only():
    tfw.write_records("rows", [{"a": i, "b": "\N{SNOWMAN}\x1b[31m"} for i in range(16)])
    result = tfwire_command("stats", "rows", encoding="ascii")
    assert (0, "") == (result.returncode, result.stderr)
    lines = result.stdout.splitlines()
    assert lines[2].endswith("  " + "#" * 16)
    assert lines[3].endswith(r"  \u2603\x1b[31m 100 %")


def test_standard_output_may_have_no_encoding():
    """As where a program catches what is printed."""
    tfw.write_records("rows", [{"a": i} for i in range(16)])
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert 0 == main(["stats", "rows"])
    assert printed.getvalue().endswith("  " + "#" * 16 + "\n")


def test_a_plot_needs_a_name_and_matplotlib(folder, monkeypatch):
    for output in ("plot.jpg", "plot"):
        result = tfwire_main("stats", "--plot", output, "in")
        assert (2, b"") == (result.returncode, result.stdout)
        assert b"--plot OUT must end in .png, .svg or .pdf" in result.stderr
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = tfwire_main("stats", "--plot", "plot.png", "in")
    assert (1, b"") == (result.returncode, result.stdout)
    assert b"--plot needs matplotlib: pip install 'tfwire[plot]'" in result.stderr
    assert ["in"] == [path.name for path in folder.iterdir()]


def test_json():
    found = json.loads(tfwire_main("stats", "--json", "in").stdout)
    assert (3, {}) == (found["records"], found["feature_lists"])
    assert {"label", "name", "nothing", "x"} == set(found["features"])
    label = found["features"]["label"]
    assert (3, 1, 2) == (label["records"], label["min_count"], label["max_count"])
    numbers = {"records": 3, "values": 4, "min": -300, "max": 3, "sum": -294, "nans": 0}
    histogram = {"low": -300, "high": 3, "counts": [1, *[0] * 14, 3]}
    assert {"int64": {**numbers, "mean": -73.5, "histogram": histogram}} == label["kinds"]
    x = found["features"]["x"]["kinds"]["float32"]
    assert ("Infinity", 1, 0.5) == (x["max"], x["nans"], x["min"])
    assert {} == found["features"]["nothing"]["kinds"]


def test_feature_lists_and_several_files():
    message = tfw.encode_sequence_example({"label": 7}, {"frames": [[1, 2], [3]]})
    tfw.write_records("sequences", [message], "GZIP")
    result = tfwire_main("stats", "in", "sequences")
    assert 0 == result.returncode
    lines = words(result.stdout.decode())
    row = next(line for line in lines if line[0] == "frames[]")
    assert "frames[] int64 1 (25 %) 2 of 1 to 2 1 2 3 █ █ █" == " ".join(row)
    assert ["label", "int64", "4"] in [line[:3] for line in lines]


def test_kinds_that_disagree_have_a_row_each():
    tfw.write_records("mixed", [{"a": 1}, {"a": "xy"}, {"a": 2}], kinds="any")
    lines = words(tfwire_main("stats", "mixed").stdout.decode())[2:]
    assert [["a", "int64", "2", "(67"], ["a", "string", "1", "(33"]] == [row[:4] for row in lines]


def test_shares_are_rounded_but_none_and_all_are_exact():
    tfw.write_records("many", [{"a": 1}] * 999 + [{"b": 1}])
    lines = words(tfwire_main("stats", "many").stdout.decode())[2:]
    assert [["(99"], ["(1"]] == [row[3:4] for row in lines]


def test_damage_is_left_out_and_reported(folder):
    damage(folder / "in", 20)
    result = tfwire_main("stats", "in")
    assert 1 == result.returncode
    assert result.stdout.startswith(b"in: 2 records of ")
    assert b"tfwire stats: in: left out bytes 0 to " in result.stderr


def test_a_record_that_is_no_example_ends_its_file():
    tfw.write_records(
        "other", [tfw.encode_example({"a": 1}), b"\xff", tfw.encode_example({"b": 1})]
    )
    result = tfwire_main("stats", "other", "in")
    assert 1 == result.returncode
    assert b"tfwire stats: other: record 1 is not an Example" in result.stderr
    assert b"label" in result.stdout


def test_sizes_are_those_of_the_records_before_one_that_is_no_example():
    records = [tfw.encode_example({"a": 1}), tfw.encode_example({"a": "longer"})]
    tfw.write_records("other", [*records, b"\xff", *records])
    sizes = [len(record) for record in records]
    result = tfwire_main("stats", "other")
    assert 1 == result.returncode
    headline = f"other: 2 records of {sum(sizes)} bytes: {sizes[0]} to {sizes[1]}, mean "
    assert result.stdout.decode().startswith(headline)
    found = json.loads(tfwire_main("stats", "--json", "other").stdout)
    assert [2, sum(sizes), *sizes] == [
        found[key] for key in ("records", "payload_bytes", "shortest", "longest")
    ]


def test_an_empty_file_has_no_rows(folder):
    (folder / "empty").write_bytes(b"")
    result = tfwire_main("stats", "empty")
    assert (0, b"empty: 0 records of 0 bytes: 0 to 0, mean 0.0\n") == (
        result.returncode,
        result.stdout,
    )
    assert 0 == json.loads(tfwire_main("stats", "--json", "empty").stdout)["records"]


def test_many_features_are_not_all_listed():
    tfw.write_records("wide", [{f"f{i}": i for i in range(1200)}])
    result = tfwire_main("stats", "wide")
    assert b"of 1,200 rows only 1,000 are listed" in result.stdout
    assert 1200 == len(json.loads(tfwire_main("stats", "--json", "wide").stdout)["features"])


def test_presence_is_that_of_the_messages_and_of_the_viewer():
    """A feature is present if its message has it: also an empty list, and one that says no kind."""
    one, none = train.Feature(int64_list={"value": [1]}), train.Feature(int64_list={})
    text, no_text = train.Feature(bytes_list={"value": [b"x"]}), train.Feature(bytes_list={})
    unset = train.Feature()
    rows = [
        {"a": one, "b": text, "c": none, "d": no_text, "e": unset, "f": one},
        {"a": none, "b": no_text, "c": none, "d": no_text, "e": unset, "f": text},
        {"a": unset, "b": unset, "f": unset},
        {"f": none},
    ]
    messages = [train.Example(features={"feature": row}) for row in rows]
    tfw.write_records("presence", [message.SerializeToString() for message in messages])
    present = {name: sum(name in row for row in rows) for name in "abcdef"}
    found = json.loads(tfwire_command("stats", "--json", "presence").stdout)["features"]
    assert present == {name: feature["records"] for name, feature in found.items()}
    table = [line[:4] for line in words(tfwire_command("stats", "presence").stdout)[2:]]
    shares = {name: f"{25 * count}" for name, count in present.items()}
    assert [
        *(["a", "int64", "3", "(75"], ["b", "string", "3", "(75"], ["c", "int64", "2", "(50"]),
        *(["d", "string", "2", "(50"], ["e", "empty", "2", "(50"]),
        *(["f", "int64", "2", "(50"], ["f", "string", "1", "(25"], ["f", "empty", "1", "(25"]),
    ] == table
    summary = FeatureSummary(BrowsedFile("presence").first(10))
    shown = {re.sub("<.*?>", "", str(row[0])): row[1:3] for row in summary.rows()}
    assert {name: f"{share} %" for name, share in shares.items()} == {
        name: share for name, (_, share) in shown.items()
    }
    kinds = {name: str(kind) for name, (kind, _) in shown.items()}
    assert {"a": "int64", "b": "string", "c": "int64", "d": "string", "e": "empty"} == {
        name: kinds[name] for name in "abcde"
    }
