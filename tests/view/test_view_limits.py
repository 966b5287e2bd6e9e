"""What the viewer shows of files that are large in some way, and what it finds in them."""

from __future__ import annotations

import io
import re
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

import tfwire as tfw
from helpers.view.viewing import jpeg
from tfwire._records.reading.damage import RecordPosition
from tfwire.view import as_html
from tfwire.view._budget import Allowance, Budget
from tfwire.view._frozen import frozen_page
from tfwire.view._media import likely_content
from tfwire.view._pictures import colored_mask
from tfwire.view._records import BrowsedFile, FeatureName, decoded_record
from tfwire.view._search import search_for
from tfwire.view._summary import FeatureSummary


def text_of(html):
    return re.sub("<.*?>", "", html)


def summarized(path):
    return FeatureSummary(BrowsedFile(str(path)).first(1000))


def rows_of(summary):
    return {text_of(row[0]): [text_of(cell) for cell in row[1:]] for row in summary.rows()}


def frozen(*paths, num_records=100, num_bytes=5_000_000):
    return frozen_page([BrowsedFile(str(path)) for path in paths], num_records, num_bytes).text


# ---- Large records ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "large.tfrecord"
    with tfw.TFRecordWriter(path) as writer:
        for i in range(7):
            writer.write({"x": bytes(12 << 20), "i": i})
    return path


def test_a_page_ends_at_its_bytes(large):
    file, place, pages = BrowsedFile(str(large)), RecordPosition(), []
    while place is not None:
        page = file.page(place, 50)
        pages.append([record.number for record in page.records])
        assert not any(record.payload for record in page.records)
        place = page.next
    assert [[0, 1, 2], [3, 4, 5], [6]] == pages


def test_values_that_take_more_than_their_record_count(tmp_path):
    """An int64 may be a single byte."""
    path = tmp_path / "small.tfrecord"
    with tfw.TFRecordWriter(path) as writer:
        for _ in range(5):
            writer.write({"x": np.ones((2 << 20) - 64, np.int64)})
    assert 3 == len(BrowsedFile(str(path)).page(RecordPosition(), 50).records)


def test_a_summary_ends_at_its_bytes(large):
    assert 3 == summarized(large).num_records
    assert 1 == len(list(BrowsedFile(str(large)).first(10, Budget(num_bytes=1))))


def test_a_frozen_page_ends_at_its_bytes(large):
    page = frozen(large, num_bytes=1)
    assert "the first 3 records" in page
    assert 3 == page.count("<section>")


# ---- Many features ------------------------------------------------------------------------------


def test_the_first_features_of_many(tmp_path):
    path = tmp_path / "wide.tfrecord"
    rows = [{f"f{i:06}": i for i in range(100_000)}, {"a": 1}]
    tfw.write_records(path, rows)
    file = BrowsedFile(str(path))
    first, second = file.page(RecordPosition(), 10).records
    assert (1000, 99_000) == (len(first.features), first.left_out)
    assert (1, 0) == (len(second.features), second.left_out)
    assert all(rows[0][name] == value for name, value in first.features.items())
    page = frozen(path)
    assert page.count("99,953 more features") == 1  # 48 of 1,001 names are columns
    assert "99,000 more features" in page  # of the record alone
    assert "99,500 more features" in page  # of the summary
    assert len(page) < 400_000
    assert summarized(path).specification is None


def test_features_up_to_some_thousands_are_in_the_specification(tmp_path):
    path = tmp_path / "wide.tfrecord"
    tfw.write_records(path, [{f"f{i:06}": i for i in range(5000)}])
    summary = summarized(path)
    assert (5000, 500) == (summary.num_features, len(list(summary.rows())))
    assert 5000 == len(summary.specification)


def test_context_and_feature_lists_have_names():
    context = {f"c{i}": i for i in range(5)}
    lists = {f"l{i}": [[i]] * 3 for i in range(4)}
    found = decoded_record(0, 0, tfw.encode_sequence_example(context, lists))
    assert [FeatureName("c0"), FeatureName("l0", True)] == [found.names[0], found.names[5]]


# ---- One name for a feature and a feature list --------------------------------------------------


@pytest.fixture
def twice(tmp_path):
    path = tmp_path / "twice.tfrecord"
    record = tfw.encode_sequence_example({"a": [11]}, {"a": [["x"], ["y", "needle"]], "n": [[7]]})
    tfw.write_records(path, [record])
    return path


