"""Which query lives where: queries are lent to factories, and taken back when one ends.

Owns: the thread that moves queries, and the one that tells what has changed. Queries begin in the driver's
own host; as soon as a factory is there they move over, a little after the last statement that made or changed
one. Whoever needs a query here calls it back. Where each goes is decided by `placement`; the tasks are those
of `jobs`.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from headwater.engine.elsewhere import HostGone
from headwater.engine.hosted import Hosted
from headwater.engine.query import ContinuousQuery
from headwater.engine.sharing import signature
from headwater.engine.view import ContinuousView, ViewCut
from headwater.execute.altered_parts import changes_by_itself, set_parts
from headwater.execute.context import Context
from headwater.factories.functions import sendable
from headwater.factories.jobs import LOOK_S, PULSE_S, FactoryJobs
from headwater.factories.line import Line
from headwater.factories.placement import (
    Group,
    Loads,
    best,
    together,
    worth_moving,
    worth_splitting,
    worth_uniting,
)
from headwater.factories.plain import schema_to_json
from headwater.factories.seat import Lent, Seat, flush
from headwater.storage.catalog import CatalogObject
from headwater.storage.disk import may_pass
from headwater.storage.streaming.seen import Needs

SETTLE_S = 0.05  # after the last change, before queries move
MISSING_S = 5.0  # a factory that has not come by then is not waited for
AGAIN_S = 30.0  # a query that could not go for a reason that may pass, a full disk, is tried again
BALANCE_S = 5.0  # between two looks at who does how much
SPLIT_LOOKS = 3  # that find the same query too heavy, before it is split
UNITE_LOOKS = 12  # that find its parts too light, before they are one again
CLOSE_PATIENCE_S = 30.0

log = logging.getLogger("headwater.factories")


class Factories:
    """The factories of one database."""

    def __init__(self, context: Context, count: int) -> None:
        self._context = context
        self._jobs = FactoryJobs(context, count)
        self._moving = self._jobs.moving
        self._changed = threading.Condition()
        self._touched = time.monotonic()  # when something last came or changed
        self._missing_since: float | None = None  # that not every factory is there
        self._dirty: set[int] = set()  # tables whose blocks have changed
        self._staying: Counter[str] = Counter()  # that somebody works with here
        self._stay_until: dict[str, float] = {}  # those that could not go
        self._loads = Loads()
        self._measured = self._balanced = time.monotonic()
        self._asked: list[tuple[str, int]] = []  # which parts would pay, once for each look
        self._stay_so: set[str] = set()  # what could not get other parts
        self._rows_seen: dict[str, tuple[float, int]] = {}  # when, and how many, by query
        self._threads: list[threading.Thread] = []

    @property
    def seats(self) -> list[Seat]:
        """The places of the factories, whether their tasks are there or not."""
        return self._jobs.seats

    # Life

    def start(self) -> None:
        """Factories come as soon as Spark runs and a query is there for them."""
        context, jobs = self._context, self._jobs
        context.engine.on_change = self._touch
        context.engine.needs_elsewhere = self._needs
        context.engine.flush_elsewhere = self._flush
        context.engine.staying = self.staying
        context.kernel.on_spark.append(self._touch)
        jobs.on_change, jobs.on_end, jobs.on_pulse = self._touch, self._bury, self._measure
        self._spawn("headwater-coordinator", self._coordinate)

    def _spawn(self, name: str, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _begin(self) -> None:
        """The first query is there: tasks are started."""
        context = self._context
        if not self._jobs.take_room():
            return
        context.streams.on_group(self._note)
        context.streams.read_from = self._read_from
        context.streams.on_image = self._blocks_changed
        context.catalog.keep_written()
        context.catalog.on_change = self._wake
        context.settings.on_set = lambda _name: self._wake()
        self._jobs.begin()
        self._spawn("headwater-news", self._tell_news)

    def close(self) -> None:
        """Factories put their state away and end."""
        self._jobs.end()
        self._wake()
        with self._moving:
            self._jobs.stop()
            for seat in self.seats:
                for lent in list(seat.lent.values()):
                    lent.abandon()  # whoever waits for its next host does not hold the end up
                seat.forget_all()
        if self._jobs.started:
            streams = self._context.streams
            streams.on_group(None)
            streams.read_from = lambda: None
            streams.on_image = None
        self._jobs.close()
        for thread in self._threads:
            thread.join(CLOSE_PATIENCE_S)

    # News

    def _note(self, lsn: int) -> None:
        """Called by the log's writer: never waits."""
        for seat in self.seats:
            line = seat.line
            if line is not None:
                line.note(lsn)

    def _read_from(self) -> int | None:
        marks = [mark for seat in self.seats if (mark := seat.reads_from) is not None]
        return min(marks, default=None)

    def _blocks_changed(self, number: int) -> None:
        with self._changed:
            self._dirty.add(number)
            self._changed.notify_all()

    def _touch(self) -> None:
        with self._changed:
            self._touched = time.monotonic()
            self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _tell_news(self) -> None:
        """Blocks, the catalog, settings and functions, as they change."""
        while not self._jobs.closing:
            with self._changed:
                self._changed.wait(LOOK_S)
                dirty, self._dirty = self._dirty, set()
            for number in dirty:
                table = self._context.streams.find(number)
                for seat in self.seats if table is not None else ():
                    assert table is not None
                    seat.tell_image(table)
            self.tell_news()

    def tell_news(self) -> None:
        """What queries elsewhere depend on, besides rows."""
        for seat in self.seats:
            with contextlib.suppress(HostGone), seat.telling:
                self._tell_rest(seat)

    def _tell_rest(self, seat: Seat) -> None:
        """What a factory must know to make queries: told again when it has changed."""
        line, context = seat.line, self._context
        if line is None:
            return
        catalog = context.catalog.position
        if seat.told.get("catalog") != catalog:
            seat.told["catalog"] = catalog
            tables = dict(context.tables)  # statements make and drop them meanwhile
            columns = {n: [schema_to_json(t.schema), str(t.folder)] for n, t in tables.items()}
            line.tell("standard", columns=columns)
            line.tell("catalog", lsn=catalog)
        if seat.told.get("settings") != context.settings.changes:
            seat.told["settings"] = context.settings.changes
            values = {name: context.settings[name] for name in sorted(context.settings.explicit)}
            line.tell("settings", values=values)
        functions = tuple(context.functions.items())
        if seat.told.get("functions") != functions:
            seat.told["functions"] = functions
            line.tell("functions", data=sendable(context.functions)[0])

    # Moves

    def _coordinate(self) -> None:
        while not self._jobs.closing:
            with self._changed:
                self._changed.wait(self._wait_s())
            try:
                with self._moving:
                    for seat in self.seats:
                        self._bury(seat)
                    if time.monotonic() - self._touched >= SETTLE_S:
                        self._measure_here()
                        self._place()
                        self._balance()
            except Exception:
                log.exception("queries could not be moved")
                time.sleep(LOOK_S)

    def _wait_s(self) -> float:
        settled = self._touched + SETTLE_S - time.monotonic()
        return settled if settled > 0 else LOOK_S

    def _bury(self, seat: Seat) -> None:
        """A factory whose line has ended: what it had is answered here."""
        if seat.line is None or seat.is_there:
            return
        lent, seat.lent = list(seat.lent.values()), {}
        for one in lent:
            one.end()
        self._jobs.wait_for_end(seat)
        with seat.moving([one.query for one in lent]):
            for one in lent:
                self._take_back(one)
            seat.forget_all()

    def _take_back(self, lent: Lent) -> None:
        try:
            if self._context.engine.hosted(lent.query.name) is lent.query:
                self._context.engine.take_back(lent.query)
        except Exception as error:  # it is told as any error of the query is
            self._context.engine.fail(lent.query, error)
        finally:
            lent.went()

    def _place(self) -> None:
        """Lends to the factories what can go and is still here."""
        if self._jobs.closing:
            return
        found = [q for q in self._context.engine.all_hosted() if self._may_go(q)]
        if not found:
            return
        if not self._jobs.started:
            if self._context.kernel.ready:
                self._begin()
            return
        seats = self._seats_to_fill()
        places = [self._groups(seat) for seat in seats]
        by_name = {query.name.casefold(): query for query in found}
        for names in together({name: _pipelines(query) for name, query in by_name.items()}):
            if seats:
                group = self._group(names, {n: shared_folds(by_name[n]) for n in names})
                place = best(places, group)
                self._lend(seats[place], [by_name[name] for name in names])
                places[place].append(group)

    def _seats_to_fill(self) -> list[Seat]:
        """All factories, so that the load is spread; those that are there, if some stay away."""
        there = self._jobs.there()
        if len(there) == len(self.seats):
            self._missing_since = None
            return there
        now = time.monotonic()
        self._missing_since = self._missing_since or now
        return there if now - self._missing_since >= MISSING_S else []

    def _may_go(self, query: Hosted) -> bool:
        if query.elsewhere is not None or query.state != "running" or query.parts:
            return False
        name = query.name.casefold()
        if name in self._staying or self._stay_until.get(name, 0.0) > time.monotonic():
            return False
        if isinstance(query, ContinuousView):
            awaited = any(pipeline.awaited for pipeline in query.pipelines)
            return query.cut is not ViewCut.STORED and not awaited
        item = self._item(query)
        if isinstance(query, ContinuousQuery) and query.functions:
            return item is not None and not item.passes  # only this process has its state
        return item is not None

    def settle(self, timeout_s: float) -> bool:
        """Waits until whatever can live in a factory does; for tests and benchmarks."""
        until = time.monotonic() + timeout_s
        kernel = self._context.kernel
        while (
            self.seats
            and not self._jobs.closing
            and any(map(self._may_go, self._context.engine.all_hosted()))
        ):
            if time.monotonic() > until or (kernel.settled and not kernel.ready):
                return False
            time.sleep(0.005)
        with self._moving:  # the last one is on its way
            return True

    def _item(self, query: Hosted) -> CatalogObject | None:
        if query.mine is not None:
            return self._context.catalog.by_number(query.number)
        passing = self._context.passing.get(query.name.casefold())
        return passing or self._context.catalog.find(query.name)

    def _lend(self, seat: Seat, group: Sequence[Hosted]) -> None:
        """Moves queries into a factory; those that cannot go stay, and say why."""
        line = seat.line
        items = [self._item(query) for query in group]
        if line is None or None in items:
            return
        numbers = [item.id for item in items if item is not None]
        passing = [asdict(item) for item in items if item is not None and item.passes]
        lent = [Lent(seat, line, *one) for one in zip(group, numbers, strict=True)]
        with seat.moving(group):
            try:
                self._lend_all(seat, line, lent)
                line.ask("open", numbers=numbers, passing=passing, places=_places(group))
                for one in lent:
                    one.came()
            except Exception as error:
                if not isinstance(error, HostGone):
                    until = time.monotonic() + AGAIN_S if may_pass(error) else math.inf
                    self._stay_until |= {query.name.casefold(): until for query in group}
                    log.warning("%s stays here: %s", ", ".join(q.name for q in group), error)
                self._bring_back(seat, [one for one in lent if one.query.elsewhere is one])
            finally:
                for one in lent:  # who has seen one that was not lent after all looks again
                    if one.query.elsewhere is not one:
                        one.end()
                        one.went()

    def _lend_all(self, seat: Seat, line: Line, lent: Sequence[Lent]) -> None:
        """The factory gets what it needs for queries, and they are let go of here."""
        with seat.telling:
            self._tell_rest(seat)
        for table in (table for one in lent for table in one.query.tables):
            found = self._context.streams.find(table.definition.id)
            assert found is not None
            seat.follow(found)
        if seat.line is not line:
            raise HostGone(f"{seat.name} has ended")
        for one in lent:
            self._context.engine.lend(one.query, one)
            seat.lent[one.query.name.casefold()] = one

    def recall(self, queries: Iterable[Hosted]) -> None:
        """Brings queries back: what is done with them next is done here."""
        wanted = {id(query): query for query in queries}
        if not any(query.elsewhere is not None for query in wanted.values()):
            return
        with self._moving:
            for seat in self.seats:
                mine = [one for one in seat.lent.values() if id(one.query) in wanted]
                if mine:
                    self._call_back(seat, mine)

    def _call_back(self, seat: Seat, mine: Sequence[Lent]) -> None:
        """With them come those that have a pipeline in common with them."""
        shares = {name: _pipelines(one.query) for name, one in seat.lent.items()}
        wanted = {one.query.name.casefold() for one in mine}
        names = [n for group in together(shares) if wanted & set(group) for n in group]
        self._bring_back(seat, [seat.lent[name] for name in names])
        seat.forget_unread()
        self._touch()

    def _bring_back(self, seat: Seat, lent: Sequence[Lent]) -> None:
        """The factory puts them away, if it can, and they are answered here."""
        with seat.moving([one.query for one in lent]):
            if seat.line is not None and lent:
                try:
                    seat.line.ask("release", names=[one.query.name for one in lent])
                except HostGone:
                    pass  # its results say how far each has come
                except Exception as error:  # it may have released some: none of them counts there
                    log.warning("%s is ended, it keeps what it was lent: %s", seat.name, error)
                    seat.line.close()
            for one in lent:
                one.end()
                seat.lent.pop(one.query.name.casefold(), None)
            for one in lent:
                self._take_back(one)

    @contextlib.contextmanager
    def staying(self, queries: Iterable[Hosted]) -> Iterator[None]:
        """While inside, these queries are here."""
        wanted = [each for query in queries for each in (query, *query.parts)]
        names = {query.name.casefold() for query in wanted}
        with self._moving:
            self._staying.update(names)
        try:
            self.recall(wanted)
            yield
        finally:
            with self._moving:
                self._staying -= Counter(names)
                for name in names:
                    self._stay_until.pop(name, None)
            self._touch()

    # Load

    def _measure(self, seat: Seat, spent: Mapping[str, float], seconds: float) -> None:
        """What the queries of a factory have cost since its last pulse."""
        with self._changed:
            self._loads.note(spent, list(seat.lent), seconds)

    def _measure_here(self) -> None:
        """The same of those that are in this process."""
        seconds = time.monotonic() - self._measured
        if seconds >= PULSE_S:
            here = [q for q in self._context.engine.all_hosted() if q.elsewhere is None]
            spent = self._context.engine.take_spent()
            self._measured += seconds
            with self._changed:
                self._loads.note(spent, [query.name.casefold() for query in here], seconds)

    def _balance(self) -> None:
        """Something moves from the busiest factory to the idlest, if that pays."""
        now, there = time.monotonic(), self._jobs.there()
        if now - self._balanced < BALANCE_S or len(there) < len(self.seats):
            return
        self._balanced = now
        known = {query.name.casefold() for query in self._context.engine.all_hosted()}
        with self._changed:
            self._loads.keep(known)
        groups = [self._groups(seat) for seat in there]
        move = worth_moving(groups)
        if move is None:
            self._look_at_parts(groups, now)
            return
        self._asked = []
        origin, target = there[move.origin], there[move.target]
        lent = [origin.lent[name] for name in move.group.names]
        log.info("%s moves to %s", ", ".join(move.group.names), target.name)
        self._bring_back(origin, lent)
        origin.forget_unread()
        self._lend(target, [one.query for one in lent if self._may_go(one.query)])

    def _look_at_parts(self, groups: Sequence[Sequence[Group]], now: float) -> None:
        """What is too much for one factory, look after look, is split; parts that do not pay are united."""
        change = self._worth_changing(groups, now)
        self._asked = [*(one for one in self._asked if one == change), change] if change else []
        if change is not None and len(self._asked) >= (
            UNITE_LOOKS if change[1] == 1 else SPLIT_LOOKS
        ):
            self._asked = []
            self._spawn("headwater-split", partial(self._set_parts, *change))

    def _worth_changing(
        self, groups: Sequence[Sequence[Group]], now: float
    ) -> tuple[str, int] | None:
        """The view or query that should have other parts, and how many."""
        before, self._rows_seen = self._rows_seen, {}
        rows, split = dict[str, float](), dict[str, tuple[int, float]]()
        for query in self._context.engine.wholes():
            name = query.name.casefold()
            if name in self._stay_so or not changes_by_itself(self._context, name):
                continue
            if query.parts:
                parts = [part.name.casefold() for part in query.parts]
                with self._changed:
                    split[name] = len(parts), self._loads.of(parts)
                continue
            seen = (now, sum(table.state.next_sequence for table in query.tables))
            then, known = before.get(name, seen)
            self._rows_seen[name] = seen
            rows[name] = (seen[1] - known) / max(now - then, 1e-3)
        heavy = worth_splitting(groups, rows)
        return (heavy, len(groups)) if heavy is not None else worth_uniting(split, len(groups))

    def _set_parts(self, name: str, count: int) -> None:
        """A statement of its own: no other one changes the view or query meanwhile."""
        self._stay_so.add(name)  # unless it comes about: it is called back for each attempt
        try:
            with self._context.ddl:
                if not self._jobs.closing and set_parts(self._context, name, count):
                    self._stay_so.discard(name)
                    log.info("%s has %d parts now", name, count)
        except Exception:
            log.exception("%s could not get %d parts", name, count)

    def _groups(self, seat: Seat) -> list[Group]:
        """What a factory has; queries that share state are one."""
        folds = {name: shared_folds(one.query) for name, one in seat.lent.items()}
        shares = {n: {*_pipelines(one.query), *folds[n]} for n, one in seat.lent.items()}
        return [self._group(names, folds) for names in together(shares)]

    def _group(self, names: tuple[str, ...], folds: Mapping[str, frozenset[Hashable]]) -> Group:
        every = frozenset[Hashable]().union(*(folds[name] for name in names))
        queries = [self._context.engine.hosted(name) for name in names]
        parts_of = frozenset(q.number for q in queries if q is not None and q.mine is not None)
        with self._changed:
            return Group(names, self._loads.of(names), every, parts_of)

    # What the engine asks

    def _needs(self, number: int) -> list[Needs]:
        found = [seat.needs_of(number) for seat in self.seats]
        return [needs for needs in found if needs is not None]

    def _flush(self, names: Collection[str], until: float | None) -> set[str]:
        left = -1 if until is None else max(until - time.monotonic(), 0.0)
        if names and self._moving.acquire(timeout=left):  # what is on its way is in neither host
            self._moving.release()
        return flush(self.seats, names, until)

    def numbers(self) -> dict[str, int]:
        """What each host has done, for `headwater.metrics`."""
        found = {
            "here.rows": self._context.engine.rows_folded,
            "here.cpu_us": time.process_time_ns() // 1000,
        }
        for seat in self.seats:
            if seat.line is not None:
                with contextlib.suppress(HostGone):
                    said: dict[str, Any] = seat.line.ask("numbers", timeout_s=LOOK_S * 4).head
                    head = f"factory.{seat.number}."
                    found |= {head + name: said[name] for name in ("rows", "cpu_us")}
        return found


def shared_folds(query: Hosted) -> frozenset[Hashable]:
    """What the folds of a query must have in common with another's to be one."""
    if not isinstance(query, ContinuousQuery) or query.mine is not None:
        return frozenset()
    found = [signature(spec, query.tables, query.sampling) for spec in query.specs]
    return frozenset(one for one in found if one is not None)


def _places(group: Sequence[Hosted]) -> dict[int, list[int]]:
    """Of queries and views by number which parts are in a group."""
    places: dict[int, list[int]] = {}
    for part in group:
        if part.mine is not None:
            places.setdefault(part.number, []).append(part.mine.place)
    return places


def _pipelines(query: Hosted) -> list[Hashable]:
    """The pipelines of a view: views that have one in common move together."""
    return [p.number for p in query.pipelines] if isinstance(query, ContinuousView) else []
