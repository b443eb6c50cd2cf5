"""What Spark reads: Parquet files with a schema, under a name.

Rows in memory are staged as one uncompressed Parquet file, in shared memory for a local master:
`createDataFrame` with data was measured to be twenty times slower. Rows that nobody needs soon are set
aside: in a mapped file that has no name any more, so that their pages can leave memory.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.kernel.cache import remove_scratch, scratch_folder
from headwater.settings import Live, current
from headwater.sql.types import canonical, name_of, quoted
from headwater.storage.disk import storage_error
from headwater.storage.footer import check_footers
from headwater.storage.modes import make_folder, make_private

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHARED_MEMORY = Path("/dev/shm")
ASIDE_ROWS = 32_768  # in one batch of a file

_ROW_ADDRESS = ("_metadata.file_name AS _file", "_metadata.row_index AS _row")
_NO_ADDRESS = ("'' AS _file", "0L AS _row")
# Of a frame that leaves our hands: whatever the program has set, a file that is gone is an error.
STRICT = {
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "mergeSchema": "false",
    "datetimeRebaseMode": "CORRECTED",
}


@dataclass(frozen=True)
class Relation:
    """Parquet files and the schema to read them with; equal ones give equal rows."""

    schema: pa.Schema
    files: tuple[str, ...]
    with_rows: bool = False  # adds _file and _row, which address each row
    columns: tuple[str, ...] | None = None  # those that a query sees; None: all
    where: str | None = None  # a condition that every row must meet
    computed: tuple[tuple[str, str], ...] = ()  # (name, expression) of columns beside those

    def spark_schema(self) -> str:
        """The schema as Spark's DDL text."""
        parts = []
        for field in self.schema:
            name = "`" + field.name.replace("`", "``") + "`"
            parts.append(f"{name} {_spark_type(field.type)}")
        return ", ".join(parts)

    def nulls(self) -> list[str]:
        """A NULL of each column, as Spark's expressions: the columns of a relation without rows."""
        names = [(f.name.replace("`", "``"), _spark_type(f.type)) for f in self.schema]
        return [f"CAST(NULL AS {type_}) AS `{name}`" for name, type_ in names]


def frame_of(
    session: SparkSession, relation: Relation, options: Mapping[str, str] | None = None
) -> DataFrame:
    """The relation as a frame of a session; nothing is read yet."""
    if relation.files:
        check_footers(relation.files)
        reader = session.read.schema(relation.spark_schema())
        if options:
            reader = reader.options(**options)
        frame = reader.parquet(*relation.files)
    else:
        frame = session.range(0).selectExpr(*relation.nulls())
    if relation.with_rows:
        frame = frame.selectExpr("*", *_ROW_ADDRESS if relation.files else _NO_ADDRESS)
    if relation.where is not None:
        frame = frame.where(relation.where)
    if relation.columns is not None:
        computed = [f"{text} AS {quoted(name)}" for name, text in relation.computed]
        frame = frame.selectExpr(*[quoted(column) for column in relation.columns], *computed)
    return frame


def _spark_type(type_: pa.DataType) -> str:
    # NOT NULL is left out: files are read as they are, and NULL is checked when they are written.
    return name_of(type_)


class Staging:
    """Writes rows where Spark can read them, and removes them when they are released."""

    def __init__(self, fallback: Path, limit_bytes: Live[int], *, shared_memory: bool) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._limit_bytes = limit_bytes
        self._used_bytes = 0
        self._sizes: dict[str, int] = {}
        self._fallback = fallback
        self._memory: Path | None = None
        if shared_memory and os.access(SHARED_MEMORY, os.W_OK):
            self._memory = scratch_folder(SHARED_MEMORY)

    def stage(self, table: pa.Table) -> Relation:
        """The table as a relation; call `release` when no run needs it any more."""
        schema = pa.schema([pa.field(f.name, canonical(f.type)) for f in table.schema])
        table = table.cast(schema)
        path = self._place(table.nbytes) / f"staged-{next(self._numbers)}.parquet"
        pq.write_table(
            table, path, compression="none", use_dictionary=False, write_statistics=False
        )
        make_private(path)
        size = path.stat().st_size
        if path.parent == self._memory:  # what is on disk takes no shared memory
            with self._lock:
                self._sizes[str(path)] = size
                self._used_bytes += size
        return Relation(schema, (str(path),))

    def _place(self, size: int) -> Path:
        if self._memory is not None and self._fits(self._memory, size):
            return self._memory
        make_folder(self._fallback)
        return self._fallback

    def _fits(self, memory: Path, size: int) -> bool:
        with self._lock:
            if self._used_bytes + size > current(self._limit_bytes):
                return False
        return shutil.disk_usage(memory).free > 2 * size

    def release(self, relation: Relation) -> None:
        """Removes the files of a staged relation."""
        for path in relation.files:
            Path(path).unlink(missing_ok=True)
            with self._lock:
                self._used_bytes -= self._sizes.pop(path, 0)

    def set_aside(self, rows: pa.Table) -> pa.Table:
        """The same rows out of a file on disk, in batches; it goes with the last of them.

        Its name is gone at once: nothing is left behind, whatever becomes of this process.
        """
        path = self._fallback / f"aside-{next(self._numbers)}.arrow"
        try:
            make_folder(self._fallback)
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
                for start in range(0, rows.num_rows, ASIDE_ROWS):
                    writer.write_table(rows.slice(start, ASIDE_ROWS).combine_chunks())
            with pa.memory_map(str(path)) as mapped:
                return pa.ipc.open_file(mapped).read_all()
        except OSError as error:
            raise storage_error("set rows aside in", str(path), error) from error
        finally:
            with contextlib.suppress(OSError):
                path.unlink()

    def close(self) -> None:
        """Removes everything that was staged."""
        if self._memory is not None:
            remove_scratch(self._memory)
        shutil.rmtree(self._fallback, ignore_errors=True)


@dataclass(frozen=True)
class HeldTables:
    """Standard tables at one version each, for one evaluation."""

    relations: Mapping[str, Relation]
    versions: Mapping[str, int]
