"""The interval index: which blocks overlap a stretch of time (ST8).

Owns: closed bounds [low, high] in ticks of every block, in memory and on disk alike. A balanced
(AVL) tree ordered by low, each node knowing the largest high below it. A change copies the path
to the root and shares the rest, so a snapshot costs nothing and never changes.
Must never: open a file, lock, or know what a block holds. One writer at a time; readers take
`snapshot()` from any thread.

Cost: O(log n) to add, remove and find the start; a query visits O(log n + k) nodes when the k
blocks found are neighbours (the usual case) and O(k log n) when they are scattered.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

BlockId = TypeVar("BlockId", bound=Hashable)


@dataclass(frozen=True, slots=True)
class _Node(Generic[BlockId]):
    low: int
    serial: int  # orders blocks of the same low by arrival
    high: int
    block_id: BlockId
    left: _Node[BlockId] | None
    right: _Node[BlockId] | None
    height: int
    largest_high: int


@dataclass(frozen=True, slots=True)
class Intervals(Generic[BlockId]):
    """An immutable snapshot of the index."""

    _root: _Node[BlockId] | None
    _count: int

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[BlockId]:
        return iter(self.overlapping(None, None))

    def overlapping(self, low: int | None, high: int | None) -> list[BlockId]:
        """The blocks that share a tick with [low, high], by their low; None is unbounded."""
        found: list[BlockId] = []
        _collect(self._root, low, high, found)
        return found

    def bounds(self) -> tuple[int, int] | None:
        """The smallest low and the largest high; None if there is no block."""
        node = self._root
        if node is None:
            return None
        largest = node.largest_high
        while node.left is not None:
            node = node.left
        return node.low, largest

    def validate(self) -> None:
        """Checks order, balance and largest highs; for tests."""
        nodes = list(_in_order(self._root))
        keys = [(node.low, node.serial) for node in nodes]
        assert keys == sorted(set(keys)), "not in order"
        assert len(nodes) == self._count, "wrong count"
        for node in nodes:
            assert abs(_height(node.left) - _height(node.right)) <= 1, "not balanced"
            below = (node.left, node.right)
            highs = [node.high, *(child.largest_high for child in below if child is not None)]
            assert node.largest_high == max(highs), "wrong largest high"


class IntervalIndex(Generic[BlockId]):
    """The index that a writer changes; `snapshot()` is what readers use."""

    def __init__(self, blocks: Iterable[tuple[BlockId, int, int]] = ()) -> None:
        self._places: dict[BlockId, tuple[int, int]] = {}
        entries: list[tuple[int, int, int, BlockId]] = []
        for serial, (block_id, low, high) in enumerate(blocks):
            self._check_new(block_id, low, high)
            self._places[block_id] = (low, serial)
            entries.append((low, serial, high, block_id))
        self._next_serial = len(entries)
        entries.sort(key=lambda entry: entry[:2])
        self._snapshot = Intervals(_balanced(entries, 0, len(entries)), len(entries))

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, block_id: object) -> bool:
        return block_id in self._places

    def snapshot(self) -> Intervals[BlockId]:
        """The index as it is now; it stays so."""
        return self._snapshot

    def add(self, block_id: BlockId, low: int, high: int) -> None:
        """Adds a block with its closed bounds; a block that is there already is refused."""
        self._check_new(block_id, low, high)
        serial = self._next_serial
        root = _insert(self._snapshot._root, _leaf(low, serial, high, block_id))
        self._next_serial += 1
        self._places[block_id] = (low, serial)
        self._snapshot = Intervals(root, len(self._places))

    def remove(self, block_id: BlockId) -> None:
        """Removes a block; KeyError if it is not there."""
        root = _delete(self._snapshot._root, self._places[block_id])
        del self._places[block_id]
        self._snapshot = Intervals(root, len(self._places))

    def overlapping(self, low: int | None, high: int | None) -> list[BlockId]:
        """As `snapshot().overlapping(low, high)`."""
        return self._snapshot.overlapping(low, high)

    def _check_new(self, block_id: BlockId, low: int, high: int) -> None:
        if low > high:
            raise ValueError(f"block {block_id!r} ends ({high}) before it begins ({low})")
        if block_id in self._places:
            raise ValueError(f"block {block_id!r} is in the index already")


def _collect(
    node: _Node[BlockId] | None, low: int | None, high: int | None, found: list[BlockId]
) -> int:
    """Appends the blocks that overlap in order of low; the number of nodes visited."""
    visited = 0
    while node is not None and (low is None or node.largest_high >= low):
        visited += 1
        if high is not None and node.low > high:
            node = node.left
            continue
        visited += _collect(node.left, low, high, found)
        if low is None or node.high >= low:
            found.append(node.block_id)
        node = node.right
    return visited


def _in_order(node: _Node[BlockId] | None) -> Iterator[_Node[BlockId]]:
    if node is not None:
        yield from _in_order(node.left)
        yield node
        yield from _in_order(node.right)


def _height(node: _Node[BlockId] | None) -> int:
    return 0 if node is None else node.height


def _leaf(low: int, serial: int, high: int, block_id: BlockId) -> _Node[BlockId]:
    return _Node(low, serial, high, block_id, None, None, 1, high)


def _joined(
    at: _Node[BlockId], left: _Node[BlockId] | None, right: _Node[BlockId] | None
) -> _Node[BlockId]:
    """The block of `at` above two trees."""
    largest, height = at.high, 0
    for child in (left, right):
        if child is not None:
            largest, height = max(largest, child.largest_high), max(height, child.height)
    return _Node(at.low, at.serial, at.high, at.block_id, left, right, height + 1, largest)


def _rebalanced(
    at: _Node[BlockId], left: _Node[BlockId] | None, right: _Node[BlockId] | None
) -> _Node[BlockId]:
    """As `_joined`, for trees whose heights differ by at most two."""
    tilt = _height(left) - _height(right)
    if tilt > 1:
        assert left is not None
        if _height(left.left) < _height(left.right):
            assert left.right is not None
            left = _rotated_left(left, left.right)
        return _joined(left, left.left, _joined(at, left.right, right))
    if tilt < -1:
        assert right is not None
        if _height(right.right) < _height(right.left):
            assert right.left is not None
            right = _rotated_right(right, right.left)
        return _joined(right, _joined(at, left, right.left), right.right)
    return _joined(at, left, right)


def _rotated_left(node: _Node[BlockId], child: _Node[BlockId]) -> _Node[BlockId]:
    return _joined(child, _joined(node, node.left, child.left), child.right)


def _rotated_right(node: _Node[BlockId], child: _Node[BlockId]) -> _Node[BlockId]:
    return _joined(child, child.left, _joined(node, child.right, node.right))


def _insert(node: _Node[BlockId] | None, leaf: _Node[BlockId]) -> _Node[BlockId]:
    if node is None:
        return leaf
    if (leaf.low, leaf.serial) < (node.low, node.serial):
        return _rebalanced(node, _insert(node.left, leaf), node.right)
    return _rebalanced(node, node.left, _insert(node.right, leaf))


def _delete(node: _Node[BlockId] | None, place: tuple[int, int]) -> _Node[BlockId] | None:
    assert node is not None, "a known block is in the tree"
    here = (node.low, node.serial)
    if place < here:
        return _rebalanced(node, _delete(node.left, place), node.right)
    if place > here:
        return _rebalanced(node, node.left, _delete(node.right, place))
    if node.left is None or node.right is None:
        return node.left or node.right
    heir = node.right
    while heir.left is not None:
        heir = heir.left
    return _rebalanced(heir, node.left, _delete(node.right, (heir.low, heir.serial)))


def _balanced(
    entries: list[tuple[int, int, int, BlockId]], start: int, end: int
) -> _Node[BlockId] | None:
    """A balanced tree of the sorted entries in [start, end)."""
    if start == end:
        return None
    middle = (start + end) // 2
    at = _leaf(*entries[middle])
    return _joined(at, _balanced(entries, start, middle), _balanced(entries, middle + 1, end))
