"""Aggregates that are evaluated over the rows of a group: the table of those that no partial can hold.

Owns: GroupAggregate, and for each function its result type as Spark's and its value over all groups at once.
A few need only some rows of a group as long as rows only come (`needed`); the others need all. Ties of
max_by and min_by go to the row that came first, those of mode to the least value. Must never: keep state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import NotSupportedError
from headwater.fold.aggregates import Aggregate, function_of, result_type
from headwater.fold.aggregation import Aggregation
from headwater.fold.chunk import Grouper
from headwater.fold.columns import Column, Slots, Vector, decode
from headwater.fold.order import ordered
from headwater.operators.distinct_sketch import USUAL_ERROR
from headwater.operators.grouped_rows import GroupedRows, OrderColumn

USUAL_ACCURACY = 10_000  # Spark's, of percentile_approx
OTHER_NAMES = {
    "any_value": "first",
    "any_value_ignore_nulls": "first_ignore_nulls",
    "approx_percentile": "percentile_approx",
    "array_agg": "collect_list",
    "percentile_cont": "percentile",
    "string_agg": "listagg",
    "try_avg": "avg",  # of what cannot overflow
    "try_sum": "sum",
}


EDGES = ("first", "last", "first_ignore_nulls", "last_ignore_nulls")


@dataclass(frozen=True)
class GroupAggregate:
    """One aggregate of a grouping over columns of its input; count without arguments is count(*)."""

    function: str
    arguments: tuple[str, ...]
    name: str
    type: pa.DataType | None = None  # of the result; None: as Spark derives it from the arguments
    distinct: bool = False
    order: tuple[
        OrderColumn, ...
    ] = ()  # of listagg, collect_list, first and last; none: as rows came
    delimiter: str | bytes = ""  # of listagg
    percentages: float | tuple[float, ...] = 0.5  # of percentiles; several of them give an array
    descending: bool = False  # of percentiles and mode, within group (order by … desc)
    accuracy: int = USUAL_ACCURACY
    error: float = USUAL_ERROR  # of approx_count_distinct

    @property
    def known_name(self) -> str:
        """The function's name in the tables."""
        name = OTHER_NAMES.get(self.function, self.function)
        return f"{name} by order" if self.order and name in EDGES else name


@dataclass(frozen=True)
class RowFunction:
    """One row of the table."""

    result: Callable[[GroupAggregate, Sequence[pa.DataType]], pa.DataType]
    evaluate: Callable[[GroupAggregate, GroupedRows], pa.Array]
    needed: Callable[[GroupAggregate, GroupedRows], Slots] | None = None


def _first_type(_: GroupAggregate, types: Sequence[pa.DataType]) -> pa.DataType:
    return types[0]


def _list_type(_: GroupAggregate, types: Sequence[pa.DataType]) -> pa.DataType:
    return pa.list_(types[0])


def _several(aggregate: GroupAggregate, type_: pa.DataType) -> pa.DataType:
    return pa.list_(type_) if isinstance(aggregate.percentages, tuple) else type_


def _double_type(aggregate: GroupAggregate, types: Sequence[pa.DataType]) -> pa.DataType:
    number = pa.types.is_integer(types[0]) or pa.types.is_floating(types[0])
    if not number and not pa.types.is_decimal128(types[0]):
        raise NotSupportedError(f"type {types[0]} has no percentile by operators")
    return _several(aggregate, pa.float64())


def _same_type(aggregate: GroupAggregate, types: Sequence[pa.DataType]) -> pa.DataType:
    number = pa.types.is_integer(types[0]) or pa.types.is_floating(types[0])
    if not (number or pa.types.is_decimal128(types[0]) or pa.types.is_temporal(types[0])):
        raise NotSupportedError(f"type {types[0]} has no approximate percentile by operators")
    return _several(aggregate, types[0])


def _text_type(_: GroupAggregate, types: Sequence[pa.DataType]) -> pa.DataType:
    if pa.types.is_string(types[0]) or pa.types.is_binary(types[0]):
        return types[0]
    raise NotSupportedError(f"type {types[0]} cannot be put together by operators")


