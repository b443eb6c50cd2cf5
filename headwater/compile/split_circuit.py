"""A circuit in parts: the circuit of each, and the view's rows made of those of all.

Must never: give a part rows that fall to another one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from headwater.compile.circuit import CircuitSpec
from headwater.fold.share import Share
from headwater.operators.changes import come
from headwater.plan.relational.describe import described, names_of
from headwater.plan.relational.names import KnownColumn
from headwater.plan.relational.nodes import ScanNode, of_part
from headwater.plan.relational.partition import UNITED, NotSplit, SplitTree, split_tree


@dataclass(frozen=True)
class SplitCircuit:
    """A query whose circuit is split."""

    whole: CircuitSpec
    tree: SplitTree

    def part(self, share: Share) -> CircuitSpec:
        """The circuit of one part; its rows are in no order."""
        root = of_part(self.tree.part, *share)
        return CircuitSpec(root, self._shown_by_parts, ())

    @property
    def _shown_by_parts(self) -> tuple[KnownColumn, ...]:
        """The view's columns, where the rows of parts are its rows; else all that they have."""
        if self.tree.above is None:
            return self.whole.shown
        return tuple(KnownColumn(name, name, type_) for name, type_ in self.tree.part.columns)

    @cached_property
    def _above(self) -> CircuitSpec:
        """What is done once with the rows of all parts."""
        columns = self.tree.part.columns
        names = tuple(name for name, _ in columns)
        root = self.tree.above or ScanNode(UNITED, names, columns, False)
        return CircuitSpec(root, self.whole.shown, self.whole.order)

    def united(self, parts: Sequence[pa.Table]) -> pa.Table:
        """The view's rows of the rows of all parts: the select list, in order if there is one."""
        rows, names = pa.concat_tables(parts), [column.name for column in self.whole.shown]
        if self.tree.above is None and not self.whole.order:
            return rows.select(names)
        circuit, kept = self._above.circuit(), self._above.kept()
        kept.apply(circuit.begin())
        kept.apply(circuit.apply({0: come(rows)}))
        return kept.table().select(names)

    def hashed_in(self, key: Sequence[str]) -> list[int] | None:
        """The places in a key of the columns by which rows are shared out; None if some are not there."""
        found = [
            next((i for i, k in enumerate(key) if k in names), None) for names in self.tree.carried
        ]
        places = [place for place in found if place is not None]
        return places if places and len(places) == len(found) else None

    @property
    def words(self) -> str:
        """By what rows are shared out."""
        return f"by hash of {names_of(self.tree.hashed)}"

    def lines(self, share: Share) -> list[str]:
        """The tree of a part, below what is done once with the rows of all of them."""
        above = [] if self.tree.above is None else described(self.tree.above)[:-1]
        own = described(of_part(self.tree.part, *share))
        return [*above, *(f"{'  ' * len(above)}{line}" for line in own)]


def split_circuit(spec: CircuitSpec, streams: Collection[str]) -> SplitCircuit | NotSplit:
    """A circuit in parts, or why it cannot be; `streams`: its streaming tables, as scans name them."""
    found = split_tree(spec.root, streams)
    return found if isinstance(found, NotSplit) else SplitCircuit(spec, found)
