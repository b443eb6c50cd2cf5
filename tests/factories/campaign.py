"""A process whose factories, or whose Spark, are killed or stopped while rows come; in the end it compares.

    python -m tests.factories.campaign SEED HOW COUNT [HOW COUNT …]

HOW is `kill` (a factory's Python process), `stop` (the same, by SIGSTOP) or `java`. Meanwhile views are read,
each read sees what was inserted before it, and now and then FLUSH ends while rows come. The last line of its
output is JSON: how often, and how many results there were. A process of its own has a Spark of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import headwater
from headwater.engine.following import Following
from headwater.engine.view import ViewCut
from headwater.factories import jobs
from headwater.kernel import spark
from headwater.kernel.cache import SCRATCH_PREFIX
from tests.factories import load
from tests.harness.patience import PATIENCE_S, until

THREADS_MORE = 8  # that happen to be under way: a pulse, a hello; the files of two tables more
SECONDS_EACH = 30  # of rows for each blow, at most
FLUSH_EVERY = 4


def pids(db: headwater.Database) -> list[int]:
    """The Python processes of the factories that are there."""
    return [seat.process.pid for seat in db._factories.seats if seat.is_there and seat.process.pid]


def java() -> list[int]:
    """Spark's Java process, if there is one now."""
    process = spark._process
    return [process.gateway.process.pid] if process is not None and process.gateway else []


def strike(db: headwater.Database, how: str, choose: random.Random) -> int | None:
    """Ends or stops something; the process that it was."""
    there = java() if how == "java" else pids(db)
    if not there:
        return None
    pid = choose.choice(there)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP if how == "stop" else signal.SIGKILL)
        return pid
    return None


def settled(db: headwater.Database) -> None:
    """Every query is in a factory, and every factory is there."""
    seats, engine = db._factories.seats, db._context.engine
    if not db._context.kernel.ready:
        db.sql("SELECT sum(id) FROM range(10)")  # however long Java takes to start: Spark runs now
    until(
        lambda: (
            all(s.line is not None and not s.line.ended.is_set() for s in seats)
            and all(
                query.elsewhere is not None or query.parts
                for query in engine.all_hosted()
                if not isinstance(query, Following)  # it lives with its readers
                and getattr(query, "cut", None) is not ViewCut.STORED  # nothing of it is held
            )
        ),
        "some query is in no factory",
    )


def blow(db: headwater.Database, how: str, choose: random.Random) -> bool:
    """Strikes something that is there, and waits until it is gone."""
    pid = strike(db, how, choose)
    if pid is None:
        return False
    if how == "stop":
        db.sql("SET factory_timeout_s = 1")
    until(lambda: pid not in pids(db) + java(), f"{pid} was not replaced")
    if how == "stop":
        db.sql("SET factory_timeout_s = 30")  # a busy machine may take long to answer
    return True


def campaign(db: headwater.Database, blows: list[str], choose: random.Random) -> int:
    """So many blows while rows come; the first second that was not inserted."""
    with load.Feeder(db) as feeder:
        for number, how in enumerate(blows):
            feeder.until = feeder.second + SECONDS_EACH
            if how == "java" or choose.random() < 0.6:
                settled(db)
                feeder.until = feeder.second + SECONDS_EACH
            feeder.wait_seconds(choose.choice((0, 1, 2, 10)))
            until(lambda how=how: blow(db, how, choose), "there is nothing to strike")
            if number % FLUSH_EVERY == 0:
                check_flush(db, feeder)
        return feeder.stop()


def check_flush(db: headwater.Database, feeder: load.Feeder) -> None:
    """FLUSH ends while rows come, wherever queries are; what was complete at the call is answered."""
    feeder.until = feeder.second + SECONDS_EACH
    inserted = feeder.second - 1
    assert db._context.engine.flush(PATIENCE_S), "FLUSH did not end"
    if inserted > 4:
        answered = db.sql("SELECT max(_t) FROM sums_of_window").rows()[0][0]
        assert answered is not None, inserted
        assert answered >= inserted - 2, (answered, inserted)


def held() -> tuple[int, int]:
    """Threads and open files of this process."""
    return threading.active_count(), len(os.listdir("/proc/self/fd"))


def folders(*pids: int) -> set[str]:
    """Scratch folders of processes; those of others, who work beside this one, are theirs."""
    found = set()
    for parent in ("/dev/shm", tempfile.gettempdir()):
        for name in os.listdir(parent):
            owner = name.removeprefix(SCRATCH_PREFIX).partition("-")[0]
            if name.startswith(SCRATCH_PREFIX) and int(owner) in pids:
                found.add(f"{parent}/{name}")
    return found


@contextlib.contextmanager
def nothing_left(*killed: int) -> Iterator[None]:
    """Afterwards there is no thread and no folder more than before; none at all of processes before."""
    before = folders(os.getpid())
    yield
    until(lambda: not _threads(), f"threads are left: {_threads()}")
    left = folders(os.getpid()) - before
    assert len(left) <= 1, f"folders are left: {left}"  # Spark's own: it runs on
    assert not folders(*killed), f"folders are left: {folders(*killed)}"


def _threads() -> list[str]:
    kept = ("headwater-spark",)
    names = [thread.name for thread in threading.enumerate()]
    return [n for n in names if n.startswith(("headwater", "wal-")) and not n.startswith(kept)]


def main(seed: str, *wanted: str) -> None:
    """The campaign, the comparison, and a look at what is left."""
    jobs.PAUSES_S = (0.0, 0.1)  # between the lives of a factory: here they are short
    choose = random.Random(int(seed))
    counts = dict(zip(wanted[::2], map(int, wanted[1::2]), strict=True))
    blows = [how for how, count in counts.items() for _ in range(count)]
    choose.shuffle(blows)
    with nothing_left(), tempfile.TemporaryDirectory() as folder:
        found = disturbed(Path(folder), blows, choose)
    print(json.dumps({"struck": counts, **found}))


def disturbed(folder: Path, blows: list[str], choose: random.Random) -> dict[str, Any]:
    """A database that was struck so often: the seconds that it got, the number of results and of reads."""
    with load.connected(folder) as db:
        load.create(db)
        settled(db)
        threads, files = held()
        with load.Witness(db) as witness:
            end = campaign(db, blows, choose)
        settled(db)
        after = held()
        if "java" not in blows:  # another Spark has other threads of py4j's
            assert after[0] <= threads + THREADS_MORE, f"{threads} threads became {after[0]}"
            assert after[1] <= files + THREADS_MORE, f"{files} files became {after[1]}"
        load.finish(db, end)
        return {"seconds": end, "reads": witness.reads, "results": load.compare(db, end)}


if __name__ == "__main__":
    main(*sys.argv[1:])
