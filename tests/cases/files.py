"""Runs the batch cases as files: what parse_file must give for them is in the table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import tfwire as tfw
from cases.replay import Io, agrees
from cases.results import build_spec, plain_dict

Case = dict[str, Any]


class Group(NamedTuple):
    """Batches of one size and one specification.

    Attributes:
        parser: Of the specification.
        batch_size: Messages of each case.
        good: The cases that have values.
        bad: The cases that have an error.
    """

    parser: Any
    batch_size: int
    good: list[Case]
    bad: list[Case]


class Found(NamedTuple):
    """All that an iteration shows.

    Attributes:
        batches: In the table's form, each with its dicts.
        error: The class, the text, the reason, the feature and the record number; or None.
        left_out: The texts, reasons, features and record numbers of records left out.
    """

    batches: list[list[dict[str, Any]]]
    error: tuple[Any, ...] | None
    left_out: list[tuple[Any, ...]]


def groups(table: Iterable[Case]) -> Iterator[Group]:
    """The batch cases with messages, by specification and number of messages."""
    found: dict[str, Group] = {}
    for case in table:
        size = len(case["serialized"])
        if "single" in case["call"] or not size or case["expected"].get("reason") == "other":
            continue
        key = json.dumps([case["spec"], case.get("lists"), size])
        if key not in found:
            found[key] = Group(parser_of(case), size, [], [])
        group = found[key]
        (group.good if "values" in case["expected"] else group.bad).append(case)
    yield from found.values()


def parser_of(case: Case) -> Any:
    spec = build_spec(Io, case["spec"])
    if case["call"] == "batch":
        return tfw.Parser(spec)
    return tfw.SequenceParser(spec or None, build_spec(Io, case["lists"]) or None)


def messages_of(cases: Iterable[Case]) -> list[bytes]:
    return [bytes.fromhex(message) for case in cases for message in case["serialized"]]


def table_form(batch: Any) -> list[dict[str, Any]]:
    """A result of Parser or SequenceParser as the table has it."""
    parts = batch if isinstance(batch, tuple) else (batch,)
    return [plain_dict(part) for part in parts]


def parse(group: Group, path: Path, num_threads: int, **options: Any) -> Found:
    """What parse_file gives of a file with batches of a group."""
    batches = group.parser.parse_file(path, group.batch_size, num_threads=num_threads, **options)
    found, error = [], None
    try:
        found.extend(map(table_form, batches))
    except tfw.Error as caught:
        error = (type(caught), *shown(caught))
    return Found(found, error, [shown(one) for one in batches.parse_errors])


def shown(error: Any) -> tuple[Any, ...]:
    return str(error), error.reason, error.feature, error.record_index


def answered(cases: Iterable[Case]) -> list[list[dict[str, Any]]]:
    """The batches that the table has for cases with values."""
    return [case["expected"]["values"] for case in cases]


def unlike_the_table(group: Group, before: list[Case], bad: Case, found: Found) -> list[str]:
    """What is wrong with what was found of a file of good cases and a bad one."""
    wrong = []
    complete = answered(before)
    if found.batches[: len(complete)] != complete:
        wrong.append("the batches before the error")
    if found.error is None:
        return [*wrong, "no error"]
    kind, _, reason, feature, index = found.error
    if not agrees(bad["expected"], {"error": kind.__name__, "reason": reason, "key": feature}):
        wrong.append("the reason of the error")
    first = len(before) * group.batch_size
    num_intact = index - first
    if not 0 <= num_intact < group.batch_size:
        return [*wrong, "the record number of the error"]
    intact = list(islice(messages_of([bad]), num_intact))
    rest = [table_form(group.parser.parse(intact))] if intact else []
    if found.batches[len(complete) :] != rest:
        wrong.append("the incomplete batch before the error")
    return wrong
