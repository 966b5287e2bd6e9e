"""How much decoding a message would make, and messages with their first parts only."""

from __future__ import annotations

from typing import NamedTuple

from tfwire._base.errors import ParseError
from tfwire._base.native import check, ffi, lib, new_error, text


class Extent(NamedTuple):
    """What decode_sequence_example makes of a message; or limits of it.

    Attributes:
        features: Features and feature lists; as a limit, of each.
        objects: Of Python: features, steps and strings.
        num_bytes: Of keys, strings and numbers.
    """

    features: int
    objects: int
    num_bytes: int

    def holds(self, other: Extent) -> bool:
        """Whether this, as limits, leaves the other as it is."""
        return all(most >= found for most, found in zip(self, other, strict=True))


class Cut(NamedTuple):
    """How many values, and of a feature list how many steps, are left out."""

    values: int
    steps: int = 0


class Shortened(NamedTuple):
    """A message with its first parts.

    Attributes:
        message: Serialized.
        left_out: How many features and feature lists are not in it.
        cuts: Those that are in it without all of their values: by name, and whether it is a list.
    """

    message: bytes
    left_out: int
    cuts: dict[tuple[str, bool], Cut]


def measure(message: bytes) -> Extent:
    """What decoding would make, in memory that does not depend on it.

    Raises:
        ParseError: Not a well-formed message.
    """
    extent, error = ffi.new("tfw_extent *"), new_error()
    _check(lib.tfw_measure(ffi.from_buffer(message), len(message), extent, error), error)
    return Extent(extent.features, extent.objects, extent.bytes)


def cut_message(message: bytes, most: Extent) -> Shortened:
    """The first features and feature lists, each with its equal share of the limits.

    Raises:
        ParseError: Not a well-formed message.
    """
    out, capacity, error = bytearray(len(message)), 2 * most.features, new_error()
    cuts = ffi.new("tfw_cut[]", capacity)
    sizes, left_out = ffi.new("size_t[2]"), ffi.new("uint64_t *")
    status = lib.tfw_shorten(
        *(ffi.from_buffer(message), len(message), ffi.new("tfw_extent *", tuple(most))),
        *(ffi.from_buffer(out), sizes, cuts, capacity, sizes + 1, left_out, error),
    )
    _check(status, error)
    found = {}
    for cut in cuts[0 : sizes[1]]:
        key = message[cut.key_at : cut.key_at + cut.key_len].decode("utf-8", "surrogateescape")
        found[key, bool(cut.is_list)] = Cut(cut.values, cut.steps)
    return Shortened(bytes(memoryview(out)[: sizes[0]]), left_out[0], found)


def _check(status: int, error: object) -> None:
    if status == lib.TFW_E_WIRE:
        raise ParseError(f"the message is malformed: {text(error.text)}", reason="malformed")  # type: ignore[attr-defined]
    check(status, error)
