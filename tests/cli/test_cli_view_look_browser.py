"""How the viewer's pages look and are used in Chromium: a phone, keys alone, a screen reader."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tfwire as tfw
from helpers.view.browser import CHROMIUM, Browser
from helpers.view.viewing import jpeg

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]

# What is cut off at the right of the page, or of the box that it is in and that does not scroll.
CUT_OFF = """[...document.querySelectorAll("td, th, p, h1, h2, pre, svg, img, input, summary, li")]
    .filter(e => e.checkVisibility() && !e.closest(".records, pre"))
    .filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML)"""
FOCUSED = "document.activeElement.textContent.trim()"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    """Pictures with names of classes, and an episode."""
    folder = tmp_path_factory.mktemp("robot")
    label = {"label": {"classLabel": {"numClasses": "2"}}}
    (folder / "features.json").write_text(json.dumps({"featuresDict": {"features": label}}))
    (folder / "label.labels.txt").write_text("rose\ntulip\n")
    steps = {"image": [jpeg(9 * i) for i in range(12)], "action": np.arange(84) / 7}
    steps |= {"text": ["pick up the cup and put it on the shelf"] * 12}
    with tfw.TFRecordWriter(folder / "robot.tfrecord") as writer:
        for i in range(20):
            writer.write({"image": jpeg(10 * i), "label": i % 2, "caption": "a long text " * 20})
        writer.write({f"steps/{name}": values for name, values in steps.items()})
    return folder / "robot.tfrecord"


@pytest.mark.parametrize("width", [390, 1600])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_cut_off(robot, serve, browser, width, dark):
    viewer = serve(robot)
    for target in ("?as=grid", "?view=record&n=0", "?view=record&n=20", "?view=features"):
        browser.show(viewer.url + target, width, dark=dark)
        assert [] == browser.value(CUT_OFF), target
        assert [] == browser.complaints


def test_keys_alone_use_the_grid_and_an_episode(robot, serve, browser):
    viewer = serve(robot)
    browser.show(viewer.url)
    browser.press("g")
    browser.until("!!document.querySelector('.grid')")
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowLeft"):
        browser.press(key)
    assert "1 1 tulip" == browser.value(FOCUSED)
    browser.press("ArrowDown")
    side_by_side = browser.value("line()")
    assert side_by_side > 3
    assert f"{1 + side_by_side}" == browser.value(FOCUSED).split()[0]
    browser.press("Enter")
    browser.until(f"document.querySelector('h2')?.textContent === 'Record {1 + side_by_side}'")
    browser.press("Escape")
    browser.until("!!document.querySelector('.grid')")
    browser.press("g")
    browser.until("!!document.querySelector('table.records')")
    browser.show(viewer.url + "?view=record&n=20")
    browser.value("document.querySelector('input[type=range]').focus()")
    browser.press("ArrowRight")
    browser.press("ArrowRight")
    browser.until("document.querySelector('output').textContent === '3 of 12'")
    assert "2" == browser.value("document.querySelector('.now').getAttribute('x1')")
    seen = "[...document.images].filter(i => i.checkVisibility()).map(i => i.src)"
    (source,) = browser.value(seen)
    assert "value=2" in source


def test_a_screen_reader_has_roles_and_names(robot, serve, browser):
    viewer = serve(robot)

    def named(target):
        browser.show(viewer.url + target)
        nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
        shown = (node for node in nodes if not node["ignored"])
        return {(n["role"]["value"], n.get("name", {}).get("value", "")) for n in shown}

    rows = named("")
    assert {("region", "records"), ("searchbox", "value"), ("image", "label: 0 to 1")} <= rows
    assert any(
        role == "columnheader" and name.startswith("image JPEG, in 20") for role, name in rows
    )
    assert ("image", "JPEG 64 x 48") in rows
    assert ("link", "JPEG 64 x 48 1 1 tulip") in named("?as=grid")
    episode = named("?view=record&n=20")
    assert {("slider", "step"), ("image", "steps/action: (12, 7) 0 to 11.86")} <= episode
    for page in (rows, episode):
        unnamed = {role for role, name in page if not name}
        assert not {"link", "button", "searchbox", "textbox", "image", "slider"} & unnamed
