"""Keys → partitions, the same in every process and for every state.

Owns: the hash. Keys that Spark groups together (NaN with NaN, -0.0 with 0.0, NULL with NULL) have one
partition, whichever rows stand beside them. Must never: change, because spilled states go by it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headwater.fold.codes import MULTIPLIER, key_bits
from headwater.fold.columns import OBJECT, Column, Slots, Vector

NULL_BITS = np.uint64(0x5851F42D4C957F2D)
PIECE = 1 << 15  # texts whose bytes are spread out at a time


def partitions_by(hashes: Vector, count: int) -> Slots:
    """The partitions, below `count`, of keys with these hashes."""
    return ((hashes >> np.uint64(32)) % np.uint64(count)).astype(np.int64)


def hashes_of(keys: Sequence[pa.Array], row_count: int) -> Vector:
    """64 bits for each row's key; equal keys have equal bits, others hardly ever."""
    bits = np.zeros(row_count, np.uint64)
    for key in keys:
        bits = _mixed(bits + bits_of(Column(key)))
    return bits


def _mixed(bits: Vector) -> Vector:
    """Every bit of a number has its say in the upper half."""
    bits = (bits ^ (bits >> np.uint64(32))) * MULTIPLIER
    return (bits ^ (bits >> np.uint64(29))) * MULTIPLIER


def bits_of(column: Column) -> Vector:
    """64 bits for each value of a column; equal values have equal bits."""
    if column.kind != OBJECT:
        bits = key_bits(column).view(np.uint64).copy()
    elif pa.types.is_decimal(column.type):
        bits = _decimal_bits(column.array)
    else:
        pieces = range(0, len(column), PIECE)
        found = [_text_bits(column.array.slice(start, PIECE)) for start in pieces]
        bits = np.concatenate([np.empty(0, np.uint64), *found])
    if column.valid is not None:
        bits[~column.valid] = NULL_BITS
    return bits


def _decimal_bits(array: pa.Array) -> Vector:
    data = array.buffers()[1]
    if data is None:
        return np.zeros(len(array), np.uint64)
    words = np.frombuffer(data, np.uint64, 2 * len(array), 16 * array.offset)
    return _mixed(words[1::2]) + words[::2]


def _text_bits(array: pa.Array) -> Vector:
    """A sum over the bytes of each text, each byte weighed by its place."""
    texts = array.cast(pa.large_binary())
    _, places, data = texts.buffers()
    offsets = np.frombuffer(places, np.int64, len(texts) + 1, 8 * texts.offset)
    lengths = np.diff(offsets)
    if data is None or not lengths.any():
        return lengths.astype(np.uint64)
    used = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]].astype(np.uint64)
    starts = offsets[:-1] - offsets[0]
    inside = np.arange(len(used)) - np.repeat(starts, lengths)
    sums = np.zeros(len(used) + 1, np.uint64)
    np.cumsum((used + np.uint64(1)) * _mixed(inside.astype(np.uint64) + np.uint64(1)), out=sums[1:])
    return sums[starts + lengths] - sums[starts] + lengths.astype(np.uint64)
