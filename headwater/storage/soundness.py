"""Whether the files of a folder that nobody has open are what was written.

Must never: change a file. What is made again from other files (snapshots, sidecars, indexes) is not
looked at: damage there is found and mended when it is used.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from headwater.errors import Error
from headwater.storage.delta import bad_checkpoints, listed_files, unreadable_log
from headwater.storage.delta_sums import DeltaSums
from headwater.storage.footer import check_footer, check_pages
from headwater.storage.wal import check_log

LOGS = ("catalog", "wal", "batches")


@dataclass
class Soundness:
    """What was looked at, and what is wrong with it."""

    logs: int = 0
    files: int = 0
    read_all: bool = False
    damage: list[Error] = field(default_factory=list)


def soundness(folder: Path, most_bytes: int | None = None) -> Soundness:
    """Looks at every log and every footer of the folder; at all rows, too, if these are no more bytes."""
    found = Soundness()
    checks: list[Callable[[], object]] = [
        partial(check_log, str(folder / name)) for name in LOGS if (folder / name).is_dir()
    ]
    tables = sorted(path.parent for path in (folder / "tables").glob("*/_delta_log"))
    checks += [partial(_check_delta_log, table) for table in tables]
    found.logs = len(checks)
    files = [path for table in tables for path in _files_of(table)]
    files += map(str, sorted((folder / "views").glob("*.parquet")))
    found.files = len(files)
    found.read_all = most_bytes is None or sum(map(_size, files)) <= most_bytes
    checks += [partial(check_pages if found.read_all else check_footer, path) for path in files]
    for check in checks:
        try:
            check()
        except Error as error:
            found.damage.append(error)
    return found


def _check_delta_log(table: Path) -> None:
    """XX001 for a log that is not what was written, or that opening it would not make readable."""
    bad = DeltaSums(table).check()
    try:
        listed_files(table)
    except Exception as error:  # delta-rs raises many types; all mean an unreadable log
        if not _readable_without(table, [*bad, *bad_checkpoints(table)]):
            raise unreadable_log(table, error, bad) from error


def _readable_without(table: Path, bad: Sequence[Path]) -> bool:
    """Whether a log can be read without files that opening it puts aside."""
    with tempfile.TemporaryDirectory() as elsewhere:
        log = Path(elsewhere) / "_delta_log"
        log.mkdir()
        for path in (table / "_delta_log").iterdir():
            if path not in bad:
                (log / path.name).symlink_to(path.absolute())
        try:
            listed_files(Path(elsewhere))
        except Exception:  # as above
            return False
    return True


def _files_of(table: Path) -> Iterator[str]:
    """The files that the log names; where it cannot be read, those that are there."""
    try:
        names = [file.path for file in listed_files(table)]
    except Exception:  # delta-rs raises many types; the log's sums say what is wrong
        names = [str(path.relative_to(table)) for path in table.rglob("*.parquet")]
        names = [name for name in names if not name.startswith("_delta_log")]
    return (str(table / name) for name in sorted(names))


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0
