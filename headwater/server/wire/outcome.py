"""What came of a statement, and the statements and portals that a session keeps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from headwater.server.wire.answers import Encoded
from headwater.server.wire.copying import IncomingRows
from headwater.server.wire.rows import RowSource
from headwater.sql.scripts import Asked
from headwater.sql.statements.copy import Copy
from headwater.sql.text import EditedText


@dataclass
class Outcome:
    """What came of a statement: rows to take, or a tag."""

    tag: str
    rows: RowSource | None = None
    count: int | None = None
    notices: list[str] = field(default_factory=list)
    messages: bytes = b""  # other messages that go before it
    copy: Copy | None = None  # the rows go out as COPY
    incoming: IncomingRows | None = None  # rows are to come in


@dataclass
class Prepared:
    """A statement with parameters; `columns` once somebody has asked."""

    text: str
    types: tuple[int, ...]
    columns: pa.Schema | None = None
    is_described: bool = False
    slots: Asked | None = None  # the query, as it was read without values


@dataclass
class Portal:
    """A statement with values, and what of its rows was not sent yet."""

    text: str
    formats: tuple[int, ...] = ()
    edited: EditedText | None = None
    promised: pa.Schema | None = None  # the columns that the client was told of
    outcome: Outcome | None = None
    answer: Encoded | None = None  # known without work
    slots: Asked | None = None  # the query that takes the values
    values: tuple[str, ...] = ()  # as SQL texts
    holds: bool = False  # a cursor WITH HOLD outlives its transaction


Sent = Iterator[bytes | IncomingRows]
