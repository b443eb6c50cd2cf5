"""How much one evaluation may make before it is given up: who asks sets it, operators spend it.

A join of two small tables can have more pairs than memory has room for. A view's circuit takes that on: the
view is as large as it is. A query that is answered once is better left to Spark then. Operators tell what
they make as they make it; outside of `allowing` nothing is counted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar


class Exceeded(Exception):
    """More rows were made than the evaluation may make."""


class _Allowance:
    def __init__(self, rows: int, check: Callable[[], None]) -> None:
        self.rows, self.check = rows, check


_current: ContextVar[_Allowance | None] = ContextVar("allowance", default=None)


@contextlib.contextmanager
def allowing(rows: int, check: Callable[[], None]) -> Iterator[None]:
    """Inside, operators may make so many rows; `check` is called each time that they have made some."""
    token = _current.set(_Allowance(rows, check))
    try:
        yield
    finally:
        _current.reset(token)


def spend(rows: int) -> None:
    """Rows have been made; Exceeded if they are too many."""
    allowance = _current.get()
    if allowance is None:
        return
    allowance.check()
    allowance.rows -= rows
    if allowance.rows < 0:
        raise Exceeded
