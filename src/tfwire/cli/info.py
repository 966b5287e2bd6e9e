"""tfwire info: what is in a file."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from tfwire.cli import _files
from tfwire.cli._progress import Progress

if TYPE_CHECKING:
    from tfwire.verification import FileReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire info."""
    _files.add_files(parser)
    parser.add_argument("--json", action="store_true", help="one line of JSON per file")


def run(options: argparse.Namespace) -> int:
    """Reads every file to its end."""
    from tfwire.verification import verify_file

    progress = Progress(sum(map(_files.file_size, options.files)))
    status = 0
    for name in options.files:
        try:
            report = verify_file(
                _files.input_of(name),
                compression_type=_files.compression_of(options),
                progress=lambda done, name=name: progress.update(name, done),  # type: ignore[misc]
            )
        except OSError as error:
            status = 1
            progress.clear()
            _files.complain(options, _files.reason_of(error, name))
            continue
        progress.clear()
        size = os.path.getsize(name) if os.path.isfile(name) else None
        if options.json:
            _files.print_json(_as_json(report, size))
        else:
            _print(report, size)
        status |= not report.intact
    return status


def _mean(report: FileReport) -> float:
    return report.payload_bytes / report.records if report.records else 0.0


def _print(report: FileReport, size: int | None) -> None:
    from tfwire.cli import _records

    print(f"{report.path}:")
    if size is not None:
        print(f"  size         {_files.plural(size, 'byte')}")
    print(f"  compression  {_files.compression_name(report.compression)}")
    print(f"  records      {report.records:,}")
    if report.records:
        print(
            f"  payload      {_files.plural(report.payload_bytes, 'byte')}; per record "
            f"{report.shortest:,} to {report.longest:,}, mean {_mean(report):,.1f}"
        )
    print(f"  intact       {'yes' if report.intact else 'NO'}")
    for region in report.regions:
        print(f"    {_files.describe_region(region)}")
    if report.hint is not None:
        print(f"    {report.hint}")
    if report.first is not None:
        message = _records.message_of(report.first)
        print(f"  first record {_records.kind_of(message)}")
        if message is None:
            print(f"    {_records.as_text(report.first, True).strip()}")
        else:
            _print_table(_records.features_of(message))


def _print_table(rows: list[tuple[str, str, str]]) -> None:
    widths = [max((len(row[i]) for row in rows), default=0) for i in (0, 1)]
    for name, kind, size in rows:
        print(f"    {name:{widths[0]}}  {kind:{widths[1]}}  {size}")


def _as_json(report: FileReport, size: int | None) -> dict[str, Any]:
    from tfwire.cli import _records

    first = None
    if report.first is not None:
        message = _records.message_of(report.first)
        first = {"bytes": len(report.first), "kind": _records.kind_of(message)}
        if message is not None:
            first["features"] = {
                name: f"{kind}: {values}" for name, kind, values in _records.features_of(message)
            }
    return {
        "path": report.path,
        "bytes": size,
        "compression": _files.compression_name(report.compression),
        "records": report.records,
        "payload_bytes": report.payload_bytes,
        "shortest": report.shortest,
        "longest": report.longest,
        "mean": _mean(report),
        "intact": report.intact,
        "regions": [_files.region_json(region) for region in report.regions],
        "first_record": first,
    }
