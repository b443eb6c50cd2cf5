"""User functions as Spark knows them: SQL text, or Python over Arrow.

A Python function is one of
- scalar: Arrow arrays in, one Arrow array of the same length out. A function annotated with plain
  Python types (`def f(x: int) -> int`) is called row by row instead.
- aggregate: a class with `init()`, `add(batch)`, `merge(other)`, `finish()`.
- table: Python values in; a table, a record batch, or rows (tuples or dicts) out, or an iterator
  of these.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from headwater.errors import BindError, DataError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = ("scalar", "aggregate", "table")
AGGREGATE_METHODS = ("init", "add", "merge", "finish")
ROW_TYPES = (int, float, str, bool, bytes)


class UserFunction(Protocol):
    """Something with a name that can be made known to a Spark session."""

    @property
    def name(self) -> str:
        """The name in SQL."""

    def register(self, session: SparkSession) -> None:
        """Makes the function known to a session."""


@dataclass(frozen=True, eq=False)
class SqlFunction:
    """A function written in SQL: `CREATE FUNCTION f(x T) RETURNS T RETURN expr`."""

    name: str
    definition: str  # the text after the name: parameters, RETURNS, RETURN

    def register(self, session: SparkSession) -> None:
        """Makes the function known to a session."""
        session.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION `{self.name}`{self.definition}")


@dataclass(frozen=True, eq=False)
class PythonFunction:
    """A function written in Python over Arrow."""

    name: str
    function: Any
    returns: str
    kind: str

    def register(self, session: SparkSession) -> None:
        """Makes the function known to a session."""
        if self.kind == "table":
            session.udtf.register(self.name, _table_function(self.function, self.returns))
        else:
            session.udf.register(self.name, self._arrow_function())

    def _arrow_function(self) -> Any:
        from pyspark.sql.functions import ArrowUDFType, arrow_udf

        if self.kind == "aggregate":
            work = _aggregate(self.function)
            return arrow_udf(work, self.returns, ArrowUDFType.GROUPED_AGG)
        work = _by_row(self.function) if called_by_row(self.function) else _by_array(self.function)
        return arrow_udf(work, self.returns, ArrowUDFType.SCALAR)


def check_function(name: str, function: Any, kind: str) -> None:
    """BindError unless the object can serve as a function of that kind."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise BindError(
            f"{name!r} cannot be a function name",
            sqlstate="42602",
            hint="letters, digits and underscores, a letter first",
        )
    if kind not in KINDS:
        raise BindError(f"there is no function kind {kind!r}", hint="kinds: " + ", ".join(KINDS))
    if not callable(function):
        raise BindError(f"function {name} is not callable", hint="give a function or a class")
    if kind == "aggregate":
        missing = [m for m in AGGREGATE_METHODS if not hasattr(function, m)]
        if missing:
            raise BindError(
                f"aggregate {name} lacks {', '.join(missing)}",
                hint="an aggregate is a class with init(), add(batch), merge(other), finish()",
            )


def called_by_row(function: Callable[..., Any]) -> bool:
    """Whether the annotations ask for plain Python values, one row at a time."""
    try:
        parameters = inspect.signature(function, eval_str=True).parameters.values()
    except (TypeError, ValueError, NameError):
        return False
    hints = [p.annotation for p in parameters]
    return bool(hints) and all(hint in ROW_TYPES for hint in hints)


def _by_array(function: Callable[..., Any]) -> Callable[..., pa.Array]:
    def work(*arrays: pa.Array) -> pa.Array:
        result = function(*arrays)
        if isinstance(result, pa.ChunkedArray):
            result = result.combine_chunks()
        if not isinstance(result, pa.Array):
            raise TypeError(
                f"a scalar function returns a pyarrow Array, this one a {type(result).__name__}; "
                "annotate it with int, str, … to have it called row by row"
            )
        return result

    return work


def _by_row(function: Callable[..., Any]) -> Callable[..., pa.Array]:
    def work(*arrays: pa.Array) -> pa.Array:
        columns = [array.to_pylist() for array in arrays]
        return pa.array([function(*row) for row in zip(*columns, strict=True)])

    return work


def _aggregate(cls: Callable[[], Any]) -> Callable[..., Any]:
    def work(*arrays: pa.Array) -> Any:
        state = cls()
        state.init()
        names = [f"c{i}" for i in range(len(arrays))]
        state.add(pa.RecordBatch.from_arrays(list(arrays), names=names))
        result = state.finish()
        return result.as_py() if isinstance(result, pa.Scalar) else result

    return work


def _table_function(function: Callable[..., Any], returns: str) -> Any:
    from pyspark.sql.functions import arrow_udtf

    ddl = table_columns(returns)

    class Work:
        def eval(self, *arrays: pa.Array) -> Iterator[pa.Table]:
            from headwater.kernel.functions import as_tables

            for row in zip(*[array.to_pylist() for array in arrays], strict=True) if arrays else [()]:
                yield from as_tables(function(*row), ddl)

    return arrow_udtf(Work, returnType=ddl)


def table_columns(returns: str) -> str:
    """`TABLE (a INT, b STRING)` or `a INT, b STRING` as the bare column list."""
    inner = re.fullmatch(r"\s*TABLE\s*\((.*)\)\s*", returns, re.IGNORECASE | re.DOTALL)
    return inner.group(1) if inner else returns


def as_tables(result: Any, columns: str) -> Iterator[pa.Table]:
    """What a table function returned, as Arrow tables with the declared columns."""
    from headwater.sql.type_parser import parse_fields

    schema = pa.schema([pa.field(name, type_) for name, type_ in parse_fields(columns)])
    if isinstance(result, (pa.Table, pa.RecordBatch)):
        table = pa.table(result) if isinstance(result, pa.Table) else pa.Table.from_batches([result])
        yield table.rename_columns(schema.names).cast(schema)
        return
    if not isinstance(result, Iterable):
        raise DataError(f"a table function returns rows or a table, this one a {type(result).__name__}")
    rows: list[Any] = []
    for item in result:
        if isinstance(item, (pa.Table, pa.RecordBatch)):
            yield from as_tables(item, columns)
        else:
            rows.append(item)
    if rows:
        yield pa.Table.from_pylist([_as_dict(row, schema.names) for row in rows], schema)


def _as_dict(row: Any, names: list[str]) -> dict[str, Any]:
    if isinstance(row, dict):
        return row
    values = row if isinstance(row, (tuple, list)) else (row,)
    return dict(zip(names, values, strict=True))
