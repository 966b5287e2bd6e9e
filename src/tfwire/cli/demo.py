"""tfwire demo: a walk through the library on real data, in a folder of its own."""

from __future__ import annotations

import argparse
import os

from tfwire.cli import _arguments

_MARK = ".tfwire-demo"  # marks a folder that a demo created
_PACKAGES = {"PIL": "Pillow", "sklearn": "scikit-learn"}
_MOST_RECORDS = 10**8  # of the speed table, which are in memory as columns


def add_demo(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire demo."""
    parser.add_argument(
        "--folder",
        default="tfwire-demo",
        help="where to write: a new or empty folder, or that of an earlier demo (%(default)s)",
    )
    parser.add_argument(
        "--records",
        type=_arguments.positive,
        default=100_000,
        help="number of records for the speed table (%(default)s)",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    """Checks the folder and what must be installed, then walks."""
    if options.records > _MOST_RECORDS:
        return _arguments.refuse(options, f"--records must be at most {_MOST_RECORDS:,}")
    from importlib.util import find_spec
    from pathlib import Path

    missing = [name for module, name in _PACKAGES.items() if find_spec(module) is None]
    if missing:
        raise ImportError(f"needs {' and '.join(missing)}; pip install 'tfwire[demo]'")
    folder = Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / _MARK).exists() and os.listdir(folder):
        return _arguments.refuse(options, f"{folder}: holds other files; name a new folder")
    (folder / _MARK).touch()

    from tfwire.cli import _walkthrough

    _walkthrough.walk_through(folder, options.records)
    return 0
