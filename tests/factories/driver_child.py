"""A driver with factories that feeds the load and reads results; somebody kills it, the next one goes on.

    python -m tests.factories.driver_child FOLDER LOG feed | compare

It begins to feed once its queries are in factories. Each line of the log is a result that a reader got: its
token, its time and its rows; `compare` inserts no more, and checks the log and all results.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import headwater
from tests.factories import load
from tests.factories.campaign import nothing_left, settled

READ = "sums_of_window"


def kept(log: Path) -> list[dict[str, object]]:
    """The whole lines of a log."""
    text = log.read_text() if log.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def feed(db: headwater.Database, log: Path, seconds: Path) -> None:
    """Inserts, and writes down what a reader gets, until somebody kills this process."""
    settled(db)
    lines = kept(log)
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    after = str(lines[-1]["token"]) if lines else "earliest"
    first = int(seconds.read_text()) if seconds.exists() else 0
    with load.Feeder(db, first, seconds, pace_s=0.002), log.open("a") as file:
        for out in db.subscribe(READ, after=after):
            line = {"token": out.token, "time": out.time, "rows": sorted(map(str, out.rows()))}
            file.write(json.dumps(line) + "\n")
            file.flush()


def compare(db: headwater.Database, log: Path, seconds: Path) -> dict[str, object]:
    """Everything that came, in all lives."""
    settled(db)
    end = int(seconds.read_text()) + 1
    load.insert_second(db, end - 1)  # of this one it is not known
    load.finish(db, end)
    found = load.compare(db, end)
    read = [(line["time"], line["rows"]) for line in kept(log)]
    results = [(time, rows) for time, _, rows in load.results_of(db, READ)]
    assert read == results[: len(read)]
    return found


def main(folder: str, log: str, act: str) -> None:
    """One life."""
    lives, seconds = Path(log).with_suffix(".lives"), Path(log).with_suffix(".seconds")
    killed = [int(pid) for pid in lives.read_text().split()] if lives.exists() else []
    if act == "feed":
        lives.write_text(" ".join(map(str, [*killed, os.getpid()])))
        with load.connected(folder) as db:
            load.create(db)
            feed(db, Path(log), seconds)
        return
    with nothing_left(*killed), load.connected(folder) as db:
        results = compare(db, Path(log), seconds)
    print(json.dumps({"kills": len(killed), "results": results}))


if __name__ == "__main__":
    main(*sys.argv[1:])
