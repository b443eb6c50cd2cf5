"""Partials that were made elsewhere: a table of keys and partial columns, as Spark can compute it.

Owns: which columns such a table has for each part of an aggregation, and how they become a
family's vectors. So both tiers feed one structure. Must never: fold rows.

    rows                          count(*)
    count_i, sum_i, min_i, max_i  count(x), sum(x), min(x), max(x)
    moments_i_{count, mean, squares}          count(x), avg(x), var_pop(x) * count(x), as DOUBLE
    first_i_{time, sequence, value}, last_i_… of the first or last row by (T, _seq), as ticks
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.errors import NotSupportedError
from headwater.fold.aggregates import Aggregate, Part, result_type
from headwater.fold.aggregation import Aggregation, Partial, frozen
from headwater.fold.columns import Column, Vector
from headwater.fold.families import Family, IntegerSum, Vectors, rounded_words
from headwater.fold.lookup import Lookup

TRIPLES = {
    "moments": ("count", "mean", "squares"),
    "first": ("time", "sequence", "value"),
    "last": ("time", "sequence", "value"),
}


def partial_fields(aggregation: Aggregation) -> list[pa.Field]:
    """The columns after the keys, in their order."""
    return [field for part in aggregation.parts for field in _fields(aggregation, part)]


def _fields(aggregation: Aggregation, part: Part) -> list[pa.Field]:
    kind, argument = part
    if argument is None:
        return [pa.field("rows", pa.int64())]
    type_, name = aggregation.types[argument], f"{kind}_{argument}"
    simple = kind.removesuffix("_there")
    if simple not in TRIPLES:
        return [pa.field(name, result_type(Aggregate(kind, argument, type_, name)))]
    ticks = [pa.int64(), pa.int64(), type_] if simple != "moments" else [pa.float64()] * 3
    return [pa.field(f"{name}_{n}", t) for n, t in zip(TRIPLES[simple], ticks, strict=True)]


def absorb(aggregation: Aggregation, lookup: Lookup, table: pa.Table) -> Partial:
    """The partial in a table that has one row per group."""
    if aggregation.distinct:
        raise NotSupportedError("distinct values come as rows, not as partials")
    keys = [Column(table.column(place)) for place in range(len(aggregation.keys))]
    slots = lookup.slots(keys, table.num_rows)
    vectors = []
    for part, family in zip(aggregation.parts, aggregation.families, strict=True):
        columns = [Column(table.column(f.name)) for f in _fields(aggregation, part)]
        vectors.append(_vectors(family, columns))
    return Partial(slots, frozen(vectors))


def _vectors(family: Family, columns: list[Column]) -> Vectors:
    if isinstance(family, IntegerSum):
        return _words(_filled(columns[0], 0))
    if len(columns) == 1:
        return [_filled(columns[0], family.identities[0])]
    if len(family.identities) == 3:
        return [_filled(c, 0.0) for c in columns]
    time, sequence, value = columns
    early, late = family.identities[:2]
    valid = np.ones(len(value), np.bool_) if value.valid is None else value.valid
    values = _filled(value, family.identities[3])
    return [_filled(time, early), _filled(sequence, late), valid, values]


def _filled(column: Column, identity: object) -> Vector:
    """A column's vector with the identity at its NULLs."""
    values = column.values.copy()
    if column.valid is not None:
        values[~column.valid] = identity
    return values + 0.0 if values.dtype == np.float64 else values


def _words(totals: Vector) -> Vectors:
    if totals.dtype != object:
        return [totals, rounded_words(totals)]
    low = [(total + 2**63) % 2**64 - 2**63 for total in totals.tolist()]
    high = [(total + 2**31) >> 32 for total in totals.tolist()]
    return [np.array(low, np.int64), np.array(high, np.int64)]
