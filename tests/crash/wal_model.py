"""What the write-ahead log promises, as a plain list: the oracle of its crash tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from headwater.errors import Error
from headwater.storage.disk import Disk
from headwater.storage.wal import Record, Ticket, WriteAheadLog
from tests.crash.power import SimulatedCrash

FOLDER = "/db/wal"
SEGMENT_BYTES = 8192


def open_log(disk: Disk, **options: object) -> WriteAheadLog:
    """A log of tiny segments that runs in the calling thread."""
    given: dict[str, object] = {"segment_bytes": SEGMENT_BYTES, "spare_segments": 2}
    given |= {"first_segment_bytes": SEGMENT_BYTES, "group_bytes": 3000, "threads": False}
    return WriteAheadLog(FOLDER, disk, **(given | options))  # type: ignore[arg-type]


Content = tuple[int, int, bytes]


def content(record: Record) -> Content:
    """A record without its LSN."""
    return record.kind, record.table, b"".join(bytes(part) for part in record.payload)


@dataclass
class Model:
    """Every record that must be there, by LSN, and the appends whose outcome is open."""

    random: Random
    acknowledged: dict[int, Content] = field(default_factory=dict)
    open_appends: list[list[Content]] = field(default_factory=list)
    freed_lsn: int = 0
    made: int = 0
    refused: int = 0

    def new_append(self, sizes: list[int] | None = None) -> list[Record]:
        """Records with contents never used before, now and then one larger than a segment.

        Half of all payloads have one length, so that records of different appends line up.
        """
        random = self.random
        if sizes is None:
            size = 20 if random.random() < 0.5 else random.randrange(8, 700)
            sizes = [size] * random.choice((1, 1, 1, 2, 3))
            if random.random() < 0.02:
                sizes.append(SEGMENT_BYTES + random.randrange(900))
        records = []
        for size in sizes:
            self.made += 1
            filler = bytes(size - 8) if random.random() < 0.5 else random.randbytes(size - 8)
            parts = (self.made.to_bytes(8, "little"), filler)
            records.append(Record(random.randrange(256), random.randrange(1 << 32), parts))
        return records

    def append(self, log: WriteAheadLog, count: int, sizes: list[int] | None = None) -> None:
        """Append `count` times, then wait for all: they may be one group."""
        tickets: list[tuple[Ticket, list[Content]]] = []
        for _ in range(count):
            records = self.new_append(sizes)
            contents = [content(record) for record in records]
            self.open_appends.append(contents)
            try:
                tickets.append((log.append(records), contents))
            except Error:
                self.open_appends.remove(contents)
        for ticket, contents in tickets:
            self.settle(log, ticket, contents)

    def settle(self, log: WriteAheadLog, ticket: Ticket, contents: list[Content]) -> None:
        """Wait for one append and note its outcome."""
        try:
            lsn = ticket.wait()
        except Error:
            self.refused += 1
            if log.failure is None:  # refused for sure: it must never come back
                self.open_appends.remove(contents)
            return
        self.open_appends.remove(contents)
        for place, each in enumerate(contents):
            assert lsn + place not in self.acknowledged, "an LSN was given out twice"
            self.acknowledged[lsn + place] = each

    def free(self, log: WriteAheadLog) -> None:
        """Free a random part of what is acknowledged."""
        if self.acknowledged:
            self.freed_lsn = self.random.randint(self.freed_lsn, max(self.acknowledged))
            log.free(self.freed_lsn)

    def recover(self, disk: Disk, from_lsn: int | None = None) -> WriteAheadLog:
        """Open the log and check it against the promises; what is found is promised from now."""
        log = open_log(disk)
        found = {}
        for record in log.recover(from_lsn):
            assert record.lsn not in found, "a record came twice"
            found[record.lsn] = content(record)
        self.check(found)
        assert log.next_lsn == max(self.acknowledged, default=0) + 1
        return log

    def check(self, found: dict[int, Content]) -> None:
        """Compare what was recovered with what was promised."""
        lsns = list(found)
        assert lsns == list(range(lsns[0], lsns[0] + len(lsns))) if lsns else True
        for lsn, each in self.acknowledged.items():
            if lsn > self.freed_lsn:
                assert found.get(lsn) == each, f"acknowledged record {lsn} is lost or changed"
            else:
                assert found.get(lsn, each) == each, f"freed record {lsn} is changed"
        last = max(self.acknowledged, default=0)
        extra = [found[lsn] for lsn in lsns if lsn > last]
        for contents in self.open_appends:
            if extra and extra[: len(contents)] == contents:
                extra = extra[len(contents) :]
            elif extra:
                assert contents[0] not in extra, "an append came back in the wrong order"
        assert not extra, "a refused append, part of one, or a stranger came back"
        self.acknowledged |= {lsn: each for lsn, each in found.items() if lsn > last}
        self.open_appends.clear()

    def work(self, log: WriteAheadLog, steps: int) -> None:
        """A random run of everything the log does."""
        for _ in range(steps):
            what = self.random.random()
            if what < 0.7:
                self.append(log, self.random.choice((1, 1, 2, 5)))
            elif what < 0.8:
                self.append(log, 30, [20])  # many sectors of records that line up
            elif what < 0.9:
                self.free(log)
            else:
                try_spare(log)


def try_spare(log: WriteAheadLog) -> None:
    """Make a spare, as the log's own thread does."""
    try:
        log.prepare_spare()
    except Error:
        pass


def until_crash(model: Model, log: WriteAheadLog, steps: int) -> bool:
    """Work until done or until the simulated crash; whether it crashed."""
    try:
        model.work(log, steps)
    except SimulatedCrash:
        return True
    return False
