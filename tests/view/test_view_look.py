"""What pages make of values: shapes, steps, names of classes, episodes, heads of columns, grids."""

from __future__ import annotations

import json
import os
import re
from html import unescape
from urllib.parse import parse_qsl

import numpy as np
import pytest

import tfwire as tfw
from helpers.reading import damage
from helpers.view.viewing import encoded
from tfwire.view import as_html
from tfwire.view._described import described_in
from tfwire.view._frozen import frozen_page
from tfwire.view._records import BrowsedFile
from tfwire.view._server import Viewer

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e\"'&"


def pages(path, *targets):
    """Pages by the fields of their addresses."""
    with Viewer([BrowsedFile(str(path))]) as viewer:
        return [viewer.site.page(dict(parse_qsl(target))) for target in targets]


def text_of(page):
    page = re.sub(r"(?s)<(style|script)>.*?</\1>", "", page)
    page = re.sub("</?(span|b)( [^>]*)?>", "", page)
    return " ".join(unescape(re.sub("<[^>]*>", " ", page)).split())


def feature(kind, *sizes, **more):
    shape = {"shape": {"dimensions": [str(size) for size in sizes]}}
    return {kind: {**shape, "dtype": "uint8", "encoding": "none", **more}}


def describe(folder, features, **labels):
    tree = {"featuresDict": {"features": features}}
    (folder / "features.json").write_text(json.dumps(tree))
    for name, classes in labels.items():
        (folder / f"{name}.labels.txt").write_text("\n".join(classes))


# ---- Steps --------------------------------------------------------------------------------------


def test_empty_steps_are_told_from_absent_ones(tmp_path):
    path = tmp_path / "steps"
    lists = [{"x": [[], [1]]}, {"x": [[]]}, {"x": []}, {"y": [[2, 3], [4]]}, {"x": [[5], [6]]}]
    tfw.write_records(path, [tfw.encode_sequence_example({}, each) for each in lists])
    rows, alone = pages(path, "", "view=record&n=0")
    assert "2 steps [], [1]" in text_of(rows)
    assert "1 step []" in text_of(rows)
    assert "0 steps" in text_of(rows)
    assert "2 steps [2, 3], [4]" in text_of(rows)
    assert "2 steps 5, 6" in text_of(rows)
    assert "no values 1" in text_of(alone)
    with tfw.TFRecordFile(path) as records:
        notebook = text_of(as_html(records))
    assert "2 steps [], [1]" in notebook
    assert "1 step []" in notebook
    assert "0 steps" in notebook


def test_a_picture_after_an_empty_step_is_shown(tmp_path):
    path = tmp_path / "steps"
    steps = [[], [encoded("png")], [encoded("jpeg")]]
    tfw.write_records(path, [tfw.encode_sequence_example({}, {"frames": steps})])
    rows, alone = pages(path, "", "view=record&n=0")
    assert 1 == rows.count("<img ")
    assert "step=1" in rows
    assert 2 == alone.count("<img ")


def test_strings_that_are_repeated_are_shown_once(tmp_path):
    path = tmp_path / "repeated"
    tfw.write_records(path, [{"s": ["go"] * 30, "t": ["go", "stop"]}])
    rows, alone = pages(path, "", "view=record&n=0")
    assert "go in all 30" in text_of(rows)
    assert "go in all 30" in text_of(alone)
    assert "go, stop" in text_of(rows)


# ---- What lies beside the files -----------------------------------------------------------------


