"""Merges spilled group states, partition by partition: in this process, or one Spark task each (CV10).

Owns: the job over all partitions.
Both ways run the same function over the same fold code. Must never: decide what is merged, or remove a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headwater.errors import DataError, StorageError
from headwater.fold.aggregates import Aggregate
from headwater.fold.aggregation import Aggregation
from headwater.fold.spill import StateColumns
from headwater.kernel.kernel import Kernel, Work
from headwater.kernel.run_parts import WrittenPart, read_part, write_part
from headwater.sql.types import canonical

KEPT, RESULT, FAILED = "kept", "result", "failed"
OUTCOME = pa.schema(
    [
        pa.field("part", pa.int32()),
        pa.field("what", pa.string()),
        pa.field("rows", pa.int64()),
        pa.field("size", pa.int64()),
        pa.field("error", pa.string()),
    ]
)


@dataclass(frozen=True)
class StateShape:
    """What the states of one pipeline have in common; it travels to Spark's workers."""

    keys: tuple[pa.Field, ...]
    aggregates: tuple[Aggregate, ...]
    parts: tuple[str, ...]
    distinct: tuple[str, ...]

    def columns(self) -> StateColumns:
        """The columns of such states."""
        return StateColumns(Aggregation(self.keys, self.aggregates), self.parts, self.distinct)

    @property
    def result(self) -> pa.Schema:
        """The schema of results as Spark reads them."""
        schema = Aggregation(self.keys, self.aggregates).schema
        return pa.schema([pa.field(field.name, canonical(field.type)) for field in schema])


@dataclass(frozen=True)
class MergeJob:
    """What is merged, by partition, and where it is written."""

    shape: StateShape
    sources: tuple[tuple[str, ...], ...]  # files, the oldest first
    kept: str | None = None  # where the merged states go: `…-7.parquet`
    rest: tuple[str | None, ...] = ()  # files that go into the result only
    result: str | None = None  # where results go, from Spark's tasks

    @property
    def parts(self) -> list[int]:
        """The partitions that have files."""
        there = {part for part, files in enumerate(self.sources) if files}
        return sorted(there | {part for part, file in enumerate(self.rest) if file is not None})


@dataclass(frozen=True)
class Merged:
    """What a job has made."""

    kept: tuple[WrittenPart, ...]
    results: tuple[WrittenPart, ...] = ()


def merge_here(job: MergeJob) -> Merged:
    """Merges and keeps every partition, in this process."""
    columns = job.shape.columns()
    kept = [_merged(job, columns, part)[1] for part in job.parts]
    return Merged(tuple(one for one in kept if one is not None))


def unite_here(job: MergeJob, rest: Mapping[int, pa.Table]) -> tuple[Merged, pa.Table]:
    """Merges every partition in this process and gives the result; `rest` goes into that only."""
    columns, kept = job.shape.columns(), []
    found = [columns.aggregation.schema.empty_table()]
    for part in sorted({*job.parts, *rest}):
        tables, written = _merged(job, columns, part)
        kept += [] if written is None else [written]
        found.append(columns.result([*tables, *([rest[part]] if part in rest else [])]))
    return Merged(tuple(kept)), pa.concat_tables(found)


def merge_on_spark(kernel: Kernel, job: MergeJob) -> Merged:
    """The same by a Spark job with one task per partition; results are written."""
    count = len(job.parts)
    work = Work(f"SELECT id FROM range(0, {count}, 1, {count})")
    rows = kernel.map_batches(work, _Task(job), OUTCOME).to_pylist()
    found: dict[str, list[WrittenPart]] = {KEPT: [], RESULT: []}
    for row in sorted(rows, key=lambda row: int(row["part"])):
        if row["what"] == FAILED:
            raise _retold(row["error"])
        found[row["what"]].append(WrittenPart(row["part"], row["rows"], row["size"]))
    return Merged(tuple(found[KEPT]), tuple(found[RESULT]))


@dataclass(frozen=True)
class _Task:
    """What a worker of Spark does: the partitions whose places it is given."""

    job: MergeJob

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = self.job.parts
        for batch in batches:
            rows = [row for place in batch.column(0).to_pylist() for row in self._one(parts[place])]
            yield pa.RecordBatch.from_pylist(rows, schema=OUTCOME)

    def _one(self, part: int) -> list[dict[str, Any]]:
        try:
            made = self._merge(part)
        except (DataError, StorageError) as error:
            return [{"part": part, "what": FAILED, "error": _told(error)}]
        return [{"part": part, "what": w, "rows": f.rows, "size": f.size} for w, f in made]

    def _merge(self, part: int) -> list[tuple[str, WrittenPart]]:
        job, columns = self.job, self.job.shape.columns()
        tables, kept = _merged(job, columns, part)
        made = [] if kept is None else [(KEPT, kept)]
        if job.result is not None:
            rest = job.rest[part] if job.rest else None
            if rest is not None:
                tables = [*tables, read_part(rest, columns.names)]
            rows = columns.result(tables).cast(job.shape.result)
            made.append((RESULT, write_part(rows, job.result, part)))
        return made


def _merged(
    job: MergeJob, columns: StateColumns, part: int
) -> tuple[list[pa.Table], WrittenPart | None]:
    """The tables of one partition; merged into one that is written, if that is to be kept."""
    tables = [read_part(path, columns.names) for path in job.sources[part]]
    if job.kept is None or not tables:
        return tables, None
    table = columns.merged(tables)
    return [table], write_part(table, job.kept, part)


def _told(error: DataError | StorageError) -> str:
    """An error on its way out of a worker."""
    kind = "data" if isinstance(error, DataError) else "storage"
    return json.dumps([kind, error.message, error.sqlstate, error.detail, error.hint])


def _retold(text: str) -> DataError | StorageError:
    kind, message, sqlstate, detail, hint = json.loads(text)
    made = DataError if kind == "data" else StorageError
    return made(message, sqlstate=sqlstate, detail=detail, hint=hint)
