"""Whether a circuit can be split into parts that never need each other's rows, and by which columns.

Owns: where rows are shared out. A tree is split if rows whose values have different hashes meet in no node
with a key: of a join they are its equal keys, of a grouping, DISTINCT, first rows and window functions what
these go by. Each part then is the same tree with a `ShareNode` where its rows are chosen, as near to the
tables as the columns are handed up unchanged. Tables that are joined by something else are whole in every
part, if all of them are standard ones and no row of theirs would come out of two parts. Must never: know how
many parts there are, or split what only comes out right by luck.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeVar

import pyarrow as pa

from headwater.expression.nodes import BoundColumn
from headwater.plan.relational.describe import line_of
from headwater.plan.relational.nodes import (
    AsOfNode,
    DistinctNode,
    ExplodeNode,
    FilterNode,
    GroupNode,
    JoinNode,
    Node,
    OpaqueColumnsNode,
    OpaqueQueryNode,
    OverNode,
    ProjectNode,
    ScanNode,
    SessionNode,
    SetNode,
    ShareNode,
    TimeWindowsNode,
    TopNode,
    UnionNode,
    inputs_of,
    scans_of,
)

One = TypeVar("One")

UNITED = "headwater_parts"  # what stands for the rows of all parts above them
FEW_KEYS = 4  # of a node: all subsets of so many are tried, of more the whole and each one alone
MOST_TRIES = 2_000  # places that are looked for before a tree counts as one that cannot be split

RowNode = (
    FilterNode | ProjectNode | OpaqueColumnsNode | ExplodeNode | TimeWindowsNode
)  # of each row for itself
Wanted = tuple[str, ...]  # the columns whose hash says whose a row is
Carried = tuple[frozenset[str], ...]  # for each hashed value, the columns that have it


class NotSplit(Exception):
    """Raised while a tree is split: why it cannot be."""


@dataclass(frozen=True)
class Placed:
    """A node as a part has it."""

    node: Node
    carried: Carried


@dataclass(frozen=True)
class SplitTree:
    """A circuit as its parts have it, and what is done once with the rows of all of them."""

    part: Node
    carried: Carried  # by which columns of the part's result its rows are found
    above: Node | None = None  # over a scan of `UNITED`; None: the rows are the result

    @property
    def hashed(self) -> Wanted:
        """The columns by which rows are shared out, as one of the tables calls them."""
        return next(node.hashed for node in _nodes(self.part) if isinstance(node, ShareNode))


def split_tree(root: Node, streams: Collection[str]) -> SplitTree | NotSplit:
    """How a tree is split, or why it cannot be; `streams`: the tables whose rows are many."""
    try:
        return _split(root, _Places(frozenset(streams)))
    except NotSplit as refused:
        return refused


def _split(root: Node, places: _Places) -> SplitTree:
    """First rows of all are found in each part, and once more among those of all parts."""
    above: list[FilterNode | ProjectNode] = []
    node = root
    while isinstance(node, FilterNode | ProjectNode):
        above.append(node)
        node = node.below
    if not isinstance(node, TopNode) or node.partition or node.limit is None:
        placed = places.of(root, None)
        return SplitTree(placed.node, placed.carried)
    below = places.of(node.below, None)
    part = replace(node, below=below.node, limit=node.limit + node.offset, offset=0, number=None)
    names = tuple(name for name, _ in part.columns)
    made: Node = replace(node, below=ScanNode(UNITED, names, part.columns, False))
    for one in reversed(above):
        made = replace(one, below=made)
    return SplitTree(part, below.carried, made)


class _Places:
    """Looks for a place of each node, from the result down to the tables."""

    def __init__(self, streams: frozenset[str]) -> None:
        self._streams, self._tries = streams, 0
        self._known: dict[tuple[int, Wanted | None], Placed | NotSplit] = {}

    def of(self, node: Node, wanted: Wanted | None) -> Placed:
        """A node whose rows are shared out by some columns; None: by any."""
        known = self._known.get((id(node), wanted))
        if known is None:
            self._tries += 1
            if self._tries > MOST_TRIES:
                raise NotSplit("it has too many keys to choose from")
            known = self._known[id(node), wanted] = self._found(node, wanted)
        if isinstance(known, NotSplit):
            raise known
        return known

    def _found(self, node: Node, wanted: Wanted | None) -> Placed | NotSplit:
        try:
            return self._place(node, wanted)
        except NotSplit as refused:
            if wanted is None or not (self._is_whole(node) or _keeps_nothing(node)):
                return refused
            return _shared(node, wanted)  # it is made whole, and then shared out

    def _is_whole(self, node: Node) -> bool:
        """Whether each part may have all rows of it."""
        return not any(scan.table in self._streams for scan in scans_of(node))

    def _place(self, node: Node, wanted: Wanted | None) -> Placed:
        if isinstance(node, ScanNode):
            return _shared(node, wanted or _hashable(node, [name for name, _ in node.columns]))
        if isinstance(node, RowNode):
            return self._of_each_row(node, wanted)
        if isinstance(node, JoinNode | AsOfNode):
            return self._join(node, wanted)
        if isinstance(node, UnionNode):
            return self._by_place(node, node.parts, wanted)
        if isinstance(node, SetNode):
            return self._set(node, wanted)
        if isinstance(node, OpaqueQueryNode):
            raise NotSplit(f"Spark evaluates a part of it over all rows: {node.reason}")
        assert not isinstance(node, ShareNode)
        return self._by_keys(node, _keys_of(node), wanted)

    def _of_each_row(self, node: RowNode, wanted: Wanted | None) -> Placed:
        down = wanted if wanted is None else _below(node, wanted)
        if wanted is not None and down is None:
            raise NotSplit(f"{wanted[0].partition('.')[2] or wanted[0]} is computed above a key")
        below = self.of(node.below, down)
        if not isinstance(node, ProjectNode):
            return Placed(replace(node, below=below.node), below.carried)
        columns = [(name, b.name) for name, b in node.outputs if isinstance(b, BoundColumn)]
        carried = tuple(
            frozenset(name for name, own in columns if own in names) for names in below.carried
        )
        return Placed(replace(node, below=below.node), carried)

    def _by_keys(
        self,
        node: GroupNode | DistinctNode | TopNode | OverNode | SessionNode,
        keys: Sequence[str],
        wanted: Wanted | None,
    ) -> Placed:
        """All rows of one key are in one part if they are shared out by some of the key's columns."""
        if not keys:
            raise NotSplit(f"all rows meet in: {line_of(node)}")
        if wanted is not None and not set(wanted) <= set(keys):
            raise NotSplit(f"rows of other keys meet in: {line_of(node)}")
        choices = [wanted] if wanted is not None else _choices(_hashable(node.below, keys))
        below = _first(lambda choice: self.of(node.below, choice), choices, node)
        there = {name for name, _ in node.columns}
        carried = tuple(frozenset(names & there) for names in below.carried)
        return Placed(replace(node, below=below.node), carried)

    def _set(self, node: SetNode, wanted: Wanted | None) -> Placed:
        names = [name for name, _ in node.columns]
        choices = [wanted] if wanted is not None else _choices(_hashable(node, names))
        sides = (node.left, node.right)
        return _first(lambda choice: self._by_place(node, sides, choice), choices, node)

    def _by_place(
        self, node: UnionNode | SetNode, parts: Sequence[Node], wanted: Wanted | None
    ) -> Placed:
        """Columns of the inputs go by their places."""
        names = [name for name, _ in node.columns]
        placed = [self.of(part, _renamed(wanted, names, part)) for part in parts]
        carried = [_carried_as(one, part, names) for one, part in zip(placed, parts, strict=True)]
        same = all(len(one) == len(carried[0]) for one in carried)
        both = zip(*carried, strict=True) if same else ()
        return Placed(
            _over(node, [one.node for one in placed]),
            tuple(frozenset.intersection(*every) for every in both),
        )

    # Joins

    def _join(self, node: JoinNode | AsOfNode, wanted: Wanted | None) -> Placed:
        """By keys that are equal, else one side in parts and the other whole in each."""
        tries: list[Callable[[], Placed]] = [
            lambda pairs=pairs: self._both(node, pairs)  # type: ignore[misc]
            for pairs in self._equal_keys(node, wanted)
        ]
        tries += [
            lambda left=left: self._one(node, left, wanted)  # type: ignore[misc]
            for left in (True, False)
            if _outer(node) in (None, "left" if left else "right")
        ]
        return _first(lambda attempt: attempt(), tries, node)

    def _equal_keys(
        self, node: JoinNode | AsOfNode, wanted: Wanted | None
    ) -> Iterator[tuple[tuple[str, str], ...]]:
        """Pairs of keys by which both sides can be shared out, so that the result is as wanted."""
        left, right = dict(node.left.columns), dict(node.right.columns)
        pairs = [
            (a, b)
            for a, b in zip(node.left_keys, node.right_keys, strict=True)
            if left[a] == right[b] and _has_hash(left[a])
        ]
        if wanted is None:
            yield from _choices(pairs)
            return
        outer = _outer(node)
        found = []
        for name in wanted:
            mine = () if outer == "both" else same_columns(node, name)
            pair = next((p for p in pairs if mine and (p[0] in mine or p[1] in mine)), None)
            if pair is None or not _hands_up(node, name):
                return
            found.append(pair)
        yield tuple(found)

    def _both(self, node: JoinNode | AsOfNode, pairs: Sequence[tuple[str, str]]) -> Placed:
        left = self.of(node.left, tuple(a for a, _ in pairs))
        right = self.of(node.right, tuple(b for _, b in pairs))
        there = {name for name, _ in node.columns if _hands_up(node, name)}
        carried = tuple(
            frozenset((a | b) & there) for a, b in zip(left.carried, right.carried, strict=True)
        )
        return Placed(replace(node, left=left.node, right=right.node), carried)

    def _one(self, node: JoinNode | AsOfNode, is_left: bool, wanted: Wanted | None) -> Placed:
        """One side shared out, the other whole: no row of that one may come out by itself."""
        mine, other = (node.left, node.right) if is_left else (node.right, node.left)
        if not self._is_whole(other):
            table = next(s.table for s in scans_of(other) if s.table in self._streams)
            raise NotSplit(f"every part would have all rows of {table} for: {line_of(node)}")
        if wanted is not None and not set(wanted) <= {name for name, _ in mine.columns}:
            raise NotSplit(f"rows of other keys meet in: {line_of(node)}")
        placed = self.of(mine, wanted)
        if is_left:
            return Placed(replace(node, left=placed.node), placed.carried)
        return Placed(replace(node, right=placed.node), placed.carried)


