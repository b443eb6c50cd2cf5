"""What has changed since somebody who follows last asked, and what he is given.

Owns: the changes since a mark, while it is cheaper to give them than all rows. Whoever asks names the mark
that he was given; if it is not the last one, or changes were lost meanwhile, he gets all rows. Must never:
give a part of the changes.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import pyarrow as pa

from headwater.operators.changes import Changes

LEAST_KEPT = 1 << 16  # so many changed rows are kept in any case, else as many as there are rows


@dataclass(frozen=True)
class FollowedChanges:
    """What has changed since a mark, or all rows where that is not known."""

    mark: str | None  # to be named the next time; None: all rows come again
    changes: Changes | None
    rows: pa.Table | None = None


class ChangeRecord:
    """The changes since the last mark; nothing before the first one was given."""

    def __init__(self) -> None:
        self._mark: str | None = None
        self._parts: list[Changes] = []
        self._row_count = 0

    def add(self, changes: Changes, row_count: int) -> None:
        """Rows have changed; `row_count`: how many there are."""
        if self._mark is None or not len(changes):
            return
        self._parts.append(changes)
        self._row_count += len(changes)
        if self._row_count > max(row_count, LEAST_KEPT):
            self.lose()

    def lose(self) -> None:
        """It is not known any more what has changed."""
        self._mark, self._parts, self._row_count = None, [], 0

    def has(self, mark: str | None) -> bool:
        """Whether it is known what has changed since a mark."""
        return mark is not None and mark == self._mark

    def take(self) -> tuple[str, list[Changes]]:
        """A new mark, and what has changed since the last one."""
        parts = self._parts
        self._mark, self._parts, self._row_count = uuid.uuid4().hex, [], 0
        return self._mark, parts
