"""What a page of the console shows, made of the system tables: parts of rows, totals, rates.

Owns which parts a page has. Counters become rates against the last look of the same channel.
Must never give more than a page shows: a statement's text is the business of its own page.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from headwater._version import __version__
from headwater.errors import Error
from headwater.server.http.metrics import resident_bytes
from headwater.sql import scripts
from headwater.sql.statements.query import Query
from headwater.sql.statements.user import Role

if TYPE_CHECKING:
    from headwater.server.http.server import HttpServer

Row = dict[str, Any]
BUSIEST = 12  # rows of each list of the overview
PAGES: Mapping[str, tuple[str, ...]] = {
    "overview": ("process", "totals", "busiest"),
    "network": ("sources", "tables", "queries", "views", "sinks"),
    "queries": ("queries", "views"),
    "query": ("object",),
    "view": ("object",),
    "tables": ("tables",),
    "sources": ("sources", "sinks"),
    "late": ("tables",),
    "staleness": ("staleness",),
    "errors": ("errors",),
    "road": ("road",),
    "sql": (),
}


class Rates:
    """Counters of one channel as rates a second, against the look before."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._before: dict[str, tuple[float, float]] = {}

    def of(self, name: str, value: float | None) -> float | None:
        """How fast a counter grows; None at the first look."""
        if value is None:
            return None
        now, known = self._clock(), self._before.get(name)
        self._before[name] = (now, value)
        if known is None or now <= known[0]:
            return None
        return round(max(value - known[1], 0) / (now - known[0]), 2)


