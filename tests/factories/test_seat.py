"""What the driver knows of a factory: which rows stay for it, and whose word counts."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headwater.engine.elsewhere import HostGone
from headwater.engine.query import ContinuousQuery
from headwater.factories.frames import Frame
from headwater.factories.line import Line
from headwater.factories.process import TaskProcess
from headwater.factories.seat import Lent, Seat
from headwater.storage.streaming.seen import EVERYTHING, Needs
from headwater.storage.streaming.table import StreamingTable
from tests.crash.stream_store import Opened, rows_of
from tests.harness.patience import PATIENCE_S


class FactoryLine:
    """A line whose factory agrees to everything; something may happen before it answers."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.meanwhile = lambda: None
        self.works: dict[str, Any] = {}
        self.ended = threading.Event()

    def on(self, kind: str, work: Any, **_keywords: object) -> None:
        self.works[kind] = work

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
    seat.prepare(cast(Line, line), TaskProcess(None), opened.store.durable_lsn)
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


def lent_query(seat: Seat, line: FactoryLine) -> tuple[Lent, list[str]]:
    """A query that is lent to a life of the factory, and what was done with its results."""
    done: list[str] = []
    sink = SimpleNamespace(recover=lambda: done.append("recover"), last=lambda: None)
    query = ContinuousQuery.__new__(ContinuousQuery)
    query.name, query.sink, query.tables = "q", cast(Any, sink), []
    lent = seat.lent["q"] = Lent(seat, cast(Line, line), query, 7)
    return lent, done


def test_an_older_life_of_a_factory_is_not_heard(opened: Opened) -> None:
    """What it had sent before it ended may be served after another life has taken the query over."""
    seat, old, table = seated(opened)
    asked = Frame({"kind": "recover", "query": [7, None]})
    _, done = lent_query(seat, old)
    old.works["recover"](asked)
    assert done == ["recover"]
    seat.forget_all()
    new = FactoryLine()
    seat.prepare(cast(Line, new), TaskProcess(None), opened.store.durable_lsn)
    seat.line = cast(Line, new)
    seat.follow(table)
    lent, done = lent_query(seat, new)
    for kind in ("recover", "last", "append", "results"):
        with pytest.raises(HostGone):
            old.works[kind](Frame({"kind": kind, "query": [7, None], "results": [], "since": None}))
    assert done == []
    new.works["recover"](asked)
    assert done == ["recover"]
    lent.end()
    with pytest.raises(HostGone):
        new.works["recover"](asked)
    number = table.definition.id
    old.works["needs"](Frame({"kind": "needs", "table": number, "needs": [9, None, None]}))
    old.works["reads"](Frame({"kind": "reads", "lsn": 1 << 40}))
    assert seat.needs_of(number) == EVERYTHING
    assert (seat.reads_from or 0) < 1 << 40
    seat.forget_all()


def test_an_older_life_holds_no_table(opened: Opened) -> None:
    seat, line, _ = seated(opened)
    held: list[str] = []

    @contextlib.contextmanager
    def hold(_names: object) -> Iterator[Any]:
        held.append("taken")
        if len(held) > 2:
            seat.forget_all()  # it ends while it waits for the table
        yield SimpleNamespace(relations={}, versions={})
        held.append("let go")

    cast(Any, seat.context).held = hold
    token = line.works["hold"](Frame({"kind": "hold", "names": ["t"]})).head["token"]
    line.works["let_go"](Frame({"kind": "let_go", "token": token}))
    assert held == ["taken", "let go"]
    with pytest.raises(HostGone):
        line.works["hold"](Frame({"kind": "hold", "names": ["t"]}))
    assert held == ["taken", "let go", "taken", "let go"]
    assert seat._held == {}


def test_who_hears_the_factory_never_waits_for_who_tells_it_something(opened: Opened) -> None:
    """A factory may be too busy telling to listen: both would wait for ever."""
    seat, line, table = seated(opened)
    number = table.definition.id
    telling, free = threading.Event(), threading.Event()

    def full(kind: str, **_head: Any) -> None:
        telling.set()
        assert free.wait(PATIENCE_S)

    line.tell = full  # type: ignore[method-assign]
    table.insert(rows_of([1]).to_batches()[0])  # type: ignore[union-attr]
    table.seal()
    teller = threading.Thread(target=seat.tell_image, args=(table,))
    teller.start()
    assert telling.wait(PATIENCE_S)
    heard = threading.Event()

    def hear() -> None:
        line.works["needs"](Frame({"kind": "needs", "table": number, "needs": [9, None, None]}))
        line.works["folded"](Frame({"kind": "folded", "table": number, "sequence": 1}))
        line.works["image"](Frame({"kind": "image", "table": number, "version": 0}))
        heard.set()

    hearer = threading.Thread(target=hear)
    hearer.start()
    was_heard = heard.wait(PATIENCE_S / 4)
    free.set()
    for thread in (teller, hearer):
        thread.join(PATIENCE_S)
    assert was_heard
    seat.forget_all()
