"""Hostile records for every page: what a page costs is within its budget, whatever they hold."""

from __future__ import annotations

import ast
import re
from html import escape, unescape
from typing import ClassVar
from urllib.parse import parse_qsl

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import tfwire as tfw
from helpers.paths import PACKAGE
from helpers.view.hostile_records import (
    bomb,
    boxes,
    entry,
    example,
    field,
    hostile_records,
    mask,
    png,
)
from tfwire._parsing.infer import InferredSchema
from tfwire.view import _display as display, _frozen as frozen, as_html
from tfwire.view._budget import RECORD_LIMITS, Budget
from tfwire.view._frozen import frozen_page
from tfwire.view._html import element, join
from tfwire.view._media import find_media
from tfwire.view._records import BrowsedFile
from tfwire.view._server import Viewer

SIZE = 120_000
ROW = 200_000  # characters by which the last row may exceed a budget
FRAME = 20_000  # of the document itself: style, script, header
RECORDS = hostile_records(SIZE)
FIELDS = [{}, {"view": "record", "n": "0"}, {"view": "features"}, {"value": "no such value"}]
FIELDS += [{"feature": b"image".hex(), "value": ""}]


class Small(Budget):
    """A small budget, all of which a page of these records would exceed."""

    made: ClassVar[list[Budget]] = []

    def __init__(self, **_):
        super().__init__(
            html=60_000, objects=2000, num_bytes=200_000, pixels=4 << 20, effort=50_000, seconds=60
        )
        self.made.append(self)


@pytest.fixture
def small(monkeypatch):
    """Every page has a small budget; those that were made."""
    monkeypatch.setattr(Small, "made", [])
    monkeypatch.setattr("tfwire.view._site.Budget", Small)
    monkeypatch.setattr(display, "Budget", Small)
    monkeypatch.setattr(frozen, "Budget", Small)
    monkeypatch.setattr(
        "tfwire.view._records.RECORD_LIMITS",
        RECORD_LIMITS._replace(objects=2000, num_bytes=200_000),
    )
    return Small.made


def check(page, budget):
    """What was spent: the last record, and the last row, may exceed it."""
    assert budget.objects.spent <= 2 * budget.objects.total
    assert budget.memory.spent <= budget.memory.total + 2 * max(map(len, RECORDS.values()))
    assert budget.pixels.spent <= budget.pixels.total
    assert budget.effort.spent <= budget.effort.total
    assert budget.html.spent <= budget.html.total + ROW
    assert len(page) <= budget.html.total + ROW + FRAME


def pages_of(path):
    """The pages of a viewer, and the pictures that they load."""
    with Viewer([BrowsedFile(str(path))]) as viewer:
        for fields in FIELDS:
            page = viewer.site.page(fields)
            yield page
            for address in re.findall(r'src="picture\?([^"]*)"', page)[:3]:
                kind, contents = viewer.site.picture(dict(parse_qsl(unescape(address))))
                media = find_media(contents)
                assert media is not None
                assert kind == media.type


@pytest.fixture(params=RECORDS)
def path(request, tmp_path):
    """A file of three records of one kind."""
    tfw.write_records(tmp_path / "hostile", [RECORDS[request.param]] * 3)
    return tmp_path / "hostile"


def test_pages_keep_to_their_budget(path, small):
    for page in pages_of(path):
        # Those of a page, and of the pictures after it.
        check(page, small[-1])
        for budget in small:
            check("", budget)
        small.clear()


def test_pages_in_a_file_keep_to_their_budget(path, monkeypatch, small):
    monkeypatch.setattr(Small, "of_file", classmethod(lambda cls, *_: cls()))
    page = frozen_page([BrowsedFile(str(path)) for _ in range(2)], 5, 100_000).text
    check(page, small[-1])
    assert page.count("<section>") <= 5
    # Links lead somewhere.
    for target in set(re.findall(r'href="#([^"]*)"', page)):
        assert f'id="{target}"' in page
    for target in set(re.findall(r'data-copy="([^"]*)"', page)):
        assert page.count(f'id="{target}"') == 1


def test_notebooks_keep_to_their_budget(path, monkeypatch, small):
    monkeypatch.setattr(Small, "of_cell", classmethod(lambda cls: cls()))
    with tfw.TFRecordFile(path) as records:
        check(as_html(records), small[-1])


# ---- By a search --------------------------------------------------------------------------------


