"""Who lives where, without Spark: what goes, what stays, what moves for the sake of the load."""

from __future__ import annotations

import errno
import threading
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headwater.engine.elsewhere import HostGone
from headwater.engine.update_query import UpdateQuery
from headwater.errors import ClosedError, StorageError
from headwater.factories import coordinator, seat
from headwater.factories.coordinator import Factories
from headwater.factories.frames import Frame
from headwater.factories.line import LineEnded


class Task:
    """The line to a factory that agrees to everything, or refuses."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.refuses: dict[str, BaseException] = {}
        self.ended = threading.Event()

    def ask(self, kind: str, **head: Any) -> Frame:
        self.asked.append((kind, head.get("names", head.get("numbers"))))
        if kind in self.refuses:
            raise self.refuses[kind]
        return Frame({"names": head.get("names")})

    def tell(self, *_what: object, **_head: object) -> None: ...

    def close(self) -> None:
        self.ended.set()


def made(name: str, number: int) -> Any:
    """A query that does nothing."""
    query: Any = UpdateQuery.__new__(UpdateQuery)
    query.name, query.number, query.tables = name, number, []
    query.state, query.elsewhere = "running", None
    return query


class Driver:
    """An engine with queries, and two factories that are there."""

    def __init__(self, *names: str) -> None:
        self.queries: dict[str, Any] = {}
        self.lends: BaseException | None = None
        for number, name in enumerate(names):
            self.queries[name] = made(name, number)
        items = {
            name: SimpleNamespace(id=number, passes=False) for number, name in enumerate(names)
        }
        kernel = SimpleNamespace(ready=True, is_local=True, on_spark=[])
        settings = SimpleNamespace(changes=0, explicit=())
        self.context: Any = SimpleNamespace(
            engine=self, kernel=kernel, settings=settings, passing={}, functions={}, tables={},
            streams=SimpleNamespace(durable_lsn=5, find=lambda _number: None),
            catalog=SimpleNamespace(find=items.get, position=1),
        )  # fmt: skip
        self.factories = Factories(self.context, 2)
        self.factories._jobs.started = True
        self.tasks = [Task(), Task()]
        for place, task in zip(self.factories.seats, self.tasks, strict=True):
            place.line = cast(Any, task)

    # The engine

    def all_hosted(self) -> list[Any]:
        return list(self.queries.values())

    def hosted(self, name: str) -> Any:
        return self.queries.get(name)

    def wholes(self) -> list[Any]:
        return []

    def lend(self, query: Any, place: Any) -> None:
        query.elsewhere = place
        if self.lends is not None:
            query.elsewhere = None
            raise self.lends

    def take_back(self, query: Any) -> None:
        query.elsewhere = None

    def let_go_of(self, _table: object) -> None: ...

    def where(self) -> list[list[str]]:
        """What each factory has."""
        return [sorted(seat.lent) for seat in self.factories.seats]


def test_queries_are_spread_and_called_back() -> None:
    driver = Driver("a", "b", "c", "d")
    driver.factories._place()
    assert driver.where() == [["a", "c"], ["b", "d"]]
    assert all(query.elsewhere.valid for query in driver.all_hosted())
    with driver.factories.staying([driver.queries["b"]]):
        assert driver.where() == [["a", "c"], ["d"]]
        driver.factories._place()
        assert driver.where() == [["a", "c"], ["d"]]
    driver.factories._place()
    assert driver.where() == [["a", "c"], ["b", "d"]]
    assert driver.tasks[1].asked[-2:] == [("release", ["b"]), ("open", [1])]


def test_a_factory_that_stays_away_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver("a", "b")
    driver.factories.seats[1].line = None
    driver.factories._place()
    assert driver.where() == [[], []]  # it comes soon, and then the load is spread
    monkeypatch.setattr(coordinator, "MISSING_S", 0.0)
    driver.factories._place()
    assert driver.where() == [["a", "b"], []]


@pytest.mark.parametrize("what", ["disk", "code"])
def test_a_query_that_cannot_go_stays_and_its_readers_are_told(what: str) -> None:
    """Who has seen it on its way looks again, and does not wait for what never comes."""
    driver = Driver("a")
    full = StorageError("no room", sqlstate="53100")
    full.__cause__ = OSError(errno.ENOSPC, "")
    driver.lends = full if what == "disk" else TypeError("cannot be sent")
    seen: list[Any] = []
    lend = driver.lend

    def look(query: Any, place: Any) -> None:
        seen.append(place)
        lend(query, place)

    driver.lend = look  # type: ignore[method-assign]
    driver.factories._place()
    (place,) = seen
    with pytest.raises(HostGone):
        place.explain(False)
    place.wait_gone()
    assert driver.queries["a"].elsewhere is None
    assert driver.where() == [[], []]
    driver.lends = None
    driver.factories._place()
    assert driver.where() == [[], []]  # not at once
    stays = driver.factories._stay_until["a"]
    driver.factories._stay_until["a"] = min(stays, time.monotonic() - 1)
    driver.factories._place()
    assert driver.where() == [["a"], []]
    assert (stays == float("inf")) == (what == "code")


def test_a_factory_that_ends_while_it_opens_leaves_queries_here() -> None:
    driver = Driver("a")
    driver.tasks[0].refuses = {"open": LineEnded("gone"), "release": LineEnded("gone")}
    driver.factories._place()
    assert driver.queries["a"].elsewhere is None
    assert driver.where() == [[], []]
    assert driver.factories._stay_until == {}


def test_the_end_of_the_database_is_told_to_whoever_waits_for_the_next_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A follower waited a minute for one, and the end of the database for the follower."""
    monkeypatch.setattr(seat, "GONE_PATIENCE_S", 0.0)  # who is not told has waited long enough
    driver = Driver("a")
    driver.factories._place()
    lent = driver.queries["a"].elsewhere
    driver.factories._jobs.started = False  # no Spark has jobs of it
    driver.factories.close()
    with pytest.raises(ClosedError):
        lent.wait_gone()
    with pytest.raises(HostGone):
        lent.explain(False)


