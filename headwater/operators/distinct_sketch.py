"""About how many different values a group has: HyperLogLog registers by group, for rows that only come.

Owns: the registers and the estimate. A value's hash names one of 2^b registers and a rank, how many zeros it
begins with; a register holds the greatest rank. Registers that nobody named are not stored, so a small group
takes little, and none takes more than its 2^b. The estimate is that of Ertl ("New cardinality estimation
algorithms for HyperLogLog sketches", 2017), which needs no table and no threshold. Must never: take back.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.fold.codes import IntegerCodes
from headwater.fold.columns import Column, Slots, Vector
from headwater.fold.hashing import bits_of
from headwater.operators.changes import Signs
from headwater.operators.vectors import Growing

USUAL_ERROR = 0.05  # Spark's, of approx_count_distinct: a standard deviation
MORE_BITS = 2  # than Spark takes: half of the error that is allowed
ALPHA = 1 / (2 * math.log(2))
LEAST_GROUPS = 1024


def bits_for(error: float) -> int:
    """How many bits name a register."""
    return math.ceil(2 * math.log2(1.106 / error)) + MORE_BITS


class DistinctEstimates:
    """The estimates over one argument, with the interface that the pairs of DISTINCT have."""

    def __init__(self, argument: str, error: float) -> None:
        self.arguments, self.bits = (argument,), bits_for(error)
        self.numbers: list[int] = []  # of the aggregates
        self.clear()

    def clear(self) -> None:
        """No group has anything."""
        self.pairs = _Registers(self.bits)
        self.folded = _Sums(1 << self.bits)

    def finish(self, slots: Slots) -> list[pa.Array]:
        """The estimates of some groups, once for each aggregate."""
        return [self.folded.finish(slots)] * len(self.numbers)

    def apply(self, slots: Slots, slot_count: int, columns: Sequence[Column], signs: Signs) -> None:
        """Rows come."""
        assert (signs > 0).all(), "a sketch cannot take back"
        (column,) = columns
        hashes = _mixed(bits_of(column))
        if column.valid is not None:
            slots, hashes = slots[column.valid], hashes[column.valid]
        self.folded.grow(slot_count)
        self.folded.change(*self.pairs.apply(slots, hashes))


class _Registers:
    """The greatest rank of each register of each group."""

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._codes = IntegerCodes()  # group and register as one number
        self._ranks = Growing(np.uint8)

    @property
    def nbytes(self) -> int:
        return self._codes.nbytes + self._ranks.nbytes

    def apply(self, slots: Slots, hashes: Vector) -> tuple[Slots, Vector, Vector]:
        """Takes in hashes; of the registers that rose, whose they are, the rank before and after."""
        names, ranks = _named(hashes, self._bits)
        codes = self._codes.codes((slots << self._bits) | names)
        known = self._ranks.filled(len(self._codes), 0)
        order = np.lexsort((ranks, codes))
        last = np.append(codes[order][1:] != codes[order][:-1], len(order) > 0)[: len(order)]
        codes, ranks = codes[order[last]], ranks[order[last]]
        before = known[codes]
        rose = ranks > before
        known[codes[rose]] = ranks[rose]
        owners = self._codes.values[codes[rose]] >> self._bits
        return owners, before[rose], ranks[rose]

    def columns(self) -> tuple[Slots, list[pa.Array]]:
        """All registers: the slots of their groups; their names and ranks."""
        values = self._codes.values
        names = values & ((1 << self._bits) - 1)
        return values >> self._bits, [pa.array(names), pa.array(self._ranks.values)]

    def put(self, slots: Slots, columns: Sequence[pa.Array]) -> None:
        """Registers of groups that have none come, as `columns` gave them."""
        names, ranks = (column.to_numpy() for column in columns)
        codes = self._codes.codes((slots << self._bits) | names)
        self._ranks.filled(len(self._codes), 0)[codes] = ranks

    def remap(self, new: Slots) -> None:
        """Groups have other slots now."""
        slots, columns = self.columns()
        self.__init__(self._bits)  # type: ignore[misc]
        self.put(new[slots], columns)

    def state(self) -> dict[str, Any]:
        return {"values": self._codes.values.copy(), "ranks": self._ranks.values.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        self.__init__(self._bits)  # type: ignore[misc]
        self._codes.load(state["values"])
        self._ranks.append(state["ranks"])


class _Sums:
    """By group how many registers were named, and the sum of 2^−rank over them."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._counts: Vector = np.zeros(0, np.int64)
        self._inverse: Vector = np.zeros(0, np.float64)

    @property
    def nbytes(self) -> int:
        return self._counts.nbytes + self._inverse.nbytes

    def grow(self, slot_count: int) -> None:
        """Room for so many slots."""
        missing = slot_count - len(self._counts)
        if missing > 0:
            room = max(missing, len(self._counts) // 2, LEAST_GROUPS)
            self._counts = np.concatenate([self._counts, np.zeros(room, np.int64)])
            self._inverse = np.concatenate([self._inverse, np.zeros(room)])

    def change(self, owners: Slots, before: Vector, after: Vector) -> None:
        """Registers rose."""
        new = before == 0
        np.add.at(self._counts, owners[new], 1)
        gone = np.where(new, 0.0, np.ldexp(1.0, -before.astype(np.int64)))
        np.add.at(self._inverse, owners, np.ldexp(1.0, -after.astype(np.int64)) - gone)

    def finish(self, slots: Slots) -> pa.Array:
        """The estimates of some groups."""
        counts, inverse = self._counts[slots], self._inverse[slots]
        empty = _unnamed(1.0 - counts / self._size)
        with np.errstate(divide="ignore"):
            found = ALPHA * self._size**2 / (inverse + self._size * empty)
        rounded = np.rint(found).astype(np.int64)
        return pa.array(np.where(counts > 0, np.maximum(rounded, 1), 0))

    def keep(self, slots: Slots) -> None:
        """Forget all groups but these, which become 0, 1, 2, …"""
        self._counts, self._inverse = self._counts[slots], self._inverse[slots]

    def columns(self, slots: Slots) -> list[pa.Array]:
        """What is kept of some groups."""
        return [pa.array(self._counts[slots]), pa.array(self._inverse[slots])]

    def put(self, slots: Slots, columns: Iterator[pa.Array]) -> None:
        """Groups have what the first columns of some say."""
        self._counts[slots] = next(columns).to_numpy()
        self._inverse[slots] = next(columns).to_numpy()

    def state(self, slots: Slots) -> list[Vector]:
        return [self._counts[slots], self._inverse[slots]]

    def restore(self, slots: Slots, state: Sequence[Vector]) -> None:
        self.__init__(self._size)  # type: ignore[misc]
        self.grow(int(slots.max()) + 1 if len(slots) else 0)
        self._counts[slots], self._inverse[slots] = state


def _mixed(bits: Vector) -> Vector:
    """Every bit of a number has its say in all bits."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _named(hashes: Vector, bits: int) -> tuple[Vector, Vector]:
    """The register that a hash names by its first bits, and the place of the first one among the others."""
    own, rest = np.uint64(bits), np.uint64(64 - bits)
    others = (hashes << own) | (np.uint64(1) << np.uint64(bits - 1))
    lengths = np.frexp(others.astype(np.float64))[1]  # in bits
    return (hashes >> rest).astype(np.int64), (65 - lengths).astype(np.uint8)


def _unnamed(share: Vector) -> Vector:
    """Ertl's σ of the share of registers that nobody named: ∞ for all of them."""
    full, weight = share == 1.0, 1.0
    power = np.where(full, 0.0, share)
    total = power.copy()
    while True:
        power = power * power
        before, total = total, total + power * weight
        weight += weight
        if (before == total).all():
            return np.where(full, np.inf, total)
