"""What the files of a Delta log must be: checksums of the newest ones, in a small file beside them.

Owns: the file `_delta_log/_headwater_sums`, and what is concluded from it at open.
Must never: be ahead of the log: it is written after a commit is durable.

Files of a Delta log carry no checksum, so a changed digit, a missing commit or an older copy can read as a
valid log with other rows. The sums reach back to the checkpoint before the newest one, so that a bad
checkpoint can be left out. They are not synced: sums that are behind, damaged or gone only check less.
Commits of other writers are not among them, and are taken as they are.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from crc32c import crc32c

from headwater.errors import StorageError
from headwater.storage.sums import read_sums, write_sums

NAME = "_headwater_sums"
LAST_CHECKPOINT = "_last_checkpoint"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint.*\.parquet")


class DeltaSums:
    """The sums of one table's log."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "_delta_log"
        self._path = self._log / NAME
        self._sums = read_sums(self._path)

    def note(self, version: int, *, checkpoint: bool = False) -> None:
        """The commit of this version, and perhaps its checkpoint, are durable."""
        names = [commit_name(version)]
        if checkpoint:
            found = self._log.glob(f"{version:020d}.checkpoint*.parquet")
            names += [*(path.name for path in found), LAST_CHECKPOINT]
        sums = {name: sum_ for name, sum_ in self._sums.items() if name not in names}
        for name in names:
            with contextlib.suppress(OSError):  # then it is not checked
                sums[name] = _sum(self._log / name)
        self._sums = _recent(sums)
        write_sums(self._path, self._sums)

    def check(self, without: Path | None = None) -> list[Path]:
        """Checkpoints that are not what they were, to be left out; XX001 for a commit that is needed.

        `without`: a commit that was put aside, whose rows are elsewhere.
        """
        aside = None if without is None else without.name[:25]
        bad = [
            self._log / name
            for name, sum_ in self._sums.items()
            if not _COMMIT.fullmatch(name) and not _is(self._log / name, sum_)
        ]
        base = max((_version(path.name) for path in self._checkpoints(bad)), default=-1)
        for name, sum_ in sorted(self._sums.items()):
            if _COMMIT.fullmatch(name) and _version(name) > base and name != aside:
                self._check_commit(self._log / name, sum_)
        return [path for path in bad if path.exists()]

    def _checkpoints(self, bad: list[Path]) -> list[Path]:
        found = (p for p in self._log.glob("*.parquet") if _CHECKPOINT.fullmatch(p.name))
        return [path for path in found if path not in bad]

    def _check_commit(self, path: Path, sum_: int) -> None:
        if not _is(path, sum_):
            what = "is not what was written" if path.exists() else "is missing"
            raise StorageError(
                f"the Delta log is damaged: {path} {what}",
                sqlstate="XX001",
                detail="its checksum does not match" if path.exists() else None,
                hint="put the file back from a copy; to take the log as it is, other rows and all, "
                f"remove {self._path}",
            )


def commit_name(version: int) -> str:
    """The name of a commit's file."""
    return f"{version:020d}.json"


def _recent(sums: dict[str, int]) -> dict[str, int]:
    """The sums from the checkpoint before the newest one on."""
    checkpoints = sorted({_version(name) for name in sums if _CHECKPOINT.fullmatch(name)})
    if len(checkpoints) < 2:
        return sums
    return {n: s for n, s in sums.items() if n == LAST_CHECKPOINT or _version(n) >= checkpoints[-2]}


def _version(name: str) -> int:
    return int(name[:20]) if name[:20].isdigit() else -1


def _sum(path: Path) -> int:
    return int(crc32c(path.read_bytes()))


def _is(path: Path, sum_: int) -> bool:
    try:
        return _sum(path) == sum_
    except FileNotFoundError:
        return False
