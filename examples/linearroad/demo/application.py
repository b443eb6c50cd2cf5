"""The Linear Road application on a database, watched: its SQL, its traffic, and a reader of each output.

Owns: the order of statements, and who reads what. Must never: compute an answer; all of them come
out of SQL.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import pyarrow.compute as pc

import headwater
from headwater.engine.subscription import Out, Pusher
from headwater.errors import DataError

from ..traffic import historical_tolls
from .figures import Accident, Figures, Schedule
from .questions import register
from .screen import Toll

QUERIES = {"tolls": "toll_notifications", "alerts": "accident_alerts", "balances": "balances"}
HISTORY_CARS = 2000  # the lowest numbers; for others the answer is 0
CHARGED = "CREATE VIEW charged AS SELECT sum(toll) AS toll FROM charges"
SPEEDS = (
    "SELECT xway, dir, seg, avg(speed) AS speed FROM reports [INTERVAL '30' SECOND]"
    " WHERE type = 0 GROUP BY xway, dir, seg SAMPLE INTERVAL '5' SECOND"
)
REQUESTS = (
    "SELECT vid, day, xway FROM reports [INTERVAL '1' SECOND]"
    " WHERE type = 3 AND time = CURRENT_INSTANT() SAMPLE INTERVAL '1' SECOND"
)
ACCIDENTS = "SELECT xway, dir, seg, _t FROM accidents [INTERVAL '59' SECOND] WHERE distance = 0"
SOURCE = "SELECT row_count, started_at, last_error FROM headwater.sources WHERE name = 'traffic'"


@dataclass(frozen=True)
class Drive:
    """Which traffic is shown, and how fast."""

    start_s: int = 160 * 60 + 25  # a minute is over once every car has reported
    speed: int = 6
    segments: int = 100
    accidents_per_hour: int = 20
    seed: int = 1

    @property
    def source(self) -> str:
        """The statement that starts it."""
        return (
            "CREATE SOURCE traffic INTO reports FROM 'demo:linearroad' WITH ("
            f"start = {self.start_s}, duration = 'endless', speed = {self.speed}, seed = {self.seed},"
            f" segments = {self.segments}, accidents_per_hour = {self.accidents_per_hour})"
        )


def scripts() -> list[Path]:
    """The SQL of the application and of the questions, in order."""
    folder = Path(__file__).parents[1]
    return [*sorted(folder.glob("*.sql")), *sorted((folder / "questions").glob("*.sql"))]


class Application:
    """Linear Road at work on an empty database."""

    def __init__(self, db: headwater.Database, drive: Drive, figures: Figures) -> None:
        self._db = db
        self._drive = drive
        self._figures = figures
        self._flows = False
        self._readers: list[Pusher] = []

    def create(self, tell: Callable[[str], None]) -> None:
        """Runs the SQL; `tell` hears what is under way."""
        register(self._db)
        for path in scripts():
            tell(path.name)
            self._db.sql(path.read_text())
        tell("tolls of the past")
        history = historical_tolls(HISTORY_CARS)
        for day in pc.unique(history.column("day")).to_pylist():
            self._db.insert("history", history.filter(pc.equal(history.column("day"), day)))
        self._db.sql(CHARGED)

    def start(self) -> None:
        """Opens the road, and a reader of each output."""
        self._db.sql(self._drive.source)
        for output, query in QUERIES.items():
            self._read(query, self._told if output == "tolls" else partial(self._answered, output))
        self._read(REQUESTS, self._expenditures)
        self._read(SPEEDS, self._seen)

    def _read(self, query: str, callback: Callable[[Out], None]) -> None:
        after = "earliest" if query in QUERIES.values() else None
        reader = self._db.subscribe(query, after=after, callback=callback)
        assert isinstance(reader, Pusher)
        self._readers.append(reader)

    def _answered(self, output: str, out: Out) -> None:
        now = time.time()
        self._begin()
        self._figures.answered(output, int(str(out.time)), out.table.num_rows, now)

    def _told(self, out: Out) -> None:
        """Toll notifications; the highest of each second is shown."""
        self._answered("tolls", out)
        tolls = out.table.column("toll")
        highest = pc.max(tolls).as_py()
        if highest:
            place = pc.index(tolls, highest).as_py()
            [told] = out.table.slice(place, 1).to_pylist()
            self._figures.told(Toll(told["time"], told["vid"], told["lav"], highest))

    def _expenditures(self, out: Out) -> None:
        for vid, day, xway, *_ in out.rows():
            self._db.sql(f"CALL expenditure({vid}, {day}, {xway})")
        self._answered("expenditures", out)

    def _seen(self, out: Out) -> None:
        self._figures.seen((x, d, s, speed) for x, d, s, speed, *_ in out.rows())

    def _begin(self) -> None:
        """Once the first answer is there, it is known when the first report was due."""
        if self._flows:
            return
        [(_, started, _)] = self._db.sql(SOURCE).rows()
        began = datetime.fromisoformat(started).timestamp()
        self._figures.flows(Schedule(self._drive.start_s, began, self._drive.speed))
        self._flows = True

    def look(self) -> None:
        """Reads the totals and the accidents; none of it needs Spark. Raises what went wrong."""
        for reader in self._readers:
            if reader.error is not None:
                raise reader.error
        [(reports, _, error)] = self._db.sql(SOURCE).rows()
        if error is not None:
            raise DataError(error)
        [(charged,)] = self._db.sql("SELECT toll FROM charged").rows()
        self._figures.counted(reports, charged or 0, time.time())
        self._figures.crashed(Accident(*row) for row in self._db.sql(ACCIDENTS).rows())

    def close(self) -> None:
        """Ends the readers."""
        for reader in self._readers:
            reader.close()
