"""Spark's notes of what each micro-batch holds, made durable, which Spark itself does not do.

Otherwise, after a power cut, the number of a micro-batch could stand for other rows. A note is written
once and never changed, so only those that are new since the last look are synced. Beside us Spark removes
notes of old micro-batches whenever it likes: one that is gone is needed by nobody. Must never: write notes.

A note that is missing, changed or of another time makes Spark hand out rows again, or leave some out, under
a number that was delivered. So their checksums are kept beside them (never synced: sums that are behind or
gone only check less), and are compared before Spark reads the notes again.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from crc32c import crc32c

from headwater.errors import StorageError
from headwater.storage.disk import sync_file, sync_folder
from headwater.storage.sums import read_sums, write_sums


class Checkpoint:
    """The folder of Spark's notes of one run of a source."""

    def __init__(
        self,
        folder: Path,
        sync_file: Callable[[Path], None] = sync_file,
        sync_folder: Callable[[Path], None] = sync_folder,
    ) -> None:
        self._folder = folder
        self._sync_file, self._sync_folder = sync_file, sync_folder
        self._synced: dict[str, int] = {}  # by path: the inode, which a replaced file has anew
        self._sums = Sums(folder)

    def check(self, delivered: int | None) -> None:
        """XX001 for a note that changed, or is missing of the micro-batches that were delivered."""
        self._sums.check()
        if delivered is None:
            return
        newest = max(_numbers(self._folder / "offsets"), default=-1)
        if newest < delivered:
            raise _missing(self._folder / "offsets" / str(newest + 1), f"{delivered} was delivered")
        for source in sorted((self._folder / "sources").glob("*")):
            self._check_source(source, newest)

    def _check_source(self, source: Path, newest: int) -> None:
        """A source of files notes which ones it has seen, in notes of its own, joined now and then."""
        last = _log_offset(self._folder / "offsets" / str(newest), int(source.name))
        there = set(_numbers(source))
        if last is None:
            return
        joined = [n for n in there if (source / f"{n}.compact").exists() and n <= last]
        for number in range(max(joined, default=0), last + 1):
            if number not in there:
                raise _missing(source / str(number), f"offsets/{newest} needs it")

    def sync(self) -> int:
        """Makes all that is new durable; how many files that were."""
        there = dict(_files(str(self._folder)))
        new = [path for path, inode in there.items() if self._synced.get(path) != inode]
        folders: set[Path] = set()
        for path in map(Path, new):
            with contextlib.suppress(FileNotFoundError):  # purged since it was listed
                self._sync_file(path)
                self._sums.note(path)
                folders.update((path.parent, path.parent.parent))
        for folder in folders:
            with contextlib.suppress(FileNotFoundError):
                self._sync_folder(folder)
        if new:
            self._sums.write(there)
        self._synced = there
        return len(new)


class Sums:
    """Checksums of the notes, in a file beside their folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = sums_of(folder)
        self._sums = read_sums(self._path)

    def note(self, path: Path) -> None:
        """This note is durable."""
        self._sums[str(path.relative_to(self._folder))] = crc32c(path.read_bytes())

    def write(self, there: Iterable[str]) -> None:
        """Keeps the sums of the notes that are there."""
        kept = {os.path.relpath(path, self._folder) for path in there}
        self._sums = {name: sum_ for name, sum_ in self._sums.items() if name in kept}
        write_sums(self._path, self._sums)

    def check(self) -> None:
        """XX001 for a note that is there and is not what it was."""
        for name, sum_ in self._sums.items():
            path = self._folder / name
            with contextlib.suppress(FileNotFoundError):
                if crc32c(path.read_bytes()) != sum_:
                    raise _wrong(path, "is damaged", "its checksum does not match")


def sums_of(folder: Path) -> Path:
    """Where the checksums of the notes in a folder are."""
    return folder.with_name(f"{folder.name}.sums")


def _numbers(folder: Path) -> Iterator[int]:
    """The numbers of the notes in a folder."""
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(folder):
            number = name.removesuffix(".compact")
            if number.isdigit():
                yield int(number)


def _log_offset(note: Path, source: int) -> int | None:
    """How far a note of Spark's says that a source of files is; None for other sources."""
    try:
        lines = note.read_text().splitlines()[2:]  # a version and general notes come first
        found = json.loads(lines[source])
        return int(found["logOffset"])
    except (OSError, ValueError, IndexError, KeyError, TypeError):
        return None  # of a source of another kind


def _missing(path: Path, why: str) -> StorageError:
    return _wrong(path, "is missing", why)


def _wrong(path: Path, what: str, why: str) -> StorageError:
    return StorageError(
        f"the note {path} of a source {what}",
        sqlstate="XX001",
        detail=why,
        hint="put it back from a copy, then RESUME SOURCE; or DROP SOURCE and make it again, which reads "
        "all files anew",
    )


def _files(folder: str) -> Iterator[tuple[str, int]]:
    """The files below a folder and their inodes; what goes meanwhile may be among them or not."""
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path)
            else:
                yield entry.path, entry.inode()
