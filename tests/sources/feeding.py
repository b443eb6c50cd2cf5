"""What tests of sources share: files that appear whole, waiting for progress, a partition by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import headwater
from headwater.sources.block_writer import PartitionWriter, Task
from headwater.sources.manager import SourceStatus
from headwater.sources.runner import SourceRunner
from headwater.storage.streaming import micro_batch
from headwater.storage.streaming.micro_batch import Handout, WrittenBatch
from headwater.storage.streaming.table import StreamingTable
from tests.harness.patience import PATIENCE_S

QUICK = "trigger = INTERVAL '50' MILLISECONDS"


def put(folder: Path, name: str, text: str) -> None:
    """A file that appears whole, as a source needs it."""
    folder.mkdir(exist_ok=True)
    hidden = folder / f".{name}"
    hidden.write_text(text)
    hidden.rename(folder / name)


def status(db: headwater.Database, name: str) -> SourceStatus:
    """A source as SHOW SOURCES tells it."""
    (found,) = [s for s in db._context.sources.statuses() if s.name == name]
    return found


def runner(db: headwater.Database, name: str) -> Any:
    """The run of a source."""
    found = db._context.sources.runner(name)
    assert isinstance(found, SourceRunner)
    return found


def wait_for_rows(
    db: headwater.Database, name: str, count: int, timeout_s: float = PATIENCE_S
) -> None:
    """Until the source has delivered so many rows, and no more than them."""

    def done() -> bool:
        now = status(db, name)
        assert now.state != "failed", now.last_error
        return now.row_count >= count

    assert db._context.sources.wait_until(done, timeout_s), status(db, name)
    assert status(db, name).row_count == count


def wait_for_state(db: headwater.Database, name: str, state: str) -> SourceStatus:
    """Until the source is in that state."""
    found = db._context.sources.wait_until(lambda: status(db, name).state == state, PATIENCE_S)
    assert found, status(db, name)
    return status(db, name)


def written(
    table: StreamingTable, handout: Handout, parts: Sequence[pa.Table], block_rows: int = 1000
) -> WrittenBatch:
    """What executors would write, one partition after the other."""
    found = []
    for number, part in enumerate(parts):
        task = Task(
            handout.definition,
            str(table.folder),
            handout.base_sequence,
            len(parts),
            handout.arrival_us,
            handout.closed,
            handout.sole,
            block_rows,
            handout.limit,
            handout.kept,
        )
        writer = PartitionWriter(task, number)
        for batch in part.to_batches(max_chunksize=7):
            writer.add(batch)
        found.append(writer.finish())
    return micro_batch.merged(found)


def deliver(table: StreamingTable, source: str, number: int, *parts: pa.Table) -> WrittenBatch:
    """One micro-batch from hand-out to commit."""
    with micro_batch.handed_out(table, source, len(parts)) as handout:
        found = written(table, handout, parts)
        micro_batch.refuse_late(table, handout, found)
        micro_batch.commit(table, handout, number, found)
    return found
