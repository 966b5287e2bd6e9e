"""tfwire verify: every record of every file."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from tfwire.cli import _files
from tfwire.cli._progress import Progress

if TYPE_CHECKING:
    from tfwire.verification import FileReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire verify."""
    _files.add_files(parser)
    parser.add_argument("--json", action="store_true", help="one line of JSON per file")
    parser.add_argument(
        "--jobs", type=_files.positive, default=None, help="files at a time (default: one per CPU)"
    )
    parser.add_argument(
        "--crc32c",
        action="store_true",
        help="also the CRC-32C of the whole file in base64, as object stores show it",
    )
    parser.epilog = (
        "Exit status: 0 when every byte of every file belongs to a record that verifies, "
        "1 when a file is damaged or cannot be read, 2 for wrong usage."
    )


def run(options: argparse.Namespace) -> int:
    """Verifies files side by side, reports them in the order of the command line."""
    from concurrent.futures import ThreadPoolExecutor  # takes longer than all of --help

    progress = Progress(sum(map(_files.file_size, options.files)))
    reports: list[FileReport] = []
    failed = 0
    with ThreadPoolExecutor(options.jobs or os.cpu_count() or 1) as pool:
        pending = [pool.submit(_verify, name, options, progress) for name in options.files]
        try:
            for name, task in zip(options.files, pending, strict=True):
                try:
                    report = task.result()
                except OSError as error:
                    failed += 1
                    progress.clear()
                    _report_failure(name, error, options)
                    continue
                reports.append(report)
                progress.clear()
                _report(report, options)
        finally:  # also when the reader of our output has left
            for task in pending:
                task.cancel()
    progress.clear()
    if len(options.files) > 1 and not options.json:
        _report_sum(reports, failed)
    return int(failed > 0 or not all(report.intact for report in reports))


def _verify(name: str, options: argparse.Namespace, progress: Progress) -> FileReport:
    from tfwire.verification import verify_file

    return verify_file(
        _files.input_of(name),
        compression_type=_files.compression_of(options),
        crc32c=options.crc32c,
        progress=lambda done: progress.update(name, done),
    )


# ---- Output -----------------------------------------------------------------------------------


def _report_failure(name: str, error: OSError, options: argparse.Namespace) -> None:
    if options.json:
        _files.print_json({"path": name, "error": error.strerror or str(error)})
    else:
        _files.complain(options, _files.reason_of(error, name))


def _report(report: FileReport, options: argparse.Namespace) -> None:
    if options.json:
        _files.print_json(_as_json(report, options.crc32c))
        return
    facts = [
        "intact" if report.intact else "DAMAGED",
        _files.plural(report.records, "record"),
        _files.plural(report.payload_bytes, "payload byte"),
    ]
    if report.compression:
        facts.append(_files.compression_name(report.compression))
    if options.crc32c:
        facts.append(f"crc32c {_crc_text(report) or 'unknown'}")
    print(f"{report.path}: {', '.join(facts)}")
    for region in report.regions:
        print(f"  {_files.describe_region(region)}")
    if report.hint is not None:
        print(f"  {report.hint}")


def _as_json(report: FileReport, with_crc: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "path": report.path,
        "intact": report.intact,
        "compression": _files.compression_name(report.compression),
        "records": report.records,
        "payload_bytes": report.payload_bytes,
        "regions": [_files.region_json(region) for region in report.regions],
    }
    if with_crc:
        fields["crc32c"] = _crc_text(report)
    return fields


def _crc_text(report: FileReport) -> str | None:
    from tfwire.verification import base64_crc32c

    return None if report.crc32c is None else base64_crc32c(report.crc32c)


def _report_sum(reports: list[FileReport], failed: int) -> None:
    damaged = sum(not report.intact for report in reports)
    records = sum(report.records for report in reports)
    line = f"{len(reports) + failed:,} files, {_files.plural(records, 'record')}: "
    line += f"{len(reports) - damaged:,} intact, {damaged:,} damaged"
    print(line + (f", {failed:,} not readable" if failed else ""))
