"""The rows of one block for one comparison, from its sorted keys.

Owns: which comparisons an index answers and the step from keys to row numbers.
Must never: leave out a row that matches. Rows come as sorted int64 numbers without repeats.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.expression.predicate import Comparison
from headwater.storage.value_index.keys import (
    BTREE,
    BytesKeys,
    Numbers,
    SortedKeys,
    key_of,
    place,
    same_type,
)

Rows = npt.NDArray[np.int64]
ORDERED = frozenset(("=", "<", "<=", ">", ">="))
DENSE = 16  # from 1/DENSE of the block on, marking rows is faster than sorting them


class Described(Protocol):
    """What is known of keys, of one block or merged."""

    @property
    def column(self) -> str: ...
    @property
    def type(self) -> pa.DataType: ...
    @property
    def method(self) -> str: ...


def answers(keys: Described, comparison: Comparison) -> bool:
    """Whether the index answers the comparison: HASH only =, none answers !=."""
    operators = ORDERED if keys.method == BTREE else frozenset("=")
    return comparison.op in operators and same_type(keys.type, comparison.type)


def require_answer(keys: Described, comparison: Comparison) -> None:
    """Refuses a comparison that the index does not answer."""
    if not answers(keys, comparison):
        raise ValueError(f"the {keys.method} index on {keys.column} does not answer {comparison}")


def count(keys: SortedKeys, comparison: Comparison) -> int:
    """How many rows `lookup` would give, without reading them."""
    first, last = key_range(keys.keys, comparison)
    return int(keys.starts[last]) - int(keys.starts[first])


def frequency(keys: SortedKeys, value: Any) -> int:
    """In how many rows the value stands."""
    return keys.frequency(value)


def lookup(keys: SortedKeys, comparison: Comparison) -> Rows:
    """The rows for which the comparison is true."""
    require_answer(keys, comparison)
    first, last = key_range(keys.keys, comparison)
    rows = keys.rows[keys.starts[first] : keys.starts[last]]
    return rows.astype(np.int64) if last - first <= 1 else ascending(rows, keys.row_count)


def key_range(keys: Numbers | BytesKeys, comparison: Comparison) -> tuple[int, int]:
    """The half-open range of positions of the keys that match."""
    key = key_of(comparison.value, comparison.type)
    if key is None:
        return 0, 0
    start, found = place(keys, key)
    after = start + found
    ranges = {
        "=": (start, after),
        "<": (0, start),
        "<=": (0, after),
        ">": (after, len(keys)),
        ">=": (start, len(keys)),
    }
    return ranges[comparison.op]


def ascending(rows: npt.NDArray[Any], row_count: int) -> Rows:
    """Row numbers sorted, each once."""
    if len(rows) * DENSE < row_count:
        return np.unique(rows).astype(np.int64)
    marks = np.zeros(row_count, np.bool_)
    marks[rows] = True
    return np.flatnonzero(marks)
