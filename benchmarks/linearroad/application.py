"""The application of `examples/linearroad` at work: reports in, the four outputs out.

Owns: the order of statements, and who reads which output. Must never: compute an answer; all of
them come out of SQL.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import headwater
from headwater.engine.subscription import Subscription

FOLDER = Path(__file__).parents[2] / "examples" / "linearroad"
QUERIES = {"tolls": "toll_notifications", "alerts": "accident_alerts", "balances": "balances"}
OUTPUTS = (*QUERIES, "expenditures")
EXPENDITURE = 3
PATIENCE_S = 120.0
Row = tuple[int | None, ...]


@dataclass(frozen=True)
class Answered:
    """What came of the reports up to a second: rows by output, and when they could be read."""

    rows: Mapping[str, pa.Table | list[Row]]
    seconds: Mapping[str, float]  # since the first report was handed over
    whole_s: float


@dataclass
class Application:
    """Linear Road on one database, which is empty to begin with."""

    db: headwater.Database
    expressways: int
    history: pa.Table | None = None
    _readers: dict[str, Iterator[Subscription]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for path in sorted(FOLDER.glob("*.sql")):
            self.db.sql(path.read_text())
        self.db.sql(f"CALL open_expressways({self.expressways})")
        if self.history is not None:
            self._keep_history(self.history)
        self._readers = {
            output: iter(self.db.subscribe(query, after="earliest", timeout=PATIENCE_S))
            for output, query in QUERIES.items()
        }

    def _keep_history(self, history: pa.Table) -> None:
        """One insert for each day: the table is ordered by day."""
        for day in pc.unique(history.column("day")).to_pylist():
            self.db.insert("history", history.filter(pc.equal(history.column("day"), day)))

    def reported(self, batch: pa.RecordBatch, second: int) -> Answered:
        """Takes in the reports of a second, or of several up to it, and waits for all answers."""
        started = time.perf_counter()
        self.db.insert("reports", batch)
        self.db.advance("reports", second)
        rows: dict[str, pa.Table | list[Row]] = {"expenditures": self._expenditures(batch)}
        seconds = {"expenditures": time.perf_counter() - started}
        for output in QUERIES:
            rows[output] = self._until(output, second)
            seconds[output] = time.perf_counter() - started
        return Answered(rows, seconds, time.perf_counter() - started)

    def _until(self, output: str, second: int) -> pa.Table:
        """The results of one query up to an instant."""
        found = []
        for result in self._readers[output]:
            found.append(result.arrow())
            if result.time >= second:
                return pa.concat_tables(found).drop_columns(["_t"])
        raise TimeoutError(f"no answer of {QUERIES[output]} for second {second}")

    def _expenditures(self, batch: pa.RecordBatch) -> list[Row]:
        asked = batch.filter(pc.equal(batch.column("type"), EXPENDITURE))
        return [self._expenditure(request) for request in asked.to_pylist()]

    def _expenditure(self, request: Mapping[str, int]) -> Row:
        names = ("vid", "time", "qid", "day", "xway")
        vid, when, number, day, xway = (request[name] for name in names)
        found = self.db.sql(f"CALL expenditure({vid}, {day}, {xway})").rows()
        return vid, when, number, day, xway, sum(toll for (toll,) in found)

    def balance(self, car: int) -> int:
        """What one car owes now, by the procedure."""
        found = self.db.sql(f"CALL balance({car})").rows()
        return int(found[0][0]) if found else 0
