"""The sorted keys of many blocks as one, so that a single search serves a compartment.

Owns: the merge. Runs that are sorted already merge in one linear pass of a stable sort (timsort),
and only over distinct keys; row numbers are then copied piece by piece.
Must never: read a file. A merged structure is valid while its blocks are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.expression.predicate import Comparison
from headwater.storage.value_index.keys import (
    BytesKeys,
    Numbers,
    SortedKeys,
    bytes_keys,
    first_of_runs,
    key_of,
    place,
    ranked,
)
from headwater.storage.value_index.lookup import Rows, key_range, require_answer


@dataclass(frozen=True, eq=False)
class MergedKeys:
    """Entry e is (ordinals[e], rows[e]); key i has entries starts[i] to starts[i + 1], in order."""

    column: str
    type: pa.DataType
    method: str
    keys: Numbers | BytesKeys
    starts: npt.NDArray[np.int64]
    ordinals: npt.NDArray[np.uint32]
    rows: npt.NDArray[np.uint32]

    def frequency(self, value: Any) -> int:
        """In how many rows of all blocks the value stands."""
        position, found = place(self.keys, key_of(value, self.type))
        return int(self.starts[position + 1] - self.starts[position]) if found else 0


def merge(runs: Sequence[tuple[SortedKeys, int]]) -> MergedKeys:
    """One structure over blocks, each with its ordinal; at least one, all of one index."""
    runs = sorted(runs, key=lambda run: run[1])
    blocks, first = [run for run, _ in runs], runs[0][0]
    if any((b.type, b.method) != (first.type, first.method) for b in blocks):
        raise ValueError("runs of different indexes cannot be merged")
    keys, starts, order = _merged_keys(blocks)
    lengths = np.concatenate([np.diff(b.starts.astype(np.int64)) for b in blocks])
    begins = np.cumsum(lengths) - lengths  # of each piece, in the blocks' rows put end to end
    lengths, begins = lengths[order], begins[order]
    ends = np.cumsum(lengths)
    source = np.repeat(begins - (ends - lengths), lengths) + np.arange(lengths.sum())
    owner = np.repeat([np.uint32(o) for _, o in runs], [len(b.keys) for b in blocks])[order]
    return MergedKeys(
        first.column,
        first.type,
        first.method,
        keys,
        np.concatenate(([0], ends))[starts],
        np.repeat(owner, lengths).astype(np.uint32),
        np.concatenate([b.rows for b in blocks])[source],
    )


def _merged_keys(
    blocks: Sequence[SortedKeys],
) -> tuple[Numbers | BytesKeys, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The distinct keys, where each begins among the sorted pieces, and the pieces' order."""
    numbers = [b.keys for b in blocks if not isinstance(b.keys, BytesKeys)]
    if numbers:
        every = np.concatenate(numbers)
        order = np.argsort(every, kind="stable")
        ordered = every[order]
        first = first_of_runs(ordered)
        return ordered[first], np.append(first, len(every)), order
    every_key = [b.keys.array() for b in blocks if isinstance(b.keys, BytesKeys)]
    distinct, ranks = ranked(pa.concat_arrays(every_key))
    order = np.argsort(ranks, kind="stable")
    first = first_of_runs(ranks[order])
    return bytes_keys(distinct, pa.large_binary()), np.append(first, len(ranks)), order


def lookup_merged(merged: MergedKeys, comparison: Comparison) -> dict[int, Rows]:
    """The matching rows by block ordinal, each ascending; blocks without one are left out."""
    require_answer(merged, comparison)
    first, last = key_range(merged.keys, comparison)
    chosen = slice(merged.starts[first], merged.starts[last])
    ordinals, rows = merged.ordinals[chosen], merged.rows[chosen]
    if last - first > 1:
        order = np.lexsort((rows, ordinals))
        ordinals, rows = ordinals[order], rows[order]
    cuts = first_of_runs(ordinals)
    pieces = np.split(rows.astype(np.int64), cuts[1:]) if len(cuts) else []
    return {int(ordinals[cut]): piece for cut, piece in zip(cuts, pieces, strict=True)}
