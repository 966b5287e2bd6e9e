"""Counts how often specifications are compiled."""

from collections.abc import Iterator
from contextlib import contextmanager

from tfwire._parsing import spec_cache
from tfwire._parsing.native_session import Schema
from tfwire._parsing.spec import Plan


@contextmanager
def compilations() -> Iterator[list[int]]:
    """The numbers of features of the schemas that are made, from no specification known on."""
    forget()
    made: list[int] = []
    compiled = Schema.__init__

    def counted(schema: Schema, plan: Plan) -> None:
        made.append(len(plan.requests))
        compiled(schema, plan)

    Schema.__init__ = counted
    try:
        yield made
    finally:
        Schema.__init__ = compiled


def forget() -> None:
    """Forgets every compiled specification."""
    spec_cache._known.clear()
    spec_cache._met.clear()
