"""The pages that teach run from top to bottom, and print what their comments say."""

import re
import warnings

import pytest

import tfwire as tfw
from helpers.documents import PRINTING, blocks, page_text, run_page

# After a call of print, or on the line below it: what it prints first. Dots, or what comes "then",
# stand for the rest.
_PROMISE = re.compile(r"^ *print\(.*\)(?:\n *#|  +#) (.*)$", re.MULTILINE)
_REST = re.compile(r", then .*| ?\.\.\..*|(?<!value): .*")


def words(text):
    """Without spaces, in which versions of numpy differ."""
    return re.sub(r"\s", "", text)


@pytest.mark.parametrize("page", PRINTING)
def test_the_page_prints_what_it_promises(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = "".join(block[1] for block in blocks(page_text(page)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tfw.TfwireWarning)  # tutorial.md shows damage
        run_page(page)
    printed = words(capsys.readouterr().out)
    promises = [words(_REST.sub("", promise)) for promise in _PROMISE.findall(text)]
    assert len(re.findall(r"^ *print\(", text, re.MULTILINE)) == len(promises) > 0
    for promise in promises:
        assert promise in printed
        printed = printed[printed.index(promise) + len(promise) :]
