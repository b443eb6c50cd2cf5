"""Files out: one file for each batch, whole when it appears, each row in exactly one of them.

Owns: the names of the files. They begin with the sink's name and sort in the order of the results; names
that begin with a dot are not ready, and readers pass over them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from headwater import values
from headwater.sinks.manifest import Manifest, Note
from headwater.sinks.target import SinkBatch, SinkName, SinkProgress
from headwater.storage.disk import sync_file, sync_folder

Writer = Callable[[pa.Table, Path], None]


class FilesTarget:
    """A folder of files of one format."""

    def __init__(self, folder: Path, sink: SinkName, suffix: str) -> None:
        self._folder, self._sink, self._suffix = folder, sink, suffix
        self._write = WRITERS[suffix]
        self._manifest = Manifest(folder, sink.plain)

    def open(self, schema: pa.Schema) -> SinkProgress | None:  # noqa: ARG002  # files bring their own
        """Gives the last file its name if the process ended before; removes what was not noted."""
        self._folder.mkdir(parents=True, exist_ok=True)
        notes = self._manifest.read()
        if notes:
            self._name(notes[-1].file)
        for left in self._folder.glob(f".{self._sink.plain}-*.{self._suffix}"):
            left.unlink()
        return notes[-1].progress if notes else None

    def write(self, batch: SinkBatch) -> None:
        """The file under a hidden name, the note, then the name."""
        progress, file = batch.progress, None
        if batch.rows.num_rows:
            file = f"{self._sink.plain}-{batch.position:015d}.{self._suffix}"
            hidden = self._folder / f".{file}"
            self._write(batch.rows, hidden)
            sync_file(hidden)
        self._manifest.replace(Note(progress.token, progress.row_count, batch.position, file))
        self._name(file)

    def _name(self, file: str | None) -> None:
        """Shows a file that the note names, unless that was done."""
        hidden = self._folder / f".{file}"
        if file is not None and hidden.exists():
            os.replace(hidden, self._folder / file)
            sync_folder(self._folder)

    def interrupt(self) -> None:
        """A file is written to its end."""

    def close(self) -> None:
        """Nothing is held."""


def _csv(rows: pa.Table, path: Path) -> None:
    csv.write_csv(_flat(rows), path)


def _flat(rows: pa.Table) -> pa.Table:
    """Columns that CSV has no form for as text: nested ones as JSON, bytes in base64, NaN as everywhere."""
    for number, field in enumerate(rows.schema):
        if _needs_text(field.type, rows.column(number)):
            text = values.text_of(field.type, machine=True)
            found = [None if v is None else text(v) for v in rows.column(number).to_pylist()]
            rows = rows.set_column(number, field.name, pa.array(found, pa.string()))
    return rows


def _needs_text(type_: pa.DataType, column: pa.ChunkedArray) -> bool:
    types = pa.types
    if types.is_floating(type_):
        return pc.all(pc.is_finite(column)).as_py() is False
    return values.is_nested(type_) or types.is_binary(type_)


def _json(rows: pa.Table, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for line in json_lines(rows):
            file.write(line + "\n")


def json_lines(rows: pa.Table) -> list[str]:
    """Each row as an object of JSON."""
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
    names = rows.schema.names
    columns = [
        [convert(value) for value in values.python_values(column)]
        for column, convert in zip(
            rows.columns, (values.json_of(field.type) for field in rows.schema), strict=True
        )
    ]
    return [encode(dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


def _parquet(rows: pa.Table, path: Path) -> None:
    pq.write_table(rows, path)


WRITERS: Mapping[str, Writer] = {"csv": _csv, "json": _json, "parquet": _parquet}
