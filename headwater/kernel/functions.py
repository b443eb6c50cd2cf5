"""User functions as Spark knows them: SQL text, or Python over Arrow.

A Python function is one of
- scalar: Arrow arrays in, one Arrow array of the same length out. A function annotated with plain
  Python types (`def f(x: int) -> int`) is called row by row instead.
- aggregate: a class with `init()`, `add(batch)`, `merge(other)`, `finish()`.
- table: Python values in; a table, a record batch, or rows (tuples or dicts) out, or an iterator
  of these.

A scalar function with state (`engine/stateful`) is not Spark's: there it only says what it needs.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from headwater.errors import BindError, DataError
from headwater.plan.folds import Life

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
    returns: str
    identifiers: frozenset[str] = frozenset()  # names in the body that may be tables
    kind: str = "scalar"

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
    state: Life | None = None  # how long a scalar function's state lives

    def register(self, session: SparkSession) -> None:
        """Makes the function known to a session."""
        with warnings.catch_warnings():
            # Spark prefers annotations to say of which kind a function is; users' have none.
            warnings.simplefilter("ignore", UserWarning)
            if self.kind == "table":
                session.udtf.register(self.name, _table_function(self.function, self.returns))
            else:
                session.udf.register(self.name, self._arrow_function())

    def _arrow_function(self) -> Any:
        from pyspark.sql.functions import ArrowUDFType, arrow_udf  # type: ignore[attr-defined]

        if self.kind == "aggregate":
            work = _aggregate(self.function)
            return arrow_udf(work, self.returns, ArrowUDFType.GROUPED_AGG)
        if self.state is not None:
            return arrow_udf(_refusal(self.name), self.returns, ArrowUDFType.SCALAR)
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


def _refusal(name: str) -> Callable[..., Any]:
    def work(*_arrays: pa.Array) -> Any:
        raise TypeError(f"{name} keeps state and can only be called over a windowed or cut table")

    return work


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
    # A plain UDTF: those over Arrow cannot stand on the right of a lateral join.
    from pyspark.sql.functions import udtf

    ddl = table_columns(returns)

    class Work:
        def eval(self, *values: Any) -> Iterator[tuple[Any, ...]]:
            from headwater.kernel.functions import as_rows

            yield from as_rows(function(*values))

    return udtf(Work, returnType=ddl, useArrow=False)


def table_columns(returns: str) -> str:
    """`TABLE (a INT, b STRING)` or `a INT, b STRING` as the bare column list."""
    inner = re.fullmatch(r"\s*TABLE\s*\((.*)\)\s*", returns, re.IGNORECASE | re.DOTALL)
    return inner.group(1) if inner else returns


def as_rows(result: Any) -> Iterator[tuple[Any, ...]]:
    """What a table function returned, as rows."""
    if isinstance(result, (pa.Table, pa.RecordBatch)):
        columns = [column.to_pylist() for column in result.columns]
        yield from zip(*columns, strict=True)
        return
    if not isinstance(result, Iterable):
        raise DataError(
            f"a table function returns rows or a table, this one a {type(result).__name__}"
        )
    for item in result:
        if isinstance(item, (pa.Table, pa.RecordBatch)):
            yield from as_rows(item)
        elif isinstance(item, dict):
            yield tuple(item.values())
        else:
            yield tuple(item) if isinstance(item, (tuple, list)) else (item,)
