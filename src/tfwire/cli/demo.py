"""tfwire demo: the library on real data, in a folder of its own."""

from __future__ import annotations

import argparse
import os
from importlib.util import find_spec

from tfwire.cli import _files

_MARK = ".tfwire-demo"  # in a folder that a demo made
_PACKAGES = {"PIL": "Pillow", "sklearn": "scikit-learn"}
_MOST_RECORDS = 10**8  # of the speed table: all of them are held as columns


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire demo."""
    parser.add_argument(
        "--folder",
        default="tfwire-demo",
        help="where to write: a new or empty folder, or that of an earlier demo (%(default)s)",
    )
    parser.add_argument(
        "--records",
        type=_files.positive,
        default=100_000,
        help="number of records for the speed table (%(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    """Walks through the steps; each checks what it read against what it wrote."""
    from pathlib import Path

    if options.records > _MOST_RECORDS:
        return _files.refuse(options, f"--records must be at most {_MOST_RECORDS:,}")
    missing = [name for module, name in _PACKAGES.items() if find_spec(module) is None]
    if missing:
        raise ImportError(f"needs {' and '.join(missing)}; pip install 'tfwire[demo]'")
    folder = Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / _MARK).exists() and os.listdir(folder):
        return _files.refuse(options, f"{folder}: holds other files; name a new folder")
    (folder / _MARK).touch()

    from tfwire.cli import _walkthrough

    _walkthrough.walk(folder, options.records)
    return 0