def test_one_that_does_not_release_what_it_has_is_ended() -> None:
    driver = Driver("a", "b", "c")
    driver.factories._place()
    driver.tasks[0].refuses = {"release": ValueError("no")}
    lent = driver.queries["a"].elsewhere
    with driver.factories.staying([driver.queries["a"]]):
        assert driver.queries["a"].elsewhere is None
        assert not lent.valid
        assert driver.tasks[0].ended.is_set()
        driver.factories._bury(driver.factories.seats[0])
        assert driver.queries["c"].elsewhere is None


def test_what_costs_much_moves_to_the_idle_factory(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver("a", "b", "c", "d")
    factories = driver.factories
    factories._place()
    assert driver.where() == [["a", "c"], ["b", "d"]]
    monkeypatch.setattr(coordinator, "BALANCE_S", 0.0)
    factories._measure(factories.seats[0], {"a": 0.5, "c": 0.4}, 1.0)
    factories._measure(factories.seats[1], {"b": 0.01}, 1.0)
    factories._balance()
    assert driver.where() == [["a"], ["b", "c", "d"]]
    factories._balance()
    assert driver.where() == [["a"], ["b", "c", "d"]]
    for name in ("b", "d"):
        del driver.queries[name]
        del factories.seats[1].lent[name]
    driver.queries["e"] = made("e", 9)
    driver.context.catalog.find = lambda _name: SimpleNamespace(id=9, passes=False)
    factories._place()
    assert driver.where() == [["a"], ["c", "e"]]  # where least is done
    factories._balance()
    assert set(factories._loads._cores) == {"a", "c"}


def test_queries_that_are_flushed_are_asked_for_where_they_are() -> None:
    driver = Driver("a", "b", "c")
    factories = driver.factories
    factories._place()
    assert factories._flush({"a", "b", "other"}, None) == {"a", "b"}
    driver.tasks[0].refuses = {"flush": LineEnded("gone")}
    assert factories._flush({"a", "b"}, None) == {"b"}
    assert driver.tasks[1].asked[-1] == ("flush", ["b"])
