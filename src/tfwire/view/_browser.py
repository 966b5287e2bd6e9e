"""Opens the viewer's pages in a browser, without its token on a command line."""

from __future__ import annotations

import html
import os
import shutil
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tfwire.view._server import Viewer


@contextmanager
def in_browser(viewer: Viewer) -> Iterator[None]:
    """Opens the pages in a browser, while the viewer serves them.

    Every user of a machine may read the command lines of all others. Those of the browser name a
    private file only, which leads it to an address that answers once. The file is removed when the
    browser has come there, or at the end.

    Raises:
        OSError: The file cannot be written.
    """
    folder = Path(tempfile.mkdtemp(prefix="tfwire-view-"))  # which only its owner may enter
    try:
        address = viewer.entrance(lambda: shutil.rmtree(folder, ignore_errors=True))
        page = folder / "open.html"
        _write_private(page, _leading_to(address))
        # A browser in the terminal keeps its caller waiting, and needs the pages meanwhile.
        threading.Thread(target=_open, args=(page.as_uri(),), daemon=True).start()
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def _leading_to(address: str) -> str:
    place = html.escape(address)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>tfwire view</title>'
        f'<meta name="referrer" content="no-referrer">'
        f'<meta http-equiv="refresh" content="0;url={place}"></head>'
        f'<body><p><a href="{place}">tfwire view</a></p></body></html>\n'
    )


def _open(address: str) -> None:
    try:
        problem = "" if webbrowser.open(address) else "none was found"
    except (OSError, webbrowser.Error) as error:
        problem = str(error)
    if problem:
        print(f"tfwire view: no browser was opened: {problem}", file=sys.stderr)
