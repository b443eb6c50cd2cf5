"""Groups: GROUP BY keys with aggregates over rows that come and are taken back.

Owns: what each group gave last and gives now. A touched group whose row has changed takes the old one back
and gives the new one; a group without rows vanishes, but for the one group where there are no keys. Partials
where an aggregate has one (`folded`), pairs where it is DISTINCT (`distinct_pairs`) or a sketch of them
(`distinct_sketch`), else the rows of the touched groups (`group_aggregates`). If a sum does not fit, `apply`
raises, after the rows were taken in: a later call answers for the groups that are still owed. Must never:
look at a group that is not touched.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.errors import NotSupportedError
from headwater.fold.aggregates import (
    ALIASES,
    FUNCTIONS,
    Aggregate,
    family_of,
    parts_of,
    result_type,
)
from headwater.fold.aggregation import Aggregation
from headwater.fold.chunk import Grouper
from headwater.fold.columns import Column, Slots, Vector, columns_of, kind_of
from headwater.fold.hashing import hashes_of
from headwater.fold.lookup import Lookup
from headwater.operators.arrangement import LEAST_DEAD, Arrangement, same_rows
from headwater.operators.changes import Changes, Signs, come, go, nothing, together
from headwater.operators.distinct_pairs import DistinctPairs
from headwater.operators.distinct_sketch import DistinctEstimates
from headwater.operators.flat import whole
from headwater.operators.folded import FoldedGroups, MomentPart
from headwater.operators.group_aggregates import GroupAggregate, RowFunction, row_function_of
from headwater.operators.grouped_rows import GroupedRows
from headwater.operators.last_given import LastGiven
from headwater.operators.moments import MOMENTS, moments_of
from headwater.operators.operator import Operator
from headwater.operators.spilled_keys import SpilledKeys

COUNT_DISTINCT, APPROXIMATE = "count_distinct", "approx_count_distinct"
SAME_IF_DISTINCT = ("min", "max", "bool_and", "bool_or")
_NO_COLUMN = Column(pa.nulls(0))
_NO_SLOTS: Slots = np.empty(0, np.int64)


@dataclass(frozen=True)
class _Owed:
    """Groups that were touched, and the rows that those of them gave which were there."""

    slots: Slots
    there: Vector
    rows: pa.Table


@dataclass
class _Distinct:
    """The aggregates over the distinct values of one or several arguments."""

    arguments: tuple[str, ...]
    pairs: DistinctPairs
    aggregates: list[Aggregate]
    numbers: list[int]

    def __post_init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """No group has anything."""
        self.pairs = DistinctPairs(self.pairs.types)
        self.folded = FoldedGroups(Aggregation([], self.aggregates))

    def finish(self, slots: Slots) -> list[pa.Array]:
        """The aggregates of some groups."""
        return self.folded.finish(slots)[0]

    def apply(self, slots: Slots, slot_count: int, columns: Sequence[Column], signs: Signs) -> None:
        owners, values, changed = self.pairs.apply(slots, columns, signs)
        self.folded.grow(slot_count)
        for sign in (1, -1):
            chosen = np.flatnonzero(changed == sign)
            if not len(chosen):
                continue
            own = [Column(value.array.take(pa.array(chosen))) for value in values]
            rows = self.folded.fold(owners[chosen], slot_count, own, chosen)
            if sign > 0:
                self.folded.add(rows)
            else:
                stale = self.folded.take_back(rows)
                assert not len(stale), "what cannot take back is not kept by pairs"


@dataclass
class _Plan:
    """Which aggregate is kept in which way; numbers are places among the aggregates."""

    names: list[str] = field(default_factory=list)  # arguments of what is folded
    folded: list[tuple[int, Aggregate]] = field(default_factory=list)
    moments: list[tuple[int, MomentPart]] = field(default_factory=list)
    distinct: dict[Hashable, _Distinct | DistinctEstimates] = field(default_factory=dict)
    by_rows: list[tuple[int, GroupAggregate, RowFunction]] = field(default_factory=list)
    needed: dict[str, None] = field(default_factory=dict)  # columns whose rows are kept

    def number(self, name: str) -> int:
        """The number of an argument."""
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    def need(self, names: Iterable[str]) -> None:
        """Rows are kept with these columns."""
        self.needed |= dict.fromkeys(names)


class GroupRows(Operator):
    """Aggregates by group."""

    name = "group"
    takes_back = True

    def __init__(
        self,
        schema: pa.Schema,
        keys: Sequence[str],
        aggregates: Sequence[GroupAggregate],
        takes_back: bool,
    ) -> None:
        self.input_schema, self.keys, self.aggregates = schema, tuple(keys), tuple(aggregates)
        self._taken_back, self._plan, self._keeps_rows = takes_back, _Plan(), False
        for key in self.keys:
            kind_of(
                schema.field(key).type
            )  # a nested key has no slot that its value comes back from
        types = [self._placed(number, one) for number, one in enumerate(self.aggregates)]
        pairs = zip(self.aggregates, types, strict=True)
        outputs = [pa.field(one.name, one.type or type_) for one, type_ in pairs]
        self.schema = pa.schema([*(schema.field(key) for key in self.keys), *outputs])
        self._clear()

    def _placed(self, number: int, aggregate: GroupAggregate) -> pa.DataType:
        """Decides how an aggregate is kept; gives the type of its result."""
        name = ALIASES.get(aggregate.known_name, aggregate.known_name)
        types = [self.input_schema.field(argument).type for argument in aggregate.arguments]
        if name == APPROXIMATE and not self._taken_back:
            return self._place_estimate(number, aggregate)
        name = COUNT_DISTINCT if name == APPROXIMATE else name
        distinct = aggregate.distinct or name == COUNT_DISTINCT
        if name in FUNCTIONS and distinct and name not in SAME_IF_DISTINCT:
            inner = _inner(aggregate, name, types)
            if inner is not None and (not self._taken_back or _is_invertible(inner)):
                self._place_distinct(number, aggregate.arguments, types, inner)
                return result_type(inner)
        elif name in FUNCTIONS:
            return self._place_folded(number, aggregate, name, types)
        elif name in MOMENTS and not distinct:
            return self._place_moments(number, aggregate, name, types)
        function = row_function_of(aggregate)
        self._plan.by_rows.append((number, aggregate, function))
        self._plan.need([*aggregate.arguments, *(key.name for key in aggregate.order)])
        self._keeps_rows = True
        return function.result(aggregate, types)

    def _place_folded(
        self, number: int, given: GroupAggregate, name: str, types: Sequence[pa.DataType]
    ) -> pa.DataType:
        if len(types) > 1 or (not types and name != "count"):
            raise NotSupportedError(f"{given.function} of {len(types)} arguments")
        argument = self._plan.number(given.arguments[0]) if types else None
        folded = Aggregate(name, argument, types[0] if types else pa.null(), given.name)
        self._plan.folded.append((number, folded))
        if self._taken_back and not _is_invertible(folded):
            self._plan.need(given.arguments)
            self._keeps_rows = True
        return result_type(folded)

    def _place_moments(
        self, number: int, given: GroupAggregate, name: str, types: Sequence[pa.DataType]
    ) -> pa.DataType:
        if len(types) != MOMENTS[name].argument_count:
            raise NotSupportedError(f"{given.function} of {len(types)} arguments")
        arguments = [self._plan.number(argument) for argument in given.arguments]
        part = MomentPart(MOMENTS[name], moments_of(arguments, types))
        self._plan.moments.append((number, part))
        if self._taken_back:
            self._plan.need(given.arguments)
            self._keeps_rows = True
        return pa.float64()

    def _place_distinct(
        self,
        number: int,
        arguments: tuple[str, ...],
        types: Sequence[pa.DataType],
        inner: Aggregate,
    ) -> None:
        if arguments not in self._plan.distinct:
            self._plan.distinct[arguments] = _Distinct(arguments, DistinctPairs(types), [], [])
        part = self._plan.distinct[arguments]
        assert isinstance(part, _Distinct)
        part.aggregates.append(inner)
        part.numbers.append(number)

    def _place_estimate(self, number: int, given: GroupAggregate) -> pa.DataType:
        (argument,) = given.arguments
        key = (APPROXIMATE, argument, given.error)
        part = self._plan.distinct.setdefault(key, DistinctEstimates(argument, given.error))
        part.numbers.append(number)
        return pa.int64()

    def _clear(self) -> None:
        plan, schema = self._plan, self.input_schema
        self._rows: Arrangement | None = None
        if self._keeps_rows:
            kept = dict.fromkeys([*self.keys, *plan.needed])
            kept_schema = pa.schema([schema.field(name) for name in kept])
            self._rows = Arrangement(kept_schema, self.keys, spills=bool(self.keys))
            self._lookup = self._rows.lookup
        else:
            self._lookup = Lookup([schema.field(key).type for key in self.keys])
        aggregation = Aggregation([], [one for _, one in plan.folded])
        self._folded = FoldedGroups(aggregation, [part for _, part in plan.moments])
        for part in plan.distinct.values():
            part.clear()
        outputs = [self.schema.field(len(self.keys) + number) for number, _, _ in plan.by_rows]
        self._given = LastGiven(pa.schema(outputs))
        self._grouper = Grouper()
        self._sequence = 0  # of the rows that came
        self._live = 0  # groups that are there
        self._owed = _Owed(_NO_SLOTS, np.empty(0, np.bool_), self.schema.empty_table())
        self._groups_spilled = SpilledKeys()
        self._pairs_spilled = [SpilledKeys() for _ in plan.distinct]
        self._grow()

    def _grow(self) -> None:
        self._folded.grow(len(self._lookup))
        for part in self._plan.distinct.values():
            part.folded.grow(len(self._lookup))

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        keys = self._lookup.nbytes if self._rows is None else self._rows.nbytes
        pairs = sum(p.pairs.nbytes + p.folded.nbytes for p in self._plan.distinct.values())
        own = self._folded.nbytes + self._given.nbytes + self._grouper.nbytes
        spilled = sum(part.nbytes for part in (self._groups_spilled, *self._pairs_spilled))
        return keys + pairs + own + spilled + self._owed.rows.nbytes

    def begin(self) -> Changes:
        """Without keys the one group is there before the first row."""
        if self.keys:
            return nothing(self.schema)
        slots = np.zeros(1, np.int64)
        evaluated = self._evaluated(slots)
        if evaluated is not None:
            self._given.put(slots, slots, evaluated)
        return come(self._table(slots, evaluated))

    def apply(self, *inputs: Changes) -> Changes:
        """−old and +new row of each touched group whose row has changed."""
        (changes,) = inputs
        if not len(changes) and not len(self._owed.slots):
            return nothing(self.schema)
        self._make_room()
        self._bring(changes.rows)
        slots = self._lookup.slots(columns_of(changes.rows, self.keys), len(changes))
        self._grow()
        self._owe(np.sort(self._grouper.distinct(slots, len(self._lookup))))
        self._take_in(changes, slots)
        return self._settled()

    def _owe(self, touched: Slots) -> None:
        """Notes what touched groups gave, before they change."""
        owed = self._owed
        fresh = np.setdiff1d(touched, owed.slots) if len(owed.slots) else touched
        there = self._there(fresh)
        known = fresh[there]
        rows = self._table(known, self._given.take(known) if self._plan.by_rows else None)
        if not len(owed.slots):
            self._owed = _Owed(fresh, there, rows)
            return
        order = np.argsort(np.concatenate([owed.slots, fresh]))
        flags = np.concatenate([owed.there, there])
        places = (np.cumsum(flags) - 1)[order][flags[order]]
        both = pa.concat_tables([owed.rows, rows]).take(pa.array(places))
        self._owed = _Owed(np.concatenate([owed.slots, fresh])[order], flags[order], both)

    def _there(self, slots: Slots) -> Vector:
        if not self.keys:
            return np.ones(len(slots), np.bool_)
        return self._folded.row_counts(slots) > 0

    def _table(self, slots: Slots, by_rows: pa.Table | None) -> pa.Table:
        """The rows of groups from their partials and from what was evaluated over their rows."""
        plan = self._plan
        columns: list[pa.Array | None] = [None] * len(self.aggregates)
        folded, moments = self._folded.finish(slots)
        for (number, _), column in zip(plan.folded, folded, strict=True):
            columns[number] = column
        for (number, _), column in zip(plan.moments, moments, strict=True):
            columns[number] = column
        for part in plan.distinct.values():
            for number, column in zip(part.numbers, part.finish(slots), strict=True):
                columns[number] = column
        for place, (number, _, _) in enumerate(plan.by_rows):
            assert by_rows is not None
            columns[number] = whole(by_rows.column(place))
        every = [*self._lookup.keys(slots), *columns]
        return pa.Table.from_arrays(
            [_cast(column, field.type) for column, field in zip(every, self.schema, strict=True)],
            schema=self.schema,
        )

    def _take_in(self, changes: Changes, slots: Slots) -> None:
        assert changes.only_come or self._taken_back, "rows were said never to be taken back"
        plan, count = self._plan, len(self._lookup)
        for part in plan.distinct.values():
            columns = columns_of(changes.rows, part.arguments)
            part.apply(slots, count, columns, changes.signs)
        if self._rows is not None:
            self._rows.apply(changes.with_rows(changes.rows.select(self._rows.schema.names)))
        came = slots if changes.only_come else slots[changes.signs > 0]
        if len(came):
            columns = columns_of(changes.coming, plan.names)
            sequence = np.arange(self._sequence, self._sequence + len(came))
            self._folded.add(self._folded.fold(came, count, columns, sequence))
            self._sequence += len(came)
        if not changes.only_come:
            going, went = columns_of(changes.going, plan.names), slots[changes.signs < 0]
            gone = self._folded.fold(went, count, going, np.zeros(len(went), np.int64))
            self._fold_afresh(np.sort(self._folded.take_back(gone)))

    def _fold_afresh(self, stale: Slots) -> None:
        if not len(stale):
            return
        assert self._rows is not None
        numbers = self._rows.of_slots(stale)
        rows = self._rows.rows.take(numbers)
        columns = [
            Column(rows.column(name)) if name in self._plan.needed else _NO_COLUMN
            for name in self._plan.names
        ]
        slots, count = self._rows.slot_of(numbers), len(self._lookup)
        self._folded.set(stale, self._folded.fold(slots, count, columns, numbers, afresh=True))

    def _settled(self) -> Changes:
        """What the owed groups give now, and what they take back."""
        owed = self._owed
        there = self._there(owed.slots)
        slots = owed.slots[there]
        evaluated = self._evaluated(slots)
        rows = self._table(slots, evaluated)
        if evaluated is not None:
            self._given.put(owed.slots, slots, evaluated)
        self._live += int(np.count_nonzero(there)) - int(np.count_nonzero(owed.there))
        self._owed = _Owed(_NO_SLOTS, np.empty(0, np.bool_), self.schema.empty_table())
        old, new = _changed(owed, there, rows, len(self.keys))
        return together([go(old), come(new)], self.schema)

    def _evaluated(self, slots: Slots) -> pa.Table | None:
        """The aggregates that are evaluated over the rows of groups; None if there are none."""
        plan = self._plan
        if not plan.by_rows:
            return None
        assert self._rows is not None
        numbers = self._rows.of_slots(slots)
        ids = np.searchsorted(slots, self._rows.slot_of(numbers))
        rows = GroupedRows(self._rows.rows.take(numbers, list(plan.needed)), ids, len(slots))
        columns = [function.evaluate(one, rows) for _, one, function in plan.by_rows]
        self._prune(numbers, rows)
        schema = self._given.schema
        pairs = zip(columns, schema, strict=True)
        return pa.Table.from_arrays([_cast(c, f.type) for c, f in pairs], schema=schema)

    def _prune(self, numbers: Slots, rows: GroupedRows) -> None:
        """Where rows only come, those that no function will ask for again go."""
        asked = []
        for _, aggregate, function in self._plan.by_rows:
            if function.needed is None or self._taken_back:
                return
            asked.append(function.needed(aggregate, rows))
        assert self._rows is not None
        spare = np.ones(len(numbers), np.bool_)
        spare[np.concatenate(asked)] = False
        self._rows.rows.kill(numbers[spare])

    def _make_room(self) -> None:
        """Groups that vanished are forgotten once they are the most."""
        if not self.keys or not self._taken_back or len(self._owed.slots):
            return
        if self._rows is not None:
            new = self._rows.forget()
        elif len(self._lookup) > 2 * self._live + LEAST_DEAD:
            live = self._folded.present()
            new = np.full(len(self._lookup), -1, np.int64)
            new[live] = np.arange(len(live))
            self._lookup.keep(live)
        else:
            return
        if new is not None:
            self._keep(np.flatnonzero(new >= 0), new)

    def _keep(self, live: Slots, new: Slots) -> None:
        self._folded.keep(live)
        self._given.keep(live)
        for part in self._plan.distinct.values():
            part.pairs.remap(new)
            part.folded.grow(len(new))
            part.folded.keep(live)

    # On disk

    @property
    def spilled(self) -> Sequence[SpilledKeys]:
        if not self.keys:
            return []
        rows = None if self._rows is None else self._rows.spilled
        parts = [self._groups_spilled, *self._pairs_spilled]
        return parts if rows is None else [*parts, rows]

    def _bring(self, rows: pa.Table) -> None:
        """The groups of some rows are in memory, with all that is kept of them."""
        if not self._groups_spilled:
            return
        keys = [column.array for column in columns_of(rows, self.keys)]
        hashes, width = hashes_of(keys, rows.num_rows), len(self.keys)
        if self._rows is not None:
            self._rows.bring(rows)
        stored = self._groups_spilled.missing(hashes)
        if stored is not None:
            columns = [whole(column) for column in stored.columns]
            slots = self._lookup.slots(columns[:width], stored.num_rows)
            self._grow()
            self._put_groups(slots, iter(columns[width:]))
            self._live += len(slots)
        for part, spilled in zip(self._plan.distinct.values(), self._pairs_spilled, strict=True):
            stored = spilled.missing(hashes)
            if stored is not None:
                columns = [whole(column) for column in stored.columns[:-2]]
                slots = self._lookup.slots(columns[:width], stored.num_rows)
                part.pairs.put(slots, columns[width:])
        for spilled in (self._groups_spilled, *self._pairs_spilled):
            spilled.touch(hashes)

    def _put_groups(self, slots: Slots, columns: Iterator[pa.Array]) -> None:
        self._folded.put(slots, columns)
        for part in self._plan.distinct.values():
            part.folded.put(slots, columns)
        if self._plan.by_rows:
            given = [next(columns) for _ in self._given.schema]
            self._given.put(slots, slots, pa.Table.from_arrays(given, schema=self._given.schema))

    def spill(self) -> None:
        if len(self._owed.slots) or not self.keys:
            return
        slots, plan = self._folded.present(), self._plan
        keys = self._lookup.keys(slots)
        columns = [*keys, *self._folded.columns(slots)]
        for part in plan.distinct.values():
            columns += part.folded.columns(slots)
        if plan.by_rows:
            columns += self._given.take(slots).columns
        self._groups_spilled.put(hashes_of(keys, len(slots)), columns)
        for part, spilled in zip(plan.distinct.values(), self._pairs_spilled, strict=True):
            owners, values = part.pairs.columns()
            keys = self._lookup.keys(owners)
            spilled.put(hashes_of(keys, len(owners)), [*keys, *values])
        if self._rows is not None:
            self._rows.spill()
        kept = (self._rows, self._groups_spilled, self._pairs_spilled, self._sequence)
        self._clear()
        self._rows, self._groups_spilled, self._pairs_spilled, self._sequence = kept
        if self._rows is not None:
            self._lookup = self._rows.lookup

    def state(self) -> dict[str, Any]:
        """What a snapshot needs: all by group, in the order of their slots."""
        present = self._folded.present() if self.keys else np.zeros(1, np.int64)
        slots = np.union1d(present, self._owed.slots)
        places = np.full(len(self._lookup), -1, np.int64)
        places[slots] = np.arange(len(slots))
        return {
            "keys": self._lookup.keys(slots),
            "folded": self._folded.state(slots),
            "distinct": [
                {"pairs": part.pairs.state(), "folded": part.folded.state(slots)}
                for part in self._plan.distinct.values()
            ],
            "places": places,
            "given": self._given.state(slots),
            "rows": None if self._rows is None else self._rows.state(),
            "sequence": self._sequence,
            "live": self._live,
            "spilled": [part.state() for part in (self._groups_spilled, *self._pairs_spilled)],
            "owed": {
                "slots": places[self._owed.slots],
                "there": self._owed.there,
                "columns": [whole(column) for column in self._owed.rows.columns],
            },
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot; groups get other slots."""
        self._clear()
        spilled = (self._groups_spilled, *self._pairs_spilled)
        for keys, kept in zip(spilled, state["spilled"], strict=True):
            keys.restore(kept)
        if self._rows is not None:
            self._rows.restore(state["rows"])
            self._lookup = self._rows.lookup
            count = len(state["folded"][0][0])
            slots = self._lookup.slots(state["keys"], count)
        else:
            self._lookup.load(state["keys"])
            slots = np.arange(len(self._lookup))
        self._folded.restore(slots, state["folded"])
        new = np.append(slots, -1)[state["places"]]
        for part, inner in zip(self._plan.distinct.values(), state["distinct"], strict=True):
            part.pairs.restore(inner["pairs"])
            part.pairs.remap(new)
            part.folded.restore(slots, inner["folded"])
        self._given.restore(slots, state["given"])
        self._sequence, self._live = state["sequence"], state["live"]
        owed = state["owed"]
        order = np.argsort(slots[owed["slots"]])
        rows = pa.Table.from_arrays(owed["columns"], schema=self.schema)
        there = owed["there"]
        places = (np.cumsum(there) - 1)[order][there[order]]
        taken = rows.take(pa.array(places, pa.int64()))
        self._owed = _Owed(slots[owed["slots"]][order], there[order], taken)
        self._grow()


