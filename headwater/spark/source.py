"""`format("headwater")`: Spark's Python data source for a database behind `headwater serve`.

Reads a table, view or select; a query's results as a stream, whose offsets are their tokens; writes into a
table, a streaming query's batches exactly once by (query, number). Runs in processes that Spark starts, so
all that it knows are its options.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    InputPartition,
    SimpleDataSourceStreamReader,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from headwater.errors import DataError, NotSupportedError, SettingError
from headwater.spark.client import Client, ServedResult
from headwater.sql.types import name_of, quoted

EARLIEST = "earliest"
TIME = "_t"  # the column that says of which instant a result is
MOST_ROWS = 100_000  # of results in one micro-batch
QUERY_ID = "sql.streaming.queryId"  # what Spark calls a streaming query in its tasks


class HeadwaterSource(DataSource):
    """A database behind `headwater serve`; options say where it is and what is read or written."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "headwater"

    @property
    def client(self) -> Client:
        """Of the server."""
        return Client.of(self.options)

    @property
    def table(self) -> str:
        """What the user reads or writes; `load("name")` and `save("name")` say it, too."""
        found = self.options.get("table") or self.options.get("path")
        if not found:
            raise SettingError("there is no table", hint='option("table", "name"), or load("name")')
        return str(found)

    @property
    def text(self) -> str:
        """The query that reads it."""
        if self.options.get("query"):
            return str(self.options["query"])
        where = self.options.get("where")
        return f"SELECT * FROM {self.relation}" + (f" WHERE {where}" if where else "")

    @property
    def relation(self) -> str:
        """The table as SQL."""
        return ".".join(map(quoted, self.table.split(".")))

    @property
    def emit(self) -> str | None:
        """What of each result a stream has, if that was said."""
        found = self.options.get("emit")
        return None if found is None else str(found).lower()

    @cached_property
    def columns(self) -> pa.Schema:
        """The columns that are read."""
        if self.emit is not None:
            return self.client.query(f"SUBSCRIBE {self.relation} EMIT {self.emit.upper()}").schema
        return self.client.query(f"SELECT * FROM ({self.text}) AS asked LIMIT 0").schema

    def schema(self) -> str:
        """The columns, as Spark's text."""
        return ", ".join(f"`{f.name.replace('`', '``')}` {name_of(f.type)}" for f in self.columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads once."""
        return QueryReader(self.client, self.text, schema)

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:  # noqa: ARG002
        """Reads results as they come."""
        if self.emit is None and TIME not in self.columns.names:
            raise SettingError(
                f"{self.table} has no results of its own",
                hint='option("emit", "changes") is what changes in a table or view',
            )
        after = self.options.get("after", EARLIEST)
        return ResultReader(self.client, self.table, self.emit or "all", after, self.columns)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002
        """Adds the rows of a frame."""
        _check_mode(overwrite)
        return TableWriter(self.client, self.table, self.options.get("batch_id"))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: ARG002
        """Adds the rows of each micro-batch."""
        _check_mode(overwrite)
        return StreamTableWriter(self.client, self.table, self.options.get("stream"))


def _check_mode(overwrite: bool) -> None:
    if overwrite:
        raise NotSupportedError(
            "rows are added, not put in the place of others", hint='mode("append")'
        )


class QueryReader(DataSourceReader):
    """The rows of one query, in one partition: they are of one instant."""

    def __init__(self, client: Client, text: str, schema: StructType) -> None:
        self._client, self._text, self._schema = client, text, schema

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """The rows as they come from the server."""
        wanted = to_arrow_schema(self._schema, timezone="UTC")
        for batch in self._client.query(self._text):
            table = pa.Table.from_batches([batch]).select(wanted.names).cast(wanted)
            yield from table.combine_chunks().to_batches()


class ResultReader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
    """The results of a query, a view or a table; an offset is the token of the last one.

    It says the first one's too: "earliest" is another place once results were dropped.
    """

    def __init__(
        self, client: Client, query: str, emit: str, after: str, schema: pa.Schema
    ) -> None:
        self._client, self._query, self._emit = client, query, emit
        self._after, self._schema = after, schema
        self._is_once = self._is_done = False

    def prepareForTriggerAvailableNow(self) -> None:
        """What comes after a read has found no more is for another run."""
        self._is_once = True

    def initialOffset(self) -> dict[str, str]:
        """Where a new stream begins."""
        return {"token": self._after}

    def read(self, start: dict[str, str]) -> tuple[Iterator[tuple[Any, ...]], dict[str, str]]:
        """The results that are there now, up to about so many rows, and the last one's token."""
        rows: list[tuple[Any, ...]] = []
        tokens: list[str] = []
        for result in () if self._is_done else self._after_token(start["token"]):
            rows += self._rows(result)
            tokens.append(result.token)
            if len(rows) >= MOST_ROWS:
                break
        else:
            self._is_done = self._is_once
        return iter(rows), {"first": tokens[0], "token": tokens[-1]} if tokens else start

    def readBetweenOffsets(
        self, start: dict[str, str], end: dict[str, str]
    ) -> Iterator[tuple[Any, ...]]:
        """The same results again."""
        if start == end:
            return
        results = self._after_token(start["token"])
        for number, result in enumerate(results):
            if not number and result.token != end["first"]:
                break
            yield from self._rows(result)
            if result.token == end["token"]:
                return
        raise DataError(
            "results that were read before are not there any more",
            sqlstate="22023",
            hint="results_kept says how many are; with another checkpoint the stream begins anew",
        )

    def _after_token(self, token: str) -> Iterator[ServedResult]:
        return self._client.results(self._query, token, self._emit)

    def _rows(self, result: ServedResult) -> list[tuple[Any, ...]]:
        table = result.table(self._schema)
        return list(zip(*[column.to_pylist() for column in table.columns], strict=True))


@dataclass
class WrittenRows(WriterCommitMessage):
    """The rows of one partition on their way to the commit, as an Arrow stream, and whose they are."""

    data: bytes
    query_id: str | None

    @classmethod
    def of(cls, batches: Iterator[pa.RecordBatch]) -> WrittenRows:
        """What a task was given."""
        context = TaskContext.get()
        query_id = None if context is None else context.getLocalProperty(QUERY_ID)
        sink, writer = pa.BufferOutputStream(), None
        for batch in batches:
            writer = writer or pa.ipc.new_stream(sink, batch.schema)
            writer.write_batch(batch)
        if writer is not None:
            writer.close()
        return cls(sink.getvalue().to_pybytes(), query_id)

    def table(self) -> pa.Table | None:
        """The rows; None if there were none."""
        return pa.ipc.open_stream(self.data).read_all() if self.data else None


def _joined(messages: list[Any]) -> pa.Table | None:
    """The rows of all partitions: one batch, so that it is added whole or not at all."""
    tables = [found for m in messages if m is not None and (found := m.table()) is not None]
    return pa.concat_tables(tables) if tables else None


class TableWriter(DataSourceArrowWriter):
    """The rows of a frame."""

    def __init__(self, client: Client, table: str, batch_id: str | None) -> None:
        self._client, self._table, self._batch_id = client, table, batch_id

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenRows:
        """Keeps a partition's rows for the commit: a task may run twice."""
        return WrittenRows.of(iterator)

    def commit(self, messages: list[Any]) -> None:
        """Adds them."""
        rows = _joined(messages)
        if rows is not None:
            self._client.insert(self._table, rows, self._batch_id)


class StreamTableWriter(DataSourceStreamArrowWriter):
    """The rows of each micro-batch, once: its id is made of the streaming query's and its number."""

    def __init__(self, client: Client, table: str, stream: str | None) -> None:
        self._client, self._table, self._stream = client, table, stream

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenRows:
        """Keeps a partition's rows for the commit: a micro-batch may be cut otherwise when it is repeated."""
        return WrittenRows.of(iterator)

    def commit(self, messages: list[Any], batchId: int) -> None:
        """Adds them, unless they are there."""
        rows = _joined(messages)
        if rows is None:
            return
        known = self._stream or next((m.query_id for m in messages if m is not None), None)
        if not known:
            raise SettingError(
                "the stream has no name", hint='option("stream", "a name of its own")'
            )
        self._client.insert(self._table, rows, f"{known}/{batchId}")
