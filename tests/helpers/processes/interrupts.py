"""Interrupts at every point of the package where CPython may run a signal handler."""

import dis
import functools
import itertools
import os

import tfwire

FOLDER = os.path.dirname(tfwire.__file__)


# For a trace without an interrupt. CPython 3.14 needs one before each that interrupts: it reports
# the instructions of a function only if the last trace has reached its end.
NEVER = 1 << 30


class InterruptAt:
    """A trace function that raises KeyboardInterrupt at the number-th point of the package where
    CPython may run a signal handler: after a call, and where a function begins."""

    def __init__(self, number):
        self.left = number

    def __call__(self, frame, event, arg):
        if not frame.f_code.co_filename.startswith(FOLDER):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode" and frame.f_lasti in points_of(frame.f_code):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


@functools.cache
def points_of(code):
    names = [(at.offset, at.opname) for at in dis.get_instructions(code)]
    pairs = itertools.pairwise(names)
    return {offset for (_, before), (offset, _) in pairs if before in ("CALL", "RESUME")}
