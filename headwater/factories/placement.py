"""Which factory a query goes to, and what moves so that none has too much: decisions, no deeds.

Pure: what each query costs comes in, a place or a move comes out. Loads are in cores: processor time per
time, as the hosts have measured it. Queries that share state stay together, whatever they cost.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

REMEMBERED_S = 10.0  # after so long, what a query cost before counts for a third
LEAST_GAIN = 0.1  # cores that the busiest factory must be rid of, so that a move pays
LEAST_PART = 0.2  # and the part of its load
SPLIT_LOAD = 0.6  # cores that a view or query takes which is worth splitting
UNITE_LOAD = 0.2  # cores that its parts take together when they are worth no more than one
SPLIT_ROWS = (
    20_000  # rows per second that it folds: with fewer, what each firing costs is not in its groups
)
IDLE = 0.2  # the load of a factory that has room for a part


class Loads:
    """What each query costs."""

    def __init__(self) -> None:
        self._cores: dict[str, float] = {}

    def note(self, spent: Mapping[str, float], names: Iterable[str], seconds: float) -> None:
        """What queries of one host have spent in some time; those that are not told of, nothing."""
        if seconds <= 0:
            return
        kept = math.exp(-seconds / REMEMBERED_S)
        for name in names:
            before, now = self._cores.get(name), spent.get(name, 0.0) / seconds
            self._cores[name] = now if before is None else kept * before + (1 - kept) * now

    def of(self, names: Iterable[str]) -> float:
        """What queries cost together; of one that was never measured it is not known: nothing."""
        return sum(self._cores.get(name, 0.0) for name in names)

    def keep(self, names: Collection[str]) -> None:
        """Forgets all others."""
        self._cores = {name: cost for name, cost in self._cores.items() if name in names}


@dataclass(frozen=True)
class Group:
    """Queries that live in one factory, since they hold state in common; often one alone."""

    names: tuple[str, ...]
    load: float
    shares: frozenset[Hashable] = frozenset()  # what their folds must have in common with others'
    parts_of: frozenset[int] = frozenset()  # views that some of them are parts of, by number


class Move(NamedTuple):
    """A group goes from one factory to another."""

    group: Group
    origin: int
    target: int


def together(shares: Mapping[str, Collection[Hashable]]) -> list[tuple[str, ...]]:
    """Names in groups: those that have something in common are in one, in the order of the first."""
    group_of: dict[Hashable, list[str]] = {}
    groups: list[list[str]] = []
    for name, mine in shares.items():
        found = list({id(g): g for share in mine if (g := group_of.get(share))}.values())
        group = found[0] if found else []
        if not found:
            groups.append(group)
        for other in found[1:]:
            group += other
            groups = [kept for kept in groups if kept is not other]
        group.append(name)
        every = {share for member in group for share in shares[member]}
        group_of |= dict.fromkeys(every, group)
    return [tuple(group) for group in groups]


def best(factories: Sequence[Sequence[Group]], group: Group) -> int:
    """Where a group goes: to folds that it can share, else where least is done, or fewest queries are.

    Parts of one view go apart: else there would be no use in parts.
    """

    def order(number: int) -> tuple[int, int, float, int]:
        there = factories[number]
        shared = sum(bool(other.shares & group.shares) for other in there)
        beside = sum(len(other.parts_of & group.parts_of) for other in there)
        load = round(sum(other.load for other in there), 2)
        return -shared, beside, load, sum(len(other.names) for other in there)

    return min(range(len(factories)), key=order)


def worth_moving(factories: Sequence[Sequence[Group]]) -> Move | None:
    """The move that rids the busiest factory of most, if one pays."""
    if len(factories) < 2:
        return None
    loads = [sum(group.load for group in there) for there in factories]
    origin = max(range(len(loads)), key=loads.__getitem__)
    target = min(range(len(loads)), key=loads.__getitem__)

    def busiest(group: Group) -> float:
        return max(loads[origin] - group.load, loads[target] + group.load)

    moved = min(factories[origin], key=busiest, default=None)
    if moved is None:
        return None
    gain = loads[origin] - busiest(moved)
    pays = gain >= LEAST_GAIN and gain >= LEAST_PART * loads[origin]
    return Move(moved, origin, target) if pays else None


def worth_splitting(factories: Sequence[Sequence[Group]], rows: Mapping[str, float]) -> str | None:
    """The view or query that takes most, if it takes most of a core while another factory is idle.

    `rows`: by the names of those that can be split, how many rows come for them per second. A move that pays
    comes first; those that share their groups are not split.
    """
    if len(factories) < 2 or worth_moving(factories) is not None:
        return None
    if min(sum(group.load for group in there) for there in factories) > IDLE:
        return None
    heavy = [
        group
        for there in factories
        for group in there
        if len(group.names) == 1
        and group.load >= SPLIT_LOAD
        and rows.get(group.names[0], -1.0) >= SPLIT_ROWS
    ]
    return max(heavy, key=lambda group: group.load).names[0] if heavy else None


def worth_uniting(split: Mapping[str, tuple[int, float]], factories: int) -> tuple[str, int] | None:
    """What has parts that do not pay, and how many would: none where load is gone, one for each factory.

    `split`: by name, how many parts there are, and what they take together.
    """
    for name, (count, load) in split.items():
        if load < UNITE_LOAD:
            return name, 1
        if count > factories:
            return name, factories
    return None
