"""The application of `examples/linearroad` at work: reports in, the four outputs out.

Owns: the order of statements, and who reads which output. Must never: compute an answer; all of
them come out of SQL.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import headwater

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


def create(db: headwater.Database, history: pa.Table | None = None) -> None:
    """Runs the SQL of the application on an empty database."""
    for path in sorted(FOLDER.glob("*.sql")):
        db.sql(path.read_text())
    for day in () if history is None else pc.unique(history.column("day")).to_pylist():
        db.insert("history", history.filter(pc.equal(history.column("day"), day)))


class Application:
    """Linear Road on one database, on which `create` was called once."""

    def __init__(self, db: headwater.Database, after: Mapping[str, str] | None = None) -> None:
        """`after`: the tokens of the last results that were read, of a run that goes on."""
        self.db = db
        self.tokens = dict(after or {})
        self._readers = {
            output: db.subscribe(
                query, after=self.tokens.get(output, "earliest"), timeout=PATIENCE_S
            )
            for output, query in QUERIES.items()
        }

    def reported(self, batch: pa.RecordBatch, second: int) -> Answered:
        """Takes in the reports of a second, or of several up to it, and waits for all answers.

        Questions about the past are asked by a client of their own.
        """
        started = time.perf_counter()
        self.db.insert("reports", batch)
        self.db.advance("reports", second)
        with ThreadPoolExecutor(1) as client:
            asked = client.submit(self._asked, batch, started)
            rows: dict[str, pa.Table | list[Row]] = {}
            seconds = {}
            for output in QUERIES:
                rows[output] = self._until(output, second)
                seconds[output] = time.perf_counter() - started
            rows["expenditures"], seconds["expenditures"] = asked.result()
        return Answered(rows, seconds, time.perf_counter() - started)

    def _asked(self, batch: pa.RecordBatch, started: float) -> tuple[list[Row], float]:
        """The expenditures that a batch asks for, and when they were there."""
        asked = batch.filter(pc.equal(batch.column("type"), EXPENDITURE))
        found = [self._expenditure(request) for request in asked.to_pylist()]
        return found, time.perf_counter() - started

    def _until(self, output: str, second: int) -> pa.Table:
        """The results of one query up to an instant."""
        found = []
        for result in self._readers[output]:
            found.append(result.arrow())
            self.tokens[output] = result.token
            if result.time >= second:
                return pa.concat_tables(found).drop_columns(["_t"])
        raise TimeoutError(f"no answer of {QUERIES[output]} for second {second}")

    def _expenditure(self, request: Mapping[str, int]) -> Row:
        names = ("vid", "time", "qid", "day", "xway")
        vid, when, number, day, xway = (request[name] for name in names)
        [(toll,)] = self.db.sql(f"CALL expenditure({vid}, {day}, {xway})").rows()
        return vid, when, number, day, xway, toll

    def balance(self, car: int) -> int:
        """What one car owes now, by the procedure."""
        [(balance,)] = self.db.sql(f"CALL balance({car})").rows()
        return int(balance)