def test_classes_and_shapes_of_a_features_json(tmp_path):
    features = {
        "label": {"classLabel": {"numClasses": "2"}},
        "objects": {"sequence": {"feature": {"featuresDict": {"features": {
            "bbox": {"boundingBox": {}}, "kind": {"classLabel": {}}}}}}},
        "matrix": feature("tensor", 2, 3),
        "rows": feature("tensor", -1, 3),
        "image": feature("tensor", 28, 28, 1),
        "tokens": feature("tensor", -1, 16),
    }  # fmt: skip
    describe(tmp_path, features, **{"label": ["rose", "tulip"], "objects-kind": ["cat", "dog"]})
    path = tmp_path / "a.tfrecord"
    values = {"label": 1, "objects/kind": [1, 0, 7], "objects/bbox": np.full(12, 0.5)}
    values |= {
        "matrix": range(6),
        "rows": range(12),
        "image": np.arange(784) % 256,
        "tokens": range(256),
    }
    tfw.write_records(path, [values, {"matrix": [1, 2], "image": [300] * 784, "label": -1}])
    rows, alone, grid = pages(path, "", "view=record&n=0", "as=grid")
    for page in (rows, alone, grid):
        assert "1 tulip" in text_of(page)
    for text in ("1 dog, 0 cat, 7", "(2, 3)", "(4, 3)", "(16, 16)"):
        assert text in text_of(rows)
        assert text in text_of(alone)
    assert "(28, 28, 1) 300, 300" in text_of(rows)
    assert "(28, 28, 1)" in text_of(alone)
    assert "int64, 2 classes" in text_of(rows)
    assert 1 == rows.count("<img ")
    with Viewer([BrowsedFile(str(path))]) as viewer:
        (address,) = re.findall(r'src="picture\?([^"]*)"', rows)
        kind, contents = viewer.site.picture(dict(parse_qsl(unescape(address))))
    assert "image/png" == kind
    assert contents.startswith(b"\x89PNG")


def test_shapes_of_a_schema(tmp_path):
    features = {"m": tfw.FixedLenFeature([2, 2], tfw.int64)}
    tfw.write_schema(features, tmp_path / "schema.pbtxt")
    tfw.write_records(tmp_path / "a", [{"m": [1, 2, 3, 4]}])
    assert "(2, 2)" in text_of(*pages(tmp_path / "a", ""))


def test_shapes_of_strings_and_of_no_values(tmp_path):
    describe(tmp_path, {"s": feature("tensor", -1, 2), "none": feature("tensor", -1, 7)})
    row = {"s": ["a", "b", "c", "d"], "none": np.zeros(0, np.float32)}
    tfw.write_records(tmp_path / "a", [row, {"s": []}])
    for page in pages(tmp_path / "a", "", "view=record&n=0"):
        assert "(2, 2)" in text_of(page)
        assert "(0, 7)" in text_of(page)
    assert "a, b c, d" in text_of(page)
    assert "(0, 2)" in text_of(*pages(tmp_path / "a", "view=record&n=1"))


def test_descriptions_are_not_trusted(tmp_path):
    """HTML in names, and as many of them as fit."""
    label = {"classLabel": {"numClasses": "9" * 99}}
    describe(tmp_path, {HOSTILE: label, "label": label}, label=[HOSTILE, "x" * 10**6])
    tfw.write_records(tmp_path / "a", [{HOSTILE: 1, "label": 0}, {"label": 1}])
    for page in pages(tmp_path / "a", "", "view=record&n=0", "as=grid", "view=features"):
        assert "<script>alert" not in page
        assert not set("\x1b\u202e") & set(page)
        assert len(page) < 60_000


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "3", "null", "\xff", '"featuresDict"', "{" * 100_000, '{"a":' * 100_000),
        '{"featuresDict": 3}',
        '{"featuresDict": {"features": {"a": 3}}}',
        '{"sequence": {"feature": ' * 900 + "{}" + "}}" * 900,
        '{"featuresDict": {"features": {"a": {"sequence": {"length": 1e999, "feature": {}}}}}}',
        json.dumps({"featuresDict": {"features": {"a": feature("tensor", *[9] * 100_000)}}}),
        json.dumps({"featuresDict": {"features": {"../a": {"classLabel": {}}, "\0": {}}}}),
        json.dumps({"featuresDict": {"features": {"a": feature("tensor", -2, -2)}}}),
        json.dumps({"featuresDict": {"features": {"a": feature("tensor", 0, -1, "9" * 4000)}}}),
    ],
)
def test_odd_descriptions_say_nothing(tmp_path, text):
    (tmp_path / "features.json").write_text(text, "latin-1")
    tfw.write_records(tmp_path / "a", [{"a": [1, 2, 3, 4]}])
    assert "1, 2, 3, 4" in text_of(*pages(tmp_path / "a", ""))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs")
