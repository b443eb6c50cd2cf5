"""A factory as the driver sees it: the line to its task, what it was told, what it has, what it needs.

Owns: the images that the factory follows, whose files stay for it, and the fence around what it sends: a
result counts only while the query it belongs to is lent to this very life of the factory.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.engine.change_record import FollowedChanges
from headwater.engine.elsewhere import HostGone
from headwater.engine.halting import Ends
from headwater.engine.hosted import Hosted
from headwater.engine.query import ContinuousQuery
from headwater.engine.query_parts import Evaluated
from headwater.engine.query_sinks import LogSink
from headwater.engine.sampling import Instant
from headwater.engine.sent_results import unpacked
from headwater.engine.split_view import PartRows, ViewPart
from headwater.engine.update_query import UpdateQuery
from headwater.engine.view import ContinuousView
from headwater.engine.view_versions import Version
from headwater.errors import ClosedError, Error
from headwater.execute.context import Context
from headwater.factories.frames import Frame, error_from_json
from headwater.factories.line import Line
from headwater.factories.plain import relation_to_json, work_from_json
from headwater.factories.process import TaskProcess
from headwater.operators.changes import come, go, together
from headwater.storage.streaming.image import TableImage
from headwater.storage.streaming.seen import EVERYTHING, Needs
from headwater.storage.streaming.table import StreamingTable

if TYPE_CHECKING:
    from collections.abc import Iterator

GONE_PATIENCE_S = 60.0
READ_PATIENCE_S = 600.0


class Lent:
    """One query or view that a factory has: how the rest of the driver reaches it there."""

    def __init__(self, seat: Seat, line: Line, query: Hosted, number: int) -> None:
        """`line`: to the life of the factory that it is lent to."""
        self.seat, self.line, self.query, self.number = seat, line, query, number
        self.name = seat.name
        self.whose = number, None if query.mine is None else query.mine.place
        self.fence = threading.Lock()  # around what is made durable for it
        self.valid = True
        self._settled = threading.Event()  # it is there, or never will be
        self._gone = threading.Event()
        self._abandoned = False  # nobody takes over

    def came(self) -> None:
        """The factory answers for it from now on."""
        self._settled.set()

    def end(self) -> None:
        """Nothing that the factory sends for it counts any more."""
        with self.fence:
            self.valid = False
        self._settled.set()

    def went(self) -> None:
        """Another host answers now."""
        self._gone.set()

    def abandon(self) -> None:
        """The database is being closed: no other host answers."""
        self._abandoned = True
        self.end()
        self.went()

    def wait_there(self) -> None:
        """Returns once the factory has the query, or never will."""
        self._settled.wait(GONE_PATIENCE_S)

    def wait_gone(self) -> None:
        """After the end of the host: returns once the query is answered by another one."""
        if not self._gone.wait(GONE_PATIENCE_S):
            raise Error(f"{self.name} has ended and nobody has taken over", sqlstate="57P03")
        if self._abandoned:
            raise ClosedError("the database is closed")

    def _ask(self, kind: str, tables: Sequence[pa.Table] = (), **head: Any) -> Frame:
        return self._begin(kind, tables, **head)(READ_PATIENCE_S)

    def _begin(
        self, kind: str, tables: Sequence[pa.Table] = (), **head: Any
    ) -> Callable[[float | None], Frame]:
        self.wait_there()
        if not self.valid:
            raise HostGone(f"{self.name} has ended")
        lsn = self.seat.context.streams.durable_lsn
        return self.line.begin(kind, tables, name=self.query.name, lsn=lsn, **head)

    def read_view(self, view: ContinuousView) -> Version:
        """The view over every row acknowledged before the call."""
        version = _kept(view, self._ask("read"))
        self._is_well()
        return version

    def _is_well(self) -> None:
        """It was read without an error."""
        if self.query.state in ("failed", "retrying"):
            self.seat.context.engine.told(self.query, "running", None)

    def find_in_view(self, view: ContinuousView, keys: pa.Table) -> pa.Table | None:  # noqa: ARG002
        """The rows of one key of a view."""
        found = self._ask("find", [keys]).rows()
        return found[0] if found else None

    def halt_part(self, part: ViewPart, reader: int) -> Callable[[], Ends | None]:  # noqa: ARG002
        """A part of a view folds no further; waits for how far it has come."""
        answer = self._begin("halt", reader=reader)

        def reached() -> Ends | None:
            ends = answer(READ_PATIENCE_S).head["ends"]
            return None if ends is None else tuple(ends)

        return reached

    def read_part(
        self,
        part: ViewPart,  # noqa: ARG002
        reader: int,
        ends: Ends,
        instant: int,
    ) -> Callable[[], PartRows | None]:
        """A halted part folds to there and goes on; waits for its rows."""
        answer = self._begin("read part", reader=reader, ends=ends, instant=instant)

        def rows() -> PartRows | None:
            frame = answer(READ_PATIENCE_S)
            if not frame.head["there"]:
                return None
            found, places = frame.rows(), frame.head["places"]
            if found:
                self._is_well()
            places = tuple((sequence, generation) for sequence, generation in places)
            return PartRows(found[0] if found else None, places, frame.head["versions"])

        return rows

    def part_goes_on(self, part: ViewPart, reader: int) -> None:
        """A halted part folds on."""
        with contextlib.suppress(HostGone):
            self.line.tell("go on", name=part.name, reader=reader)

    def follow_view(self, view: ContinuousView, mark: str | None) -> FollowedChanges:
        """What has changed in a view since a mark."""
        frame = self._ask("changes", mark=mark)
        if view.state in ("failed", "retrying"):
            self.seat.context.engine.told(view, "running", None)
        taken, parts = frame.head["mark"], frame.rows()
        if frame.head["whole"]:
            return FollowedChanges(taken, None, parts[0])
        return FollowedChanges(taken, together([go(parts[0]), come(parts[1])], parts[0].schema))

    def newest_results(self, query: UpdateQuery) -> pa.Table:  # noqa: ARG002
        """The newest result of each key."""
        return self._ask("newest").rows()[0]

    def explain(self, analyze: bool) -> list[str]:
        """The plan of a query as it runs, and what it has done."""
        return list(self._ask("explain", analyze=analyze).head["lines"])

    def rows_of(self, table: str) -> list[dict[str, Any]]:
        """What a system table says about the queries of this host."""
        return self._ask("rows", table=table).rows()[0].to_pylist()


class Seat:
    """The place of one factory; its task may end and come again."""

    def __init__(self, number: int, context: Context) -> None:
        self.number, self.context = number, context
        self.name = f"factory {number}"
        self.line: Line | None = None
        self._life: Line | None = None  # whose word counts: the line, from its welcome on
        self.incarnation = self.came = 0  # the last one that was started, and that said hello
        self.process = TaskProcess(None)
        self.cancel: Callable[[], None] = lambda: None  # ends its job
        self.lent: dict[str, Lent] = {}  # by name, in lower case
        self.needs: dict[int, Needs] = {}  # by table
        self._moving: Counter[int] = Counter()  # tables of queries that come or go just now
        self._images: dict[int, list[TableImage]] = {}  # by table, the newest last: files stay
        self._lock = threading.Lock()  # nobody sends anything while he holds it
        self._following = (
            False  # a table is being joined: rows since its last seal come from the log
        )
        self._telling_images = threading.RLock()  # around changes, so that they are told in order
        self._reads_from: int | None = None  # the first record of the log that it may still read
        self._held: dict[int, contextlib.ExitStack] = {}  # standard tables that it reads now
        self._tokens = itertools.count(1)
        self.telling = threading.Lock()
        self.pulse: tuple[Line, float] | None = None  # the one that is under way, and since when
        self.pulsed = time.monotonic()  # when the last one was answered
        self.told: dict[str, Any] = {}  # the versions of what was told: functions, settings …

    @property
    def is_there(self) -> bool:
        """Whether its task has come, and not ended."""
        line = self.line
        return line is not None and not line.ended.is_set()

    @property
    def reads_from(self) -> int | None:
        """Records of the log from here on stay for it."""
        with self._lock:
            images = [mine[0].sealed.lsn + 1 for mine in self._images.values() if mine]
            marks = [self._reads_from] if self._reads_from is not None else []
            return min([*marks, *(images if self._following else [])], default=None)

    def prepare(self, line: Line, process: TaskProcess, lsn: int) -> None:
        """A task has come: what it asks for is answered from now on; it is told nothing yet."""
        works = {
            "append": self._append,
            "last": self._last,
            "recover": self._recover,
            "results": self._results,
            "hold": self._hold,
        }
        notes = {
            "state": self._state,
            "version": self._version,
            "let_go": self._let_go,
            "needs": self._need,
            "folded": self._folded,
            "image": self._image_read,
            "reads": self._read_on,
        }
        for kind, work in works.items():
            line.on(kind, partial(work, line))
        for kind, ask in {"run": self._run, "analyse": self._analyse, "tick": self._tick}.items():
            line.on(kind, ask)
        for kind, note in notes.items():
            line.on(kind, partial(self._heard, line, note), here=True)
        with self._lock:
            self._life, self._reads_from, self.told = line, lsn + 1, {}
        self.process, self.pulsed = process, time.monotonic()

    def _heard(self, line: Line, note: Callable[[Frame], None], frame: Frame) -> None:
        """Takes note of what this life of the factory says; what an older one said is nobody's."""
        if self._life is line:
            note(frame)

    # What it follows

    def needs_of(self, number: int) -> Needs | None:
        """What its queries need of a table; None if it has none that reads it."""
        return EVERYTHING if self._moving[number] else self.needs.get(number)

    @contextlib.contextmanager
    def moving(self, queries: Sequence[Hosted]) -> Iterator[None]:
        """While inside, all rows of their tables stay: neither host says yet what it needs of them."""
        tables = {t.definition.id: t for query in queries for t in query.tables}
        with self._lock:
            self._moving.update(tables.keys())
        try:
            yield
        finally:
            with self._lock:
                self._moving -= Counter(tables.keys())
            for number in tables:
                table = self.context.streams.find(number)
                if table is not None:
                    self.context.engine.let_go_of(table)

    def follows(self, number: int) -> bool:
        """Whether it knows a table."""
        return number in self._images

    def follow(self, table: StreamingTable) -> None:
        """The factory follows a table from now on."""
        line = self.line
        if line is None or self.follows(table.definition.id):
            return
        with self._telling_images:
            self._join(line, table)
        for number in list(self._images):  # nothing was told meanwhile
            changed = self.context.streams.find(number)
            if changed is not None:
                self.tell_image(changed)

    def _join(self, line: Line, table: StreamingTable) -> None:
        definition = table.definition
        with self._lock:
            self._following = True
            image = table.image()
            self._images[definition.id] = [image]
            self.needs[definition.id] = EVERYTHING
        try:
            line.ask(
                "follow",
                table=definition.id,
                name=definition.name,
                of=definition.kind,
                definition=definition.as_json(),
                image=image.since(None),
            )
        except BaseException:
            self.forget(definition.id)
            raise
        finally:
            self._following = False

    def tell_image(self, table: StreamingTable) -> None:
        """The blocks of a table that it follows have changed."""
        line = self.line
        with self._telling_images:
            change = None if line is None else self._image_change(line, table)
            if change is not None and line is not None:
                with contextlib.suppress(HostGone):
                    line.tell("blocks", table=table.definition.id, change=change)

    def _image_change(self, line: Line, table: StreamingTable) -> dict[str, Any] | None:
        """What is new since the last image that was told, which is held from now on; None: nothing."""
        with self._lock:
            known = self._images.get(table.definition.id)
            if self.line is not line or not known or self._following:
                return None
            image = table.image()
            if image.is_as(known[-1]):
                table.let_image_go(image)
                return None
            known.append(image)
            return image.since(known[-2])

    def forget(self, number: int) -> None:
        """It follows a table no more."""
        table = self.context.streams.find(number)
        with self._lock:
            images = self._images.pop(number, [])
            self.needs.pop(number, None)
        if table is not None:
            for image in images:
                table.let_image_go(image)
            table.folded_by.pop(self.name, None)
            table.made_room()

    def forget_unread(self) -> None:
        """Tables that none of its queries reads are followed no more."""
        read = {t.definition.id for one in self.lent.values() for t in one.query.tables}
        for number in [known for known in list(self._images) if known not in read]:
            line = self.line
            with self._telling_images:
                if line is not None:
                    with contextlib.suppress(HostGone):
                        line.tell("forget", table=number)
                self.forget(number)

    def forget_all(self) -> None:
        """Its task has ended."""
        line, self.line = self.line, None
        with self._lock:
            self._life = None
            held, self._held = list(self._held.values()), {}
        if line is not None:
            line.close()
        for number in list(self._images):
            self.forget(number)
        self._reads_from = None
        for stack in held:
            stack.close()
        self.process.close()

    def _image_read(self, frame: Frame) -> None:
        """Files of images before a version are not read any more."""
        number, version = frame.head["table"], frame.head["version"]
        table = self.context.streams.find(number)
        with self._lock:
            images = self._images.get(number, [])
            gone = [image for image in images[:-1] if image.version < version]
            del images[: len(gone)]
        if table is not None:
            for image in gone:
                table.let_image_go(image)

    def _read_on(self, frame: Frame) -> None:
        self._reads_from = frame.head["lsn"]

    def _need(self, frame: Frame) -> None:
        number = frame.head["table"]
        if number in self.needs:
            self.needs[number] = Needs(*frame.head["needs"])
            table = self.context.streams.find(number)
            if table is not None:
                self.context.engine.let_go_of(table)

    def _folded(self, frame: Frame) -> None:
        """How far views are: writers may have waited for them."""
        number, sequence = frame.head["table"], frame.head["sequence"]
        table = self.context.streams.find(number)
        if table is None:
            return
        with self._lock:  # what is said of a table that was forgotten holds nobody back
            if sequence is None or not self.follows(number):
                table.folded_by.pop(self.name, None)
            else:
                table.folded_by[self.name] = lambda: sequence
        table.made_room()

    # Results

    @contextlib.contextmanager
    def _of(self, line: Line, frame: Frame) -> Iterator[ContinuousQuery | UpdateQuery]:
        """The query that a frame is about, while it is lent to this life of the factory."""
        whose = tuple(frame.head["query"])
        lent = next((one for one in list(self.lent.values()) if one.whose == whose), None)
        if lent is None:
            raise HostGone("the query is not lent any more")
        with lent.fence:
            if not lent.valid or lent.line is not line:
                raise HostGone("the query is not lent any more")
            assert isinstance(lent.query, ContinuousQuery | UpdateQuery)
            yield lent.query

    def _append(self, line: Line, frame: Frame) -> Frame:
        said = frame.head["results"]
        with self._of(line, frame) as query:
            assert isinstance(query.sink, LogSink)
            log = query.sink.log
            sent = [(one[0], one[4], rows) for one, rows in zip(said, frame.rows(), strict=True)]
            results = [
                Evaluated(Instant(tick=tick, place=place), rows, note, epoch, changes)
                for (tick, place, epoch, note, _), (rows, changes) in zip(
                    said, unpacked(log, sent, frame.head["since"]), strict=True
                )
            ]
            query.sink.append(results)
            query.results += len(results)
            as_sent = results[-1].rows.schema == log.schema
            return Frame({"since": log.next - 1 if as_sent else None})

    def _last(self, line: Line, frame: Frame) -> Frame:
        with self._of(line, frame) as query:
            return Frame({"last": query.sink.last()})

    def _recover(self, line: Line, frame: Frame) -> None:
        with self._of(line, frame) as query:
            query.sink.recover()

    def _results(self, line: Line, frame: Frame) -> Frame:
        with self._of(line, frame) as query:
            assert isinstance(query.sink, LogSink)
            log = query.sink.log
            head: dict[str, Any] = {"first": log.first, "next": log.next}
            position = frame.head.get("position")
            if position is None:
                return Frame(head)
            found = list(log.read_from(position))
            head["found"] = [[r.position, r.instant, r.epoch, dict(r.note)] for r in found]
            return Frame(head, [result.rows for result in found])

    def _state(self, frame: Frame) -> None:
        """A query there has stopped, or goes on."""
        lent, said = self.lent.get(str(frame.head["name"]).casefold()), frame.head["error"]
        if lent is None or not lent.valid:
            return
        error = said and error_from_json(said)
        self.context.engine.told(lent.query, frame.head["state"], error)

    def _version(self, frame: Frame) -> None:
        """An eager view has a new result."""
        lent = self.lent.get(str(frame.head["name"]).casefold())
        if lent is not None and lent.valid and isinstance(lent.query, ContinuousView):
            _kept(lent.query, frame)

    # What only the driver can do

    def _run(self, frame: Frame) -> Frame:
        kernel = self.context.kernel
        rows = kernel.run(work_from_json(frame.head["work"]))
        return Frame({"jobs": kernel.jobs_of(threading.get_ident())}, [rows])

    def _analyse(self, frame: Frame) -> Frame:
        return Frame({"columns": self.context.kernel.analyse(work_from_json(frame.head["work"]))})

    def _hold(self, line: Line, frame: Frame) -> Frame:
        stack, token = contextlib.ExitStack(), next(self._tokens)
        held = stack.enter_context(self.context.held(frame.head["names"]))
        with self._lock:
            counts = self._life is line
            if counts:
                self._held[token] = stack
        if not counts:  # it has ended meanwhile, and lets go of nothing any more
            stack.close()
            raise HostGone(f"{self.name} has ended")
        relations = {name: relation_to_json(r) for name, r in held.relations.items()}
        return Frame({"token": token, "relations": relations, "versions": dict(held.versions)})

    def _let_go(self, frame: Frame) -> None:
        with self._lock:
            stack = self._held.pop(frame.head["token"], None)
        if stack is not None:
            stack.close()

    def _tick(self, frame: Frame) -> Frame:
        table = self.context.streams.find(frame.head["table"])
        if table is not None:
            table.tick()
        return Frame({"lsn": self.context.streams.durable_lsn})


def _kept(view: ContinuousView, frame: Frame) -> Version:
    """A result that a factory made becomes a version of the view, unless it is the one that is there."""
    places = frame.head["places"]
    found = None if places is None else [(sequence, kept) for sequence, kept in places]
    key, known = view.key_of(found, frame.head["versions"] or {}), view.versions.last
    if known is not None and known.key == key:
        return known
    return view.versions.add(frame.rows()[0], key, frame.head["instant"])


def flush(seats: Iterable[Seat], names: Collection[str], until: float | None) -> set[str]:
    """Of these, the queries that a factory has answered, with everything that is durable now."""
    done = set[str]()
    for seat in seats:
        line, mine = seat.line, sorted(seat.lent.keys() & names)
        if line is None or not mine:
            continue
        lsn = seat.context.streams.durable_lsn
        left = None if until is None else max(until - time.monotonic(), 0.0)
        with contextlib.suppress(HostGone):  # others have them soon
            said = line.ask("flush", lsn=lsn, timeout_s=left, patience_s=left, names=mine)
            done.update(said.head["names"])
    return done
