"""Results on their way to a slow reader: of what came since it last asked, the newest row per key (US9).

Owns: the rows that one reader has not taken. It is an update queue before the reader, as it stands before
a query. Must never: slow the query down, or give a reader an older row of a key after a newer one.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.engine.update_queue import Choice, UpdateQueue
from headwater.errors import BindError
from headwater.sql.names import nearest


class Conflation:
    """Rows of several results become one result."""

    def __init__(self, schema: pa.Schema, key: Sequence[str]) -> None:
        named = {name.casefold(): name for name in schema.names}
        for name in key:
            if name.casefold() not in named:
                near = nearest(name, schema.names)
                raise BindError(
                    f"column {name} is not in the result",
                    sqlstate="42703",
                    hint=f"did you mean {near}?" if near else f"columns: {', '.join(schema.names)}",
                )
        self._turn = 0  # results count as time: the oldest update comes first
        self.queue = UpdateQueue(schema, [named[n.casefold()] for n in key], Choice("inplace"))

    def add(self, rows: pa.Table) -> None:
        """The next result."""
        self._turn += 1
        self.queue.enqueue(rows, self._turn)

    def take(self) -> pa.Table:
        """The newest row of each key that came; the reader has them now."""
        batch = self.queue.dequeue(self.queue.waiting_count, self._turn)
        self.queue.deliver(batch, self._turn)
        return batch.rows
