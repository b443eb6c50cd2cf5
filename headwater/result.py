"""What a statement returns: rows, or a tag and a count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd

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

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._table.schema

    def arrow(self) -> pa.Table:
        """The rows as a pyarrow Table."""
        return self._table

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows as tuples of Python values."""
        columns = [column.to_pylist() for column in self._table.columns]
        return list(zip(*columns, strict=True)) if columns else []

    def pandas(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame."""
        return self._table.to_pandas()

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
