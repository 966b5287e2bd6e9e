"""Objects that say something else of themselves each time that they are asked."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

NUMBERS = [0, 1, 2, 3, 7, 100, 5000, 2**31, 2**40, 2**63, -1]


class Teller:
    """Decides when to lie, and what to say."""

    rng: Any = None

    def number(self, truth):
        rng = Teller.rng
        return truth if rng.random() < 0.4 else rng.choice(NUMBERS)

    def any(self, truth):
        rng = Teller.rng
        return truth if rng.random() < 0.5 else rng.choice(OTHERS)


TELL = Teller()
OTHERS = [None, 0, 1.5, 2**70, b"", b"x" * 300, "text", "\ud800", [], [1], [[1], [2, 3]], {}]
OTHERS += [{"a": 1}]
OTHERS += [np.arange(5), np.zeros((3, 0)), np.array([b"x", b"yz"], object), np.float32(1), (1, 2)]
OTHERS += [np.ones((2, 3), np.float32), bytearray(b"abc"), True, 1j, object()]
OTHERS += [np.array(["a", "bc"])]


class Array(np.ndarray):
    """An array whose attributes and methods say anything."""

    @property
    def shape(self):
        truth = np.ndarray.shape.__get__(self)
        return tuple(TELL.number(size) for size in truth)

    @property
    def dtype(self):
        return TELL.any(np.ndarray.dtype.__get__(self))

    @property
    def flags(self):
        return np.zeros(1).flags

    ndim = property(lambda self: TELL.number(1))
    size = property(lambda self: TELL.number(1))
    nbytes = property(lambda self: TELL.number(8))
    itemsize = property(lambda self: TELL.number(8))
    data = property(lambda self: TELL.any(b""))
    flat = property(lambda self: TELL.any([]))
    strides = property(lambda self: (TELL.number(8),))

    def __len__(self):
        return max(0, min(TELL.number(1), 5000))

    def ravel(self, *args):
        return TELL.any(self)

    def __getitem__(self, index):
        return TELL.any(np.asarray(self)[index])

    tolist = reshape = astype = copy = view = tobytes = item = __iter__ = ravel


class List(list):
    def __len__(self):
        return max(0, min(TELL.number(list.__len__(self)), 5000))

    def __iter__(self):
        return iter([TELL.any(item) for item in list.__iter__(self)])

    def __getitem__(self, index):
        return TELL.any(list.__getitem__(self, index) if list.__len__(self) else None)


class Tuple(tuple):
    def __len__(self):
        return max(0, min(TELL.number(tuple.__len__(self)), 5000))

    def __iter__(self):
        return iter([TELL.any(item) for item in tuple.__iter__(self)])

    def __getitem__(self, index):
        return TELL.any(tuple.__getitem__(self, index) if tuple.__len__(self) else None)


class Items(Sequence):
    """Neither list nor tuple."""

    def __init__(self, items):
        self.items = list(items)

    def __len__(self):
        return max(0, min(TELL.number(len(self.items)), 5000))  # numpy takes it at its word

    def __getitem__(self, index):
        if Teller.rng.random() < 0.2:
            raise IndexError
        return TELL.any(self.items[index])


class Dict(dict):
    def __len__(self):
        return max(0, min(TELL.number(dict.__len__(self)), 5000))

    def items(self):
        return [(key, TELL.any(value)) for key, value in dict.items(self)]

    def get(self, key, default=None):
        return TELL.any(dict.get(self, key, default))

    def keys(self):
        return TELL.any(dict.keys(self))

    __getitem__ = get


class Table(Mapping):
    def __init__(self, items):
        self.known = dict(items)

    def __len__(self):
        return max(0, min(TELL.number(len(self.known)), 5000))

    def __iter__(self):
        return iter([key for key in self.known if Teller.rng.random() < 0.9])

    def __getitem__(self, key):
        return TELL.any(self.known[key])


class Bytes(bytes):
    def __len__(self):
        return max(0, min(TELL.number(bytes.__len__(self)), 5000))

    def __getitem__(self, index):
        return TELL.any(bytes.__getitem__(self, index))

    def __bytes__(self):
        return TELL.any(bytes(bytes.__getitem__(self, slice(None))))

    def decode(self, *args):
        return TELL.any("text")


class ByteArray(bytearray):
    def __bytes__(self):
        return TELL.any(b"abc")

    def __len__(self):
        return max(0, min(TELL.number(3), 5000))


class Buffer:
    """Bytes by the buffer protocol, from Python 3.12 on."""

    def __init__(self, value):
        self.value = value

    def __len__(self):
        return TELL.number(3) % 5000

    def __buffer__(self, flags):
        return memoryview(TELL.any(self.value))


class Text(str):
    def __len__(self):
        return max(0, min(TELL.number(str.__len__(self)), 5000))

    def encode(self, *args):
        return TELL.any(str.encode(self, "utf-8", "surrogateescape"))

    def isascii(self):
        return bool(Teller.rng.randrange(2))


class Int(int):
    def __index__(self):
        return TELL.number(1)

    __int__ = __index__


class Float(float):
    def __float__(self):
        return TELL.any(1.5)


class Holder:
    """What is unwrapped, in one of several ways; every time to something else."""

    def __init__(self, value, names):
        self.value = value
        for name in names:
            setattr(self, name, None)

    def __getattribute__(self, name):
        held = object.__getattribute__(self, "__dict__")
        if name == "__class__":
            return TELL.any(Holder) if Teller.rng.random() < 0.1 else Holder
        if name not in held or name == "value":
            return object.__getattribute__(self, name)
        value = TELL.any(held["value"])
        if name in ("numpy", "SerializeToString", "WhichOneof"):
            return lambda *args, **more: value
        return value

    def __array__(self, *args, **more):
        return TELL.any(self.value)


NAMES = [["numpy"], ["SerializeToString"], ["WhichOneof", "bytes_list"], ["feature"]]
NAMES += [["offsets", "data", "shape"], ["row_splits", "values"], ["dense_shape"], ["__len__"]]
NAMES += [["offsets", "data"], ["compression_type"], ["dtype"], []]


def seed(rng):
    """Lies are chosen by this generator from here on."""
    Teller.rng = rng


def _key(rng, key):
    return rng.choice([key, key, Text(key), Bytes(key.encode())]) if type(key) is str else key


def lie(rng, value, depth=2):
    """The value, or something in it, as an object that lies."""
    seed(rng)
    if depth and rng.random() < 0.6:
        if isinstance(value, dict):
            value = {_key(rng, key): lie(rng, item, depth - 1) for key, item in value.items()}
        elif isinstance(value, (list, tuple)):
            value = type(value)([lie(rng, item, depth - 1) for item in value])
    kind = rng.random()
    if kind < 0.2:
        return value
    if kind < 0.4:
        return Holder(value, rng.choice(NAMES))
    if kind < 0.45:
        return rng.choice(OTHERS)
    for cls, liars in LIARS.items():
        if type(value) is cls:
            return rng.choice(liars)(value)
    return value


LIARS = {
    list: [List, Tuple, Items],
    tuple: [List, Tuple, Items],
    dict: [Dict, Table],
    bytes: [Bytes, ByteArray, Buffer],
    str: [Text],
    int: [Int],
    float: [Float],
    np.ndarray: [lambda array: array.view(Array), lambda array: array.view(Array)],
}
