"""Objects as HTML, and what the viewer's pages are made of."""

from __future__ import annotations

import io
import math
import os
import re
import weakref
from html.parser import HTMLParser

import numpy as np
import pytest

import tfwire as tfw
from helpers.reading import damage
from helpers.view.viewing import encoded, wav
from tfwire._records.reading.damage import RecordPosition
from tfwire.view import as_html
from tfwire.view._dataset import DataSet
from tfwire.view._frozen import frozen_page
from tfwire.view._records import BrowsedFile, FeatureName
from tfwire.view._search import Search
from tfwire.view._summary import FeatureSummary

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e\"'&"


class Tags(HTMLParser):
    """The elements of a page with their attributes, and its text; raises at unbalanced tags."""

    VOID = ("meta", "img", "input", "br", "link")

    def __init__(self, page):
        super().__init__()
        self.found, self.open, self.text = [], [], ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def of(self, tag):
        return [attributes for found, attributes in self.found if found == tag]


# ---- Notebooks ----------------------------------------------------------------------------------


@pytest.fixture
def photos(tmp_path):
    path = tmp_path / "photos.tfrecord"
    with tfw.TFRecordWriter(path) as writer:
        for i in range(30):
            writer.write({"image": encoded("jpeg"), "label": i, HOSTILE: HOSTILE, "x": [0.1, i]})
    return path


def test_a_file_shows_its_first_records(photos):
    with tfw.TFRecordFile(photos) as records:
        page = records._repr_html_()
        several = tfw.TFRecordFiles([photos, photos])._repr_html_()
    tags = Tags(page)
    assert 20 == len(tags.of("img"))
    assert all(image["src"].startswith("data:image/jpeg;base64,") for image in tags.of("img"))
    assert "20 rows of 30" in tags.text
    assert "20 rows of 60" in Tags(several).text
    assert [] == tags.of("script")
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert r"\u202e" in tags.text


def test_records_that_are_no_examples(tmp_path):
    path = tmp_path / "other.tfrecord"
    tfw.write_records(path, [b"\xff\xfe" * 40, b"<b>text", b""])
    with tfw.TFRecordFile(path) as records:
        tags = Tags(records._repr_html_())
    assert "not an Example: ff fe" in tags.text
    assert [] == tags.of("b")


def test_a_schema_shows_its_features(photos):
    tags = Tags(tfw.infer_schema(photos)._repr_html_())
    assert "FixedLenFeature(shape=[2]" in tags.text
    assert "of 30 records" in tags.text
    assert [] == tags.of("script")


def test_a_dataset_shows_its_elements_and_reads_nothing(photos):
    dataset = tfw.TFRecordDataset(photos).batch(4).parse_example(tfw.infer_schema(photos))
    photos.unlink()
    tags = Tags(dataset._repr_html_())
    assert "float32[?, 2]" in tags.text
    assert "unknown until read" in Tags(dataset.map(len)._repr_html_()).text


def test_a_batch_shows_every_kind_of_column():
    records = tfw.encode_examples(
        [
            {"a": [1, 2], "s": ["x<y"], "n": 1.5, "m": np.zeros((2, 2))},
            {"a": [], "s": [], "n": 2.5, "m": np.ones((2, 2))},
        ]
    )
    features = {
        "a": tfw.VarLenFeature(tfw.int64),
        "s": tfw.RaggedFeature(tfw.string),
        "n": tfw.FixedLenFeature([], tfw.float32),
        "m": tfw.FixedLenFeature([2, 2], tfw.float32),
    }
    for bytes_as in ("object", "column"):
        batch = tfw.Parser(features, bytes_as=bytes_as).parse(records)
        tags = Tags(as_html(batch))
        for text in ("1, 2", "x<y", "1.5", "2 x 2", "float32 (2, 2, 2)", "no values"):
            assert text in tags.text
        assert "1, 2" not in Tags(as_html(batch, 0)).text
        for column in (batch["a"], batch["s"]):
            assert Tags(column._repr_html_()).of("table")
    assert "ab" in as_html(tfw.BytesColumn(b"ab", [0, 1, 2]))