def test_a_feature_and_a_feature_list_of_one_name_are_both_shown(twice):
    rows = rows_of(summarized(twice))
    assert ["int64", "always 11"] == [rows["a"][0], rows["a"][3]]
    assert "string" == rows["a[]"][0]
    text = text_of(frozen(twice))
    assert 3 == text.count("a[]")
    with tfw.TFRecordFile(twice) as records:
        shown = text_of(as_html(records))
    assert "a[]" in shown
    assert "11" in shown


def test_feature_lists_are_searched(twice):
    (record,) = BrowsedFile(str(twice)).page(RecordPosition(), 1).records
    for name, is_list, text, expected in [
        ("a", True, "needle", True),
        ("a", True, "x", True),
        ("a", True, "11", False),
        ("a", False, "11", True),
        ("a", False, "x", False),
        ("n", True, "7", True),
        ("n", True, "", True),
        ("n", False, "", False),
    ]:
        assert expected == search_for(FeatureName(name, is_list), text)(record), (name, text)
    assert [True, True, True, False] == [
        search_for(None, text)(record) for text in ("eedl", "11", "7", "8")
    ]


def test_a_search_of_all_features_leaves_out_what_is_not_text(tmp_path):
    record = decoded_record(0, 0, tfw.encode_example({"image": jpeg(0), "name": "JF"}))
    assert search_for(FeatureName("image"), "JFIF")(record)
    assert not search_for(None, "JFIF")(record)
    assert search_for(None, "JF")(record)


def test_numbers_are_searched_exactly():
    big = 2**62 + 1
    record = decoded_record(0, 0, tfw.encode_example({"i": [big, 1000], "f": [0.1, 1e30]}))
    for text, expected in [
        (str(big), True),
        (str(big - 1), False),
        ("1e3", True),
        ("1.5", False),
        ("9" * 30, False),
    ]:
        assert expected == search_for(FeatureName("i"), text)(record), text
    assert search_for(FeatureName("f"), "0.1")(record)


# ---- A page in one file -------------------------------------------------------------------------


def test_films_of_a_frozen_page_come_after_the_pictures_of_rows(tmp_path):
    path = tmp_path / "film.tfrecord"
    rows = [{"film": [jpeg(10 * i + k) for i in range(8)]} for k in range(3)]
    tfw.write_records(path, rows)
    page = frozen(path, num_bytes=sum(len(row["film"][0]) for row in rows) + len(jpeg(0)) + 9)
    assert 4 == page.count('src="data:')
    assert 6 == page.count('data-copy="p')  # one for each row and tile
    everything = frozen(path)
    assert 24 == everything.count('src="data:')


@pytest.mark.parametrize(("counts", "num_records", "expected"), [
    ([5, 100], 50, [5, 45]),
    ([100, 5], 50, [45, 5]),
    ([3] * 300, 100, [1] * 100),
    ([100, 100, 100], 10, [3, 3, 4]),
    ([1, 1], 100, [1, 1]),
])  # fmt: skip
def test_shares_of_files(tmp_path, counts, num_records, expected):
    paths = []
    for i, count in enumerate(counts):
        paths.append(tmp_path / f"{i:03}")
        tfw.write_records(paths[-1], [{"i": k} for k in range(count)])
    page = frozen(*paths, num_records=num_records)
    found = re.findall(r"(?:all|first) ([0-9]+) record", page)
    assert expected == list(map(int, found))
    left = len(counts) - len(expected)
    assert (f"{left} more files not shown" in page) == bool(left)


# ---- Masks, sizes, histograms -------------------------------------------------------------------


def png(pixels, mode="L", **options):
    out = io.BytesIO()
    image = Image.fromarray(pixels)
    if mode == "P":
        image.putpalette(bytes(i for i in range(256) for _ in range(3)))
    image.save(out, "png", **options)
    return out.getvalue()