def _outer(node: JoinNode | AsOfNode) -> str | None:
    """The side of which a row may come out without one of the other, or on which alone it depends."""
    if isinstance(node, AsOfNode):
        return "left"
    return {"inner": None, "right": "right", "full": "both"}.get(node.kind, "left")


def _hands_up(node: JoinNode | AsOfNode, name: str) -> bool:
    """Whether a column has, in each row that comes out, the value by which that row was chosen."""
    outer = _outer(node)
    if outer is None or (isinstance(node, AsOfNode) and not node.outer):
        return True
    side = {"left": node.left, "right": node.right}.get(outer)
    return side is not None and name in dict(side.columns)


def same_columns(node: Node, name: str) -> frozenset[str]:
    """The columns of a node, and of what it joins, that have the value of one of its columns."""
    if isinstance(node, FilterNode | TopNode | OverNode | SessionNode | DistinctNode):
        below = name in dict(node.below.columns)
        return same_columns(node.below, name) if below else frozenset((name,))
    if not isinstance(node, JoinNode | AsOfNode):
        return frozenset((name,))
    side = node.left if name in dict(node.left.columns) else node.right
    found = same_columns(side, name)
    if _outer(node) == "both":
        return found
    for own, other in ((node.left_keys, node.right_keys), (node.right_keys, node.left_keys)):
        for mine, theirs in zip(own, other, strict=True):
            far = node.right if own is node.left_keys else node.left
            if mine in found and side is not far and _is_equal(node, far):
                found |= same_columns(far, theirs)
    return found


