"""tfwire info and tfwire count: what is in a file."""

from __future__ import annotations

import argparse
import os
from functools import partial
from typing import TYPE_CHECKING, Any

from tfwire._interface.messages import plural, printable, show_key, show_path
from tfwire.cli import _arguments, show
from tfwire.cli._streams import Progress

if TYPE_CHECKING:
    from tfwire import FileReport

# Features and damaged regions that are shown at most.
_SHOWN_ITEMS = 100
_JSON_REGIONS = 1000


def add_info(parser: argparse.ArgumentParser) -> None:
    _arguments.add_shared(parser, "files", "--compression", "--json")
    parser.set_defaults(run=_info, in_turn=True)


def add_count(parser: argparse.ArgumentParser) -> None:
    _arguments.add_shared(parser, "files", "--compression", "--json")
    parser.set_defaults(run=_count, in_turn=True)


def _info(options: argparse.Namespace) -> int:
    """Reads every file to its end."""
    from tfwire import verify_file

    progress = Progress(sum(map(_arguments.file_size, options.files)))

    def read(name: str) -> int:
        report = verify_file(
            _arguments.input_file(name),
            compression_type=options.compression,
            progress=partial(progress.update, name),
        )
        progress.clear()
        size = os.path.getsize(name) if os.path.isfile(name) else None
        if options.json:
            _arguments.print_json(_as_json(report, size))
        else:
            _print(report, size)
        return int(not report.intact)

    return _arguments.for_each_file(options, read, progress)


def _count(options: argparse.Namespace) -> int:
    """Counts the records that verify; damage is reported on stderr."""
    from tfwire import verify_file

    total = 0

    def count(name: str) -> int:
        nonlocal total
        report = verify_file(_arguments.input_file(name), compression_type=options.compression)
        total += report.num_records
        if options.json:
            _arguments.print_json(
                {"path": report.path, "records": report.num_records, "intact": report.intact}
            )
        else:
            print(f"{report.num_records:>12} {show_path(report.path)}")
        _arguments.complain_of_damage(
            options, report.path, report.skipped, report.hint, report.compression
        )
        return int(not report.intact)

    status = _arguments.for_each_file(options, count)
    if len(options.files) > 1 and not options.json:
        print(f"{total:>12} total")
    return status


def _mean(report: FileReport) -> float:
    return report.payload_bytes / report.num_records if report.num_records else 0.0


def _print(report: FileReport, size: int | None) -> None:
    print(f"{show_path(report.path)}:")
    if size is not None:
        print(f"  size         {plural(size, 'byte')}")
    print(f"  compression  {_arguments.show_compression(report.compression)}")
    print(f"  records      {report.num_records:,}")
    if report.num_records:
        print(
            f"  payload      {plural(report.payload_bytes, 'byte')}; per record "
            f"{report.shortest:,} to {report.longest:,}, mean {_mean(report):,.1f}"
        )
    print(f"  intact       {'yes' if report.intact else 'NO'}")
    for region in report.skipped[:_SHOWN_ITEMS]:
        print(f"    {_arguments.describe_region(region, report.compression)}")
    if report.skipped.num_regions > _SHOWN_ITEMS:
        count = plural(report.skipped.num_regions, "region")
        print(f"    of {count} the first {_SHOWN_ITEMS} are listed; tfwire verify lists more")
    if report.hint is not None:
        print(f"    {_arguments.as_flags(printable(report.hint))}")
    if report.first is not None:
        message = show.parse_record(report.first)
        print(f"  first record {show.message_kind(message)}")
        if message is None:
            for line in show.text_of_record(None, report.first, True).splitlines():
                print(f"    {line}")
        else:
            _print_table(*show.list_features(message, _SHOWN_ITEMS))


def _print_table(features: list[tuple[str, str, str]], count: int) -> None:
    rows = [(show_key(name), kind, size) for name, kind, size in features]
    widths = [max((len(row[i]) for row in rows), default=0) for i in (0, 1)]
    for name, kind, size in rows:
        print(f"    {name:{widths[0]}}  {kind:{widths[1]}}  {size}")
    if count > len(rows):
        print(f"    of {plural(count, 'feature')} the first {len(rows)} are listed")


def _as_json(report: FileReport, size: int | None) -> dict[str, Any]:
    return {
        **_arguments.report_json(report, _JSON_REGIONS),
        "bytes": size,
        "shortest": report.shortest,
        "longest": report.longest,
        "mean": _mean(report),
        "first_record": None if report.first is None else _first_as_json(report.first),
    }


def _first_as_json(record: bytes) -> dict[str, Any]:
    """The first record; names of features are not shortened."""
    message = show.parse_record(record)
    fields: dict[str, Any] = {"bytes": len(record), "kind": show.message_kind(message)}
    if message is not None:
        features, count = show.list_features(message, _JSON_REGIONS)
        fields["num_features"] = count
        fields["features"] = {name: f"{kind}: {values}" for name, kind, values in features}
    return fields