def test_descriptions_are_files(tmp_path):
    os.mkfifo(tmp_path / "features.json")
    (tmp_path / "schema.pbtxt").mkdir()
    assert {} == described_in(str(tmp_path))
    large = tmp_path / "large"
    large.mkdir()
    (large / "features.json").write_text(" " * (5 << 20))
    assert {} == described_in(str(large))


# ---- Heads of columns ---------------------------------------------------------------------------


def test_heads_say_kinds_presence_and_histograms(tmp_path):
    path = tmp_path / "kinds"
    rows = [
        {"i": i, "f": i / 3, "s": "ab"[i % 2], "raw": b"\xff\xfe", "image": encoded("png"),
         **({"some": []} if i else {})}
        for i in range(40)
    ]  # fmt: skip
    tfw.write_records(path, rows)
    (page,) = pages(path, "")
    head = page.partition("<thead>")[2].partition("</thead>")[0]
    for said in ("i int64 0 to 39", "f float32 0 to 13", "s text 2 different", "raw bytes"):
        assert said in text_of(head)
    assert "image PNG" in text_of(head)
    assert "some no values, in 39" in text_of(head)
    assert "Kinds and histograms are of 40 records." in text_of(page)
    assert 'aria-label="i: 0 to 39"' in head
    assert 'aria-label="a 20, b 20"' in head
    assert 7 == head.count('scope="col"') - 1


def test_texts_in_heads_are_escaped_once(tmp_path):
    tfw.write_records(tmp_path / "a", [{"s": text} for text in ("<&", "<&", "b")])
    assert 'aria-label="&lt;&amp; 2, b 1"' in pages(tmp_path / "a", "")[0]


def test_heads_of_odd_numbers(tmp_path):
    path = tmp_path / "odd"
    values = [np.nan, np.inf, 3e38, -3e38, 0.0]
    rows = [{"x": x, "n": [np.nan], "big": 2**63 - 1, "two": [1, "x"][i % 2]}
            for i, x in enumerate(values)]  # fmt: skip
    tfw.write_records(path, rows, kinds="any")
    text = text_of(*pages(path, ""))
    assert "x float32 -3e+38 to 3e+38" in text
    assert "n float32 not finite" in text
    assert "big int64 always 9223372036854775807" in text
    assert "two int64 or text" in text


# ---- Grids --------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
def test_a_grid_has_a_tile_for_each_record(tmp_path):
    path = tmp_path / "photos"
    rows = [{"image": encoded("jpeg"), "label": i, "name": f"photo {i}"} for i in range(60)]
    tfw.write_records(path, [*rows[:50], {"x": 1}, encoded("png"), *rows[50:]])
    damage(path, int(tfw.RecordIndex.build(path).offsets[3]) + 40)
    table, grid = pages(path, "", "as=grid")
    assert "as a grid of pictures" in text_of(table)
    assert 50 == grid.count("<li>") + grid.count("<li class")
    assert 49 == grid.count("<img ")
    assert 1 == grid.count('<li class="bad"')
    assert "4 4 5 5" in text_of(grid)  # the number and the label
    (address,) = set(re.findall(r'rel="next" href="\?([^"]*)"', grid))
    (later,) = pages(path, unescape(address))
    assert "no picture" in later
    assert 11 == later.count("<img ")
    assert "as rows" in text_of(later)
    frozen = frozen_page([BrowsedFile(str(path))], 100, 5_000_000).text
    assert "grid of pictures" in frozen
    assert 62 == frozen.partition('<ol class="grid">')[2].partition("</ol>")[0].count("</li>")


def test_a_page_without_pictures_offers_no_grid(tmp_path):
    tfw.write_records(tmp_path / "a", [{"x": 1}])
    assert "grid" not in text_of(*pages(tmp_path / "a", ""))


# ---- Episodes -----------------------------------------------------------------------------------