def _best_places(greatest: bool, aggregate: GroupAggregate, rows: GroupedRows) -> Slots:
    by = aggregate.arguments[1]
    places = rows.there(by)
    ranks = ordered(rows.column(by))[places]
    return rows.best(places, ranks if greatest else ~ranks)


def _best(greatest: bool, aggregate: GroupAggregate, rows: GroupedRows) -> pa.Array:
    return _picked(rows.array(aggregate.arguments[0]), _best_places(greatest, aggregate, rows))


def _best_needed(greatest: bool, aggregate: GroupAggregate, rows: GroupedRows) -> Slots:
    best = _best_places(greatest, aggregate, rows)
    return best[best >= 0]


def _picked(array: pa.Array, places: Slots) -> pa.Array:
    """The values of places, NULL for −1."""
    return array.take(pa.array(places, mask=places < 0))


def _mode(aggregate: GroupAggregate, rows: GroupedRows) -> pa.Array:
    name = aggregate.arguments[0]
    ranks = ordered(rows.column(name))
    places = rows.by_group(rows.there(name), [~ranks if aggregate.descending else ranks])
    starts = np.flatnonzero(rows.run_starts(places, ranks))
    lengths = np.diff(np.append(starts, len(places)))
    runs = GroupedRows(rows.rows, rows.ids[places[starts]], rows.size)
    longest = runs.best(runs.everything, lengths)
    chosen = np.full(rows.size, -1, np.int64)
    there = longest >= 0
    chosen[there] = places[starts[longest[there]]]
    return _picked(rows.array(name), chosen)


def _sorted_values(aggregate: GroupAggregate, rows: GroupedRows) -> tuple[Slots, Slots, Slots]:
    """The places that are not NULL by group and value, where each group starts, and its count."""
    name = aggregate.arguments[0]
    ranks = ordered(rows.column(name))
    places = rows.by_group(rows.there(name), [~ranks if aggregate.descending else ranks])
    counts = rows.counts(places)
    return places, np.cumsum(counts) - counts, counts


def _listed(
    aggregate: GroupAggregate, columns: Sequence[pa.Array], there: Vector, type_: pa.DataType
) -> pa.Array:
    """One column for one percentage; for several, an array of them for each group."""
    if not isinstance(aggregate.percentages, tuple):
        return columns[0]
    kept = pa.array(np.flatnonzero(there))
    count = len(columns)
    order = np.arange(len(kept) * count).reshape(count, -1).T.ravel()
    values = pa.concat_arrays([column.take(kept) for column in columns]).take(pa.array(order))
    ends = np.concatenate([[0], np.cumsum(np.where(there, count, 0))]).astype(np.int32)
    offsets = pa.array(ends, mask=np.append(~there, False))
    return pa.ListArray.from_arrays(offsets, values, pa.list_(type_))


def _percentages(aggregate: GroupAggregate) -> tuple[float, ...]:
    given = aggregate.percentages
    return given if isinstance(given, tuple) else (given,)


def _percentile(aggregate: GroupAggregate, rows: GroupedRows) -> pa.Array:
    """Spark's interpolation between the two values beside the position."""
    places, starts, counts = _sorted_values(aggregate, rows)
    column = rows.column(aggregate.arguments[0])
    unit = 10.0**column.type.scale if pa.types.is_decimal128(column.type) else 1.0
    values = np.append(column.values[places].astype(np.float64) / unit, 0.0)
    there, columns = counts > 0, []
    for percentage in _percentages(aggregate):
        position = np.maximum(counts - 1, 0) * percentage
        lower, higher = np.floor(position), np.ceil(position)
        low = values[np.where(there, starts + lower.astype(np.int64), -1)]
        high = values[np.where(there, starts + higher.astype(np.int64), -1)]
        with np.errstate(invalid="ignore"):
            between = (higher - position) * low + (position - lower) * high
        found = np.where((lower == higher) | (low == high), low, between)
        columns.append(decode(found, None if there.all() else there, pa.float64()))
    return _listed(aggregate, columns, there, pa.float64())


