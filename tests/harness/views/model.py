"""What every view must answer: DuckDB over all rows acknowledged since the view began.

Written from DESIGN §5 "Continuous view" and nothing else: which rows a view counts, and as of when it sees
the standard table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from tests.harness.continuous.streams import ARROW, DIM, Row
from tests.harness.views.histories import (
    Advance,
    ChangeRows,
    ChangeTable,
    Create,
    CreateAbove,
    Insert,
    Refresh,
    SetZone,
)
from tests.harness.views.queries import PLAIN, PLAIN_QUERY, Case
from tests.harness.views.tables import Source
from tests.semantics.streaming_model import Model
from tests.semantics.streaming_model import Row as Stored

MARK = 100  # an updated row's w in the standard table, and what an updated stored row gets


@dataclass
class View:
    """A view: its query, which rows it left out when it began, and the table as of then."""

    case: Case | None
    below: int | None = None  # the view that a view on a view reads
    left_out: dict[str, set[int]] = field(default_factory=dict)
    dim: list[Row] = field(default_factory=list)
    zone: str = "UTC"  # of its creation


class Oracle:
    """Tables and views, action by action."""

    def __init__(self, sources: tuple[Source, ...], dim: tuple[Row, ...]) -> None:
        self.sources = {source.name: source for source in sources}
        self.tables = {
            s.name: Model(
                watermark=s.watermark * s.unit,
                late=s.late,
                range=None if s.range is None else s.range * s.unit,
            )
            for s in sources
        }
        self.dim = list(dim)
        self.zone = "UTC"
        self.views: dict[int, View] = {}
        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'; SET threads = 1")

    def close(self) -> None:
        """Ends DuckDB."""
        self.connection.close()

    # What happens

    def act(self, action: Any) -> None:
        """One action that was not refused."""
        if isinstance(action, Insert):
            model = self.tables[action.table]
            model.insert([(tick, {"row": list(row)}) for tick, row in self._timed(action)])
        elif isinstance(action, Advance):
            self.tables[action.table].advance(action.tick)
        elif isinstance(action, ChangeTable):
            self._change_table(action)
        elif isinstance(action, ChangeRows):
            self._change_rows(action)
        elif isinstance(action, Create):
            self.views[action.view] = View(
                action.case, None, self._left_out(action), list(self.dim), self.zone
            )
        elif isinstance(action, SetZone):
            self.zone = action.zone
        elif isinstance(action, CreateAbove):
            self.views[action.view] = View(None, action.below)
        elif isinstance(action, Refresh):
            self.views[action.view].dim = list(self.dim)

    def _timed(self, action: Insert) -> list[tuple[int, Row]]:
        if not self.sources[action.table].by_arrival:
            return list(action.rows)
        first = self.tables[action.table].arrivals
        return [(first + place, row) for place, (_, row) in enumerate(action.rows)]

    def _left_out(self, action: Create) -> dict[str, set[int]]:
        """Rows from before a view began; on a streaming table only those that RANGE has hidden."""
        found = {}
        for name in action.case.tables:
            rows, source = self.tables[name].rows, self.sources[name]
            shown = {row.arrival for row in self.tables[name].visible()}
            if action.from_now or source.kind == "STREAM":
                shown = set()
            found[name] = {row.arrival for row in rows} - shown
        return found

    def _change_table(self, action: ChangeTable) -> None:
        if action.removed is not None:
            self.dim = [row for row in self.dim if row[0] != action.removed]
        if action.updated is not None:
            self.dim = [
                (*row[:2], row[2] + MARK, row[3]) if row[0] == action.updated else row
                for row in self.dim
            ]
        self.dim += action.added

    def _change_rows(self, action: ChangeRows) -> None:
        model, names = self.tables[action.table], self._names(action.table)
        found = [r for r in model.rows if r.values["row"][names.index("k")] == action.key]
        if action.delete:
            model.remove(found)
            return
        for row in found:
            row.values["row"][names.index("s")] = "changed"
            number = row.values["row"][names.index("i")]
            row.values["row"][names.index("i")] = None if number is None else number + 1

    def _names(self, table: str) -> list[str]:
        return [name for name, _ in self.sources[table].columns]

    # What may be refused

    def keeps_all(self, view: int) -> bool:
        """Whether all rows of a view's tables can be read again."""
        case = self.views[view].case
        return case is not None and all(self.sources[t].keeps_all for t in case.tables)

    def lost(self, table: str) -> bool:
        """Whether a view has counted rows of a table that RANGE has dropped."""
        for view in self.views.values():
            if view.case is not None and table in view.case.tables:
                visible = {row.arrival for row in self.tables[table].visible()}
                if any(row.arrival not in visible for row in self._counted(view, table)):
                    return True
        return False

    # Answers

    def _counted(self, view: View, table: str) -> list[Stored]:
        rows = self.tables[table].rows
        counted = [row for row in rows if row.arrival not in view.left_out[table]]
        return sorted(counted, key=lambda row: (row.t, row.arrival))

    def answer(self, number: int, pinned: bool) -> list[Row]:
        """The rows of a view; `pinned`: tables below its folds are as of creation."""
        text = self._text(number, pinned)
        self.connection.execute(f"SET TimeZone = '{self.views[self.base(number)].zone}'")
        return list(map(tuple, self.connection.execute(text).fetchall()))

    def base(self, number: int) -> int:
        """The view at the bottom of views on views."""
        below = self.views[number].below
        return number if below is None else self.base(below)

    def _text(self, number: int, pinned: bool) -> str:
        view = self.views[number]
        if view.below is None:
            return self._prepare(view, pinned)
        return f"SELECT c0, count(*) AS c1 FROM ({self._text(view.below, pinned)}) GROUP BY c0"

    def _prepare(self, view: View, pinned: bool) -> str:
        """Gives DuckDB the tables of a view; its query."""
        assert view.case is not None
        for table in view.case.tables:
            self.connection.register(table, self._table(table, self._counted(view, table)))
        for name, rows in (("dim", self.dim), ("dim_below", view.dim if pinned else self.dim)):
            columns = {
                column: pa.array([row[place] for row in rows], ARROW[type_])
                for place, (column, type_) in enumerate(DIM)
            }
            self.connection.register(name, pa.table(columns))
            plain = name.replace("dim", PLAIN)
            query = PLAIN_QUERY.replace("dim", name)
            self.connection.execute(f"CREATE OR REPLACE TEMP VIEW {plain} AS {query}")
        return view.case.duck

    def _table(self, name: str, rows: list[Stored]) -> pa.Table:
        columns = {
            column: pa.array([row.values["row"][place] for row in rows], ARROW[type_])
            for place, (column, type_) in enumerate(self.sources[name].columns)
        }
        columns["_rank"] = pa.array(range(len(rows)), pa.int64())
        return pa.table(columns)
