"""tfwire verify: checks every record of every file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tfwire._interface.messages import plural, printable, show_path
from tfwire.cli import _arguments
from tfwire.cli._streams import Progress, colored

if TYPE_CHECKING:
    from tfwire import FileReport, Receipt
    from tfwire.typing import ParallelMap


def add_verify(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire verify."""
    _arguments.add_shared(parser, "files", "--compression", "--json", "--jobs")
    parser.add_argument(
        "--crc32c",
        action="store_true",
        help="print the CRC-32C of the whole file in base64, as object stores show it",
    )
    parser.add_argument(
        "--receipt",
        action="store_true",
        help="print a fingerprint of the records of each file and of all files, which does not "
        "depend on the order of records",
    )
    parser.add_argument(
        "--same-as",
        nargs="+",
        default=[],
        metavar="FILE",
        help="compare with these files: do they hold the same records, in any order and however "
        "spread over files?",
    )
    parser.epilog = (
        "Exit status: 0 when every byte of every file belongs to a record that verifies (and the "
        "records are the same), 1 when not, when a file cannot be read or belongs to a set of "
        "shards that is half published, 2 for wrong usage."
    )
    parser.set_defaults(run=_run, in_turn=True)


def _run(options: argparse.Namespace) -> int:
    """Verifies files in parallel, and reports them in the order of the command line."""
    names = options.files + options.same_as
    _arguments.check_stdin(names)
    options.receipt = options.receipt or bool(options.same_as)
    progress = Progress(sum(map(_arguments.file_size, names)))
    reports: list[FileReport] = []
    others: list[FileReport] = []  # of --same-as
    failed = 0
    mixed = _arguments.half_published(options, names)
    for number, (name, found) in enumerate(_verified(names, options, progress)):
        progress.clear()
        if isinstance(found, Exception):
            failed += 1
            _report_failure(name, found, options)
        else:
            (reports if number < len(options.files) else others).append(found)
            _report(found, options)
    if len(names) > 1 and not options.same_as and not options.json:
        _report_sum(reports, failed)
    same = not options.same_as or (not failed and _report_comparison(reports, others, options))
    intact = all(report.intact for report in reports + others)
    return int(failed > 0 or mixed or not same or not intact)


def _verified(
    names: Sequence[str], options: argparse.Namespace, progress: Progress
) -> Iterator[tuple[str, FileReport | Exception]]:
    """Every name, and the report of its file or why there is none."""

    from tfwire._interface.files import verify_inputs

    def verify(some: Sequence[str]) -> ParallelMap[Any, FileReport]:
        return verify_inputs(
            list(map(_arguments.input_file, some)),
            options.compression,
            options.crc32c,
            options.receipt,
            lambda file, done: progress.update(file if isinstance(file, str) else "-", done),
            _arguments.num_jobs(options),
        )

    return zip(names, _arguments.each_result(verify, names), strict=True)


# ---- Output -----------------------------------------------------------------------------------


def _report_failure(name: str, error: Exception, options: argparse.Namespace) -> None:
    if options.json:
        _arguments.print_json(
            {"path": name, "error": getattr(error, "strerror", None) or str(error)}
        )
    else:
        _arguments.complain(options, _arguments.error_line(error, name))


def _report(report: FileReport, options: argparse.Namespace) -> None:
    if options.json:
        _arguments.print_json(_as_json(report, options))
        return
    facts = [
        colored("intact", "green", sys.stdout)
        if report.intact
        else colored("DAMAGED", "red", sys.stdout),
        plural(report.num_records, "record"),
        plural(report.payload_bytes, "payload byte"),
    ]
    if report.compression:
        facts.append(_arguments.show_compression(report.compression))
    if options.crc32c:
        facts.append(f"crc32c {_crc_text(report) or 'unknown'}")
    if report.receipt is not None:
        facts.append(f"receipt {report.receipt.hash:016x}")
    print(f"{show_path(report.path)}: {', '.join(facts)}")
    for region in report.skipped:
        print(f"  {_arguments.describe_region(region, report.compression)}")
    _arguments.print_more(report.skipped.num_regions, len(report.skipped), "region")
    if report.hint is not None:
        print(f"  {_arguments.as_flags(printable(report.hint))}")


def _as_json(report: FileReport, options: argparse.Namespace) -> dict[str, Any]:
    fields = _arguments.report_json(report)
    if options.crc32c:
        fields["crc32c"] = _crc_text(report)
    if report.receipt is not None:
        fields["receipt"] = report.receipt.to_dict()
    return fields


def _crc_text(report: FileReport) -> str | None:
    from tfwire.checksum import base64_crc32c

    return None if report.file_crc32c is None else base64_crc32c(report.file_crc32c)


def _total_receipt(reports: list[FileReport]) -> Receipt:
    """The receipt of the records of several files."""
    from tfwire import Receipt

    receipts = (report.receipt for report in reports if report.receipt is not None)
    return sum(receipts, Receipt())


def _report_sum(reports: list[FileReport], failed: int) -> None:
    damaged = sum(not report.intact for report in reports)
    records = sum(report.num_records for report in reports)
    line = f"{len(reports) + failed:,} files, {plural(records, 'record')}: "
    line += f"{len(reports) - damaged:,} intact, {damaged:,} damaged"
    line += f", {failed:,} not readable" if failed else ""
    if reports and reports[0].receipt is not None:
        line += f", receipt {_total_receipt(reports).hash:016x}"
    print(line)


def _report_comparison(
    reports: list[FileReport], others: list[FileReport], options: argparse.Namespace
) -> bool:
    """Reports whether two sets of files hold the same records."""
    ours, theirs = _total_receipt(reports), _total_receipt(others)
    if options.json:
        receipts = [ours.to_dict(), theirs.to_dict()]
        _arguments.print_json({"same_records": ours == theirs, "receipts": receipts})
    else:
        verdict = "the same records" if ours == theirs else "NOT the same records"
        print(f"{verdict}: {ours} and {theirs}")
    return ours == theirs