def _discrete(aggregate: GroupAggregate, rows: GroupedRows) -> pa.Array:
    """percentile_disc: the first value that so many are not beyond; a double, as Spark gives it."""
    column = rows.column(aggregate.arguments[0])
    exact = [np.ceil] * len(_percentages(aggregate))
    found = _at_ranks(aggregate, rows, exact)
    unit = 10.0**column.type.scale if pa.types.is_decimal128(column.type) else 1.0
    there = rows.counts(rows.there(aggregate.arguments[0])) > 0
    columns = []
    for array in found:
        values = Column(array).values.astype(np.float64) / unit
        columns.append(decode(values, None if there.all() else there, pa.float64()))
    return _listed(aggregate, columns, there, pa.float64())


def _at_ranks(
    aggregate: GroupAggregate, rows: GroupedRows, rounding: Sequence[Callable]
) -> list[pa.Array]:
    places, starts, counts = _sorted_values(aggregate, rows)
    padded, array = np.append(places, -1), rows.array(aggregate.arguments[0])
    found = []
    for percentage, rounded in zip(_percentages(aggregate), rounding, strict=True):
        rank = np.clip(rounded(percentage * counts).astype(np.int64), 1, np.maximum(counts, 1))
        chosen = np.where(counts > 0, padded[np.where(counts > 0, starts + rank - 1, -1)], -1)
        found.append(_picked(array, chosen))
    return found


def _approximate(aggregate: GroupAggregate, rows: GroupedRows) -> pa.Array:
    """percentile_approx, exact: what Spark gives while a group has at most accuracy / 2 values."""
    error = 1.0 / aggregate.accuracy
    rounding: list[Callable] = []
    for percentage in _percentages(aggregate):
        if percentage <= error:
            rounding.append(np.zeros_like)
        elif percentage >= 1.0 - error:
            rounding.append(lambda ranks: np.full_like(ranks, 2.0**62))
        else:
            rounding.append(np.ceil)
    found = _at_ranks(aggregate, rows, rounding)
    there = rows.counts(rows.there(aggregate.arguments[0])) > 0
    return _listed(aggregate, found, there, found[0].type)


def _collected(array: pa.Array, rows: GroupedRows, places: Slots) -> pa.Array:
    """Lists of the values of places, which stand by group."""
    ends = np.concatenate([[0], np.cumsum(rows.counts(places))]).astype(np.int32)
    values = array.take(pa.array(places))
    return pa.ListArray.from_arrays(pa.array(ends), values, pa.list_(array.type))


def _collect_list(aggregate: GroupAggregate, rows: GroupedRows) -> pa.Array:
    name = aggregate.arguments[0]
    places = rows.there(name) if not aggregate.distinct else _distinct_places(aggregate, rows)
    return _collected(rows.array(name), rows, rows.by_group(places, rows.ranks(aggregate.order)))


def _edge_places(last: bool, nulls: bool, aggregate: GroupAggregate, rows: GroupedRows) -> Slots:
    """Of each group the first or last row in an order; −1 if it has none."""
    places = rows.everything if nulls else rows.there(aggregate.arguments[0])
    places = rows.by_group(places, rows.ranks(aggregate.order))
    chosen = np.full(rows.size, -1, np.int64)
    kept = places if last else places[::-1]
    chosen[rows.ids[kept]] = kept  # of several the last one written stays
    return chosen


def _edge(last: bool, nulls: bool, aggregate: GroupAggregate, rows: GroupedRows) -> pa.Array:
    return _picked(rows.array(aggregate.arguments[0]), _edge_places(last, nulls, aggregate, rows))


def _edge_needed(last: bool, nulls: bool, aggregate: GroupAggregate, rows: GroupedRows) -> Slots:
    edges = _edge_places(last, nulls, aggregate, rows)
    return edges[edges >= 0]


def _edge_function(last: bool, nulls: bool) -> RowFunction:
    """first or last by an order of its own."""
    return RowFunction(_first_type, partial(_edge, last, nulls), partial(_edge_needed, last, nulls))


def _collect_set(aggregate: GroupAggregate, rows: GroupedRows) -> pa.Array:
    column = rows.column(aggregate.arguments[0])
    places = rows.by_group(_distinct_places(aggregate, rows))
    if not pa.types.is_floating(column.type):
        return _collected(column.array, rows, places)
    return _collected(decode(column.values + 0.0, column.valid, column.type), rows, places)


def _distinct_places(aggregate: GroupAggregate, rows: GroupedRows) -> Slots:
    name = aggregate.arguments[0]
    return rows.distinct(rows.there(name), name)