def _is_equal(node: JoinNode | AsOfNode, far: Node) -> bool:
    """Whether keys of a side have the values of the other side's in each row that comes out."""
    return all(_hands_up(node, name) for name, _ in far.columns)


def _keys_of(node: GroupNode | DistinctNode | TopNode | OverNode | SessionNode) -> Sequence[str]:
    if isinstance(node, GroupNode):
        return node.keys
    if isinstance(node, DistinctNode):
        return [name for name, _ in node.columns]
    return node.partition


def _below(node: RowNode, wanted: Wanted) -> Wanted | None:
    """The same columns below a node; None if one is made there."""
    if isinstance(node, ProjectNode):
        outputs = dict(node.outputs)
        bounds = [outputs[name] for name in wanted]
        names = [bound.name for bound in bounds if isinstance(bound, BoundColumn)]
        return tuple(names) if len(names) == len(wanted) else None
    there = dict(node.below.columns)
    return wanted if all(name in there for name in wanted) else None


def _renamed(wanted: Wanted | None, names: Sequence[str], part: Node) -> Wanted | None:
    if wanted is None:
        return None
    own = [name for name, _ in part.columns]
    return tuple(own[names.index(name)] for name in wanted)


def _carried_as(placed: Placed, part: Node, names: Sequence[str]) -> Carried:
    """The columns by the names that a union has for them."""
    own = [name for name, _ in part.columns]
    return tuple(
        frozenset(names[place] for place, name in enumerate(own) if name in mine)
        for mine in placed.carried
    )


