"""`python:NAME`: rows from a table function that the user has registered (EQ9).

A function with a parameter `start` is told how many rows it has delivered and goes on from there. Its other
parameters are options of the source.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from headwater.errors import BindError, DataError, SettingError
from headwater.kernel.functions import PythonFunction, table_columns
from headwater.sources.pulled import PulledRunner
from headwater.sources.runner import POLL_S, SourceFeed, SourceSurroundings
from headwater.sql.type_parser import parse_fields

START = "start"


def takes_start(function: Any) -> bool:
    """Whether the function wants to know how many rows it has delivered."""
    return START in inspect.signature(function).parameters


def arguments_of(name: str, function: Any, values: Sequence[object]) -> dict[str, object]:
    """Values by the names of a function's parameters; BindError if they do not fit."""
    try:
        given = inspect.signature(function).bind_partial(*values).arguments
    except TypeError as error:
        raise BindError(f"function {name}: {error}", sqlstate="42883") from None
    check_arguments(name, function, given)
    return given


def check_arguments(name: str, function: Any, given: Mapping[str, object]) -> None:
    """BindError or SettingError unless a function can be called with these arguments."""
    parameters = inspect.signature(function).parameters
    named = {
        n for n, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    }
    any_name = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for option in given:
        if option == START or not (any_name or option in named):
            mine = ", ".join(sorted(named - {START}))
            raise SettingError(
                f"function {name} has no parameter {option} that can be given",
                hint=f"parameters: {mine}" if mine else "it takes no arguments",
            )
    needed = [n for n in named - {START} if parameters[n].default is inspect.Parameter.empty]
    missing = sorted(set(needed) - given.keys())
    if missing:
        raise BindError(
            f"function {name} needs {', '.join(missing)}",
            sqlstate="42883",
            hint=f"WITH ({missing[0]} = …), or STREAM({name}(…), 'CUT …')",
        )


class PythonRunner(PulledRunner):
    """One run of a Python source."""

    def __init__(self, feed: SourceFeed, around: SourceSurroundings) -> None:
        super().__init__(feed, around)
        self._names: list[str] = []

    def rows(self) -> Iterator[Any] | None:
        """What the function gives, as soon as it is registered."""
        function = self._function()
        if function is None:
            return None
        self._names = [name for name, _ in parse_fields(table_columns(function.returns))]
        work = function.function
        arguments = dict(self.feed.options.arguments)
        if takes_start(work):
            arguments[START] = self.delivered_rows
        result = work(**arguments)
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
