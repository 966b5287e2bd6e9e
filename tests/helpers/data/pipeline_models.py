"""What stages of pipelines give, by their documentation: slow models on lists of numbers."""

import sys


def in_turn(sizes, cycle):
    """The numbers of records of files read in turn, in TensorFlow's order."""
    first, files = 0, []
    for size in sizes:
        files.append(list(range(first, first + size)))
        first += size
    slots, files = files[:cycle], files[cycle:]
    turn = 0
    while any(slot is not None for slot in slots):
        if slots[turn]:
            yield slots[turn].pop(0)
        elif slots[turn] is not None:  # it has ended, and gives its turn away
            slots[turn] = files.pop(0) if files else None
        turn = (turn + 1) % len(slots)


def batches(elements, size, drop_remainder=False):
    batch = count = None
    try:
        for element in elements:
            batch, count = (batch or []) + element, (count or 0) + 1
            if count == size:
                yield batch
                batch = count = None
    finally:
        error = sys.exc_info()[0]
        if error is not GeneratorExit and count and not drop_remainder:
            yield batch


def times(numbers):
    """How often ``interleave`` gives an element."""
    return sum(numbers) % 3


def taking_turns(elements, cycle, block):
    """TensorFlow's order: a slot that is empty opens the next dataset at its turn."""
    slots, more, turn = [None] * cycle, True, 0
    while more or any(slot is not None for slot in slots):
        if slots[turn] is None and more:
            element = next(elements, None)
            more = element is not None
            slots[turn] = [element] * times(element) if more else None
        if slots[turn] is not None:
            given, slots[turn] = slots[turn][:block], slots[turn][block:]
            yield from given
            if len(given) < block:
                slots[turn] = None
        turn = (turn + 1) % cycle


def bucketed(elements, sizes, drop_remainder):
    held = {}
    try:
        for element in elements:
            key = sum(element) % 3
            held.setdefault(key, []).append(element)
            if len(held[key]) == sizes[key]:
                yield [number for one in held.pop(key) for number in one]
    finally:
        if sys.exc_info()[0] is not GeneratorExit and not drop_remainder:
            for key in sorted(held):
                yield [number for one in held[key] for number in one]
