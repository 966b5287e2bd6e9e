"""tfwire diff: which records differ, and in which features."""

import gzip
import json
import os
import random
from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

import tfwire as tfw
import tfwire.cli.diff
from helpers.command import tfwire_command, tfwire_main
from helpers.reading import damage
from helpers.reference import frame

pytestmark = pytest.mark.usefixtures("folder")


def rows(count=100):
    return [{"id": i, "name": f"name {i}", "image": b"\xff%d" % i * 2000} for i in range(count)]


def diff(*words, status=None):
    """The lines that it prints."""
    result = tfwire_command("diff", *words)
    assert status is None or status == result.returncode, result.stderr
    return result.stdout.splitlines()


def as_json(*words):
    *differences, sums = map(json.loads, diff(*words, "--json", "--limit", "10000"))
    return differences, sums


def write(name, records, *options):
    rows = [row if isinstance(row, bytes) else tfw.encode_example(row) for row in records]
    tfw.write_records(name, rows, *options)
    return name


@pytest.mark.parametrize("name", ["b", "b.gz", "b.zlib"])
def test_the_same(name):
    write("a", rows())
    write(name, rows(), {"b.gz": "GZIP", "b.zlib": "ZLIB"}.get(name))
    assert [f"a and {name}: the same 100 records"] == diff("a", name, status=0)
    assert [] == diff("a", name, "--quiet", status=0)
    assert ([], True) == (as_json("a", name)[0], as_json("a", name)[1]["same"])


def test_changed_features():
    changed = rows(8)
    changed[0]["id"] = -1
    changed[1]["name"] = "\x1b[31mred"
    changed[2]["image"] = changed[2]["image"][:3000] + b"?" + changed[2]["image"][3001:]
    del changed[3]["name"]
    changed[4]["new"] = [0.5] * 7
    changed[5]["id"] = [5, 6]
    changed[6]["id"] = 6.0
    write("a", rows(8))
    write("b", changed)
    size = len(changed[2]["image"])
    assert [
        "a and b: 7 changed, of 8 and 8 records",
        "  changed: record 0",
        "      id: 0 -> -1",
        "  changed: record 1",
        '      name: "name 1" -> "\\x1b[31mred"',
        "  changed: record 2",
        f"      image: {size:,} bytes -> {size:,} bytes, from byte 3,000 on",
        "  changed: record 3",
        '      name: "name 3" -> absent',
        "  changed: record 4",
        "      new: absent -> [0.5, 0.5, 0.5, 0.5, ... 7 in all]",
        "  changed: record 5",
        "      id: 5 -> [5, 6]",
        "  changed: record 6",
        "      id: 6 -> 6.0",
    ] == diff("a", "b", status=1)


def test_values_that_look_the_same():
    write("a", [{"x": [1.0] * 9, "s": [b"\xff" * 9] * 2}, {"x": []}, {"x": float("nan")}, b"?"])
    write("b", [{"x": [1.0] * 8 + [2.0], "s": [b"\xff" * 9, b"\xff\0" + b"\xff" * 7]}]
          + [{"x": []}, {"x": float("nan")}, b"!"])  # fmt: skip
    assert [
        "  changed: record 0",
        "      s: [1] 9 bytes -> 9 bytes, from byte 1 on",
        "      x: [8] 1.0 -> 2.0",
        "  changed: record 3",
        '      the bytes: "?" -> "!"',
    ] == diff("a", "b")[1:]


def test_a_feature_without_a_name_is_not_the_bytes():
    write("a", [{"": 1}, b"?"])
    write("b", [{"": 2}, b"!"])
    named, other = (each["features"] for each in as_json("a", "b")[0])
    assert [{"name": "", "a": "1", "b": "2"}] == named
    assert [None] == [each["name"] for each in other]
    assert "the bytes" not in diff("a", "b")[2]


def test_differences_are_printed_as_they_are_found(monkeypatch):
    """Each pair is compared after those before it are printed."""
    write("a", [{"x": i} for i in range(3)])
    write("b", [{"x": -1 - i} for i in range(3)])
    order = []
    compare, show = tfwire.cli.diff.different_features, tfwire.cli._arguments.print_json
    monkeypatch.setattr(
        tfwire.cli.diff, "different_features", lambda *two: order.append("read") or compare(*two)
    )
    monkeypatch.setattr(
        tfwire.cli._arguments, "print_json", lambda line: order.append("print") or show(line)
    )
    diff("a", "b", "--json", status=1)
    assert ["read", "print"] * 3 + ["print"] == order


def test_feature_lists():
    def sequence(steps):
        return tfw.encode_sequence_example({"length": 1}, {"steps": steps})

    write("a", [sequence([[1], [2], [3], [4], [5]])])
    write("b", [sequence([[1], [2], [3], [4], [6]])])
    assert ["  changed: record 0", "      steps: [4] 5 -> 6"] == diff("a", "b")[1:]


def test_missing_added_and_moved():
    other = rows()
    del other[10:13]
    other.insert(50, {"id": 1000})
    other.append(other.pop(30))
    write("a", rows())
    write("b", other)
    assert [
        "a and b: 3 missing, 1 added, 1 moved, of 100 and 98 records",
        "  missing: records 10 to 12 of A (3 records)",
        "  moved: record 33 of A is record 97 of B",
        "  added: record 49 of B",
    ] == diff("a", "b", status=1)
    assert "1 more record differs (--limit)" in diff("a", "b", "--limit", "2")[-1]


def test_another_order_is_said_as_such():
    write("a", rows())
    write("b", rows()[50:] + rows()[:50])
    assert [
        "a and b: the same 100 records in another order, 50 of them moved",
        "  moved: records 0 to 49 of A are records 50 to 99 of B",
    ] == diff("a", "b", status=1)
    assert 1 == len(diff("a", "b", "--ignore-order", status=0))