@st.composite
def records(draw):
    """Records of hostile parts, put together at random."""
    picture = st.sampled_from([mask(8, 8), bomb("png"), bomb("jpeg"), bomb("gif"), png(9, 9)])
    value = st.one_of(
        st.builds(lambda n: b"\x12\2\n\0" * n, st.integers(0, 3000)),  # not a Feature
        st.builds(lambda n: field(1, b"\n\0" * n), st.integers(0, 9000)),
        st.builds(lambda n, p: field(1, field(1, p) * n), st.integers(0, 400), picture),
        st.builds(lambda n: field(3, field(1, b"\1" * n)), st.integers(0, 30_000)),
        st.builds(lambda n: field(2, field(1, b"\xff" * 4 * n)), st.integers(0, 9000)),
        st.builds(lambda n: field(3, b"\x08\7") * n, st.integers(0, 3000)),
    )
    key = st.one_of(
        st.sampled_from([b"a", b"image", b"height", b"width", b"objects/bbox", b""]),
        st.builds(lambda n, c: c * n, st.integers(1, 3000), st.sampled_from([b"\xff", b"<", b"k"])),
    )
    parts = []
    for _ in range(draw(st.integers(1, 6))):
        made = draw(st.sampled_from(["feature", "list", "unknown", "boxes"]))
        if made == "feature":
            part = example(*(entry(draw(key), draw(value)) for _ in range(draw(st.integers(1, 9)))))
        elif made == "list":
            steps = field(1, draw(value)) * draw(st.integers(0, 30))
            part = field(2, field(1, field(1, draw(key)) + field(2, steps)))
        elif made == "unknown":
            part = draw(st.sampled_from([b"\x18\1", b"\n\0", b"\x12\0"])) * 2000
        else:
            part = tfw.encode_example(boxes(draw(st.integers(0, 2000)), draw(st.floats(width=32))))
        parts.append(part)
    return b"".join(parts)[: 8 * SIZE]


@settings(max_examples=8, suppress_health_check=list(HealthCheck))
@given(st.lists(records(), min_size=1, max_size=3))
def test_no_record_is_found_that_exceeds_a_budget(tmp_path_factory, found):
    path = tmp_path_factory.mktemp("found") / "hostile"
    tfw.write_records(path, found)
    largest = 16 * max(map(len, found)) + RECORD_LIMITS.num_bytes
    for fields in FIELDS:
        budget = Budget(html=40_000, objects=500, num_bytes=50_000, pixels=1 << 20, seconds=60)
        text = page_of(path, fields, budget)
        assert budget.memory.spent <= budget.memory.total + largest
        assert budget.objects.spent <= budget.objects.total + RECORD_LIMITS.objects
        assert budget.pixels.spent <= budget.pixels.total
        assert len(text) <= budget.html.total + ROW + FRAME
    with tfw.TFRecordFile(path) as file:
        assert len(as_html(file)) < 5_000_000


def page_of(path, fields, budget):
    with Viewer([BrowsedFile(str(path))]) as viewer:
        return viewer.site.page(fields, budget)


# ---- What is left out is said -------------------------------------------------------------------


def shown(tmp_path, record, **fields):
    path = tmp_path / "hostile"
    tfw.write_records(path, [record])
    with Viewer([BrowsedFile(str(path))]) as viewer:
        return re.sub("<.*?>", "", viewer.site.page({name: str(x) for name, x in fields.items()}))


def test_boxes_that_are_not_drawn_are_counted(tmp_path):
    record = tfw.encode_example({"image": mask(8, 8), **boxes(30_000)})
    path = tmp_path / "boxes"
    tfw.write_records(path, [record])
    page = page_of(path, {"view": "record", "n": "0"}, Budget())
    drawn = page.count("<rect ")
    assert 500 < drawn < 5000
    assert f"and {30_000 - drawn:,} more boxes" in page


def test_frames_that_are_not_shown_are_counted(tmp_path):
    record = tfw.encode_example({"film": [mask(8, 8)] * 3000})
    text = shown(tmp_path, record, view="record", n=0)
    (frames,) = re.findall("1 of ([0-9]+)", text)
    assert 200 < int(frames) < 3000
    assert f"and {3000 - int(frames):,} more values" in text


def test_values_that_are_not_read_are_counted(tmp_path):
    count = RECORD_LIMITS.objects
    record = tfw.encode_example({"s": [b""] * (count + 999), "t": 1})
    for fields in ({}, {"view": "record", "n": 0}):
        assert "more values, not read" in shown(tmp_path, record, **fields)
    assert "only the first values are read" in shown(tmp_path, record, view="features")
    assert "0 records found in all" in shown(tmp_path, record, value="x")
    with tfw.TFRecordFile(tmp_path / "hostile") as records:
        assert "more values, not read" in as_html(records)


def test_steps_that_are_not_read_are_counted(tmp_path):
    count = RECORD_LIMITS.objects
    record = field(2, field(1, field(1, b"s") + field(2, b"\n\0" * (count + 50))))
    assert f"{count - 1:,} steps and 51 more steps, not read" in shown(
        tmp_path, record, view="record", n=0
    )


def test_a_film_spends_the_pixels_of_its_largest_frame(tmp_path):
    """One is in sight."""
    film = [png(4000, 4000), png(3000, 3000), png(5000, 5000)] * 40
    record = tfw.encode_example({"film": film})
    path = tmp_path / "film"
    tfw.write_records(path, [record])
    budget = Budget()
    page = page_of(path, {"view": "record", "n": "0"}, budget)
    assert 4000**2 + 5000**2 == budget.pixels.spent
    assert 120 == page.count("<img ")