def _inner(aggregate: GroupAggregate, name: str, types: Sequence[pa.DataType]) -> Aggregate | None:
    """An aggregate over distinct values, as one over the pairs that have them."""
    if name in ("count", COUNT_DISTINCT):
        if not types:
            raise NotSupportedError("DISTINCT without an argument")
        return Aggregate("count", None, pa.null(), aggregate.name)
    return Aggregate(name, 0, types[0], aggregate.name, nullable=False) if len(types) == 1 else None


def _is_invertible(aggregate: Aggregate) -> bool:
    parts = parts_of(aggregate)
    return all(family_of(kind, arg, aggregate.type).invertible for kind, arg in parts)


def _cast(column: pa.Array, type_: pa.DataType) -> pa.Array:
    return column if column.type == type_ else column.cast(type_)


def _changed(
    owed: _Owed, there: Vector, rows: pa.Table, key_count: int
) -> tuple[pa.Table, pa.Table]:
    """The old and the new rows, without those that are the same."""
    both = owed.there & there
    if not both.any():
        return owed.rows, rows
    old_places = (np.cumsum(owed.there) - 1)[both]
    new_places = (np.cumsum(there) - 1)[both]
    values = list(range(key_count, rows.num_columns))
    same = same_rows(
        owed.rows.select(values).take(pa.array(old_places)),
        rows.select(values).take(pa.array(new_places)),
    )
    if not same.any():
        return owed.rows, rows
    old, new = np.ones(owed.rows.num_rows, np.bool_), np.ones(rows.num_rows, np.bool_)
    old[old_places[same]] = False
    new[new_places[same]] = False
    return owed.rows.filter(pa.array(old)), rows.filter(pa.array(new))