def test_a_wrong_value_is_refused():
    with pytest.raises(TypeError, match=r"value must be a batch, .* found int"):
        as_html(3)
    with pytest.raises(TypeError, match="max_rows"):
        as_html({}, 1.5)
    with pytest.raises(ValueError, match="max_rows"):
        as_html({}, -1)


def test_cells_are_bounded(tmp_path):
    path = tmp_path / "long.tfrecord"
    with tfw.TFRecordWriter(path) as writer:
        writer.write({"a": "a" * 10**6, "b": encoded("png") + bytes(10**6), "c": range(10**5)})
        writer.write({f"key{i}": i for i in range(10_000)})
    with tfw.TFRecordFile(path) as records:
        page = records._repr_html_()
    assert len(page) < 20_000
    assert "100,000 values" in page
    assert "columns of 10,003" in page


def test_a_picture_in_a_cell_takes_64_kib_at_most():
    picture = encoded("png")
    largest = as_html({"a": np.array([picture + bytes(49_000 - len(picture))], object)})
    assert 65_000 < len(largest.split("<td>")[-1]) <= 64 << 10
    larger = as_html({"a": np.array([picture + bytes(49_152 - len(picture))], object)})
    assert "49,152 bytes" in larger
    assert "data:" not in larger


def test_a_notebook_shows_damage_in_its_row_and_a_closed_file_as_its_repr(numbers):
    index = tfw.RecordIndex.build(numbers)
    with open(numbers, "r+b") as file:
        file.seek(index.offsets[2] + 14)
        file.write(b"\xff\xff")
    os.utime(numbers, ns=(index.mtime_ns, index.mtime_ns))
    records = tfw.TFRecordFile(numbers, index)
    rows = Tags(records._repr_html_()).text
    assert f"record 2 at byte {index.offsets[2]}: " in rows
    records.close()
    assert records._repr_html_() is None
    files = tfw.TFRecordFiles([numbers])
    files.close()
    assert files._repr_html_() is None


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (np.array([["<a>", "b"]]), "<a>, b"),
        (np.array(["<a>"]), "<a>"),
        (np.array("z"), "z"),
        (np.array([["a", 3, None]], object), "a, 3, None"),
        (np.array([[True, False]]), "True, False"),
        (np.array(["2020-01-01"], "M8[D]"), "2020-01-01"),
        (np.array([["2020-01-01"]], "M8[ns]"), "2020-01-01T00:00:00.000000000"),
        (np.array([(1, 2.5)], "i4,f4"), "(1, 2.5)"),
        (np.array([[1 + 2j]]), "(1+2j)"),
    ],
)
def test_a_column_may_be_any_array_of_numpy(values, text):
    assert Tags(as_html({"x": values})).text.endswith(text)


# ---- Files in pages -----------------------------------------------------------------------------


@pytest.fixture
def numbers(tmp_path):
    path = tmp_path / "numbers.tfrecord"
    with tfw.TFRecordWriter(path) as writer:
        writer.write_columns({"n": range(1000), "name": [f"item {i}" for i in range(1000)]})
    return path


def shown(page):
    return [record.number for record in page.records]


@pytest.mark.parametrize("indexed", [False, True])
def test_pages_follow_each_other(numbers, indexed):
    if indexed:
        tfw.RecordIndex.build(numbers).save()
    file = BrowsedFile(str(numbers))
    file.load_count()
    assert (1000 if indexed else None) == file.num_records
    place, found = RecordPosition(), []
    while place is not None:
        page = file.page(place, 130)
        found += shown(page)
        place = page.next
    assert list(range(1000)) == found
    assert 1000 == file.num_records
    assert [700] == file.record(700).features["n"].tolist()
    assert file.record(1000) is None


def test_a_page_may_begin_at_a_number(numbers):
    offsets = tfw.RecordIndex.build(numbers).offsets
    file = BrowsedFile(str(numbers))
    for number in (600, 3, 999, 256, 512):
        assert (number, offsets[number]) == file.find(number)
        assert number == file.page(file.find(number), 1).records[0].number


