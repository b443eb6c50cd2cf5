"""Result formats: a pyarrow table in, lines of text out.

Pure functions: the caller says how wide the screen is and whether it has colours; nothing here
looks at the terminal or writes anywhere. `csv` and `json` carry data only, without footers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater import values
from headwater.cli.grid import GridColumn, Look, grid, vertical

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 10_000
"""How many rows are converted at a time where a format can stream."""

Formatter = Callable[["pa.Table", Look], Iterator[str]]


def render(table: pa.Table, format_: str, look: Look) -> Iterator[str]:
    """The lines of a result, without line ends."""
    return FORMATS[format_](table, look)


def _table_lines(table: pa.Table, look: Look) -> Iterator[str]:
    columns = _columns(table)
    if not columns:
        return iter(())
    return grid(columns, look)


def _vertical_lines(table: pa.Table, look: Look) -> Iterator[str]:
    return vertical(_columns(table), look)


def _columns(table: pa.Table) -> list[GridColumn]:
    return [_column(table.schema.field(i), table.column(i)) for i in range(table.num_columns)]


def _column(field: pa.Field[Any], column: pa.ChunkedArray[Any]) -> GridColumn:
    convert = values.text_of(field.type)
    cells = [
        None if value is None else values.safe(convert(value))
        for value in values.python_values(column)
    ]
    return GridColumn(
        values.safe(field.name).replace("\n", "\\n"),
        cells,
        right=values.is_number(field.type),
        cut=values.may_be_cut(field.type),
    )


def _csv_lines(table: pa.Table, _look: Look) -> Iterator[str]:
    yield ",".join(_csv_field(name) for name in table.column_names)
    converters = [values.text_of(type_, machine=True) for type_ in table.schema.types]
    for row in _rows(table):
        yield ",".join(
            "" if value is None else _csv_field(convert(value))
            for value, convert in zip(row, converters, strict=True)
        )


def _csv_field(text: str) -> str:
    """RFC 4180; the empty text is quoted, so that it differs from NULL."""
    plain = text and text == text.strip() and not any(c in text for c in ',"\r\n')
    return text if plain else '"' + text.replace('"', '""') + '"'


def _json_lines(table: pa.Table, _look: Look) -> Iterator[str]:
    names = distinct(table.column_names)
    converters = [values.json_of(type_) for type_ in table.schema.types]
    for row in _rows(table):
        cells = zip(names, converters, row, strict=True)
        record = {name: convert(value) for name, convert, value in cells}
        yield json.dumps(record, ensure_ascii=False)


def distinct(names: list[str]) -> list[str]:
    """The names with `_2`, `_3`, … behind those that came before."""
    taken: set[str] = set()
    kept = []
    for name in names:
        number, fresh = 1, name
        while fresh in taken or (number > 1 and fresh in names):
            number += 1
            fresh = f"{name}_{number}"
        taken.add(fresh)
        kept.append(fresh)
    return kept


def _rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    if table.num_columns == 0:
        yield from ((),) * table.num_rows
        return
    for start in range(0, table.num_rows, BATCH_ROWS):
        batch = table.slice(start, BATCH_ROWS)
        columns = [values.python_values(column) for column in batch.columns]
        yield from zip(*columns, strict=True)


FORMATS: dict[str, Formatter] = {
    "table": _table_lines,
    "csv": _csv_lines,
    "json": _json_lines,
    "vertical": _vertical_lines,
}
DATA_ONLY = frozenset({"csv", "json"})
"""Formats that programs read: nothing but data may be written beside them."""


@dataclass(frozen=True)
class Footer:
    """What is said below a result."""

    kind: str
    has_rows: bool
    row_count: int | None
    shown: int | None = None  # fewer than row_count if the screen's limit cut the rest
    seconds: float | None = None

    def text(self) -> str:
        """`(3 rows, 12 ms)` below rows, `INSERT 3 (12 ms)` otherwise."""
        time = [] if self.seconds is None else [duration(self.seconds)]
        if not self.has_rows:
            tag = self.kind if self.row_count is None else f"{self.kind} {self.row_count}"
            return f"{tag} ({time[0]})" if time else tag
        return f"({', '.join([*self._counted(), *time])})"

    def _counted(self) -> list[str]:
        count = self.row_count or 0
        rows = f"{count} row{'' if count == 1 else 's'}"
        if self.shown is None or self.shown >= count:
            return [rows]
        return [f"the first {self.shown} of {rows}; \\rows 0 shows all"]


def duration(seconds: float) -> str:
    """A time span in the unit that suits it."""
    if seconds < 0.0995:
        return f"{seconds * 1000:.1f} ms" if seconds < 0.00995 else f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
