"""What the driver knows of a factory: which rows stay for it, and whose word counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headwater.factories.frames import Frame
from headwater.factories.line import Line
from headwater.factories.seat import Seat
from headwater.storage.streaming.seen import EVERYTHING, Needs
from headwater.storage.streaming.table import StreamingTable
from tests.crash.stream_store import Opened, rows_of


class FactoryLine:
    """A line whose factory agrees to everything; something may happen before it answers."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.meanwhile = lambda: None

    def on(self, *_arguments: object, **_keywords: object) -> None:
        pass

    def tell(self, kind: str, **_head: Any) -> None:
        self.told.append(kind)

    def ask(self, kind: str, **_head: Any) -> Frame:
        self.told.append(kind)
        self.meanwhile()
        return Frame({})

    def close(self) -> None:
        pass


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Streaming tables without a database."""
    with Opened(tmp_path) as store:
        yield store


def seated(opened: Opened) -> tuple[Seat, FactoryLine, StreamingTable]:
    """A seat whose factory has come and follows a table."""
    engine = SimpleNamespace(let_go_of=lambda _table: None)
    context = cast(Any, SimpleNamespace(streams=opened.store, engine=engine))
    seat, line, table = Seat(1, context), FactoryLine(), opened.create("s")
    seat.prepare(cast(Line, line), 1, opened.store.durable_lsn)
    seat.line = cast(Line, line)
    seat.follow(table)
    return seat, line, table


def test_all_rows_stay_while_a_query_moves(opened: Opened) -> None:
    """The factory's word is about the queries that it has; one that comes may need earlier rows."""
    seat, _, table = seated(opened)
    number = table.definition.id
    told = Frame({"kind": "needs", "table": number, "needs": [50, None, None]})
    seat._need(told)
    assert seat.needs_of(number) == Needs(50, None, None)
    with seat.moving([cast(Any, SimpleNamespace(tables=[table]))]):
        seat._need(told)
        assert seat.needs_of(number) == EVERYTHING
    assert seat.needs_of(number) == Needs(50, None, None)
    assert seat.moves == 2
    seat.forget_all()
    assert seat.needs_of(number) is None


def test_blocks_that_change_while_another_table_is_joined_are_told(opened: Opened) -> None:
    seat, line, table = seated(opened)
    other = opened.create("other")

    def seal() -> None:
        table.insert(rows_of([1]).to_batches()[0])  # type: ignore[union-attr]
        table.seal()
        seat.tell_image(table)  # not while a table is joined

    line.meanwhile = seal
    seat.follow(other)
    assert line.told == ["follow", "follow", "blocks"]
    seat.tell_image(table)
    assert line.told == ["follow", "follow", "blocks"]  # nothing is told twice
    seat.forget_all()


def test_what_is_said_of_a_forgotten_table_does_nothing(opened: Opened) -> None:
    """Notes that were on their way: they hold no writer back, and the table can be joined again."""
    seat, line, table = seated(opened)
    number = table.definition.id
    seat._folded(Frame({"kind": "folded", "table": number, "sequence": 3}))
    assert [folded() for folded in table.folded_by.values()] == [3]
    seat.forget(number)
    assert table.folded_by == {}
    seat._folded(Frame({"kind": "folded", "table": number, "sequence": 4}))
    seat._image_read(Frame({"kind": "image", "table": number, "version": 1}))
    assert table.folded_by == {}
    assert not seat.follows(number)
    seat.follow(table)
    assert line.told == ["follow", "follow"]
    seat._folded(Frame({"kind": "folded", "table": number, "sequence": 5}))
    seat._folded(Frame({"kind": "folded", "table": number, "sequence": None}))
    assert table.folded_by == {}  # its last view has left
    seat.forget_all()
