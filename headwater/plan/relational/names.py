"""Which column a name means, where it stands: Spark's rules, in part.

Whatever Spark would find ambiguous, or would find by a rule that is not here, is not resolved: the query is
then Spark's. Names are compared without case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from headwater.plan.pieces import INSTANT_COLUMN
from headwater.sql.text import Span


class NotKept(Exception):
    """Raised while a tree is built: why Spark evaluates the query, and at which part of it."""

    def __init__(self, reason: str, span: Span | None = None) -> None:
        super().__init__(reason)
        self.reason, self.span = reason, span


@dataclass(frozen=True)
class KnownColumn:
    """A column of a relation: how users call it, and its name in the tree."""

    shown: str
    name: str
    type: pa.DataType
    hidden: bool = False  # not in `*`


@dataclass(frozen=True)
class KnownRelation:
    """A relation of FROM."""

    alias: str | None
    columns: tuple[KnownColumn, ...]
    only_by_alias: frozenset[str] = frozenset()  # names that USING has given to another relation
    given_up: tuple[KnownColumn, ...] = ()  # the columns of these names, as USING has them


@dataclass(frozen=True)
class Names:
    """The relations that expressions of one SELECT see; `*` after a USING has an order of its own."""

    relations: tuple[KnownRelation, ...]
    starred: tuple[KnownColumn, ...] | None = None

    def find(self, node: exp.Column) -> KnownColumn | None:
        """The one column that a reference means; None if there is none."""
        if node.args.get("db"):
            return None
        wanted, table = node.name.casefold(), node.table.casefold()
        found = []
        for relation in self.relations:
            if table and (relation.alias or "").casefold() != table:
                continue
            if not table and wanted in relation.only_by_alias:
                continue
            found += [c for c in relation.columns if c.shown.casefold() == wanted]
        if wanted == INSTANT_COLUMN:  # it is the same beside every relation
            return found[0] if found else None
        if len(found) > 1:
            raise NotKept(f"column {node.name} may mean several")
        return found[0] if found else None

    def star(self, of: str | None) -> list[KnownColumn]:
        """The columns of `*` or `a.*`."""
        found: list[KnownColumn] = []
        for relation in self.relations:
            if of is not None and (relation.alias or "").casefold() == of.casefold():
                own = {column.name for column in relation.columns}
                found += [*relation.given_up, *(c for c in self._visible if c.name in own)]
        found = list(self._visible) if of is None else found
        if not found:
            raise NotKept("* of nothing")
        return found

    @property
    def _visible(self) -> Sequence[KnownColumn]:
        if self.starred is not None:
            return self.starred
        return [c for relation in self.relations for c in relation.columns if not c.hidden]

    @property
    def all(self) -> frozenset[str]:
        """The tree's names of all columns."""
        return frozenset(c.name for r in self.relations for c in r.columns)

    def beside(self, others: Sequence[KnownRelation]) -> Names:
        """These relations and others."""
        added = [c for relation in others for c in relation.columns if not c.hidden]
        starred = None if self.starred is None else (*self.starred, *added)
        return Names((*self.relations, *others), starred)

    def using(self, relation: KnownRelation, names: Sequence[str]) -> Names:
        """These relations and one that is joined by columns of these names, which come first, once."""
        mine, theirs = (
            self.keys_first(names),
            tuple(Names((relation,))._key(name) for name in names),
        )
        taken = frozenset(name.casefold() for name in names)
        joined = KnownRelation(relation.alias, relation.columns, taken, theirs)
        added = [c for c in relation.columns if not c.hidden and c not in theirs]
        return Names((*self.relations, joined), (*mine._visible, *added))

    def keys_first(self, names: Sequence[str]) -> Names:
        """The same relations; `*` begins with the columns of these names."""
        keys = [self._key(name) for name in names]
        rest = [column for column in self._visible if column not in keys]
        return Names(self.relations, (*keys, *rest))

    def _key(self, name: str) -> KnownColumn:
        found = self.find(exp.column(name))
        if found is None:
            raise NotKept(f"USING ({name})")
        return found