def test_pictures_of_too_many_pixels_together_are_named(tmp_path):
    record = tfw.encode_example({f"b{i:02}": bomb("png") for i in range(30)})
    path = tmp_path / "bombs"
    tfw.write_records(path, [record])
    budget = Budget()
    page = page_of(path, {"view": "record", "n": "0"}, budget)
    assert budget.pixels.total // 8000**2 == page.count("<img ")
    assert 30 - page.count("<img ") == page.count("not shown")


def test_a_page_that_is_full_goes_on_at_its_last_record(tmp_path):
    path = tmp_path / "many"
    tfw.write_records(path, [{f"s{i:02}": "x" * 150 for i in range(16)}] * 60)
    found, number = [], 0
    with Viewer([BrowsedFile(str(path))]) as viewer:
        while number is not None:
            page = viewer.site.page({"start": str(number)}, Budget(html=30_000))
            found += map(int, re.findall(r">([0-9]+)</a></td>", page))
            following = re.findall(r'rel="next" href="[^"]*start=([0-9]+)', page)
            assert following != [str(number)]
            number = int(following[0]) if following else None
    assert list(range(60)) == found


def test_a_page_in_a_file_says_what_is_missing(tmp_path):
    path = tmp_path / "many"
    long = {f"s{i:02}": [f"{k:039}" for k in range(100)] for i in range(99)}
    tfw.write_records(path, [long] * 40)
    page = frozen_page([BrowsedFile(str(path))], 40, 1000).text
    count = page.count("<section>")
    assert 10 < count < 40
    assert f"the first {count} records" in page
    assert "more features" in page


def test_masks_that_nobody_looked_at_are_counted(tmp_path):
    path = tmp_path / "masks"
    tfw.write_records(path, [{f"m{i:02}": mask(1000, 1000, 4) for i in range(30)}])
    page = frozen_page([BrowsedFile(str(path))], 10, 5_000_000).text
    assert re.search("[0-9]+ gray pictures not searched for the classes of a mask", page)


# ---- Notebooks ----------------------------------------------------------------------------------


def test_wide_rows_of_columns_are_not_copied_or_listed(tmp_path):
    count = 3_000_000
    splits = np.array([0, count, count], np.int64)
    strings = tfw.BytesColumn(b"", np.zeros(count + 1, np.int64))
    rows = tfw.RaggedTensor(strings, splits)
    transposed = np.zeros((4, count, 2), np.float32).transpose(0, 2, 1)
    for column in (rows, tfw.RaggedTensor(rows, [0, 2]), transposed):
        assert len(as_html({"x": column})) < 3000


def test_a_schema_of_many_features_is_cut():
    schema = InferredSchema({f"f{i:06}": tfw.FixedLenFeature([], tfw.int64) for i in range(50_000)})
    page = schema._repr_html_()
    assert len(page) < 5_000_000
    assert re.search("[0-9,]+ features of 50,000", page)


@pytest.mark.parametrize("options", [None, "GZIP"])
def test_a_record_that_is_too_long_is_named(tmp_path, monkeypatch, options):
    monkeypatch.setattr(display, "LONGEST_RECORD", 5000)
    path = tmp_path / "long"
    tfw.write_records(path, [{"x": b"x" * 9000}, {"y": 1}, {"z": b"z" * 9000}], options)
    for records in (tfw.TFRecordFile(path), tfw.TFRecordFiles([path, path])):
        with records:
            page = as_html(records)
        expected = 2 * (2 if isinstance(records, tfw.TFRecordFiles) else 1)
        assert expected == page.count("bytes: too long to show")


def test_elements_escape_what_is_not_html():
    made = element(
        "a", "<b>&\x1b", element("i", 1), ["<", join("&")], href='"<', hidden=True, id=None
    )
    assert '<a href="&quot;&lt;" hidden>&lt;b&gt;&amp;\\x1b<i>1</i>&lt;&amp;</a>' == made
    assert element("p", str(made)) != element("p", made) == f"<p>{made}</p>"


def test_pages_are_made_of_elements():
    """No text of another module is a tag: whatever a page shows goes through the helper."""
    for path in {*(PACKAGE / "view").glob("*.py")} - {PACKAGE / "view" / "_html.py"}:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        texts = {str(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        docstrings = {text for text in texts if "\n\n" in text}
        found = {text for text in texts - docstrings if re.search("<[a-z/!]", text)}
        assert found <= {"<img ", "<!DOCTYPE html>\n"}, path


@pytest.mark.parametrize("character", "&<>\"'")
def test_every_special_character_is_escaped(character):
    text = f"a{character}b"
    assert f'<a title="{escape(text)}">{escape(text)}</a>' == element("a", text, title=text)
