"""The rows of one block for a comparison, from its sorted keys, and the candidates for a whole predicate.

Owns: which comparisons an index answers, the step from keys to row numbers, and the rules for AND, OR and
what is not indexed. Candidates may be too many, never too few: the caller filters them with the predicate.
A comparison that is NULL never matches, so rows without a key are rightly left out.
Must never: read a file, evaluate a predicate on rows, or leave out a row that matches. Rows come as sorted
int64 numbers without repeats.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from headwater.expression.predicate import And, Comparison, Constant, Or, Predicate
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
Indexes = Mapping[str, SortedKeys]
WORTH = 32  # a part of AND with more than WORTH times the rows already left is not read
DENSE = 16  # from 1/DENSE of the block on, marking rows is faster than sorting them


def answers(keys: SortedKeys, comparison: Comparison) -> bool:
    """Whether the index answers the comparison: HASH only =, none answers !=."""
    operators = ORDERED if keys.method == BTREE else frozenset("=")
    return comparison.op in operators and same_type(keys.type, comparison.type)


def count(keys: SortedKeys, comparison: Comparison) -> int:
    """How many rows `lookup` would give, without reading them."""
    first, last = key_range(keys.keys, comparison)
    return int(keys.starts[last]) - int(keys.starts[first])


def lookup(keys: SortedKeys, comparison: Comparison) -> Rows:
    """The rows for which the comparison is true; ValueError if the index does not answer it."""
    if not answers(keys, comparison):
        raise ValueError(f"the {keys.method} index on {keys.column} does not answer {comparison}")
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


def rows_for(predicate: Predicate, indexes: Indexes, row_count: int) -> Rows | None:
    """The rows that may match, ascending; None is all rows: no index helps."""
    if isinstance(predicate, Constant):
        return None if predicate.value else np.empty(0, np.int64)
    if isinstance(predicate, Comparison):
        keys = _usable(predicate, indexes, row_count)
        return None if keys is None else lookup(keys, predicate)
    if isinstance(predicate, And):
        return _intersection(predicate, indexes, row_count)
    if isinstance(predicate, Or):
        return _union(predicate, indexes, row_count)
    return None


def estimate(predicate: Predicate, indexes: Indexes, row_count: int) -> int:
    """At most so many rows are candidates; found without reading row numbers."""
    if isinstance(predicate, Constant):
        return row_count if predicate.value else 0
    if isinstance(predicate, Comparison):
        keys = _usable(predicate, indexes, row_count)
        return row_count if keys is None else count(keys, predicate)
    if isinstance(predicate, And):
        bounds = (estimate(part, indexes, row_count) for part in predicate.parts)
        return min(bounds, default=row_count)
    if isinstance(predicate, Or):
        return min(sum(estimate(part, indexes, row_count) for part in predicate.parts), row_count)
    return row_count


def _usable(comparison: Comparison, indexes: Indexes, row_count: int) -> SortedKeys | None:
    keys = indexes.get(comparison.column)
    if keys is None or keys.row_count != row_count or not answers(keys, comparison):
        return None
    return keys


def _intersection(predicate: And, indexes: Indexes, row_count: int) -> Rows | None:
    """Most selective part first."""
    found: Rows | None = None
    bounded = [(estimate(part, indexes, row_count), part) for part in predicate.parts]
    for bound, part in sorted(bounded, key=lambda pair: pair[0]):
        if found is not None and bound > WORTH * len(found):
            break
        rows = rows_for(part, indexes, row_count)
        if rows is not None:
            found = rows if found is None else _common(found, rows)
    return found


def _common(left: Rows, right: Rows) -> Rows:
    fewer, more = sorted((left, right), key=len)
    if not len(fewer):
        return fewer
    places = np.minimum(more.searchsorted(fewer), len(more) - 1)
    return fewer[more[places] == fewer]


def _union(predicate: Or, indexes: Indexes, row_count: int) -> Rows | None:
    branches: list[Rows] = []
    for part in predicate.parts:
        rows = rows_for(part, indexes, row_count)
        if rows is None:
            return None
        branches.append(rows)
    if len(branches) == 1:
        return branches[0]
    return ascending(np.concatenate([np.empty(0, np.int64), *branches]), row_count)