def test_a_link_to_where_a_record_was_is_not_believed(numbers):
    """The file may hold others since."""
    offsets = tfw.RecordIndex.build(numbers).offsets
    file = BrowsedFile(str(numbers))
    assert 7 == file.page(RecordPosition(7, int(offsets[500])), 5).records[0].number
    file.page(RecordPosition(7, int(offsets[990])), 50)
    assert [8, 12, 999] == [file.record(n).features["n"][0] for n in (8, 12, 999)]


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
def test_damage_has_a_row_in_its_place(numbers):
    offsets = tfw.RecordIndex.build(numbers).offsets
    damage(numbers, offsets[40] + 20)
    file = BrowsedFile(str(numbers))
    page = file.page(RecordPosition(), 50)
    assert list(range(50)) == shown(page)
    damaged = page.records[40]
    assert ("damage", "data crc") == (damaged.kind, damaged.reason)
    assert offsets[41] - offsets[40] == damaged.size
    assert [50] == shown(file.page(page.next, 1))
    assert [900] == file.record(900).features["n"].tolist()
    assert damaged == file.record(40) == BrowsedFile(str(numbers)).record(40)


def test_a_search_leaves_out_the_others(numbers):
    def find(feature, text):
        name = None if feature is None else FeatureName(feature)
        search = Search(DataSet([BrowsedFile(str(numbers))]), name, text)
        search.start()
        search.wait(1001, 60)
        assert search.is_done
        return [place.position.record_index for place in search.found(0, 5)]

    assert [17] == find("n", "17")
    assert [17, 117, 170, 171, 172] == find("name", "17")
    assert [0, 1, 2, 3, 4] == find("n", "")
    assert [] == find("n", "x") == find("missing", "")
    assert [7] == find(None, "item 7")[:1]
    assert [17, 117, 170, 171, 172] == find(None, "17")


@pytest.fixture
def longest(monkeypatch):
    """The length from which records are too long to show."""
    monkeypatch.setattr("tfwire.view._records.LONGEST_RECORD", 64_000)
    return 64_000


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
def test_long_records_are_named_and_not_read(tmp_path, longest):
    path = tmp_path / "long.tfrecord"
    tfw.write_records(path, [b"a", bytes(longest + 1), b"b"])
    page = BrowsedFile(str(path)).page(RecordPosition(), 10)
    assert ["other", "long", "other"] == [record.kind for record in page.records]
    assert longest + 1 == page.records[1].size
    tags = Tags(frozen(path))
    assert "64,001 bytes: too long to show" in tags.text
    assert ["other"] * 3 == [row["class"] for row in tags.of("tr") if "class" in row]


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
@pytest.mark.parametrize("lost", [0, 1, 60_000])
def test_a_long_record_that_is_cut_off_is_damage(tmp_path, longest, lost):
    path = tmp_path / "long.tfrecord"
    tfw.write_records(path, [b"a", bytes(longest + 1)])
    os.truncate(path, path.stat().st_size - lost)
    _, last = BrowsedFile(str(path)).page(RecordPosition(), 10).records
    assert ("damage" if lost else "long") == last.kind


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
def test_zeros_after_a_long_record_are_not_walked(tmp_path, longest, monkeypatch):
    path = tmp_path / "long.tfrecord"
    tfw.write_records(path, [b"a", bytes(longest + 1)])
    os.truncate(path, path.stat().st_size + 16 * 100_000)
    opened = []
    with monkeypatch.context() as patch:
        patch.setattr("tfwire.view._records.open", counted(opened), raising=False)
        _, last = BrowsedFile(str(path)).page(RecordPosition(), 10).records
    assert "damage" == last.kind
    assert [2] == [file.reads for file in opened]


def counted(opened):
    """Opens files that count how often they are read."""

    class Counted(io.FileIO):
        reads = 0

        def read(self, size=-1):
            self.reads += 1
            return super().read(size)

    def open(path, mode):
        opened.append(Counted(path))
        return opened[-1]

    return open