def check_episode(page):
    text = text_of(page)
    assert 1 == page.count('type="range"')
    assert 'max="11"' in page
    assert 24 == page.count("<img ")
    assert 2 == page.count('<span class="strip">')
    assert 1 == text.count("pick up the cup")
    assert "pick up the cup in all steps" in text
    assert "(12, 3) -1 to 35" in text
    assert re.search(r"discount(\[\])? 1 in all steps", text)
    assert 3 + 1 == len(re.findall(r'<path d="M[^"]*" class="l[0-7]">', page))
    assert 2 == page.count('class="now"')
    assert 2 == page.count('class="plot" viewBox="0 0 11 100"')


def test_episodes_of_rlds_and_of_sequence_examples(tmp_path):
    frames, action = [encoded("jpeg")] * 12, np.arange(36, dtype=np.float32) - 0
    action[5] = -1
    flat = {"image": frames, "wrist": frames, "action": action, "reward": [0.0] * 11 + [1.0]}
    flat |= {"discount": [1.0] * 12, "text": ["pick up the cup"] * 12}
    lists = {name: np.array_split(np.array(v), 12) if name == "action" else [[x] for x in v]
             for name, v in flat.items()}  # fmt: skip
    path = tmp_path / "episodes"
    records = [tfw.encode_example({f"steps/{name}": v for name, v in flat.items()} | {"id": 7})]
    tfw.write_records(path, [*records, tfw.encode_sequence_example({"id": 7}, lists)])
    for page in pages(path, "view=record&n=0", "view=record&n=1"):
        check_episode(page)
    assert "(12, 3) 0, 1, 2 ..." in text_of(*pages(path, ""))


def test_odd_episodes(tmp_path):
    """Steps without values, of different lengths, with numbers that are not finite, and many."""
    nan = np.float32(np.nan)
    lists = [
        {"a": [[], []], "b": [[1], [2, 3]], "c": [[nan], [nan]]},
        {"a": [[1.0], [nan], [2.0]], "b": [[nan], [1.0], [2.0]]},
        {"a": [[i] for i in range(1000)], "b": [[i, *range(50)] for i in range(1000)]},
        {f"f{i:03}": [[i], [i + 1]] for i in range(300)},
        {"a": [["x"], ["y"]], "b": [[1], [2]]},
        {"a": [list(range(100))] * 10, "b": [list(range(1, 101))] * 10},
    ]
    path = tmp_path / "odd"
    tfw.write_records(path, [tfw.encode_sequence_example({}, each) for each in lists])
    pages_of = pages(path, *(f"view=record&n={n}" for n in range(len(lists))))
    assert 'class="plot"' not in pages_of[0]
    assert 'd="M0 100.0M2 0.0"' in pages_of[1]
    assert all(len(page) < 400_000 for page in pages_of)
    assert "the first 8 numbers" in pages_of[2]
    assert 1 <= pages_of[3].count('class="plot"') <= 40
    assert 1 == pages_of[4].count('<span class="strip">')


# ---- For a screen reader ------------------------------------------------------------------------


def test_elements_have_names(tmp_path):
    tfw.write_records(tmp_path / "a", [{"image": encoded("png"), "film": [encoded("png")] * 3}])
    rows, alone = pages(tmp_path / "a", "", "view=record&n=0")
    assert 'role="region" aria-label="records" tabindex="0"' in rows
    assert 'aria-label="frame of film"' in alone
    assert all('alt="PNG 40 x 30"' in tag for tag in re.findall("<img [^>]*>", rows))
    assert '<link rel="icon" href="data:image/svg+xml,' in rows


def test_joined_emoji_and_names_that_are_empty(tmp_path):
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    tfw.write_records(tmp_path / "a", [{"": family, family: "a\u200d\u202e\x1b"}])
    for page in map(text_of, pages(tmp_path / "a", "", "view=record&n=0", "view=features")):
        assert '"" ' in page
        assert 2 <= page.count(family)
        assert "\u202e" not in page
    tfw.write_records(tmp_path / "b", [{"": i, "n": i} for i in (2, 1, 3)])
    plain, rising, found = pages(tmp_path / "b", "", "sort=-", "feature=-&value=3")
    assert "\u2191" not in plain
    assert 'sort=-" aria-label="sort this page by &quot;&quot;, rising"' in plain
    assert ["1", "2", "3"] == re.findall(r'"n">(\d)</span></td><td><span', rising)
    assert "1 record found" in text_of(found)
