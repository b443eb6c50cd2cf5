"""The candidate rows of a block for a whole predicate.

Owns: the rules for AND, OR and what is not indexed. Candidates may be too many, never too few:
the caller filters them with the predicate. A comparison that is NULL never matches, so rows
without a key are rightly left out.
Must never: read a file or evaluate a predicate on rows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from headwater.expression.predicate import And, Comparison, Constant, Or, Predicate
from headwater.storage.value_index.keys import SortedKeys
from headwater.storage.value_index.lookup import Rows, answers, ascending, count, lookup

Indexes = Mapping[str, SortedKeys]
WORTH = 32  # a part of AND with more than WORTH times the rows already left is not read


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
