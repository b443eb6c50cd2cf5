"""Results on their way to the host that keeps them: as changes, where it has the result before.

Owns: what a host remembers of the results that it has sent, and how the keeper makes results of them.
PlacedChanges are since a result that the keeper has said it has, by its position; after anything else that
happens to a query the next result goes whole. Must never: send or store anything itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from headwater.engine.emit import instant_scalar
from headwater.engine.result_changes import PlacedChanges, decode_changes, encode_changes, spliced
from headwater.engine.results import ChangeSearch, ResultLog
from headwater.errors import StorageError

CHANGES = pa.schema([pa.field("changes", pa.binary(), False)])


@dataclass
class ResultSender:
    """What was sent last."""

    since: int | None = None  # the position of the last result, as the keeper says
    _last: pa.Table | None = None
    _search: ChangeSearch = field(default_factory=ChangeSearch)

    def packed(self, results: Sequence[tuple[int, pa.Table]]) -> list[tuple[bool, pa.Table]]:
        """Results of instants as tables to send, and which of them are changes."""
        found = list[tuple[bool, pa.Table]]()
        last = self._last if self.since is not None else None
        for tick, rows in results:
            changes = None
            if last is not None and last.schema == rows.schema:
                changes = self._search.find(last, rows, _time(rows.schema, tick))
            if changes is None:
                found.append((False, rows))
            else:
                found.append((True, pa.table([[encode_changes(changes)]], schema=CHANGES)))
            last = rows
        return found

    def arrived(self, rows: pa.Table, since: int | None) -> None:
        """The keeper has the results up to this one, at that position; None: it has changed them."""
        self.since, self._last = since, rows

    def forget(self) -> None:
        """Nobody knows what arrived."""
        self.since = self._last = None


def unpacked(
    log: ResultLog, sent: Sequence[tuple[int, bool, pa.Table]], since: int | None
) -> list[tuple[pa.Table, PlacedChanges | None]]:
    """Results, as (tick, whether changes, table), and what is known to have changed in each."""
    newest = log.last()
    last = None if newest is None or newest.position != since else newest.rows
    found = list[tuple[pa.Table, PlacedChanges | None]]()
    for tick, is_changes, rows in sent:
        changes = None
        if is_changes:
            if last is None:
                raise StorageError("changes of a result that is not the last one", sqlstate="XX000")
            time = _time(log.schema, tick)
            known = decode_changes(rows.column(0)[0].as_buffer(), log.schema, time)
            assert isinstance(known, PlacedChanges)  # as a sender finds them
            changes, rows = known, spliced(last, known, time)
        found.append((rows, changes))
        last = rows
    return found


def _time(schema: pa.Schema, tick: int) -> pa.Scalar:
    return instant_scalar(schema.field(len(schema) - 1).type, tick)
