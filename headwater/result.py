"""What a statement returns: rows, or a tag and a count."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.errors import NotSupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    import polars as pl

SHOWN_ROWS = 40


class Result:
    """The rows of a query, or what a statement did.

    `kind` is a tag such as "SELECT" or "CREATE TABLE"; `row_count` the rows returned or changed;
    `notice` what is worth knowing beside it.
    """

    def __init__(
        self,
        kind: str,
        table: pa.Table | None = None,
        row_count: int | None = None,
        notice: str | None = None,
    ) -> None:
        self.kind, self.notice = kind, notice
        self.has_rows = table is not None
        self._table = table if table is not None else pa.table({})
        self.row_count = self._table.num_rows if table is not None else row_count
        self.framed: Callable[[pa.Table], Any] | None = None  # of who has a Spark at hand
        self._fetched = 0  # rows that `fetchone` and `fetchmany` have given

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._table.schema

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._table.schema.names

    def arrow(self) -> pa.Table:
        """The rows as a pyarrow Table."""
        return self._table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for every library that takes Arrow's stream: polars, DuckDB, pandas, …"""
        return self._table.__arrow_c_stream__(requested_schema)

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows as tuples of Python values."""
        return _tuples(self._table)

    def pandas(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame."""
        return self._table.to_pandas()

    df = pandas

    def polars(self) -> pl.DataFrame:
        """The rows as a polars DataFrame."""
        try:
            import polars
        except ImportError as error:
            raise NotSupportedError("polars is not installed", hint="pip install polars") from error
        return polars.DataFrame(self._table)

    def spark(self) -> Any:
        """The rows as a DataFrame of the program's Spark session; `Database.spark` is that one."""
        if not self.has_rows or self.framed is None:
            raise NotSupportedError(
                f"{self.kind} has no rows for Spark", hint="results of db.sql with rows have some"
            )
        return self.framed(self._table)

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None after the last."""
        found = self.fetchmany(1)
        return found[0] if found else None

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """The next rows, at most `size`."""
        found = _tuples(self._table.slice(self._fetched, size))
        self._fetched += len(found)
        return found

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows that are left."""
        return self.fetchmany(self._table.num_rows - self._fetched)

    def show(self, limit: int = SHOWN_ROWS) -> None:
        """Prints the rows, at most `limit` of them."""
        from headwater.cli.grid import Look
        from headwater.cli.output import render

        for line in render(self._table.slice(0, limit), "table", Look()):
            print(line)
        if self._table.num_rows > limit:
            print(f"… {self._table.num_rows - limit} more rows")

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self.rows())

    def __len__(self) -> int:
        return self._table.num_rows

    def __repr__(self) -> str:
        if not self.has_rows:
            count = "" if self.row_count is None else f" {self.row_count}"
            return f"<Result {self.kind}{count}>"
        return f"<Result {self.row_count} rows: {', '.join(self.schema.names)}>"

    def _repr_html_(self) -> str:
        """The first rows as a table, for notebooks."""
        from headwater.cli.notebook import html

        if not self.has_rows:
            return f"<code>{escape(repr(self))}</code>"
        return html(self._table, SHOWN_ROWS)


def _tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else []
