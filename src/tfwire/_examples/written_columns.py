"""What is to become of the columns of a table: of each, its features, and which there must be."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tfwire._base.errors import warn
from tfwire._base.text import first_few, quoted
from tfwire._examples.values import Name, show

if TYPE_CHECKING:
    from tfwire._examples.written_sparse import WrittenSparse

_LEAST_LIKENESS = 0.75  # of a name to what it was meant to be
_ANY_DIGIT = re.compile(rb"\d")
_COMPARED_NAMES = 100  # names, and bytes of each, with each other


class WrittenColumn(NamedTuple):
    """How a column becomes features.

    Attributes:
        name: Of the column.
        said_by: The class of its specification.
        key: Of the feature with the values.
        kind: BYTES, FLOAT or INT64.
        lists: How many lists of any length are around an element, steps included.
        shape: Of an element.
        partitions: Kind, and key or length, of each; outermost first.
        is_list: It is a feature list.
        required: Every record has it.
    """

    name: Name
    said_by: str
    key: bytes
    kind: int
    lists: int
    shape: tuple[int, ...] = ()
    partitions: tuple[tuple[str, Any], ...] = ()
    is_list: bool = False
    required: bool = False


class WritePlan(NamedTuple):
    """How the columns of a table become features.

    Attributes:
        columns: By the bytes of their names. Others are written as without a plan.
        structs: Likewise, those of a SparseFeature; ``columns`` may have its features.
        keys: The keys of those others that have another name in the table.
        is_sequence: The records are SequenceExamples.
    """

    columns: Mapping[bytes, WrittenColumn]
    structs: Mapping[bytes, WrittenSparse]
    keys: Mapping[bytes, bytes]
    is_sequence: bool

    def check_names(self, names: Iterable[bytes]) -> None:
        """Refuses a table without a column that all records must have, and one with a column that
        the plan does not name, where it names a similar one that is not there. Warns of others that
        are not named, where one is not there.

        Raises:
            ValueError: It has no such column, or a name is misspelt.
        """
        names = set(names)
        lacking = self._lacking(names)
        for name, column in self.columns.items():
            if column.required and name in lacking:
                near = _nearest(name, names - self.columns.keys() - self.structs.keys())
                raise ValueError(
                    f"{show(column.name)}: there is no such column, and {column.said_by} needs a "
                    f"value in every record{near and f'; is {near} meant?'}"
                )
        partitions = (key for column in self.columns.values() for _, key in column.partitions)
        known = {column.key for column in self.columns.values()}.union(partitions, self.columns)
        unnamed = names - known - self.structs.keys()
        if lacking and unnamed:
            for name in sorted(unnamed)[:_COMPARED_NAMES]:
                if near := _nearest(name, lacking):
                    raise ValueError(
                        f"{show(_text(name))}: the specification does not name this column, but "
                        f"{near}, which is not there; rename one, or leave {near} out of it"
                    )
            warn(
                f"the specification names {_quoted_names(lacking)}, and there is no such column; "
                f"written as without it, since it does not name them: {_quoted_names(unnamed)}"
            )

    def _lacking(self, names: set[bytes]) -> set[bytes]:
        """The columns that are not there. A SparseFeature is one, or its features are."""
        lacking = set(self.columns)
        for name, sparse in self.structs.items():
            every = (*sparse.indices, sparse.values)
            parts = {column.key for column in every if self.columns.get(column.key) is column}
            if name in names or not parts & names:
                lacking -= parts
                lacking.add(name)
        return lacking - names


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _nearest(name: bytes, names: Iterable[bytes]) -> str:
    """Which of some names may be meant by one, for messages; empty: none. Names that differ only in
    digits are numbered, and not misspelt."""
    from difflib import get_close_matches

    plain = _ANY_DIGIT.sub(b"", name)
    near = [other for other in sorted(names) if _ANY_DIGIT.sub(b"", other) != plain]
    short = [_text(other) for other in near if len(other) <= _COMPARED_NAMES][:_COMPARED_NAMES]
    found = get_close_matches(_text(name[:_COMPARED_NAMES]), short, 1, _LEAST_LIKENESS)
    return quoted(found[0]) if found else ""


def _quoted_names(names: Iterable[bytes]) -> str:
    """Some names, in their order."""
    return first_few([_text(name) for name in sorted(names)])