def _over(node: UnionNode | SetNode, parts: Sequence[Node]) -> Node:
    if isinstance(node, UnionNode):
        return replace(node, parts=tuple(parts))
    return replace(node, left=parts[0], right=parts[1])


def _shared(node: Node, wanted: Sequence[str]) -> Placed:
    types = dict(node.columns)
    if not wanted or not all(_has_hash(types[name]) for name in wanted):
        raise NotSplit(f"there is no column to share rows out by: {line_of(node)}")
    carried = tuple(frozenset((name,)) for name in wanted)
    return Placed(ShareNode(node, tuple(wanted)), carried)


def _keeps_nothing(node: Node) -> bool:
    """Whether each row comes from one row of a table, so that no part keeps others' rows for it."""
    if isinstance(node, RowNode | UnionNode):
        return all(map(_keeps_nothing, inputs_of(node)))
    return isinstance(node, ScanNode)


def _hashable(node: Node, names: Sequence[str]) -> tuple[str, ...]:
    types = dict(node.columns)
    return tuple(name for name in names if _has_hash(types[name]))


def _has_hash(type_: pa.DataType) -> bool:
    """Whether equal values of a type have equal hashes in every part."""
    checks = (
        *(pa.types.is_signed_integer, pa.types.is_boolean, pa.types.is_decimal128),
        *(pa.types.is_date, pa.types.is_timestamp, pa.types.is_time),
        *(pa.types.is_string, pa.types.is_large_string),
        *(pa.types.is_binary, pa.types.is_large_binary),
        *(pa.types.is_float32, pa.types.is_float64),
    )
    return any(check(type_) for check in checks)


def _choices(keys: Sequence[One]) -> Iterator[tuple[One, ...]]:
    """What rows may be shared out by: all keys, for the evenest parts; else fewer."""
    few = len(keys) <= FEW_KEYS
    sizes = range(len(keys), 0, -1) if few else (len(keys), 1)
    for size in sizes:
        yield from combinations(keys, size)


def _first(
    attempt: Callable[[One], Placed], choices: Sequence[One] | Iterator[One], node: Node
) -> Placed:
    """The first choice that comes about; else why the last one did not."""
    refused = NotSplit(f"rows of other keys meet in: {line_of(node)}")
    for choice in choices:
        try:
            return attempt(choice)
        except NotSplit as error:
            refused = error
    raise refused


def _nodes(root: Node) -> Iterator[Node]:
    yield root
    for below in inputs_of(root):
        yield from _nodes(below)
