"""Answers that are known already, as the bytes that they were sent in.

A view that has not changed gives the same rows again; then the same bytes are sent again. The rows, their
bytes and the rule that says how long they are good for are those of the one cache of answers
(`execute.answers`); owned here is only how an answer looks on the wire. Asked by the event loop: never waits.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headwater.database import Database
from headwater.server.wire import encode, replies

LARGEST_ANSWER = 256 << 10  # bytes of rows; larger ones are not kept


@dataclass(frozen=True, slots=True)
class Encoded:
    """An answer as it is sent: row description; rows and tag."""

    columns: bytes
    rows: bytes
    schema: pa.Schema
    count: int  # of rows


def known_bytes(database: Database, text: str, formats: tuple[int, ...]) -> Encoded | None:
    """The answer to a text if it is known without work; the same object as long as it is the same."""
    answer = database.known_answer(text)
    return None if answer is None else answer.form(formats, lambda rows: _encoded(rows, formats))


def _encoded(rows: pa.Table, formats: tuple[int, ...]) -> Encoded | None:
    if len(formats) not in (0, 1, rows.num_columns) or rows.nbytes > LARGEST_ANSWER:
        return None  # whoever runs the statement says what is wrong with the formats
    description = replies.row_description(encode.fields_of(rows.schema, formats))
    tag = replies.complete(f"SELECT {rows.num_rows}")
    return Encoded(description, encode.data_rows(rows, formats) + tag, rows.schema, rows.num_rows)
