"""Random programs whose callbacks use the objects that are being used, or others that are open.

A callback is anything of a user's that runs inside a call of the library: the methods of a file
object, a function of a dataset, an argument that computes its value, a signal handler, a finalizer,
a hook for warnings. Each one may use any object of the program, and several threads do so too. A
call may be refused with a clear error. None may hang or crash; no record may be lost or come twice.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import random
import sys
import threading
import traceback

import numpy as np

import tfwire as tfw

LIMIT = 60  # seconds after which a case hangs
DEPTH = 3  # of callbacks within callbacks
COUNT = 60  # records of a file
SPEC = {"n": tfw.FixedLenFeature([], tfw.int64)}
REFUSALS = (
    "already executing",
    "in use",
    "closed",
    "is at its end",
    "is being used",
    "an error interrupted",
    "of a callback",
    "cannot be resumed",
    "positions",
    "took too long",
    "was not closed",
    "no position",
)


class Refused(ValueError):
    """What a callback raises by itself."""


class Program:
    """Objects, and the callbacks that use them.

    Args:
        seed: Of its random choices.
        folder: An empty folder.
    """

    def __init__(self, seed, folder):
        self.chance = random.Random(seed)
        self.folder = folder
        self.objects = []
        self.faults = []
        self.here = threading.local()
        self.budget = 400  # callbacks that do something
        self.over = False

    def callback(self, chance=0.15):
        """Perhaps uses an object, in whatever thread and place this is."""
        depth = getattr(self.here, "depth", 0)
        if self.over or depth >= DEPTH or self.budget <= 0 or not self.objects:
            return
        if self.chance.random() >= chance:
            return
        self.budget -= 1
        self.here.depth = depth + 1
        try:
            used = self.chance.choice(self.objects).use()
        finally:
            self.here.depth = depth
        if used is not None and self.chance.random() < 0.2:
            raise Refused("of a callback") from used

    def harmless(self, *_):
        """A callback that raises nothing: Python has nobody to tell."""
        with contextlib.suppress(Refused):
            self.callback()

    def note(self, fault):
        self.faults.append(f"{fault}\n{''.join(traceback.format_stack(limit=12))}")


class Garbage:
    """A cycle that uses an object when it is collected, wherever that happens."""

    def __init__(self, program):
        self._program, self._self = program, self

    def __del__(self):
        # Thread.start() waits for the first steps of a thread; there, it cannot wait for anything.
        if sys._getframe(1).f_code.co_filename != threading.__file__:
            self._program.harmless()


def is_refusal(error):
    """Whether an error says clearly that a call was refused, or how a callback failed."""
    while error is not None:
        if isinstance(error, (ValueError, RuntimeError)) and any(
            words in str(error) for words in REFUSALS
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


class Object:
    """An object of the library, used by random calls of its methods.

    Args:
        program: The program.
        name: Shown with faults.
        made: The object.
    """

    def __init__(self, program, name, made):
        self.program, self.name, self.made = program, name, made
        self.refused = False

    def use(self):
        """Makes a random call; returns its refusal, if it was refused."""
        call = self.program.chance.choice(self.calls())
        try:
            call()
        except Exception as error:
            self.refused |= call.__name__ != "<lambda>"
            if not is_refusal(error):
                self.program.note(f"{self.name}: {''.join(traceback.format_exception(error))}")
            return error

    def calls(self):
        raise NotImplementedError

    def end(self):
        """Uses it up, closes it, and looks at what came of it."""


class Source(Object):
    """An iterator over known numbers, each of which comes once."""

    def __init__(self, program, name, make, numbers, extra=(), value=int):
        super().__init__(program, name, None)
        self.found, self.value, self.numbers = [], value, list(numbers)
        self.extra = extra
        self.closed = False
        self.made = make()

    def calls(self):
        others = [lambda name=name: self.attribute(name) for name in self.extra]
        close = [self.close] if self.program.chance.random() < 0.03 else []
        return [self.draw, self.draw, self.draw_some, *others, *close]

    def draw(self):
        for element in itertools.islice(self.made, 1):
            self.found.append(self.value(element))

    def draw_some(self):
        for _ in range(self.program.chance.choice([3, 10])):
            self.draw()

    def attribute(self, name):
        found = getattr(self.made, name)
        if callable(found):
            found()

    def close(self):
        self.closed = True
        self.made.close()

    def end(self):
        last = -1
        while not self.closed and last != len(self.found):
            last = len(self.found)
            try:
                self.draw_some()
            except Exception as error:
                self.refused = True
                last = -1 if self.retried() else len(self.found)
                if not is_refusal(error):
                    self.program.note(f"{self.name}: {error!r}")
        try:
            self.made.close()
        except Exception as error:
            self.program.note(f"{self.name}: close: {error!r}")
        self.check()

    def retried(self):
        self.retries = getattr(self, "retries", 0) + 1
        return self.retries < 200

    def check(self):
        found, numbers = sorted(self.found), sorted(self.numbers)
        if len(set(found)) != len(found):
            self.program.note(f"{self.name}: twice: {found}")
        if not set(found) <= set(numbers):
            self.program.note(f"{self.name}: invented: {found}")
        if not self.refused and not self.closed and found != numbers:
            self.program.note(f"{self.name}: lost: {set(numbers) - set(found)}")


class Access(Object):
    """Records by number."""

    def __init__(self, program, name, made, records):
        super().__init__(program, name, made)
        self.records = records

    def calls(self):
        return [self.one, self.some, self.piece, lambda: len(self.made)]

    def one(self):
        number = self.program.chance.randrange(len(self.records))
        self.compare(self.made[Index(self.program, number)], self.records[number])

    def some(self):
        numbers = [self.program.chance.randrange(len(self.records)) for _ in range(5)]
        found = self.made[[Index(self.program, number) for number in numbers]]
        self.compare(found, [self.records[number] for number in numbers])

    def piece(self):
        found = list(itertools.islice(iter(self.made), 7))
        self.compare(found, self.records[:7])

    def compare(self, found, expected):
        if found != expected:
            self.program.note(f"{self.name}: {found} is not {expected}")

    def end(self):
        self.made.close()


class Parsing(Object):
    """Parses and encodes messages, with arguments that use other objects."""

    def calls(self):
        return [self.parse, self.encode, self.encode_columns, self.decode]

    def messages(self, numbers):
        return [tfw.encode_example({"n": number}) for number in numbers]

    def parse(self):
        numbers = [self.program.chance.randrange(1000) for _ in range(5)]
        messages = [Message(self.program, each) for each in self.messages(numbers)]
        found = self.made.parse(messages)["n"].tolist()
        self.compare(found, numbers)

    def encode(self):
        number = self.program.chance.randrange(1000)
        row = {"n": Values(self.program, [number]), "m": Values(self.program, [1, 2])}
        found = tfw.decode_example(tfw.encode_example(row))
        self.compare([found["n"].tolist(), found["m"].tolist()], [[number], [1, 2]])

    def encode_columns(self):
        found = tfw.encode_columns({"n": Values(self.program, [1, 2, 3])})
        self.compare(self.made.parse(found)["n"].tolist(), [1, 2, 3])

    def decode(self):
        found = tfw.decode_examples([Message(self.program, each) for each in self.messages([1, 2])])
        self.compare([each["n"].tolist() for each in found], [[1], [2]])

    def compare(self, found, expected):
        if found != expected:
            self.program.note(f"{self.name}: {found} is not {expected}")


class Writer(Object):
    """A writer, and what must be in its files.

    Args:
        read: Returns the records of its files at the end.
    """

    def __init__(self, program, name, made, read):
        super().__init__(program, name, made)
        self.read, self.numbers = read, itertools.count()
        self.written, self.tried = set(), set()
        self.failed = False

    def calls(self):
        flush = [self.made.flush] if hasattr(self.made, "flush") else []
        close = [self.made.close] if self.program.chance.random() < 0.02 else []
        calls = [self.write, self.write_row, self.write_many, self.write_long, self.write_columns]
        return [*calls, *flush, *close, lambda: self.made.receipt, lambda: repr(self.made)]

    def use(self):
        error = super().use()
        # After an error of its file object, a writer may lose what it had collected.
        return error

    def new(self, count):
        return [next(self.numbers) for _ in range(count)]

    def note_written(self, numbers, call):
        self.tried.update(numbers)
        call()
        self.written.update(numbers)

    def write(self):
        numbers = self.new(1)
        record = Message(self.program, self.record(numbers[0]))
        self.note_written(numbers, lambda: self.made.write(record))

    def write_long(self):
        numbers = self.new(1)
        record = self.record(numbers[0]) + tfw.encode_example({"long": bytes(300_000)})
        self.note_written(numbers, lambda: self.made.write(record))

    def write_row(self):
        numbers = self.new(1)
        row = {"n": Values(self.program, numbers)}
        self.note_written(numbers, lambda: self.made.write(row))

    def write_many(self):
        numbers = self.new(self.program.chance.choice([2, 100, 1500]))
        records = map(self.record, numbers)
        self.note_written(numbers, lambda: self.made.write_many(self.between(records)))

    def between(self, records):
        for record in records:
            self.program.callback(0.01)
            yield record

    def write_columns(self):
        numbers = self.new(self.program.chance.choice([2, 1000]))
        columns = {"n": Values(self.program, numbers)}
        self.note_written(numbers, lambda: self.made.write_columns(columns))

    @staticmethod
    def record(number):
        return tfw.encode_example({"n": number})

    def end(self):
        failed = self.made._failure is not None and "closed" not in str(self.made._failure)
        try:
            self.made.close()
        except Exception as error:
            failed = True
            if not is_refusal(error):
                self.program.note(f"{self.name}: close: {error!r}")
        try:
            found = [tfw.parse_example([each], SPEC)["n"].item() for each in self.read()]
        except Exception as error:
            if not failed:
                self.program.note(f"{self.name}: {''.join(traceback.format_exception(error))}")
            return
        if len(found) != len(set(found)):
            self.program.note(f"{self.name}: twice")
        if not set(found) <= self.tried:
            self.program.note(f"{self.name}: invented {set(found) - self.tried}")
        lost = self.written - set(found)
        if lost and not failed:
            self.program.note(f"{self.name}: lost {sorted(lost)[:20]} of {len(self.written)}")


# ---- What the library calls ---------------------------------------------------------------------


class Index:
    def __init__(self, program, number):
        self.program, self.number = program, number

    def __index__(self):
        self.program.callback()
        return self.number

    __int__ = __index__


class Values:
    def __init__(self, program, values):
        self.program, self.values = program, values

    def __array__(self, dtype=None, copy=None):
        self.program.callback()
        return np.array(self.values, dtype)

    def __len__(self):
        self.program.callback()
        return len(self.values)

    def __getitem__(self, i):
        return self.values[i]


class Message:
    def __init__(self, program, data):
        self.program, self.data = program, data

    def SerializeToString(self):
        self.program.callback()
        return self.data


class ReadInto:
    def __init__(self, program, data):
        self.program, self.file = program, io.BytesIO(data)

    def readinto(self, buffer):
        self.program.callback()
        found = self.file.readinto(memoryview(buffer)[: self.program.chance.choice([100, 10**6])])
        self.program.callback()
        return found


class Read:
    def __init__(self, program, data):
        self.program, self.file = program, io.BytesIO(data)

    def read(self, size=-1):
        self.program.callback()
        return self.file.read(min(size, 200) if size >= 0 else size)


class Write:
    def __init__(self, program):
        self.program, self.data = program, bytearray()

    def write(self, data):
        self.program.callback()
        data = bytes(data)
        self.data += data
        self.program.callback()
        return len(data)

    def flush(self):
        self.program.callback()

    def read(self):
        return tfw.read_records(io.BytesIO(self.data))
