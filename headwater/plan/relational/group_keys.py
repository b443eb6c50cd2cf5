"""The keys of a GROUP BY: by number, by alias or as they are; ALL, ROLLUP, CUBE and GROUPING SETS.

A key that is a struct made of values is as many keys as it has values: structs are equal where those are.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from sqlglot import exp

from headwater.plan.relational.aggregates import is_aggregate
from headwater.plan.relational.expressions import refuse
from headwater.plan.relational.names import Names
from headwater.plan.relational.trees import check_arguments, ordinal

SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)
MOST_SETS = 64


class GroupKeys:
    """Reads the keys of one SELECT."""

    def __init__(self, names: Names, items: Sequence[exp.Expr]) -> None:
        self._names, self._items = names, items

    def of(self, group: exp.Group | None) -> tuple[list[exp.Expr], list[tuple[int, ...]] | None]:
        """The keys, and the grouping sets by their numbers; None for a plain GROUP BY."""
        if group is None:
            return [], None
        if group.args.get("all"):
            check_arguments(group, "all")
            items = [i.this if isinstance(i, exp.Alias) else i for i in self._items]
            plain = [item for item in items if not list(aggregates_in(item))]
            return [key for item in plain for key in _parts(item)], None
        check_arguments(
            group, "expressions"
        )  # WITH ROLLUP, and sets behind keys that they choose from
        keys: list[exp.Expr] = []
        parts: list[list[tuple[int, ...]]] = []
        for one in group.expressions:
            if type(one) in SETS:
                parts.append(self._set_part(one, keys))
            else:
                numbers = [_number(key, keys) for key in _parts(self._meant(one))]
                parts.append([tuple(numbers)])
        if not any(type(one) in SETS for one in group.expressions):
            return keys, None
        found = [tuple(itertools.chain(*choice)) for choice in itertools.product(*parts)]
        if len(found) > MOST_SETS:
            raise refuse("too many grouping sets", group)
        return keys, found

    def _set_part(self, node: exp.Expr, keys: list[exp.Expr]) -> list[tuple[int, ...]]:
        members = [self._members(one, keys) for one in node.expressions]
        if isinstance(node, exp.Rollup):
            return [tuple(itertools.chain(*members[:n])) for n in range(len(members), -1, -1)]
        if isinstance(node, exp.Cube):
            sizes = range(len(members), -1, -1)
            chosen = [c for size in sizes for c in itertools.combinations(members, size)]
            return [tuple(itertools.chain(*one)) for one in chosen]
        return members

    def _members(self, node: exp.Expr, keys: list[exp.Expr]) -> tuple[int, ...]:
        if isinstance(node, exp.Tuple):
            return tuple(self._member(one, keys) for one in node.expressions)
        if type(node) in SETS:
            raise refuse("grouping sets within grouping sets", node)
        return (self._member(node.unnest(), keys),)

    def _member(self, node: exp.Expr, keys: list[exp.Expr]) -> int:
        key = self._meant(node)
        if isinstance(key, exp.Struct):  # NULL as a whole where a set leaves it out
            raise refuse("a struct in a grouping set", node)
        return _number(key, keys)

    def _meant(self, node: exp.Expr) -> exp.Expr:
        """A key; a number or an alias means an item of the select list."""
        place = ordinal(node)
        if place is not None:
            if not 0 <= place < len(self._items):
                raise refuse("GROUP BY a number that no item has", node)
            item = self._items[place]
            return item.this if isinstance(item, exp.Alias) else item
        plain = isinstance(node, exp.Column) and not node.table
        if plain and self._names.find(node) is None:  # type: ignore[arg-type]
            aliases = [item for item in self._items if isinstance(item, exp.Alias)]
            wanted = node.name.casefold()
            return next((i.this for i in aliases if i.alias.casefold() == wanted), node)
        return node


def _parts(key: exp.Expr) -> list[exp.Expr]:
    return [one.expression for one in key.expressions] if isinstance(key, exp.Struct) else [key]


def _number(key: exp.Expr, keys: list[exp.Expr]) -> int:
    """The place of a key, which is a new one if it is not there."""
    for number, known in enumerate(keys):
        if known == key:
            return number
    keys.append(key)
    return len(keys) - 1


def aggregates_in(part: exp.Expr) -> Iterable[exp.Expr]:
    """The aggregates of an expression, those inside others left out."""
    for node in part.walk(prune=lambda n: isinstance(n, exp.Query) or is_aggregate(n)):
        if is_aggregate(node):
            yield node
