"""Answers that are known already, as the bytes that they were sent in.

A view that has not changed gives the same rows again (`Database.known_answer`); then the same bytes
are sent again. Owns the cache, bounded in answers and bytes; shared by all sessions, asked by the event
loop alone. Must never answer from bytes whose rows are not the database's present answer.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

import pyarrow as pa

from headwater.database import Database
from headwater.execute.query import KnownAnswer
from headwater.server.wire import encode, replies

MOST_TEXTS = 256
LONGEST_TEXT = 4096  # characters
_ENDING = "; \t\r\n"
LARGEST_ANSWER = 256 << 10  # bytes of rows; larger ones are not kept


@dataclass(frozen=True, slots=True)
class Encoded:
    """An answer as it is sent: row description; rows and tag."""

    columns: bytes
    rows: bytes
    schema: pa.Schema
    count: int  # of rows


@dataclass
class _Known:
    """One text: the rows of its last answer, and their bytes by the formats asked for."""

    answer: KnownAnswer
    rows: pa.Table | None = None
    sent: dict[tuple[int, ...], Encoded] = field(default_factory=dict)


class Answers:
    """The texts that were answered from unchanged views, with their bytes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, _Known] = OrderedDict()

    def remember(self, database: Database, text: str) -> None:
        """A text was run; if its answer can be known without work the next time, that is tried."""
        if text in self._known or len(text) > LONGEST_TEXT:
            return
        answer = database.known_answer(text)
        if answer is not None and answer.rows() is not None:
            with self._lock:
                self._known[text] = _Known(answer)
                while len(self._known) > MOST_TEXTS:
                    self._known.popitem(last=False)

    def find(self, text: str, formats: tuple[int, ...]) -> Encoded | None:
        """The answer if it is known without work; the same object as long as it is the same."""
        known = self._known.get(text)
        if known is None:
            text = text.rstrip(_ENDING)
            known = self._known.get(text)
        if known is None:
            return None
        rows = known.answer.rows()
        if rows is None or len(formats) not in (0, 1, rows.num_columns):
            return None  # whoever runs the statement says what is wrong with the formats
        if rows is not known.rows:
            if rows.nbytes > LARGEST_ANSWER:
                return None
            known.rows, known.sent = rows, {}
        found = known.sent.get(formats)
        if found is None:
            found = known.sent[formats] = _encoded(rows, formats)
        return found


def _encoded(rows: pa.Table, formats: tuple[int, ...]) -> Encoded:
    description = replies.row_description(encode.fields_of(rows.schema, formats))
    tag = replies.complete(f"SELECT {rows.num_rows}")
    return Encoded(description, encode.data_rows(rows, formats) + tag, rows.schema, rows.num_rows)
