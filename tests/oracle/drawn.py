"""Random code: templates whose placeholders become literals, tensors, shapes, axes and dtypes."""

from __future__ import annotations

import random

DTYPES = [
    *["float32", "float64", "float16", "int8", "int16", "int32", "int64"],
    *["uint8", "uint16", "uint32", "uint64", "bool", "string", "complex64", "complex128"],
]
# Beside a negative value, TensorFlow fails on uint64.
WITHOUT_UINT64 = tuple(name for name in DTYPES if name != "uint64")
SHAPES = [(), (), (1,), (2,), (2,), (3,), (2, 3), (3, 2), (1, 2), (2, 1, 3)]
LEAVES = {
    "i": ["0", "1", "2", "-1", "3", "5", "7"],
    "u": ["0", "1", "2", "3", "7", "200"],
    "I": ["300", "-129", "2**31", "-2**31 - 1", "2**40", "2**63 - 1", "2**63", "2**64"],
    "f": ["0.0", "0.5", "-1.5", "2.0", "3.25", "1e10"],
    "b": ["True", "False"],
    "s": ["'a'", "b'b'", "b'a\\0'", "''", "'é'", "b'\\xff'", "b'a b\\0'", "'1'", "' 2.5'"],
    "c": ["1j", "2 - 1j"],
}
KINDS_OF_DTYPE = {"b": "b", "s": "s", "c": "c", "f": "if", "i": "i", "u": "u"}


class Draws:
    """What placeholders become; every one is drawn anew.

    Args:
        seed: Makes the draws repeat.
    """

    def __init__(self, seed: object) -> None:
        self._random = random.Random(str(seed))
        self._shape = self.some(SHAPES)

    def code(self, template: str) -> str:
        """The template with all its placeholders drawn."""
        self._shape = self.some(SHAPES)
        return template.format_map(self)

    def __getitem__(self, name: str) -> str:
        return str(getattr(self, name.rstrip("0123456789"))())

    def some(self, choices):
        return self._random.choice(choices)

    def _shape_here(self):
        """Mostly one shape for all that stands in one piece of code."""
        return self.some(SHAPES) if self._random.random() < 0.2 else self._shape

    def _nested(self, shape, kinds):
        if not shape:
            return self.some(LEAVES[self.some(kinds)])
        return f"[{', '.join(self._nested(shape[1:], kinds) for _ in range(shape[0]))}]"

    # ---- Placeholders ----

    def literal(self):
        """A number or string, or lists of them; now and then of mixed kinds, or ragged."""
        kinds = self.some(["i", "i", "iI", "f", "if", "b", "s", "s", "c", "ib", "is"])
        if self._random.random() < 0.05:
            return self.some(["[[1], [2, 3]]", "None", "[None]", "{}", "object"])
        return self._nested(self._shape_here(), kinds)

    def array(self):
        """A numpy array or scalar."""
        dtype = self.some(["int64", "float64", "int32", "uint8", "bool", "float32"])
        return f"np.array({self._nested(self._shape_here(), KINDS_OF_DTYPE[dtype[0]])}, '{dtype}')"

    def tensor(self, dtypes=WITHOUT_UINT64):
        """A tensor of some dtype."""
        dtype = self.some(dtypes)
        literal = self._nested(self._shape_here(), KINDS_OF_DTYPE[dtype[0]])
        return f"tf.constant({literal}, tf.{dtype})"

    def value(self):
        return self.some([self.literal, self.literal, self.array, self.tensor])()

    def numbers(self):
        """Numbers of the usual dtypes, as lists or tensors."""
        if self._random.random() < 0.4:
            return self._nested(self._shape_here() or (1,), self.some(["i", "f"]))
        return self.tensor(["int32", "int32", "int64", "float32", "float64", "uint8"])

    def floats(self):
        return self.tensor(["float32", "float64"])

    def bools(self):
        return self._nested(self._shape_here(), "b")

    def strings(self):
        """Strings, as lists or a tensor."""
        literal = self._nested(self._shape_here(), "s")
        return f"tf.constant({literal}, tf.string)" if self._random.random() < 0.3 else literal

    def string(self):
        return self.some(LEAVES["s"])

    def vectors(self):
        """A list of values that may fit each other; TensorFlow takes "a" for ["a"] in lists."""
        drawn = self.some([self.numbers, lambda: self._nested(self._shape, "s")])
        return f"[{', '.join(drawn() for _ in range(self.some([1, 2, 2, 3])))}]"

    def dtype(self):
        return f"tf.{self.some(WITHOUT_UINT64)}"

    def axis(self):
        return self.some([0, 0, 1, -1, 2, -2, 5])

    def axes(self):
        return self.some([None, 0, 1, -1, "[0]", "[0, 1]", "[]", 5])

    def integer(self):
        return self.some([0, 1, 2, 3, -1, 10])

    def integers(self):
        return self._nested(self._shape_here(), "i")

    def shape(self):
        shapes = ["[]", "[1]", "[2]", "[-1]", "[2, 3]", "[3, -1]", "[6]", "[1, -1]", "[0]", "3"]
        return self.some([*shapes, "[-1, -1]", "tf.constant([3, 2])", "(tf.constant(2), 3)"])

    def sizes(self):
        return self.some(["()", "[0]", "[1]", "[2]", "[2, 3]", "[1, 2]", "(3,)"])

    def begin(self):
        return self.some(["[0]", "[1]", "[2]", "[0, 1]", "[1, 0]", "[-1]"])

    def key(self):
        """An index of a tensor."""
        one = ["0", "-1", "1", "5", "1:", "::-1", ":2", "...", "None", "tf.constant(0)", "::2"]
        return ", ".join(self.some(one) for _ in range(self.some([1, 1, 2])))
