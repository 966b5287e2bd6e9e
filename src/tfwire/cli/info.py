"""tfwire info and tfwire count: what is in a file."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from tfwire._interface.messages import plural, show_key, show_path
from tfwire.cli import _arguments, verify
from tfwire.cli._printing import record_text
from tfwire.cli._streams import Progress

if TYPE_CHECKING:
    from tfwire import FileReport

# Features and damaged regions that are shown at most.
_SHOWN_ITEMS = 100
_JSON_REGIONS = 1000


def add_info(parser: argparse.ArgumentParser) -> None:
    _arguments.add_shared(parser, "files", "--compression", "--json")
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="show each of several files (default: all of them together, and those with damage)",
    )
    parser.set_defaults(run=_info, in_turn=True)


def add_count(parser: argparse.ArgumentParser) -> None:
    _arguments.add_shared(parser, "files", "--compression", "--json")
    parser.set_defaults(run=_count, in_turn=True)


def _info(options: argparse.Namespace) -> int:
    """Reads every file to its end. Several are shown together, unless each is asked for."""
    from tfwire import verify_file

    progress = Progress(sum(map(_arguments.file_size, options.files)))
    found = _SumOfFiles()

    def read(name: str) -> int:
        report = verify_file(
            _arguments.input_file(name),
            compression_type=options.compression,
            progress=partial(progress.update, name),
        )
        progress.clear()
        size = os.path.getsize(name) if os.path.isfile(name) else None
        found.add(report, size)
        if options.json:
            _arguments.print_json(_as_json(report, size))
        elif len(options.files) == 1 or options.verbose:
            _print(report, size)
        elif not report.intact:
            print(f"{show_path(report.path)}:")
            _print_damage(report)
        return int(not report.intact)

    status = _arguments.for_each_file(options, read, progress)
    if len(options.files) > 1 and not options.json:
        found.print(features=not options.verbose)
    return status


class _SumOfFiles:
    """What is in several files."""

    def __init__(self) -> None:
        self._files = self._damaged = self._size = self._records = self._payload = 0
        self._shortest, self._longest = sys.maxsize, 0
        self._compressions: dict[str, None] = {}
        self._first: bytes | None = None

    def add(self, report: FileReport, size: int | None) -> None:
        self._files += 1
        self._damaged += not report.intact
        self._size += size or 0
        self._records += report.num_records
        self._payload += report.payload_bytes
        self._compressions[_arguments.show_compression(report.compression)] = None
        if report.num_records:
            self._shortest = min(self._shortest, report.shortest)
            self._longest = max(self._longest, report.longest)
            self._first = report.first if self._first is None else self._first

    def print(self, features: bool) -> None:
        """Prints what they have in common, and a line of totals."""
        if features and self._records:
            print(f"compression  {', '.join(self._compressions)}")
            _print_payload("", self._payload, self._records, self._shortest, self._longest)
            if self._first is not None:
                _print_first(self._first, "")
        damage = f"{self._damaged:,} DAMAGED" if self._damaged else "intact"
        sums = [(self._files, "file"), (self._records, "record"), (self._size, "byte")]
        print(f"total: {', '.join(plural(*each) for each in sums)}, {damage}")


def _count(options: argparse.Namespace) -> int:
    """Counts the records that verify; damage is reported on stderr."""
    from tfwire import verify_file
    from tfwire._interface.damage import total_lost

    total = 0

    def count(name: str) -> int:
        nonlocal total
        report = verify_file(_arguments.input_file(name), compression_type=options.compression)
        total += report.num_records
        lost = verify.find_lost(report, report.path)
        if options.json:
            fields = {"path": report.path, "records": report.num_records, "intact": report.intact}
            _arguments.print_json({**fields, **verify.lost_json(report, lost, 0)})
        else:
            print(f"{report.num_records:>12} {show_path(report.path)}")
        _arguments.complain_of_damage(
            options, report.path, report.skipped, report.hint, report.compression
        )
        if lost:
            words = lost[0] if len(lost) == 1 else total_lost(report, lost)
            _arguments.complain(options, f"{name}: {words}")
        if (command := verify.repair_command(report, lost)) is not None:
            _arguments.print_error(None, f"next: {command}")
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
        lengths = report.shortest, report.longest
        _print_payload("  ", report.payload_bytes, report.num_records, *lengths)
    _print_damage(report)
    if report.first is not None:
        _print_first(report.first, "  ")


def _print_payload(indent: str, payload: int, records: int, shortest: int, longest: int) -> None:
    print(
        f"{indent}payload      {plural(payload, 'byte')}; per record "
        f"{shortest:,} to {longest:,}, mean {payload / records:,.1f}"
    )


def _print_damage(report: FileReport) -> None:
    print(f"  intact       {'yes' if report.intact else 'NO'}")
    lost = verify.find_lost(report, report.path)
    verify.print_lost(report, lost, "    ", _SHOWN_ITEMS)
    verify.print_remedy(report, lost, "    ")


def _print_first(record: bytes, indent: str) -> None:
    decoded = record_text.decode_record(record)
    print(f"{indent}first record {record_text.record_kind(decoded)}")
    if decoded is None:
        for line in record_text.text_of_record(None, record, True).splitlines():
            print(f"{indent}  {line}")
    else:
        _print_table(indent, *record_text.list_features(decoded, _SHOWN_ITEMS))


def _print_table(indent: str, features: list[tuple[str, str, str]], count: int) -> None:
    rows = [(show_key(name), kind, size) for name, kind, size in features]
    widths = [max((len(row[i]) for row in rows), default=0) for i in (0, 1)]
    for name, kind, size in rows:
        print(f"{indent}  {name:{widths[0]}}  {kind:{widths[1]}}  {size}")
    if count > len(rows):
        print(f"{indent}  of {plural(count, 'feature')} the first {len(rows)} are listed")


def _as_json(report: FileReport, size: int | None) -> dict[str, Any]:
    return {
        **_arguments.report_json(report, _JSON_REGIONS),
        **verify.lost_json(report, verify.find_lost(report, report.path), _JSON_REGIONS),
        "bytes": size,
        "shortest": report.shortest,
        "longest": report.longest,
        "mean": _mean(report),
        "first_record": None if report.first is None else _first_as_json(report.first),
    }


def _first_as_json(record: bytes) -> dict[str, Any]:
    """The first record; names of features are not shortened."""
    decoded = record_text.decode_record(record)
    fields: dict[str, Any] = {"bytes": len(record), "kind": record_text.record_kind(decoded)}
    if decoded is not None:
        features, count = record_text.list_features(decoded, _JSON_REGIONS)
        fields["num_features"] = count
        fields["features"] = {name: f"{kind}: {values}" for name, kind, values in features}
    return fields
