"""No answer depends on earlier calls: what encoders, decoders and parsers learn only makes them
fast. Random sequences of calls give what each call gives alone, with everything fresh.

TFWIRE_SEQUENCES says how many sequences to run.
"""

import os
import random
from functools import partial

import numpy as np
import pytest

import tfwire as tfw
from helpers.products import check_each
from helpers.search import FIRST_SEED
from tfwire._examples import decode, kinds

pytestmark = pytest.mark.outside_c

SEEDS = range(FIRST_SEED, FIRST_SEED + int(os.environ.get("TFWIRE_SEQUENCES", 15)))

KEYS = [
    *["a", "b", "ab", "", "key", "kex", "long key " * 20, "caf\u00e9"],
    *["\udc80", "b\udcff", b"\xed\xb2\x80", b"\xed\xb2", b"\xff", b"a", "\udced\udcb2\udc80"],
]


def forget():
    """Drops the encoders and decoders that calls share."""
    kinds._idle.clear()
    decode._idle.clear()


def value(rng):
    return rng.choice(
        [
            lambda: rng.randrange(-(2**63), 2**63),
            lambda: rng.random(),
            lambda: [rng.randrange(200) for _ in range(rng.randrange(40))],
            lambda: [rng.random() for _ in range(rng.randrange(4))],
            lambda: rng.randbytes(rng.choice([0, 1, 20, 300])),
            lambda: rng.choice(["text", "\u00e9", b"\xed\xb2\x80", "\udc80", None, [None], {}]),
            lambda: [b"x"] * rng.randrange(3),
            lambda: np.arange(rng.randrange(5)),
            lambda: np.float32(rng.random()),
        ]
    )()


def row(rng):
    keys = rng.sample(KEYS, rng.randrange(len(KEYS)))
    return {key: value(rng) for key in keys}


def shown(call):
    """What a call gives, in a form that compares; an error by its type and text."""
    try:
        return repr(call())
    except (TypeError, ValueError, tfw.Error) as error:
        return f"{type(error).__name__}: {error}"


def messages(rng):
    """Examples of usual and odd shapes, some of them damaged."""
    made = []
    while len(made) < 20:
        try:
            message = bytearray(tfw.encode_example(row(rng), sort_keys=rng.random() < 0.5))
        except (TypeError, ValueError):
            continue
        if message and rng.random() < 0.2:
            message[rng.randrange(len(message))] ^= 1 << rng.randrange(8)
        if rng.random() < 0.1:
            message *= 2  # every key twice
        made.append(bytes(message))
    return made


SPEC = {
    "a": tfw.FixedLenFeature([], tfw.int64, -1),
    "b": tfw.VarLenFeature(tfw.float32),
    "ab": tfw.VarLenFeature(tfw.string),
    "key": tfw.FixedLenFeature([], tfw.string, b"none"),
    "kex": tfw.RaggedFeature(tfw.int64),
}


def encode_calls(rng):
    calls = []
    for _ in range(25):
        some, keep = [row(rng) for _ in range(rng.randrange(1, 6))], rng.random() < 0.5
        one = partial(tfw.encode_example, some[0], sort_keys=keep)
        many = [partial(tfw.encode_examples, rows, sort_keys=keep) for rows in (some, some[:1] * 9)]
        calls.append(rng.choice([one, *many]))
    return calls


def decode_calls(rng):
    return [partial(tfw.decode_example, message) for message in messages(rng)]


@pytest.mark.parametrize("calls_of", [encode_calls, decode_calls])
def test_rows_do_not_depend_on_earlier_calls(calls_of):
    def check(seed):
        calls, alone = calls_of(random.Random(seed)), []
        for call in calls:
            forget()
            alone.append(shown(call))
        forget()
        assert [shown(call) for call in calls] == alone

    check_each(check, SEEDS)


@pytest.mark.parametrize("bytes_as", ["object", "column"])
def test_parsing_does_not_depend_on_earlier_calls(bytes_as):
    def check(seed):
        rng = random.Random(seed)
        parser = tfw.Parser(SPEC, bytes_as=bytes_as)
        given = messages(rng)
        for _ in range(20):
            some = rng.sample(given, rng.randrange(1, 5))
            fresh = tfw.Parser(SPEC, bytes_as=bytes_as)
            if rng.random() < 0.5:
                assert shown(partial(parser.parse, some)) == shown(partial(fresh.parse, some))
            else:
                single = some[0]
                found = shown(partial(parser.parse_single, single))
                assert found == shown(partial(fresh.parse_single, single))

    check_each(check, SEEDS)


def test_a_key_of_bytes_is_not_taken_for_text():
    """Bytes that are the UTF-8 of a surrogate, and the surrogate: two keys, in any order."""
    forget()
    expected = tfw.encode_example({"\udc80": 2, "b": 2})
    forget()
    tfw.encode_example({b"\xed\xb2\x80": 1, "b": 1})
    assert tfw.encode_example({"\udc80": 2, "b": 2}) == expected
    assert tfw.encode_examples([{b"\xed\xb2\x80": 1}, {"\udc80": 2}])[1] == tfw.encode_example(
        {"\udc80": 2}
    )
