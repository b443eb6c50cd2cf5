"""Keys → shares: which part of a split view has a group.

Owns: the hash by which groups are shared out. Keys that Spark groups together (NaN with NaN, -0.0 with 0.0,
NULL with NULL) are one part's, in every process and at every start. Every part asks it of every row, so it
is cheap: one product per column, and of long text the first bytes and the last. It is not the hash that
spilled states and lookups go by: else a part would fill only some of their places. Must never: change,
because the groups of a part's snapshot were chosen by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headwater.fold.codes import key_bits
from headwater.fold.columns import OBJECT, Column, Slots, Vector
from headwater.fold.hashing import NULL_BITS, bits_of

MULTIPLIER = np.uint64(0xD1342543DE82EF95)
HALF = np.uint64(32)
WORD_BYTES = 8
MOST_BYTES = 64  # of a text, from its beginning; its last word counts in any case
PIECE = 1 << 14  # texts at a time, so that what is made of them stays near the processor


class Share(NamedTuple):
    """Of all groups those that fall to one of several parts."""

    place: int  # from 0 on
    parts: int

    def __str__(self) -> str:
        return f"part {self.place + 1} of {self.parts}"

    def rows(self, keys: Sequence[pa.Array], row_count: int) -> Slots:
        """The numbers of the rows that are of a group of this part."""
        first, end = (
            -(-(place << 32) // self.parts) << 32 for place in (self.place, self.place + 1)
        )
        bits = _hashes(keys, row_count)
        bits -= np.uint64(first)  # numbers before the first go round, and beyond the end
        return np.flatnonzero(bits < np.uint64(end - first))


def shares_of(keys: Sequence[pa.Array], row_count: int, parts: int) -> Slots:
    """The part that has each row's group, below `parts`."""
    return (((_hashes(keys, row_count) >> HALF) * np.uint64(parts)) >> HALF).astype(np.int64)


def _hashes(keys: Sequence[pa.Array], row_count: int) -> Vector:
    """64 bits for each row's key, of which the upper half counts."""
    bits = np.zeros(row_count, np.uint64)
    for number, key in enumerate(keys):
        own = _bits(Column(key))
        bits = (own if not number else (bits ^ (bits >> HALF)) + own) * MULTIPLIER
    return bits


def _bits(column: Column) -> Vector:
    """64 bits for each value; not to be written to."""
    if column.kind == OBJECT and not pa.types.is_decimal(column.type):
        bits = _text_bits(column.array)
    elif column.kind != OBJECT and column.valid is None:
        return key_bits(column).view(np.uint64)
    else:
        return bits_of(column)
    if column.valid is not None:
        bits[~column.valid] = NULL_BITS
    return bits


def _text_bits(array: pa.Array) -> Vector:
    """A product over the words of each text: the first ones, and the last; some texts at a time."""
    texts = array.cast(pa.large_binary())
    pieces = [texts.slice(first, PIECE) for first in range(0, len(texts), PIECE)]
    return np.concatenate([np.empty(0, np.uint64), *map(_piece_bits, pieces)])


def _piece_bits(texts: pa.Array) -> Vector:
    _, places, data = texts.buffers()
    offsets = np.frombuffer(places, np.int64, len(texts) + 1, 8 * texts.offset)
    starts, lengths = offsets[:-1] - offsets[0], np.diff(offsets)
    bits, longest = lengths.astype(np.uint64), int(lengths.max(initial=0))
    if data is None or not longest:
        return bits
    words = _words(data, int(offsets[0]), int(offsets[-1]))
    bits = _with_word(bits, words[starts], lengths)
    for before in range(WORD_BYTES, min(longest, MOST_BYTES), WORD_BYTES):
        rows = np.flatnonzero(lengths > before)
        at, left = starts[rows] + before, lengths[rows] - before
        bits[rows] = _with_word(bits[rows], words[at], left)
    if longest > MOST_BYTES:
        rows = np.flatnonzero(lengths > MOST_BYTES)
        last = starts[rows] + lengths[rows] - WORD_BYTES
        bits[rows] = _with_word(bits[rows], words[last], lengths[rows])
    return bits


def _words(data: pa.Buffer, start: int, end: int) -> Vector:
    """By the number of a byte, the word that begins there."""
    padded = np.zeros(end - start + WORD_BYTES, np.uint8)
    padded[: end - start] = np.frombuffer(data, np.uint8)[start:end]
    return np.ndarray(end - start + 1, "<u8", padded.data, strides=(1,))


def _with_word(bits: Vector, words: Vector, left: Vector) -> Vector:
    """A word more; of its bytes only as many count as are left of the text."""
    gone = np.maximum(WORD_BYTES - left, 0) << 3
    return ((bits ^ (bits >> HALF)) + (words << gone.view(np.uint64))) * MULTIPLIER
