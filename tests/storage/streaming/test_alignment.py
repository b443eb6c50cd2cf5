"""Rows in the log lie where a processor wants them, so that they are read in place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

import headwater
from headwater.storage.streaming.records import ALIGNMENT, PLAIN_ROWS, ROWS, read_record
from headwater.storage.wal import LogFollower
from headwater.storage.wal.record import Record


def _records(folder: Path, lsn: int) -> list[Record]:
    return [
        record for append in LogFollower(str(folder / "wal"), 0).read_to(lsn) for record in append
    ]


def test_every_buffer_of_every_batch_is_aligned(tmp_path: Path) -> None:
    """Whatever stood before: batch ids of any length, punctuation, barriers, rows of other tables."""
    with headwater.connect(tmp_path) as db:
        db.sql(
            "CREATE STREAMING TABLE t (ts BIGINT, s STRING, x DOUBLE, b BOOLEAN) TIMESTAMP BY ts"
        )
        db.sql("CREATE STREAMING TABLE other (s STRING)")
        for number in range(40):
            db.insert(
                "t", [(number, "x" * number, 0.5, None)] * (number + 1), batch_id="i" * number
            )
            db.insert("other", [("y" * (number % 7),)])
            db.advance("t", number)
            db._context.streaming_table("t").barrier()
        table, streams = db._context.streaming_table("t"), db._context.streams
        found = 0
        for record in _records(tmp_path, streams.durable_lsn):
            if record.kind == ROWS and record.table == table.definition.id:
                rows = read_record(memoryview(record.payload[0]), ROWS, table.schema).batch
                assert rows is not None
                buffers = [b for column in rows.columns for b in column.buffers() if b is not None]
                assert all(buffer.address % ALIGNMENT == 0 for buffer in buffers)
                assert np.asarray(rows.column("ts")).flags.aligned
                found += rows.num_rows
        assert found == sum(range(1, 41))


def test_rows_of_earlier_builds_are_read() -> None:
    """They follow the names at once."""
    schema = pa.schema([("ts", pa.int64())])
    batch = pa.record_batch([pa.array([1, 2, 3])], schema=schema)
    stamp = bytes(65)
    names = b"\x03\x00\x00\x00abc"
    found = read_record(
        memoryview(stamp + names + batch.serialize().to_pybytes()), PLAIN_ROWS, schema
    )
    assert found.batch is not None
    assert (found.batch_id, found.batch.column(0).to_pylist()) == ("abc", [1, 2, 3])