def test_compressed_files_have_pages(numbers, tmp_path):
    path = tmp_path / "numbers.gz"
    tfw.write_records(path, tfw.read_records(numbers), "GZIP")
    file = BrowsedFile(str(path))
    page = file.page(RecordPosition(), 10)
    assert list(range(10, 20)) == shown(file.page(page.next, 10))


# ---- A page in one file -------------------------------------------------------------------------


def frozen(*paths, num_records=100, num_bytes=5_000_000, corners=()):
    files = [BrowsedFile(str(path)) for path in paths]
    return frozen_page(files, num_records, num_bytes, corners).text


def test_a_frozen_page_loads_nothing(photos):
    page = frozen(photos)
    tags = Tags(page)
    addresses = [a[key] for _, a in tags.found for key in ("src", "href") if key in a]
    assert len(addresses) > 60
    assert all(address.startswith(("data:image/", "#")) for address in addresses)
    policy = next(m["content"] for m in tags.of("meta") if "http-equiv" in m)
    assert policy.startswith("default-src 'none';")
    assert 1 == len(tags.of("script")) == len(tags.of("style"))
    ids = {attributes["id"] for _, attributes in tags.found if "id" in attributes}
    assert {a["href"][1:] for a in tags.of("a")} <= ids


def test_first_records_are_not_kept(numbers):
    found = BrowsedFile(str(numbers))
    assert [record.number for record in found.first(7)] == list(range(7))
    assert found.num_records is None
    alive = [weakref.ref(record.features["n"]) for record in found.first(1_000_000)]
    assert 0 == sum(each() is not None for each in alive[:-1])
    assert 1000 == len(alive) == found.num_records


@pytest.mark.filterwarnings("ignore:.*left out 1 damaged region")
def test_a_frozen_page_has_the_specification(tmp_path):
    path = tmp_path / "a.tfrecord"
    tfw.write_records(path, [{"a": 1}, {"a": "x", "c": 2}, {"b": 2.5}], kinds="any")
    assert "tfw.VarLenFeature(tfw.float32)" in frozen(path)
    path.write_bytes(path.read_bytes()[:-1])
    assert "in 1 of 2 records" in frozen(path)
    tfw.write_records(path, [{f"f{i}": 1 for i in range(10_001)}])
    assert "Specification" not in frozen(path)


def test_no_attribute_runs_anything(photos):
    for tag, attributes in Tags(frozen(photos)).found:
        for name, value in attributes.items():
            assert not name.startswith("on"), tag
            assert name != "style"
            assert "javascript:" not in (value or "")


def test_pictures_of_a_frozen_page_have_a_budget(photos):
    page = frozen(photos, num_bytes=3 * len(encoded("jpeg")))
    images = Tags(page).of("img")
    assert 3 == sum("src" in image for image in images)
    ids = [image["id"] for image in images if "src" in image]
    copies = [image["data-copy"] for image in images if "data-copy" in image]
    assert ids * 2 == copies  # in the table and in the grid
    assert "not shown" in page
    assert 5 == len(Tags(frozen(photos, num_records=5)).of("section"))


def test_boxes_and_films(tmp_path):
    path = tmp_path / "boxes.tfrecord"
    corners = {"xmin": 0.1, "xmax": 0.5, "ymin": 0.2, "ymax": 0.4}
    box = {f"image/object/bbox/{name}": [value] for name, value in corners.items()}
    with tfw.TFRecordWriter(path) as writer:
        writer.write(
            {"image/encoded": encoded("jpeg"), **box, "image/object/class/text": [HOSTILE]}
        )
        writer.write({"image": encoded("jpeg"), "objects/bbox": [0.2, 0.1, 0.4, 0.5]})
        writer.write({"steps/image": [encoded("jpeg")] * 4, "sound": wav()})
        writer.write(tfw.encode_sequence_example({}, {"frames": [[encoded("png")]] * 3}))
    tags = Tags(frozen(path))
    rects = [r for r in tags.of("rect") if r.get("x") == "100.0"]
    assert 6 == len(rects)  # of two records, in the table, in the grid and alone
    assert {("200.0", "400.0", "200.0")} == {(r["y"], r["width"], r["height"]) for r in rects}
    assert ["3", "2"] == [i["max"] for i in tags.of("input") if i.get("type") == "range"]
    assert 2 == len(tags.of("audio"))
    assert 1 == len(tags.of("script"))


