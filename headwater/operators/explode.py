"""One row for each element of a list or map: Spark's explode, posexplode and their outer kinds.

Owns: nothing; a row that is taken back takes back what came of it. Must never: look at the elements.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headwater.fold.columns import Slots
from headwater.operators.changes import Changes
from headwater.operators.flat import elements, positions, whole
from headwater.operators.operator import Operator


class ExplodeRows(Operator):
    """The input's columns, then the position if asked for, then the element, or the key and the value."""

    name = "explode"

    def __init__(
        self,
        schema: pa.Schema,
        column: str,
        outputs: Sequence[str],
        position: bool,
        outer: bool,
        takes_back: bool,
    ) -> None:
        """`outer`: a row whose list is empty or NULL stays, with NULL for the element and its position."""
        type_ = schema.field(column).type
        inner = [type_.key_type, type_.item_type] if pa.types.is_map(type_) else [type_.value_type]
        types = [pa.int32(), *inner] if position else inner
        fields = [pa.field(name, given) for name, given in zip(outputs, types, strict=True)]
        self.schema, self.takes_back = pa.schema([*schema, *fields]), takes_back
        self._column, self._position, self._outer = column, position, outer

    def apply(self, *inputs: Changes) -> Changes:
        (changes,) = inputs
        lists = whole(changes.rows.column(self._column))
        if pa.types.is_fixed_size_list(lists.type):
            lists = lists.cast(pa.large_list(lists.type.value_type))
        starts, lengths = elements(lists)
        rows = np.repeat(np.arange(len(lists)), lengths)
        places, inside = positions(starts, lengths)
        empty = np.flatnonzero(lengths == 0) if self._outer else _NO_ROWS
        taken = changes.taken(np.concatenate([rows, empty]))
        filled = _with_nulls(places, len(empty))
        columns = [column.take(filled) for column in _inner(lists)]
        if self._position:
            columns.insert(0, _with_nulls(inside, len(empty)).cast(pa.int32()))
        every = [*taken.rows.columns, *columns]
        return taken.with_rows(pa.Table.from_arrays(every, schema=self.schema))


_NO_ROWS: Slots = np.empty(0, np.int64)


def _with_nulls(values: Slots, null_count: int) -> pa.Array:
    """Numbers, and so many NULLs after them."""
    return pa.concat_arrays([pa.array(values), pa.nulls(null_count, pa.int64())])


def _inner(lists: pa.Array) -> list[pa.Array]:
    return [lists.keys, lists.items] if pa.types.is_map(lists.type) else [lists.values]