def test_shuffled_records_are_compared_as_a_set():
    write("a", rows())
    write("b", random.Random(1).sample(rows(), 100))
    assert ["a and b: the same 100 records in another order"] == diff("a", "b", status=1)
    assert 1 == len(diff("a", "b", "--ignore-order", status=0))
    write("b", random.Random(1).sample([*rows()[:90], {"id": 1000}], 91))
    first, *lines = diff("a", "b", status=1)
    found = "10 missing, 1 added, of 100 and 91 records; the others in another order"
    assert f"a and b: {found}" == first
    assert ["added", "missing"] == sorted(line.split(":")[0].strip() for line in lines)
    assert "  missing: records 90 to 99 of A (10 records)" in lines
    differences, sums = as_json("a", "b")
    assert (2, True) == (len(differences), sums["shuffled"])


def test_data_sets_of_several_shards():
    write("a", rows())
    other = rows()
    other[70]["id"] = -1
    for number in range(3):
        write(f"b-{number:05d}-of-00003", other[number * 40 : number * 40 + 40])
    expected = ["  changed: record 70 of A, record 70 (b-00001-of-00003: 30) of B"]
    assert [*expected, "      id: 70 -> -1"] == diff("a", "b@3", status=1)[1:]
    assert 1 == len(diff("b@3", "b-*", status=0))


def test_equal_lengths_and_checksums_prove_nothing():
    """Two records of the same CRC-32C and length: a multiple of its polynomial apart."""
    one, bits = bytes(20), 0x11EDC6F41
    two = int(f"{bits:033b}"[::-1], 2).to_bytes(20, "little")
    assert tfw.crc32c(one) == tfw.crc32c(two)
    write("a", [one])
    write("b", [two])
    assert [{"kind": "changed", "a": 0, "b": 0}] == [
        {key: each[key] for key in ("kind", "a", "b")} for each in as_json("a", "b")[0]
    ]


# ---- Damage, and trouble ------------------------------------------------------------------------


def test_a_damaged_file_is_compared_by_what_verifies():
    write("a", rows())
    damage("a", 5000, "b")
    result = tfwire_command("diff", "a", "b")
    assert 1 == result.returncode
    assert "tfwire diff: b: left out bytes" in result.stderr
    assert "  missing: record 1 of A" in result.stdout
    result = tfwire_command("diff", "b", "b")
    assert (1, "b and b: the same 99 records\n") == (result.returncode, result.stdout)


def test_changed_records_after_damage_are_found_again():
    other = rows()
    other[60]["id"] = -1
    write("a", rows())
    write("c", other)
    damage("c", 5000, "b")
    with open("b", "rb") as file:
        data = file.read()
    with open("b.gz", "wb") as file:
        file.write(gzip.compress(data))
    for name in ("b", "b.gz"):
        found = diff("a", name)
        assert "      id: 60 -> -1" in found
        assert "  changed: record 60 of A, record 59 of B" in found


def test_trouble_is_2():
    write("a", rows())
    for words in (["a", "missing"], ["missing", "a"], ["a", "none-*"], ["a"], ["-", "-"]):
        result = tfwire_command("diff", *words)
        assert (2, "") == (result.returncode, result.stdout)
        assert result.stderr.startswith(("tfwire diff: ", "usage: "))


def test_standard_input_is_read_once():
    write("a", rows())
    write("b", rows()[1:])
    with open("b", "rb") as file:
        result = tfwire_main("diff", "a", "-", stdin=file.read())
    assert b"a and -: 1 missing, of 100 and 99 records\n  missing: record 0 of A\n" == result.stdout


def test_names_and_keys_are_escaped():
    name = "a\x1b[31m"
    write(name, [{"\x1b]0;t\x07": "\u202e"}])
    write("b", [{"\x1b]0;t\x07": "\u2066", "x": b"\x9b"}])
    for words in ([name, "b"], ["b", name], [name, "b", "--json"]):
        shown = "\n".join(diff(*words, status=1))
        assert all(line.isprintable() for line in shown.split("\n"))


# ---- A model ------------------------------------------------------------------------------------

NUMBERS = st.lists(st.integers(0, 9), max_size=20)


@settings(max_examples=60)
@given(NUMBERS, NUMBERS, st.integers(1, 3), st.booleans())
def test_it_says_what_a_simple_model_says(a, b, parts, compressed):
    """As multisets; in the order of A; and the status."""
    records = [[b"%d" % number * number for number in each] for each in (a, b)]
    os.makedirs("model", exist_ok=True)
    write("model/a", records[0])
    for name in os.listdir("model"):
        os.unlink(f"model/{name}")
    write("model/a", records[0])
    for part in range(parts):
        share = records[1][part * 7 : part * 7 + 7 if part < parts - 1 else None]
        data = b"".join(map(frame, share))
        with open(f"model/b-{part:05d}-of-{parts:05d}", "wb") as file:
            file.write(gzip.compress(data) if compressed else data)
    differences, sums = as_json("model/a", f"model/b@{parts}")
    kinds = Counter()
    for each in differences:
        kinds[each["kind"]] += each["num_records"]
    assert [len(a), len(b)] == sums["records"]
    assert {kind: sums[kind] for kind in kinds} == kinds
    missing = sum((Counter(records[0]) - Counter(records[1])).values())
    added = sum((Counter(records[1]) - Counter(records[0])).values())
    assert missing == sums["missing"] + sums["changed"]
    assert added == sums["added"] + sums["changed"]
    assert sums["same"] == (records[0] == records[1])
    assert sums["same_records"] == (missing == added == 0)
    status = tfwire_command("diff", "model/a", f"model/b@{parts}", "-q").returncode
    assert status == (records[0] != records[1])