def boxes_of(page):
    """Left, top, width and height of the boxes, in thousandths of the picture."""
    over = "".join(re.findall(r'<svg viewBox="0 0 1000 1000"[^>]*>(.*?)</svg>', page))
    names = ("x", "y", "width", "height")
    return {tuple(float(rect[name]) for name in names) for rect in Tags(over).of("rect")}


@pytest.mark.parametrize("box", [b"abcd", 4 * [b"a"], [1, 2, 3], [], 4 * [math.nan]])
def test_odd_boxes_are_no_error(tmp_path, box):
    path = tmp_path / "boxes.tfrecord"
    tfw.write_records(path, [tfw.encode_example({"image": encoded("png"), "objects/bbox": box})])
    page = frozen(path)
    assert "Record 0" in Tags(page).text
    assert {0} >= {width for _, _, width, _ in boxes_of(page)}


@pytest.mark.parametrize("corners", [(), ("left", "up", "right", "down")])
def test_boxes_in_pixels(tmp_path, corners):
    """Of 40 by 30 pixels. A box of which a corner is missing takes nothing from the others."""
    names = corners or [f"image/object/bbox/{c}" for c in ("xmin", "ymin", "xmax", "ymax")]
    edges = [[8.0, math.nan], [6.0, 3.0], [20.0, 40.0], [21.0, 30.0]]
    path = tmp_path / "boxes.tfrecord"
    with tfw.TFRecordWriter(path) as writer:
        writer.write({"image": encoded("png"), **dict(zip(names, edges, strict=True))})
    found = boxes_of(frozen(path, corners=corners))
    assert {(200, 200, 300, 500), (0, 100, 1000, 900)} == found


def test_a_summary_of_large_integers_that_lie_close_together(tmp_path):
    """As times in nanoseconds do: float64 has one value for 256 of them."""
    first = 1_700_000_000_000_000_000
    tfw.write_records(tmp_path / "t", [{"t": first + i} for i in range(48)])
    page = BrowsedFile(str(tmp_path / "t")).page(RecordPosition(), 100)
    ((_, _, _, _, values, _),) = FeatureSummary(page.records).rows()
    assert 24 == values.count("v-")
    assert f"{first} to {first + 47}" in values


def test_what_a_summary_counts(photos):
    file = BrowsedFile(str(photos))
    summary = FeatureSummary(file.page(RecordPosition(), 1000).records)
    assert 30 == summary.num_records
    rows = {re.sub("<.*?>", "", row[0]): row[1:] for row in summary.rows()}
    assert "image/jpeg" == rows["image"][0]
    assert "100 %" == rows["label"][1]
    assert "0 to 29, mean 14.5" in rows["label"][3]
    assert "2" == rows["x"][2]


def test_odd_numbers_have_a_summary(tmp_path):
    path = tmp_path / "odd.tfrecord"
    values = [np.nan, np.inf, 3e38, -3e38, 0.0]
    tfw.write_records(
        path, tfw.encode_columns({"x": values, "big": [2**63 - 1] * 5, "e": [[]] * 5})
    )
    page = frozen(path)
    assert "2 values not finite" in page
    assert Tags(page).of("table")


def test_any_bytes_make_a_page(tmp_path):
    """Random messages, also broken ones."""
    random = np.random.default_rng(5)
    good = tfw.encode_example({"a": [b"\xff\xd8\xff\xe0" + bytes(20)], "b": [1, 2], "height": -1})
    records = [random.bytes(n) for n in range(60)]
    for _ in range(300):
        record = bytearray(good)
        record[random.integers(len(record))] = random.integers(256)
        records.append(bytes(record))
    path = tmp_path / "random.tfrecord"
    tfw.write_records(path, records)
    assert "Record 359" in Tags(frozen(path, num_records=1000)).text