def filtered(pixels, kind):
    """A PNG file of grays whose lines all have one filter."""
    above, lines = np.zeros(pixels.shape[1], np.uint8), b""
    for row in pixels:
        left, corner = np.append(np.uint8(0), row[:-1]), np.append(np.uint8(0), above[:-1])
        a, b, c = (each.astype(int) for each in (left, above, corner))
        distances = [abs(b - c), abs(a - c), abs(a + b - 2 * c)]
        nearest = np.where(
            (distances[0] <= distances[1]) & (distances[0] <= distances[2]),
            a,
            np.where(distances[1] <= distances[2], b, c),
        )
        predicted = [0 * a, a, b, (a + b) // 2, nearest][kind]
        lines += bytes([kind]) + (row - predicted).astype(np.uint8).tobytes()
        above = row
    height, width = pixels.shape

    def chunk(name, data):
        crc = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + crc

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    start = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
    return start + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def colored_of(file):
    return colored_mask(file, Allowance(1_000_000))


@pytest.mark.parametrize("mode", ["L", "P"])
def test_masks_in_png_have_a_color_per_class(mode):
    mask = np.random.default_rng(0).integers(0, 3, (20, 30), np.uint8)
    mask[:3] = 255
    image = Image.open(io.BytesIO(colored_of(png(mask, mode))))
    assert np.array_equal(mask, np.asarray(image))
    colors = np.asarray(image.convert("RGB"))
    assert {(128, 0, 0)} == set(map(tuple, colors[mask == 1]))
    assert {(0, 128, 0)} == set(map(tuple, colors[mask == 2]))
    assert {(224, 224, 192)} == set(map(tuple, colors[mask == 255]))


@pytest.mark.parametrize("kind", range(5))
def test_masks_of_every_filter(kind):
    mask = np.random.default_rng(kind).integers(0, 32, (9, 13), np.uint8)
    for highest in (31, 32):
        mask[4, 5] = highest
        file = filtered(mask, kind)
        assert np.array_equal(mask, np.asarray(Image.open(io.BytesIO(file))))
        assert (highest == 32) == (file == colored_of(file))


def test_other_images_are_left_as_they_are():
    gray = np.arange(256, dtype=np.uint8).reshape(16, 16)
    small = gray % 8
    files = [png(gray), png(np.stack([small] * 3, axis=-1)), png(small.astype(bool))]
    files += [png(small, transparency=3), png(small)[:45], png(small).replace(b"IDAT", b"IDXX")]
    for file in (*files, jpeg(0), b""):
        assert file == colored_of(file)
    palette = io.BytesIO()
    image = Image.fromarray(small)
    image.putpalette(bytes(range(255, -1, -1)) * 3)
    image.save(palette, "png")
    assert palette.getvalue() == colored_of(palette.getvalue())


def test_bytes_are_those_of_the_file(tmp_path):
    path = tmp_path / "sizes"
    numbers = [0, 127, 128, 2**35, -1, 2**63 - 1]  # 1 + 1 + 2 + 6 + 10 + 9 bytes
    tfw.write_records(path, [{"i": numbers, "f": [0.5] * 10, "s": ["x" * 200, "y"]}])
    summary = summarized(path)
    sizes = {name.text: found.num_bytes for name, found in summary._features.items()}
    assert {"i": 29, "f": 40, "s": 200 + 3 + 1 + 2} == sizes


def test_few_integers_have_a_bar_each(tmp_path):
    path = tmp_path / "labels"
    tfw.write_records(path, [{"label": i % 10, "wide": 30 * i} for i in range(40)])
    rows = {text_of(row[0]): row[4] for row in summarized(path).rows()}
    assert 10 == rows["label"].count("v-")
    assert 20 < rows["wide"].count("v-")
    assert "M0 30v-30.0h11V30zM12 30" in rows["label"]


def test_several_kinds_are_listed(tmp_path):
    path = tmp_path / "kinds"
    gray = png(np.arange(256, dtype=np.uint8).reshape(16, 16))
    tfw.write_records(path, [{"image": jpeg(0)}, {"image": jpeg(9)}, {"image": gray}])
    assert "image/jpeg, image/png" == rows_of(summarized(path))["image"][0]


# ---- Records that are not Examples --------------------------------------------------------------


def test_what_a_record_that_is_not_an_example_may_be(tmp_path):
    other = tfw.train.Features(feature={"a": tfw.train.Feature()}).SerializeToString()
    assert "JPEG 40 x 30" == likely_content(jpeg(0, (40, 30)))
    assert likely_content(b"\xff\xfe") is None
    path = tmp_path / "images"
    tfw.write_records(path, [jpeg(7), b"\x18\x05", other[:0]])
    page = frozen(path)
    assert 1 == page.count('src="data:image/jpeg')
    assert 2 == page.count('data-copy="p0"')
    assert "not an Example, maybe another protocol buffer, with fields 3" in text_of(page)


def test_reprs_count_their_records(tmp_path):
    path = tmp_path / "one"
    tfw.write_records(path, [b"x"])
    with tfw.TFRecordFile(path) as records, tfw.TFRecordFiles([path]) as several:
        assert "of 1 record>" in repr(records)
        assert "<TFRecordFiles: 1 record in 1 file>" == repr(several)