class ConsoleSnapshot:
    """One look at the database for one page; what several parts need is read once."""

    def __init__(
        self, server: HttpServer, rates: Rates, name: str = "", role: Role = "reader"
    ) -> None:
        self._server, self._rates, self._name, self._role = server, rates, name, role
        self._read: dict[str, list[Row]] = {}

    def parts(self, page: str) -> dict[str, Any]:
        """The parts of a page."""
        return {part: getattr(self, part)() for part in PAGES[page]}

    def _rows(self, table: str) -> list[Row]:
        if table not in self._read:
            text = f"SELECT * FROM headwater.{table}"
            found = self._server.database.statement(text, role=self._role).arrow()
            if table == "staleness":  # a row per key may be a million; the queries' own are few
                found = found.filter(pc.is_null(found.column("key")))
            self._read[table] = found.to_pylist()
        return self._read[table]

    def process(self) -> Row:
        """The process and its log."""
        server = self._server
        numbers = {row["name"]: row["value"] for row in self._rows("metrics")}
        return {
            "version": __version__,
            "uptime_s": int(time.time() - server.started_at),
            "resident_bytes": resident_bytes(),
            "spark": server.database.spark_ready,
            "spark_state": server.database.spark_status.state,
            "connections": len(server.connections),
            "wal_bytes": numbers.get("wal.bytes"),
            "wal_queued_bytes": numbers.get("wal.queued_bytes"),
        }

    def totals(self) -> Row:
        """The numbers of the overview."""
        tables, queries = self.tables(), self.queries()
        views, sources, stale = self.views(), self.sources(), self.staleness()
        return {
            "tables": len(tables),
            "queries": len(queries),
            "views": len(views),
            "sources": len(sources),
            "failed": len(self.errors()),
            "rows_per_s": _sum(tables, "rate"),
            "results_per_s": _sum(queries, "rate"),
            "waiting_rows": _sum([*queries, *views], "waiting_rows"),
            "late_rows": _sum(tables, "late_count"),
            "state_bytes": _sum(views, "state_bytes"),
            "unsealed_bytes": _sum(tables, "unsealed_bytes"),
            "response_ms": _most(queries, "response_ms"),
            "lag_s": _most(sources, "lag_s"),
            "staleness_s": _most(stale, "application_staleness_s"),
        }

    def busiest(self) -> Row:
        """The tables and queries where most happens."""
        tables = sorted(self.tables(), key=lambda r: (-(r["rate"] or 0), r["name"]))
        kept = [{**row, "kind": "query"} for row in self.queries()]
        kept += [{**row, "kind": "view"} for row in self.views()]
        kept.sort(key=lambda r: (r["state"] == "running", -(r["waiting_rows"] or 0), r["name"]))
        return {"tables": tables[:BUSIEST], "queries": kept[:BUSIEST]}

    def tables(self) -> list[Row]:
        """All tables, with how fast rows come and how many came late."""
        if "of tables" not in self._read:
            numbers = {row["name"]: row["value"] for row in self._rows("metrics")}
            late = {row["table_name"]: row for row in self._rows("late_rows")}
            rows = []
            for row in self._rows("tables"):
                name = row["name"]
                ever = numbers.get(f"table.{name}.sequence")
                lateness = late.get(name, {})
                picked = _picked(
                    row, "name kind row_count clock closed tail_rows unsealed_bytes update_key"
                )
                picked["rate"] = self._rates.of(f"table {name}", ever)
                picked["late_count"] = lateness.get("late_count")
                picked["policy"] = lateness.get("policy")
                rows.append(picked)
            self._read["of tables"] = rows
        return self._read["of tables"]

    def queries(self) -> list[Row]:
        """All continuous queries, with what they read and how fast they give results."""
        if "of queries" not in self._read:
            columns = (
                "name state mode tier last_instant results waiting_rows waits_for response_ms"
                " worst_response_ms state_size readers error"
            )
            self._read["of queries"] = [
                _picked(row, columns)
                | {
                    "rate": self._rates.of(f"query {row['name']}", row["results"]),
                    "reads": tables_of(row["statement"]),
                }
                for row in self._rows("queries")
            ]
        return self._read["of queries"]

    def views(self) -> list[Row]:
        """All views, with what they read."""
        columns = (
            "name kind maintenance state tier progress waiting_rows groups state_bytes"
            " spilled_bytes version fold_ms error"
        )
        return [
            _picked(row, columns) | {"reads": tables_of(row["statement"])}
            for row in self._rows("views")
        ]

    def sources(self) -> list[Row]:
        """All sources."""
        return self._rows("sources")

    def sinks(self) -> list[Row]:
        """All sinks, with how fast they write."""
        return [
            row | {"rate": self._rates.of(f"sink {row['name']}", row["row_count"])}
            for row in self._rows("sinks")
        ]

    def staleness(self) -> list[Row]:
        """How stale update queries are."""
        return self._rows("staleness")

    def errors(self) -> list[Row]:
        """Everything that has an error now."""
        found = []
        for kind, table, column in (
            ("query", "queries", "error"),
            ("view", "views", "error"),
            ("source", "sources", "last_error"),
            ("sink", "sinks", "last_error"),
            ("table", "tables", "error"),
        ):
            found += [
                {
                    "kind": kind,
                    "name": row["name"],
                    "state": row.get("state", "damaged"),  # a table has no other
                    "error": row[column],
                }
                for row in self._rows(table)
                if row[column]
            ]
        return found

    def road(self) -> Any:
        """The expressway, where the server of a demo shows one."""
        show = self._server.shows.get("road")
        return None if show is None else show()

    def object(self) -> Row | None:
        """The query or view of the page; None if it is gone."""
        for table in ("queries", "views"):
            for row in self._rows(table):
                if row["name"] == self._name:
                    ever = row.get("results")
                    rate = self._rates.of(f"query {self._name}", ever)
                    return {**row, "rate": rate, "reads": tables_of(row["statement"])}
        return None


def tables_of(statement: str | None) -> tuple[str, ...]:
    """The tables, views and queries that a statement reads."""
    try:
        parsed = scripts.read_one(statement or "").statement()
    except Error:
        return ()
    query = parsed if isinstance(parsed, Query) else getattr(parsed, "query", None)
    if not isinstance(query, Query):
        return ()
    return tuple(dict.fromkeys(str(reference.name) for reference in query.table_references))


def _picked(row: Row, names: str) -> Row:
    return {name: row[name] for name in names.split()}


def _sum(rows: list[Row], name: str) -> float:
    return round(sum(row[name] or 0 for row in rows), 2)


def _most(rows: list[Row], name: str) -> float | None:
    return max((row[name] for row in rows if row[name] is not None), default=None)
