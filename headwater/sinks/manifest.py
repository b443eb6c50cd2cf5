"""The note beside the files of a sink: how far it is, and which file was last.

The note is replaced as a whole. Its replacement is what makes a batch written: before it, the file of
the batch is complete under a hidden name; after it, the file gets its name, at the next open if not now.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from crc32c import crc32c

from headwater.errors import StorageError
from headwater.sinks.target import SinkProgress
from headwater.storage.disk import sync_file, sync_folder
from headwater.storage.modes import make_private

SUFFIX = ".headwater"


@dataclass(frozen=True)
class Note:
    """What a note says; `file` is the name of the last file, None if there was none."""

    token: str
    row_count: int
    position: int
    file: str | None = None

    @property
    def progress(self) -> SinkProgress:
        """How far the sink is."""
        return SinkProgress(self.token, self.row_count)


class Manifest:
    """The note of one sink, in a hidden file."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._path = folder / f".{name}{SUFFIX}"

    def read(self) -> list[Note]:
        """The notes, the newest last; none before the first."""
        try:
            sum_, _, text = self._path.read_text().partition("\n")
            if sum_ != _sum(text):
                raise ValueError("its checksum does not match")
            return [Note(**note) for note in json.loads(text)]
        except FileNotFoundError:
            return []
        except (ValueError, TypeError) as error:
            raise StorageError(
                f"the file {self._path} is damaged",
                sqlstate="XX001",
                detail=str(error),
                hint="DROP SINK and make it again",
            ) from error

    def replace(self, *notes: Note) -> None:
        """Writes other notes in place of the ones before; durable when this returns."""
        new = self._path.with_name(self._path.name + ".new")
        text = json.dumps([asdict(note) for note in notes])
        new.write_text(f"{_sum(text)}\n{text}")
        make_private(new)
        sync_file(new)
        os.replace(new, self._path)
        sync_folder(self._folder)

    def remove(self) -> None:
        """Forgets the sink."""
        self._path.unlink(missing_ok=True)


def _sum(text: str) -> str:
    return f"{crc32c(text.encode()):08x}"
