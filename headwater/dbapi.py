"""Python's database interface, version 2.0 (PEP 249), for tools that know nothing else.

    from headwater import dbapi

    with dbapi.connect("./data") as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT place FROM sensors WHERE id = ?", [1])
        print(cursor.fetchone())

Every statement is durable when it returns: `commit` has nothing to do, and there is no `rollback`. Errors are
of the kinds that PEP 249 names; the error of Headwater, with its place and hint, is their cause.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater import database, errors
from headwater.result import Result
from headwater.sql.parameters import Parameters
from headwater.values import is_number

apilevel = "2.0"
threadsafety = 2  # threads may share the module and connections
paramstyle = "qmark"  # $1, $2, … and $name are understood as well


class _Kind:
    """Compares equal to the types of one kind that stand in `Cursor.description`."""

    def __init__(self, name: str, *checks: Callable[[pa.DataType], bool]) -> None:
        self.name, self.checks = name, checks

    def __eq__(self, other: object) -> bool:
        if isinstance(other, pa.DataType):
            return any(check(other) for check in self.checks)
        return self is other

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name


STRING = _Kind("STRING", pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
BINARY = _Kind("BINARY", pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
NUMBER = _Kind("NUMBER", is_number)
DATETIME = _Kind("DATETIME", pa.types.is_timestamp, pa.types.is_date, pa.types.is_time)
ROWID = _Kind("ROWID")

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """The day of a time in seconds since 1970."""
    return TimestampFromTicks(ticks).date()


def TimeFromTicks(ticks: float) -> datetime.time:
    """The time of day of a time in seconds since 1970."""
    return TimestampFromTicks(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """A time in seconds since 1970."""
    return datetime.datetime.fromtimestamp(ticks, datetime.UTC)


class Warning(Exception):
    """Never raised; PEP 249 wants it."""


class Error(Exception):
    """The root of all errors here; `sqlstate` and `hint` are those of its cause."""

    def __init__(self, message: str, sqlstate: str = "XX000", hint: str | None = None) -> None:
        super().__init__(message)
        self.sqlstate, self.hint = sqlstate, hint


class InterfaceError(Error):
    """The interface was used in a wrong way."""


class DatabaseError(Error):
    """The root of errors that the database tells."""


class DataError(DatabaseError):
    """A value is wrong: out of range, of another type, divided by zero."""


class OperationalError(DatabaseError):
    """The disk, Spark, a bound, or somebody who cancelled."""


class IntegrityError(DatabaseError):
    """A NULL where there may be none, and the like."""


class InternalError(DatabaseError):
    """A fault of Headwater itself."""


class ProgrammingError(DatabaseError):
    """The statement is wrong, or the caller may not run it."""


class NotSupportedError(DatabaseError):
    """Headwater does not do that."""


_KINDS: dict[type[errors.Error], type[DatabaseError]] = {
    errors.SqlSyntaxError: ProgrammingError,
    errors.BindError: ProgrammingError,
    errors.AccessError: ProgrammingError,
    errors.SettingError: ProgrammingError,
    errors.ClosedError: ProgrammingError,
    errors.NotSupportedError: NotSupportedError,
    errors.DataError: DataError,
    errors.StorageError: OperationalError,
    errors.OverloadError: OperationalError,
    errors.KernelError: OperationalError,
    errors.CancelledError: OperationalError,
}
_CONSTRAINTS = "23"  # SQLSTATEs of integrity constraints begin so


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Errors of Headwater leave as errors of this module."""
    try:
        yield
    except errors.Error as error:
        kinds = (_KINDS[kind] for kind in type(error).__mro__ if kind in _KINDS)
        kind = next(kinds, InternalError)
        if error.sqlstate.startswith(_CONSTRAINTS):
            kind = IntegrityError
        raise kind(str(error), error.sqlstate, error.hint) from error


class Cursor:
    """Runs statements; gives the rows of the last one."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self._result: Result | None = None
        self._closed = False

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        """Name, type and five times None for each column; None without rows."""
        result = self._result
        if result is None or not result.has_rows:
            return None
        return [(f.name, f.type, None, None, None, None, f.nullable) for f in result.schema]

    @property
    def rowcount(self) -> int:
        """Rows of the last statement, or changed by it; -1 if that is not known."""
        count = None if self._result is None else self._result.row_count
        return -1 if count is None else count

    def execute(self, operation: str, parameters: Parameters | None = None) -> Cursor:
        """Runs a statement, with values for its parameters."""
        self._check()
        with _told():
            self._result = self.connection.database.sql(operation, parameters)
        return self

    def executemany(self, operation: str, seq_of_parameters: Sequence[Parameters]) -> Cursor:
        """Runs a statement once for each set of values; `Database.insert` adds many rows faster."""
        count = 0
        for parameters in seq_of_parameters:
            self.execute(operation, parameters)
            count += max(self.rowcount, 0)
        self._result = Result("MANY", row_count=count)
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None after the last."""
        return self._rows().fetchone()

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next rows, at most `size`, else `arraysize`."""
        return self._rows().fetchmany(self.arraysize if size is None else size)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows that are left."""
        return self._rows().fetchall()

    def close(self) -> None:
        """Lets go of its rows."""
        self._closed, self._result = True, None

    def setinputsizes(self, sizes: object) -> None:
        """Nothing to do."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Nothing to do."""

    def _check(self) -> None:
        if self._closed or self.connection.closed:
            raise InterfaceError("the cursor is closed")

    def _rows(self) -> Result:
        self._check()
        if self._result is None or not self._result.has_rows:
            raise InterfaceError("the last statement gave no rows")
        return self._result

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.fetchone, None)

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Connection:
    """An open database behind this interface."""

    def __init__(self, opened: database.Database) -> None:
        self.database = opened
        self.closed = False

    def cursor(self) -> Cursor:
        """What runs statements."""
        if self.closed:
            raise InterfaceError("the connection is closed")
        return Cursor(self)

    def commit(self) -> None:
        """Nothing to do: every statement is durable when it returns."""

    def rollback(self) -> None:
        """NotSupportedError: what a statement did stays."""
        raise NotSupportedError("a statement is durable when it returns", "0A000")

    def close(self) -> None:
        """Closes the database."""
        self.closed = True
        with _told():
            self.database.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def connect(path: str | Path = ":memory:", **options: Any) -> Connection:
    """Opens a data folder, with the options of `headwater.connect`."""
    with _told():
        return Connection(database.connect(path, **options))
