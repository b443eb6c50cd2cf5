"""A Delta table out: each batch is one commit, which names the sink and the result's position.

The commit's transaction number says what the table holds; the note beside it holds the tokens of the
last two batches, the one of which that number means.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError

from headwater.sinks.manifest import Manifest, Note
from headwater.sinks.target import SinkBatch, SinkName, SinkProgress, write_error


class DeltaTarget:
    """A Delta table, made with the first row."""

    def __init__(self, folder: Path, sink: SinkName) -> None:
        self._folder, self._key = folder, f"headwater-sink-{sink.key}"
        self._manifest = Manifest(folder, sink.plain)
        self._last: Note | None = None

    def open(self, schema: pa.Schema) -> SinkProgress | None:  # noqa: ARG002  # the first rows tell it
        """What the table says was written last."""
        self._folder.mkdir(parents=True, exist_ok=True)
        written = self._written()
        notes = [n for n in self._manifest.read() if n.file is None or n.position == written]
        self._last = notes[-1] if notes else None
        return None if self._last is None else self._last.progress

    def _written(self) -> int | None:
        if not DeltaTable.is_deltatable(str(self._folder)):
            return None
        return DeltaTable(str(self._folder)).transaction_version(self._key)

    def write(self, batch: SinkBatch) -> None:
        """The note of this batch and the one before, then the commit."""
        progress, commits = batch.progress, batch.rows.num_rows > 0
        note = Note(
            progress.token,
            progress.row_count,
            batch.position,
            file="commit" if commits else None,
        )
        before = () if self._last is None or not commits else (self._last,)
        self._manifest.replace(*before, note)
        if commits:
            self._commit(batch)
        self._last = note

    def _commit(self, batch: SinkBatch) -> None:
        try:
            write_deltalake(
                str(self._folder),
                batch.rows,
                mode="append",
                commit_properties=CommitProperties(
                    app_transactions=[Transaction(self._key, batch.position)]
                ),
            )
        except DeltaError as error:
            raise write_error(f"the Delta table {self._folder} cannot be written", error) from error

    def interrupt(self) -> None:
        """A commit is carried to its end."""

    def close(self) -> None:
        """Nothing is held."""
