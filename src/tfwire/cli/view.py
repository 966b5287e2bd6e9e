"""tfwire view: files in the browser, or frozen into one page."""

from __future__ import annotations

import argparse
import contextlib
import sys
import warnings
from typing import TYPE_CHECKING

from tfwire.cli import _arguments

if TYPE_CHECKING:
    from tfwire.view._records import BrowsedFile

_RECORDS_WITH_CORNERS = 50
_FROZEN_RECORDS = 100
_FROZEN_BYTES = 5_000_000  # of pictures


def add_view(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire view."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a TFRecord file or a URL")
    _arguments.add_compression(parser)
    parser.add_argument(
        "--no-open", action="store_true", help="print the address, and open no browser"
    )
    parser.add_argument("--html", metavar="OUT", help="write one page of HTML, and serve nothing")
    parser.add_argument("--force", action="store_true", help="replace OUT if it exists")
    parser.add_argument(
        "-n",
        "--records",
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
        return _arguments.refuse(options, "standard input cannot be viewed: it is read only once")
    corners = tuple(options.boxes.split(",")) if options.boxes else ()
    if corners and len(corners) != 4:
        return _arguments.refuse(options, "--boxes takes four names: LEFT,TOP,RIGHT,BOTTOM")
    if options.html is None:
        if options.force or options.records or options.size:
            return _arguments.refuse(options, "-n, --size and --force need --html")
    else:
        problem = _arguments.problem_of_output(
            argparse.Namespace(**{**vars(options), "output": options.html}),
            options.files,
            pattern=False,
        )
        if problem is not None:
            return _arguments.refuse(options, problem)
    warnings.simplefilter("ignore", TfwireWarning)  # the pages show damage
    compression = _arguments.chosen_compression(options)
    files = [BrowsedFile(name, compression) for name in options.files]
    for file in files:
        file.check()
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
    text = frozen_page(files, count, size, corners)
    replace_file(options.html, [text.encode("utf-8", "replace")])
    return 0


def _serve(options: argparse.Namespace, files: list[BrowsedFile], corners: tuple[str, ...]) -> int:
    from tfwire.view._browser import in_browser
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