def _listagg(aggregate: GroupAggregate, rows: GroupedRows) -> pa.Array:
    name = aggregate.arguments[0]
    places = _distinct_places(aggregate, rows) if aggregate.distinct else rows.there(name)
    array = rows.array(name)
    lists = _collected(array, rows, rows.by_group(places, rows.ranks(aggregate.order)))
    joined = pc.binary_join(lists, pa.scalar(aggregate.delimiter, array.type))
    empty = rows.counts(places) == 0
    return pc.if_else(pa.array(empty), pa.scalar(None, array.type), joined)


def _integer_type(_: GroupAggregate, types: Sequence[pa.DataType]) -> pa.DataType:
    if not pa.types.is_integer(types[0]):
        raise NotSupportedError(f"type {types[0]} has no bits for operators")
    return types[0]


def _bits(combine: np.ufunc, aggregate: GroupAggregate, rows: GroupedRows) -> pa.Array:
    """The bits of all values of a group; NULL where it has none."""
    name = aggregate.arguments[0]
    places, column = rows.by_group(rows.there(name)), rows.column(name)
    counts = rows.counts(places)
    there, starts = counts > 0, np.cumsum(counts) - counts
    found = np.zeros(rows.size, np.int64)
    if there.any():
        found[there] = combine.reduceat(column.values[places], starts[there])
    return decode(found, None if there.all() else there, pa.int64())


def _distinct_type(aggregate: GroupAggregate, types: Sequence[pa.DataType]) -> pa.DataType:
    return result_type(Aggregate(aggregate.known_name, 0, types[0], aggregate.name))


def _distinct_fold(aggregate: GroupAggregate, rows: GroupedRows) -> pa.Array:
    """An aggregate of `fold` over the distinct values."""
    name = aggregate.arguments[0]
    places = _distinct_places(aggregate, rows)
    array = rows.array(name).take(pa.array(places))
    inner = Aggregate(aggregate.known_name, 0, array.type, aggregate.name)
    aggregation = Aggregation([], [inner])
    folded = aggregation.fold(rows.ids[places], rows.size, [Column(array)], Grouper())
    vectors = aggregation.empty(rows.size)
    aggregation.merge_at(vectors, folded.slots, folded.vectors)
    return aggregation.finish(vectors)[0]


ROW_FUNCTIONS: dict[str, RowFunction] = {
    "max_by": RowFunction(_first_type, partial(_best, True), partial(_best_needed, True)),
    "min_by": RowFunction(_first_type, partial(_best, False), partial(_best_needed, False)),
    "mode": RowFunction(_first_type, _mode),
    "median": RowFunction(_double_type, _percentile),
    "percentile": RowFunction(_double_type, _percentile),
    "percentile_disc": RowFunction(_double_type, _discrete),
    "percentile_approx": RowFunction(_same_type, _approximate),
    "bit_and": RowFunction(_integer_type, partial(_bits, np.bitwise_and)),
    "bit_or": RowFunction(_integer_type, partial(_bits, np.bitwise_or)),
    "bit_xor": RowFunction(_integer_type, partial(_bits, np.bitwise_xor)),
    "collect_list": RowFunction(_list_type, _collect_list),
    "collect_set": RowFunction(_list_type, _collect_set, _distinct_places),
    "listagg": RowFunction(_text_type, _listagg),
    "first by order": _edge_function(last=False, nulls=True),
    "last by order": _edge_function(last=True, nulls=True),
    "first_ignore_nulls by order": _edge_function(last=False, nulls=False),
    "last_ignore_nulls by order": _edge_function(last=True, nulls=False),
}
_DISTINCT_FOLD = RowFunction(_distinct_type, _distinct_fold)


def row_function_of(aggregate: GroupAggregate) -> RowFunction:
    """The row of the table for an aggregate."""
    found = ROW_FUNCTIONS.get(aggregate.known_name)
    if found is not None:
        return found
    if aggregate.distinct and len(aggregate.arguments) == 1 and function_of(aggregate.known_name):
        return _DISTINCT_FOLD
    raise NotSupportedError(f"aggregate {aggregate.function} cannot be kept by operators")
