"""tfwire diff: which records of two files or data sets differ, and in which features."""

from __future__ import annotations

import argparse
import sys
from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tfwire._interface.messages import plural, printable, shorten, show_key, show_path
from tfwire.cli import _arguments
from tfwire.cli._streams import Progress, colored

if TYPE_CHECKING:
    from tfwire._interface.damage import Comparison, RecordSet

_KIND_COLORS = {"changed": "cyan", "missing": "red", "added": "green", "moved": "cyan"}
_TROUBLE = 2  # the exit status, as of diff(1)
_SHOWN_VALUES = 4
_LONGEST_VALUE = 40  # characters
_LOOKED_AT = 1000  # bytes of a string


def add_diff(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire diff."""
    for name in ("A", "B"):
        parser.add_argument(
            name.lower(),
            metavar=name,
            help="a TFRecord file, a URL, a folder or a pattern; - for stdin",
        )
    _arguments.add_shared(parser, "--compression", "--jobs")
    _arguments.add_shared(parser, "--json", help="print JSON: a line per difference, and a sum")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing")
    parser.add_argument(
        "--limit",
        type=_arguments.count,
        default=20,
        metavar="N",
        help="show at most N differences (default: %(default)s)",
    )
    parser.add_argument(
        "--ignore-order",
        action="store_true",
        help="the same records in another order are no difference",
    )
    parser.epilog = (
        "Records are numbered from 0, over all files of A or B, without damaged ones. Exit status: "
        "0 when the records are the same, 1 when they differ or a file is damaged, 2 when a file "
        "cannot be read."
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    """Compares, and prints how A and B differ."""
    sides = [_arguments.expand_patterns([name]) for name in (options.a, options.b)]
    names = sides[0] + sides[1]
    _arguments.check_stdin(names)
    try:
        for name in names:
            _arguments.check_files(name)
        trouble = _arguments.half_published(options, names)
        comparison = compare_names(sides[0], sides[1], options)
        damaged = _complain(options, comparison)
        same = comparison.same_records if options.ignore_order else comparison.same
        if not options.quiet:
            _report(comparison, options)
    except _arguments.FAULTS as error:
        _arguments.complain(options, _arguments.error_line(error))
        return _TROUBLE
    return _TROUBLE if trouble else int(damaged or not same)


def compare_names(a: Sequence[str], b: Sequence[str], options: argparse.Namespace) -> Comparison:
    """Compares the files of two sets, with progress."""
    from tfwire._interface.damage import compare_files

    progress = Progress(sum(map(_arguments.file_size, [*a, *b])))
    before, after = ([_arguments.input_file(name) for name in side] for side in (a, b))
    try:
        return compare_files(
            before,
            after,
            options.compression,
            lambda file, done: progress.update(file if isinstance(file, str) else "-", done),
            _arguments.num_jobs(options),
        )
    finally:
        progress.clear()


def _complain(options: argparse.Namespace, comparison: Comparison) -> bool:
    """Says which files are damaged; whether any is."""
    damaged = False
    for file in comparison.a.files + comparison.b.files:
        if file.skipped:
            damaged = True
            _arguments.complain_of_damage(options, file.path, file.skipped, None)
    return damaged


def _report(comparison: Comparison, options: argparse.Namespace) -> None:
    any_order = options.ignore_order or comparison.alignment.is_shuffled
    shown = list(_differences(comparison, options.limit, any_order))
    details = _with_features(comparison, shown)
    sums = summary(comparison)
    if options.json:
        for difference, features in details:
            _arguments.print_json(_as_json(difference, features))
        _arguments.print_json({"a": options.a, "b": options.b, **sums})
        return
    found = verdict(comparison, options.ignore_order)
    print(f"{show_path(options.a)} and {show_path(options.b)}: {found}")
    for difference, features in details:
        print(f"  {_describe(difference, comparison)}")
        for line in _feature_lines(features):
            print(f"      {line}")
    kinds = ("changed", "missing", "added", *(() if any_order else ("moved",)))
    listed = sum(difference.num_records for difference in shown)
    left = sum(sums[kind] for kind in kinds) - listed
    if left > 0:
        print(f"  {plural(left, 'more record')} {'differs' if left == 1 else 'differ'} (--limit)")


# ---- What differs -------------------------------------------------------------------------------


class Difference(NamedTuple):
    """Records that differ.

    Attributes:
        kind: "changed", "missing", "added" or "moved".
        a, b: The number of the first in each set; of missing and added ones that of the next
            record in the other.
        num_records: How many in a row.
    """

    kind: str
    a: int
    b: int
    num_records: int


def summary(comparison: Comparison) -> dict[str, Any]:
    """How many records differ, for JSON."""
    found = comparison.alignment
    return {
        "same": comparison.same,
        "same_records": comparison.same_records,
        "records": [len(comparison.a), len(comparison.b)],
        "changed": found.changed.shape[1],
        "missing": len(found.missing),
        "added": len(found.added),
        "moved": found.moved.shape[1],
        "shuffled": found.is_shuffled,
    }


def verdict(comparison: Comparison, any_order: bool = False) -> str:
    """In one line whether two sets are the same."""
    sums = summary(comparison)
    count, other = sums["records"]
    if comparison.same:
        return f"the same {plural(count, 'record')}"
    if comparison.same_records:
        text = f"the same {plural(count, 'record')} in another order"
        is_part = sums["moved"] < count and not sums["shuffled"]
        return text + (f", {sums['moved']:,} of them moved" if is_part else "")
    kinds = [
        kind for kind in _KIND_COLORS if kind != "moved" or not (any_order or sums["shuffled"])
    ]
    different = ", ".join(f"{sums[kind]:,} {kind}" for kind in kinds if sums[kind])
    order = "; the others in another order" if sums["shuffled"] and not any_order else ""
    return f"{different}, of {count:,} and {plural(other, 'record')}{order}"


def _differences(comparison: Comparison, limit: int, any_order: bool) -> Iterator[Difference]:
    """The first differences, in the order of A; missing and added records in a row are one."""
    import heapq
    from itertools import islice

    import numpy as np

    found, kept = comparison.alignment, comparison.alignment.kept

    def rows(kind: str, places: Any, side: int) -> Iterator[Difference]:
        # In the other set they lie after as many of those that are kept.
        before = np.searchsorted(kept[side], places)
        other = np.append(kept[1 - side], len(comparison.a if side else comparison.b))[before]
        new = np.flatnonzero((np.diff(places) != 1) | (np.diff(before) != 0)) + 1
        begins = np.concatenate([[0], new])[: len(places)]
        counts = np.diff(np.append(begins, len(places)))
        for at, count in zip(begins[:limit].tolist(), counts[:limit].tolist(), strict=False):
            pair = int(places[at]), int(other[at])
            yield Difference(kind, *(pair[::-1] if side else pair), count)

    def pairs(kind: str, places: Any, joined: bool) -> Iterator[Difference]:
        apart = (np.diff(places) != 1).any(axis=0) if joined else np.ones(places.shape[1], bool)
        begins = np.concatenate([[0], np.flatnonzero(apart[: places.shape[1] - 1]) + 1])
        begins = begins[: places.shape[1]]
        counts = np.diff(np.append(begins, places.shape[1]))
        for at, count in zip(begins[:limit].tolist(), counts[:limit].tolist(), strict=False):
            yield Difference(kind, int(places[0, at]), int(places[1, at]), count)

    kinds = [
        pairs("changed", found.changed, joined=False),
        rows("missing", found.missing, 0),
        rows("added", found.added, 1),
        *(() if any_order else (pairs("moved", found.moved, joined=True),)),
    ]
    return islice(heapq.merge(*kinds, key=lambda each: (each.a, each.b)), limit)


def _describe(difference: Difference, comparison: Comparison) -> str:
    kind, i, j, count = difference
    word = colored(f"{kind}:", _KIND_COLORS[kind], sys.stdout)
    here, there = _places(comparison.a, i, count), _places(comparison.b, j, count)
    if kind == "changed" and here == there:
        return f"{word} {here}"
    if kind == "changed":
        return f"{word} {here} of A, {there} of B"
    if kind == "moved":
        return f"{word} {here} of A {'is' if count == 1 else 'are'} {there} of B"
    text = f"{here} of A" if kind == "missing" else f"{there} of B"
    return f"{word} {text}" + (f" ({plural(count, 'record')})" if count > 1 else "")


def _places(records: RecordSet, number: int, count: int) -> str:
    """Records in a row."""
    if count == 1:
        return f"record {_place(records, number)}"
    return f"records {_place(records, number)} to {_place(records, number + count - 1)}"


def _place(records: RecordSet, number: int) -> str:
    """The number of a record, and that in its file if there are several."""
    if len(records.files) == 1 or number >= len(records):
        return f"{number:,}"
    path, index = records.place(number)
    return f"{number:,} ({show_path(path)}: {index:,})"


# ---- Features of changed records ----------------------------------------------------------------

# The name of a feature, None: the bytes of the record; what A and what B has, shortened.
FeatureChange = tuple[str | None, str, str]


def _with_features(
    comparison: Comparison, shown: list[Difference]
) -> Iterator[tuple[Difference, list[FeatureChange] | None]]:
    """Differences, and the features that differ of changed records, which are read as they are
    asked for: one pair of records is in memory."""
    changed = [difference for difference in shown if difference.kind == "changed"]
    if _is_stream(comparison.a) or _is_stream(comparison.b):
        changed = []
    # Their numbers ascend in both.
    before = comparison.a.records([difference.a for difference in changed])
    after = comparison.b.records([difference.b for difference in changed])
    pairs = map(different_features, before, after)
    for difference in shown:
        yield difference, next(pairs, None) if difference.kind == "changed" else None


def _is_stream(records: RecordSet) -> bool:
    return any(not isinstance(file.item, str) for file in records.files)


def different_features(before: bytes, after: bytes) -> list[FeatureChange]:
    """The features that differ between two records."""
    from tfwire import ParseError, decode_sequence_example

    try:
        decoded = [decode_sequence_example(record) for record in (before, after)]
    except ParseError:
        return [(None, *_two_strings(before, after))]
    found: list[FeatureChange] = []
    for old, new in zip(*decoded, strict=True):  # the context, then the feature lists
        for name in sorted(old.keys() | new.keys()):
            values = old.get(name), new.get(name)
            if not _equal(*values):
                found.append((name, *_two(*values)))
    if not found:  # the same features, of which the bytes differ
        found.append((None, *_two_strings(before, after)))
    return found


def _equal(old: Any, new: Any) -> bool:
    if type(old) is not type(new):
        return False
    if isinstance(old, list):
        return len(old) == len(new) and all(map(_equal, old, new))
    if isinstance(old, (bytes, type(None))):
        return bool(old == new)
    return bool(old.dtype == new.dtype and old.tobytes() == new.tobytes())  # NaN equals itself


def _two(old: Any, new: Any) -> tuple[str, str]:
    """Two values that differ, so short that the difference shows."""
    if isinstance(old, bytes) and isinstance(new, bytes):
        return _two_strings(old, new)
    shown = _value(old), _value(new)
    if type(old) is not type(new) or not hasattr(old, "__len__") or len(old) != len(new):
        same = shown[0] == shown[1]
        return (f"{shown[0]} {_kind(old)}", f"{shown[1]} {_kind(new)}") if same else shown
    if 1 < len(old) <= _SHOWN_VALUES and shown[0] != shown[1]:
        return shown
    places = [at for at, pair in enumerate(zip(old, new, strict=True)) if not _equal(*pair)]
    if not places:
        return f"{shown[0]} {_kind(old)}", f"{shown[1]} {_kind(new)}"
    shown = _two(old[places[0]], new[places[0]])
    more = f", and {plural(len(places) - 1, 'more value')}" if len(places) > 1 else ""
    where = f"[{places[0]}] " if len(old) > 1 else ""
    return where + shown[0], shown[1] + more


def _kind(value: Any) -> str:
    return str(getattr(value, "dtype", "strings"))


def _two_strings(old: bytes, new: bytes) -> tuple[str, str]:
    """Strings that differ; where, if that is not seen."""
    import numpy as np

    before, after = _string(old), _string(new)
    if before != after and before[0] == after[0] == '"':
        return before, after
    least = min(len(old), len(new))
    both = (np.frombuffer(each, np.uint8, least) for each in (old, new))
    at = np.flatnonzero(np.not_equal(*both))
    return before, f"{after}, from byte {int(at[0]) if len(at) else least:,} on"


def _value(value: Any) -> str:
    if value is None:
        return "absent"
    if isinstance(value, bytes):
        return _string(value)
    if not isinstance(value, list) and not getattr(value, "shape", ()):
        return str(value)
    shown = [_value(each) for each in value[:_SHOWN_VALUES]]
    if len(value) == 1:
        return shown[0]
    more = f", ... {len(value):,} in all" if len(value) > _SHOWN_VALUES else ""
    return f"[{', '.join(shown)}{more}]"


def _string(value: bytes) -> str:
    """A string that is text, shortened; of others how long they are."""
    try:
        # One that is cut may end within a character.
        text = getincrementaldecoder("utf-8")().decode(value[:_LOOKED_AT])
    except UnicodeDecodeError:
        return plural(len(value), "byte")
    shown = printable(text)
    if len(shown) > 1.5 * len(text) + 8:  # hardly any of it can be shown
        return plural(len(value), "byte")
    return f'"{shorten(shown, _LONGEST_VALUE)}"'


def _feature_lines(features: list[FeatureChange] | None) -> Iterator[str]:
    for name, old, new in features or ():
        what = "the bytes" if name is None else show_key(name)
        yield f"{what}: {old} -> {new}"


def _as_json(difference: Difference, features: list[FeatureChange] | None) -> dict[str, Any]:
    fields = difference._asdict()
    if features is not None:
        fields["features"] = [{"name": name, "a": old, "b": new} for name, old, new in features]
    return fields
