"""Sources on Spark Structured Streaming: executors write blocks, the driver commits them.

A micro-batch is committed once, whatever happens: its number is part of the record that names its
blocks, and a number that the table knows is skipped. The driver sees reports, never rows.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from headwater.errors import DataError, Error, KernelError, SettingError, StorageError
from headwater.kernel.failure import translate
from headwater.sources.block_writer import REPORT_TYPE, Report, Task, work
from headwater.sources.checkpoint import Checkpoint
from headwater.sources.handed_blocks import HandedBlocks
from headwater.sources.runner import POLL_S, SourceFeed, SourceRunner, SourceSurroundings
from headwater.storage.modes import make_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

STREAM_SETTINGS = {
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.stopTimeout": "10s",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.shuffle.partitions": "2",
}


class StreamKind(ABC):
    """How Spark reads one kind of source."""

    def ready(self, feed: SourceFeed) -> bool:  # noqa: ARG002
        """Whether the stream can begin; false while it must wait for something."""
        return True

    @abstractmethod
    def frame(self, session: SparkSession, feed: SourceFeed) -> DataFrame:
        """The streaming frame, with the table's columns."""


class StreamRunner(SourceRunner):
    """One run of a source that Spark reads."""

    def __init__(self, feed: SourceFeed, around: SourceSurroundings, kind: StreamKind) -> None:
        super().__init__(feed, around)
        self._kind = kind
        self._query: StreamingQuery | None = None
        self._life = 0  # of Spark: the stream ends with it
        self._taking = threading.Lock()  # one of a Spark that ended may still be at work
        self._checkpoint = Checkpoint(feed.checkpoint)
        self.reports: list[Report] = []  # of the last micro-batch
        self.after_commit: Callable[[int], None] | None = None  # for tests of crashes

    def run(self) -> None:
        """Runs the stream, again from its notes if Spark ends under it.

        A micro-batch that found no room on the disk is repeated by Spark.
        """
        while not self.stopping.is_set():
            try:
                self.patiently(self._stream)
                return
            except Exception as error:
                if not self.around.kernel.ended_since(self._life, error):
                    raise
                self.error = None

    def _stream(self) -> None:
        """Starts the stream and waits for its end."""
        if not self._begin():
            return
        query = self._query
        assert query is not None
        try:
            while not self.stopping.is_set() and not _ended(query):
                self.watch_idle()
            if not self.stopping.is_set() and self.error is not None:
                raise self.error
        except Exception as error:
            if self.around.kernel.ended_since(self._life, error):
                raise
            if self.error is not None:
                raise self.error from None
            raise missing_file_system(error) or error from None
        finally:
            _stop(query)
            self._checkpoint.sync()

    def _begin(self) -> bool:
        """Waits for Spark and for what the kind needs; False if the run is stopped before."""
        while not self.around.kernel.wait_ready(POLL_S) or not self._kind.ready(self.feed):
            self.watch_idle()
            if self.stopping.wait(POLL_S):
                return False
        logging.getLogger("py4j.clientserver").addFilter(_says_more)
        session, self._life = self.around.kernel.stream_session(STREAM_SETTINGS)
        try:
            frame = self._kind.frame(session, self.feed)
        except Exception as error:
            raise missing_file_system(error) or error from None
        make_folder(self.feed.checkpoint)
        progress = self.feed.table.state.progress.get(self.feed.key)
        self._checkpoint.check(None if progress is None else progress.batch)
        self._query = (
            frame.writeStream.option("checkpointLocation", str(self.feed.checkpoint))
            .trigger(
                processingTime=f"{max(round(self.feed.options.trigger_s * 1000), 1)} milliseconds"
            )
            .foreachBatch(self._take)
            .start()
        )
        return True

    def interrupt(self) -> None:
        """Ends the stream, also in the middle of a micro-batch."""
        query = self._query
        if query is not None:
            _stop(query)

    # Micro-batches

    def _take(self, frame: DataFrame, number: int) -> None:
        """Called by Spark for each micro-batch, one at a time."""
        self.busy = True
        try:
            with self._taking:
                if self.stopping.is_set():
                    raise KernelError("the source is being stopped")
                self._commit_once(frame, number)
        except Exception as error:
            self.error = _failure(error)
            raise self.error from None
        finally:
            self.busy = False

    def _commit_once(self, frame: DataFrame, number: int) -> None:
        table = self.feed.table
        progress = table.state.progress.get(self.feed.key)
        if progress is not None and progress.batch is not None and number <= progress.batch:
            return  # committed before, though Spark does not know: the process ended in between
        self._checkpoint.sync()
        blocks = HandedBlocks(
            table,
            self.feed.key,
            frame.rdd.getNumPartitions(),
            partial(_write_blocks, frame),
            stopping=self.stopping,
        )
        written = blocks.commit(number)
        self.reports = blocks.reports
        if self.after_commit is not None:
            self.after_commit(number)
        self.around.streams.settle(table)
        self.delivered(written.row_count)


def _write_blocks(frame: DataFrame, task: Task) -> list[tuple[str, bytes]]:
    """Has executors write the rows of a frame; what they report."""
    rows = frame.mapInArrow(work(task), REPORT_TYPE).collect()
    return [(row["report"], bytes(row["ticks"])) for row in rows]


def _stop(query: StreamingQuery) -> None:
    with contextlib.suppress(Exception):  # a Java process that has ended has stopped it too
        query.stop()


def _says_more(record: logging.LogRecord) -> bool:
    """False for py4j's report of an error that SHOW SOURCES tells."""
    return not (record.exc_info and isinstance(record.exc_info[1], Error))


def _failure(error: Exception) -> Error:
    """What ended a micro-batch, with its last cause: Spark names the file, that says what is wrong."""
    if isinstance(error, Error):
        return error
    found = translate(error, "")
    causes = re.findall(r"^Caused by: (?:[\w.$]+: )?(.+)$", str(error), re.MULTILINE)
    cause = causes[-1].strip() if causes else None
    if isinstance(found, StorageError) and found.sqlstate == "XX001":  # a stream reads no table
        return DataError(
            "a file of the source cannot be read",
            sqlstate="22P04",
            detail=": ".join(part for part in (found.detail, cause) if part) or None,
            hint="mend or remove the file, then RESUME SOURCE",
        )
    found.detail = found.detail or cause
    return found


def missing_file_system(error: Exception) -> SettingError | None:
    """The error in our words if Spark has no code for a file system; None for another error."""
    text = str(error)
    found = re.search(r'No FileSystem for scheme "([^"]+)"', text) or re.search(
        r"ClassNotFoundException: Class org\.apache\.hadoop\.fs\.(?:\w+\.)?(\w+?)FileSystem", text
    )
    if found is None:
        return None
    return SettingError(
        f"Spark has no code for the file system {found.group(1).lower()}://",
        hint="name its JARs: connect(settings={'spark.jars.packages': …}) or 'spark.jars'",
    )


def _ended(query: StreamingQuery) -> bool:
    """Waits a moment for the end of a stream; raises what ended it."""
    return bool(query.awaitTermination(POLL_S))  # type: ignore[arg-type]  # fractions work
