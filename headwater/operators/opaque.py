"""Operators whose work is done elsewhere: they gather what comes until somebody brings the answer.

Owns: what was not asked yet, and what the answer before was. `apply` gives nothing; once `question` was
answered, `answered` gives the changes that follow. An operator that was asked for nothing new has none.
Must never: run anything, or forget what came before the answer to it is there.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.operators.bags import bag_difference, consolidated
from headwater.operators.changes import Changes, come, nothing, together
from headwater.operators.kept_rows import KeptRows
from headwater.operators.operator import Operator
from headwater.operators.spilled_keys import SpilledKeys


class OpaqueOperator(Operator):
    """One whose output is made elsewhere of tables that it hands out."""

    text: str  # what is asked

    @property
    @abstractmethod
    def waiting(self) -> bool:
        """Whether its output is not that of all that came."""

    @property
    def waiting_rows(self) -> int:
        """How many rows are held until they are asked."""
        return 0

    @abstractmethod
    def question(self) -> list[pa.Table]:
        """The tables to ask it of."""

    @abstractmethod
    def answered(self, answer: pa.Table) -> Changes:
        """The changes of the output that an answer to the question makes."""


class OpaqueColumns(OpaqueOperator):
    """Columns beside each row: asked of the rows that come and go alone."""

    name = "opaque columns"

    def __init__(
        self,
        below: pa.Schema,
        reads: Sequence[str],
        names: Sequence[str],
        added: pa.Schema,
        text: str,
        takes_back: bool,
    ) -> None:
        """`names`: what the question calls the number of a row, then the columns that are read."""
        self.schema = pa.schema([*below, *added])
        self.takes_back, self.text = takes_back, text
        self._below, self._reads, self._names, self._added = below, list(reads), list(names), added
        self._came: list[Changes] = []

    @property
    def waiting(self) -> bool:
        """Whether rows came since the last answer."""
        return bool(self._came)

    @property
    def waiting_rows(self) -> int:
        """How many."""
        return sum(map(len, self._came))

    @property
    def nbytes(self) -> int:
        """What waits."""
        return sum(one.rows.nbytes + one.signs.nbytes for one in self._came)

    def apply(self, *inputs: Changes) -> Changes:
        """The rows wait."""
        self._came += [one for one in inputs if len(one)]
        return nothing(self.schema)

    def question(self) -> list[pa.Table]:
        """The rows that wait, with their numbers; one that came and went is not asked about."""
        changes = consolidated(together(self._came, self._below)).in_one_piece()
        self._came = [changes] if len(changes) else []
        numbers = pa.array(np.arange(len(changes)))
        read = [changes.rows.column(name) for name in self._reads]
        return [pa.table([numbers, *read], names=self._names)]

    def answered(self, answer: pa.Table) -> Changes:
        """The rows with their columns."""
        changes, self._came = together(self._came, self._below), []
        order = np.empty(len(changes), np.int64)
        order[answer.column(0).to_numpy()] = np.arange(answer.num_rows)
        found = answer.select(range(1, answer.num_columns)).take(pa.array(order))
        given = zip(found.columns, self._added.types, strict=True)
        columns = [*changes.rows.columns, *(column.cast(type_) for column, type_ in given)]
        return changes.with_rows(pa.Table.from_arrays(columns, schema=self.schema))

    def state(self) -> dict[str, Any]:
        """The rows that wait."""
        changes = together(self._came, self._below)
        columns = [column.combine_chunks() for column in changes.rows.columns]
        return {"waiting": columns, "signs": changes.signs}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        rows = pa.Table.from_arrays(state["waiting"], schema=self._below)
        self._came = [Changes(rows, np.asarray(state["signs"], np.int8))] if rows.num_rows else []


class OpaqueQuery(OpaqueOperator):
    """Rows made of all rows of the inputs: each answer is compared with the one before."""

    name = "opaque query"
    takes_back = True

    def __init__(
        self,
        inputs: Sequence[tuple[pa.Schema, bool]],
        names: Sequence[Sequence[str]],
        schema: pa.Schema,
        text: str,
    ) -> None:
        """`inputs`: columns, and whether rows of them go; `names`: what the question calls the columns."""
        self.schema, self.text, self._names = schema, text, names
        self._inputs = [KeptRows(below, takes_back) for below, takes_back in inputs]
        self._before = KeptRows(schema, takes_back=True)  # the last answer
        self._waiting = True  # no rows give some, too

    @property
    def waiting(self) -> bool:
        """Whether an input has changed since the last answer."""
        return self._waiting

    @property
    def nbytes(self) -> int:
        """The inputs and the last answer."""
        return sum(rows.nbytes for rows in self._kept)

    @property
    def _kept(self) -> list[KeptRows]:
        return [*self._inputs, self._before]

    @property
    def spilled(self) -> Sequence[SpilledKeys]:
        """The inputs and the last answer."""
        return [part for rows in self._kept for part in rows.spilled]

    def spill(self) -> None:
        """All of it goes to disk until it is asked again."""
        for rows in self._kept:
            rows.spill()

    def apply(self, *inputs: Changes) -> Changes:
        """Rows of the inputs are taken in."""
        for rows, changes in zip(self._inputs, inputs, strict=True):
            rows.apply(changes)
        self._waiting = True
        return nothing(self.schema)

    def question(self) -> list[pa.Table]:
        """All rows of the inputs."""
        tables = [rows.table() for rows in self._inputs]
        return [
            table.rename_columns(list(names))
            for table, names in zip(tables, self._names, strict=True)
        ]

    def answered(self, answer: pa.Table) -> Changes:
        """What differs from the answer before."""
        columns = zip(answer.columns, self.schema.types, strict=True)
        rows = pa.Table.from_arrays([c.cast(type_) for c, type_ in columns], schema=self.schema)
        first = not len(self._before)
        changes = come(rows) if first else bag_difference(self._before.table(), rows)
        self._before.apply(changes)
        self._waiting = False
        return changes

    def state(self) -> dict[str, Any]:
        """The inputs and the last answer."""
        return {
            "inputs": [rows.state() for rows in self._inputs],
            "before": self._before.state(),
            "waiting": self._waiting,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        for rows, kept in zip(self._inputs, state["inputs"], strict=True):
            rows.restore(kept)
        self._before.restore(state["before"])
        self._waiting = state["waiting"]
