"""`python:NAME`: rows from a table function that the user has registered (EQ9).

A function with a parameter `start` is told how many rows it has delivered and goes on from there.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from headwater.errors import DataError
from headwater.kernel.functions import PythonFunction, table_columns
from headwater.sources.pulled import PulledRunner
from headwater.sources.runner import POLL_S, Feed, SourceSurroundings
from headwater.sql.type_parser import parse_fields

START = "start"


def takes_start(function: Any) -> bool:
    """Whether the function wants to know how many rows it has delivered."""
    return START in inspect.signature(function).parameters


class PythonRunner(PulledRunner):
    """One run of a Python source."""

    def __init__(self, feed: Feed, around: SourceSurroundings) -> None:
        super().__init__(feed, around)
        self._names: list[str] = []

    def rows(self) -> Iterator[Any] | None:
        """What the function gives, as soon as it is registered."""
        function = self._function()
        if function is None:
            return None
        self._names = [name for name, _ in parse_fields(table_columns(function.returns))]
        work = function.function
        result = work(**{START: self.delivered_rows}) if takes_start(work) else work()
        return iter([result] if isinstance(result, (pa.Table, pa.RecordBatch)) else result)

    def _function(self) -> PythonFunction | None:
        """The function, as soon as the program has registered it; None if the run is stopped."""
        name = self.feed.address.rest.lower()
        while True:
            found = self.around.functions.get(name)
            if isinstance(found, PythonFunction) and found.kind == "table":
                self.error = None
                return found
            self.error = DataError(
                f"the source waits for function {name}",
                hint=f'db.create_function("{name}", …, kind="table") lets it go on',
            )
            self.watch_idle()
            if self.stopping.wait(POLL_S):
                return None

    def named(self, row: Any) -> dict[str, Any]:
        """A row as the function gave it, by column name."""
        if isinstance(row, dict):
            return row
        values = tuple(row) if isinstance(row, (tuple, list)) else (row,)
        if len(values) != len(self._names):
            raise DataError(
                f"a row has {len(values)} values, the function returns {len(self._names)} columns",
                sqlstate="42601",
                hint="columns: " + ", ".join(self._names),
            )
        return dict(zip(self._names, values, strict=True))
