"""``tf.nest``: structures of tuples, lists and dicts, and their leaves in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tfwire.compat._errors import Namespace


def is_nested(seq: Any) -> bool:
    """True for tuples, lists and dicts."""
    return isinstance(seq, (list, tuple, Mapping))


def _parts(structure: Any) -> list[Any]:
    """The parts of a structure; those of a dict by their sorted keys."""
    if isinstance(structure, Mapping):
        return [structure[key] for key in _keys(structure)]
    return list(structure)


def _keys(structure: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(structure)
    except TypeError:
        raise TypeError("nest only supports dicts with sortable keys.") from None


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The leaves of a structure, which may be a leaf itself."""
    if not is_nested(structure):
        return [structure]
    return [leaf for part in _parts(structure) for leaf in flatten(part)]


def assert_same_structure(
    nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Checks that two structures have their leaves in the same places.

    Raises:
        ValueError: They do not.
        TypeError: With ``check_types``: for example, one has a tuple where the other has a list.
    """
    if is_nested(nest1) != is_nested(nest2):
        raise ValueError(f"structures differ: {nest1!r} and {nest2!r}")
    if not is_nested(nest1):
        return
    _check_types(nest1, nest2, check_types)
    one, other = _parts(nest1), _parts(nest2)
    if len(one) != len(other):
        raise ValueError(f"structures differ in their number of parts: {nest1!r} and {nest2!r}")
    for a, b in zip(one, other, strict=True):
        assert_same_structure(a, b, check_types)


def _check_types(nest1: Any, nest2: Any, check_types: bool) -> None:
    dicts = [one for one in (nest1, nest2) if isinstance(one, Mapping)]
    if check_types and len(dicts) < 2 and type(nest1) is not type(nest2):
        raise TypeError(f"structures differ: {type(nest1).__name__} and {type(nest2).__name__}")
    if len(dicts) == 2 and dicts[0].keys() != dicts[1].keys():
        raise ValueError(f"structures differ in their keys: {list(nest1)} and {list(nest2)}")


def pack_sequence_as(structure: Any, flat_sequence: Any, expand_composites: bool = False) -> Any:
    """The leaves of a list in the places of those of a structure.

    Raises:
        TypeError: ``flat_sequence`` is not a list.
        ValueError: It has another number of leaves.
    """
    if not is_nested(flat_sequence):
        raise TypeError(f"`flat_sequence` must be a list, found {type(flat_sequence).__name__}")
    leaves, needed = list(flat_sequence), len(flatten(structure))
    if len(leaves) != needed:
        raise ValueError(f"expected {needed} leaves, found {len(leaves)}")
    return _packed(structure, iter(leaves))


def _packed(structure: Any, leaves: Iterator[Any]) -> Any:
    if not is_nested(structure):
        return next(leaves)
    if isinstance(structure, Mapping):
        found = {key: _packed(structure[key], leaves) for key in _keys(structure)}
        return type(structure)((key, found[key]) for key in structure)  # type: ignore[call-arg]
    parts = [_packed(part, leaves) for part in structure]
    return type(structure)(*parts) if hasattr(structure, "_fields") else type(structure)(parts)


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """A function of the leaves of structures, in their structure.

    Args:
        func: Takes one leaf of each structure.
        structure: The structures, one or more, all alike.
        kwargs: ``check_types``, as for :func:`assert_same_structure`.

    Raises:
        TypeError, ValueError: As :func:`assert_same_structure`; ``func`` is not callable.
    """
    if not callable(func):
        raise TypeError(f"`func` must be callable, found {type(func).__name__}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    for other in structure[1:]:
        assert_same_structure(structure[0], other, kwargs.get("check_types", True))
    results = [func(*leaves) for leaves in zip(*map(flatten, structure), strict=True)]
    return pack_sequence_as(structure[0], results)


nest: Namespace = Namespace(
    "nest", assert_same_structure, flatten, is_nested, map_structure, pack_sequence_as
)
