"""A view that is one grouping and that somebody follows: only groups that rows touched are made again.

Owns: the row that each group gave last, so that what is told as gone repeats it. Must never: look at groups
that no row touched since, but when it begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from headwater.engine.change_record import ChangeRecord, FollowedChanges
from headwater.fold.columns import Slots
from headwater.fold.lookup import Lookup
from headwater.fold.state import GroupState
from headwater.operators.changes import come, go, together
from headwater.operators.last_given import LastGiven


class FollowedGroups:
    """The rows of the groups of one state; another state needs another of these."""

    def __init__(
        self, groups: GroupState, schema: pa.Schema, keys: Sequence[str], made_of: object
    ) -> None:
        """`keys`: the columns that hold a group's keys; `made_of`: what rows depend on beside groups."""
        self.groups, self.made_of = groups, made_of
        self._schema, self._keys = schema, keys
        self._given = LastGiven(schema)
        self._record = ChangeRecord()

    def has(self, mark: str | None, groups: GroupState, made_of: object) -> bool:
        """Whether it is known what has changed since a mark."""
        return self._record.has(mark) and self.groups is groups and self.made_of == made_of

    def begin(self, rows: pa.Table) -> FollowedChanges:
        """All rows of the view."""
        slots = self._slots(rows)
        self._given.put(slots, slots, rows)
        mark, _ = self._record.take()
        return FollowedChanges(mark, None, rows)

    def follow(self, touched: Slots, made: Callable[[Slots], pa.Table]) -> FollowedChanges:
        """What has changed since the last time; `made`: the rows of groups as they are now."""
        rows = made(touched)
        gone = self._given.take(touched[self._given.has(touched)])
        self._given.put(touched, self._slots(rows), rows)
        mark, _ = self._record.take()
        return FollowedChanges(mark, together([go(gone), come(rows)], self._schema))

    def _slots(self, rows: pa.Table) -> Slots:
        lookup: Lookup = self.groups.lookup
        keys = [rows.column(name).combine_chunks() for name in self._keys]
        return lookup.find(keys, rows.num_rows)
