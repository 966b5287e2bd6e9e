"""tfwire view: files in the browser, or frozen into one page."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tfwire.cli import _arguments
from tfwire.cli._arguments import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from tfwire.view._records import BrowsedFile
    from tfwire.view._server import Viewer


_RECORDS_WITH_CORNERS = 50
_FROZEN_RECORDS = 100
_FROZEN_BYTES = 5_000_000  # of pictures


def add_view(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire view."""
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="a TFRecord file, a URL, a folder or a pattern"
    )
    _arguments.add_shared(parser, "--compression", "--force")
    parser.add_argument(
        "--no-open", action="store_true", help="print the address, and open no browser"
    )
    parser.add_argument("--html", metavar="OUT", help="write one page of HTML, and serve nothing")
    parser.add_argument(
        "-n",
        "--limit",
        "--records",
        dest="records",
        type=_arguments.positive,
        metavar="N",
        help=f"records in OUT (default: {_FROZEN_RECORDS})",
    )
    parser.add_argument(
        "--size",
        type=_arguments.byte_size,
        metavar="SIZE",
        help="bytes of pictures in OUT, like 5MB (the default)",
    )
    parser.add_argument(
        "--boxes",
        metavar="NAMES",
        help="four features with the left, top, right and bottom of boxes, separated by commas; "
        "those of TensorFlow's object detection and of TensorFlow Datasets are known",
    )
    parser.epilog = (
        "The pages are served to this machine alone, under an address that holds a random token, "
        "until Ctrl-C. Nothing is written. A saved index (tfwire index) makes records far into a "
        "file quick to reach. OUT is one file that loads nothing else: it can be mailed or kept."
    )
    parser.set_defaults(run=_view)


def _view(options: argparse.Namespace) -> int:
    from tfwire import TfwireWarning
    from tfwire.view._records import BrowsedFile

    if "-" in options.files:
        raise UsageError("standard input cannot be viewed: it is read only once")
    corners = tuple(options.boxes.split(",")) if options.boxes else ()
    if corners and len(corners) != 4:
        raise UsageError("--boxes takes four names: LEFT,TOP,RIGHT,BOTTOM")
    if options.html is not None:
        _arguments.check_output(options.html, options.files, options.force)
    elif options.force or options.records or options.size:
        raise UsageError("--limit, --size and --force need --html")
    warnings.simplefilter("ignore", TfwireWarning)  # the pages show damage
    files = [BrowsedFile(name, options.compression) for name in options.files]
    files[0].check()
    for file in files[1:]:
        if file.is_local:
            os.stat(file.path)
    missing = _missing_corners(files, corners)
    if missing:
        print(f"tfwire view: --boxes: {missing}", file=sys.stderr)
    if options.html is not None:
        return _freeze(options, files, corners)
    return _serve(options, files, corners)


def _missing_corners(files: list[BrowsedFile], corners: tuple[str, ...]) -> str:
    """What is to be said of corners that the first records do not have."""
    from tfwire._interface.messages import plural, show_key

    left, count = set(corners), 0
    for record in files[0].first(_RECORDS_WITH_CORNERS) if corners else ():
        left.difference_update(record.features)
        count += record.is_read
    names = ", ".join(show_key(name) for name in corners if name in left)
    return f"the first {plural(count, 'record')} of {files[0].name} lack {names}" if names else ""


def _freeze(options: argparse.Namespace, files: list[BrowsedFile], corners: tuple[str, ...]) -> int:
    from tfwire._interface.new_files import replace_file
    from tfwire.view._frozen import frozen_page

    count, size = options.records or _FROZEN_RECORDS, options.size or _FROZEN_BYTES
    page = frozen_page(files, count, size, corners)
    replace_file(options.html, [page.text.encode("utf-8", "replace")])
    for file, regions in zip(files, page.damage, strict=False):
        _arguments.complain_of_damage(options, file.path, regions, None)
    return int(any(page.damage))


def _serve(options: argparse.Namespace, files: list[BrowsedFile], corners: tuple[str, ...]) -> int:
    from tfwire.view._server import Viewer

    with (
        contextlib.suppress(KeyboardInterrupt),
        Viewer(files, corners) as viewer,
        contextlib.ExitStack() as stack,
    ):
        print(f"{viewer.url}\nPress Ctrl-C to stop.", flush=True)
        if not options.no_open:
            try:
                stack.enter_context(in_browser(viewer))
            except OSError as error:
                print(f"tfwire view: no browser was opened: {error}", file=sys.stderr)
        viewer.serve_forever()
    return 0


# ---- The pages in a browser, without their token on a command line ------------------------------


@contextlib.contextmanager
def in_browser(viewer: Viewer) -> Iterator[None]:
    """Opens the pages in a browser, while the viewer serves them.

    Every user of a machine may read the command lines of all others. Those of the browser name a
    private file only, which leads it to an address that answers once. The file is removed when the
    browser has come there, or at the end.

    Raises:
        OSError: The file cannot be written.
    """
    import shutil
    import tempfile
    import threading
    from pathlib import Path

    folder = Path(tempfile.mkdtemp(prefix="tfwire-view-"))  # which only its owner may enter
    try:
        text = viewer.entrance_page(lambda: shutil.rmtree(folder, ignore_errors=True))
        page = folder / "open.html"
        _write_private(page, text)
        # A browser in the terminal keeps its caller waiting, and needs the pages meanwhile.
        threading.Thread(target=_open, args=(page.as_uri(),), daemon=True).start()
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def _open(address: str) -> None:
    import webbrowser

    try:
        problem = "" if webbrowser.open(address) else "none was found"
    except (OSError, webbrowser.Error) as error:
        problem = str(error)
    if problem:
        print(f"tfwire view: no browser was opened: {problem}", file=sys.stderr)
