"""Rows for several streaming tables in one append to the log: durable and visible all together.

Owns the pair of steps of `table._Commit` over several tables. Must never leave a table with a decision
that did not come to pass: whatever may refuse is asked of all tables before any of them decides.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.storage.rows import as_batch
from headwater.storage.streaming.records import ROWS
from headwater.storage.streaming.table import StreamingTable, _Commit


class _Together:
    """Several commits as one."""

    def __init__(self, commits: Sequence[_Commit]) -> None:
        self._commits = commits

    def decide(self, lsn: int) -> None:
        for commit in self._commits:
            commit.table._check_late(commit)
        for number, commit in enumerate(self._commits):
            commit.decide(lsn + number)

    def show(self, lsn: int) -> None:
        with self._commits[0].table._visibility:
            for number, commit in enumerate(self._commits):
                commit.show_inside(lsn + number)
        for commit in self._commits:
            commit.table._tell()

    def take_back(self, lsn: int) -> None:
        for commit in self._commits:
            commit.take_back(lsn)


def insert_together(inserts: Sequence[tuple[StreamingTable, pa.Table]]) -> int:
    """Adds rows to several tables of one store, each named once; returns once all are durable."""
    commits = []
    for table, rows in inserts:
        table.wait_for_room()
        batch, ticks = table._prepared(as_batch(rows, table.definition.schema))
        if batch.num_rows:
            commits.append(_Commit(table, batch, ticks, None, ""))
    if not commits:
        return 0
    together = _Together(commits)
    commits[0].table._open_log.append(
        [commit.record(ROWS) for commit in commits],
        on_assigned=together.decide,
        on_durable=together.show,
        on_refused=together.take_back,
    ).wait()
    return sum(commit.batch.num_rows for commit in commits if commit.batch is not None)
