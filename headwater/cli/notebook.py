"""Rows as notebooks show them: a small table of HTML."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

import pyarrow as pa

from headwater.sql.types import name_of
from headwater.values import is_number, python_values, text_of


def html(table: pa.Table, limit: int) -> str:
    """The first rows, under the names and types of their columns."""
    heads = "".join(
        f"<th>{escape(field.name)}<br><small>{escape(name_of(field.type))}</small></th>"
        for field in table.schema
    )
    columns = [_cells(column) for column in table.slice(0, limit).columns]
    lines = "".join(f"<tr>{''.join(cells)}</tr>" for cells in zip(*columns, strict=True))
    more = table.num_rows - limit
    below = f"<small>… {more} more rows</small>" if more > 0 else ""
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>{below}"


def _cells(column: pa.ChunkedArray[Any]) -> list[str]:
    text, side = text_of(column.type), "right" if is_number(column.type) else "left"
    return [_cell(value, text, side) for value in python_values(column)]


def _cell(value: Any, text: Callable[[Any], str], side: str) -> str:
    if value is None:
        return '<td style="opacity: 0.5">NULL</td>'
    return f'<td style="text-align: {side}">{escape(text(value))}</td>'
