"""Bags of rows, compared bit for bit: what makes one of another, and what is left of one.

Owns: which rows are paired; equal ones cannot be told apart, so the first of them stand for all. Pure.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.fold.columns import FLOAT, Column, Slots, Vector, kind_of
from headwater.fold.lookup import Lookup
from headwater.operators.changes import Changes, come, go, together
from headwater.operators.flat import flat, flat_type


def bag_difference(before: pa.Table, after: pa.Table) -> Changes:
    """What makes one bag of rows of another."""
    lookup = _lookup(before.schema)
    old, new = (lookup.slots(_bits(rows), rows.num_rows) for rows in (before, after))
    many = np.bincount(new, minlength=len(lookup)) - np.bincount(old, minlength=len(lookup))
    parts = [go(before.take(_surplus(old, -many))), come(after.take(_surplus(new, many)))]
    return together(parts, before.schema)


def consolidated(changes: Changes) -> Changes:
    """The same without rows that come as well as go."""
    if changes.only_come:
        return changes
    return bag_difference(changes.going, changes.coming)


def left_of(rows: pa.Table, gone: pa.Table) -> Slots:
    """The places of rows that stay once some are gone: of equal ones the first go."""
    lookup = _lookup(rows.schema)
    going = lookup.slots(_bits(gone), gone.num_rows)
    slots = lookup.find(_bits(rows), rows.num_rows)
    met = np.flatnonzero(slots >= 0)
    order = met[np.argsort(slots[met], kind="stable")]
    mine = slots[order]
    turns = np.arange(len(order)) - np.searchsorted(mine, mine, side="left")
    stays = np.ones(rows.num_rows, np.bool_)
    stays[order[turns < np.bincount(going, minlength=len(lookup))[mine]]] = False
    return np.flatnonzero(stays)


def _surplus(slots: Slots, many: Vector) -> pa.Array:
    """The last rows of each slot, so many of them as there are too many."""
    order = np.argsort(slots, kind="stable")
    counts = np.bincount(slots, minlength=len(many))
    ends = np.cumsum(counts)
    left = np.repeat(ends, counts) - np.arange(len(slots))  # 1 for the last of a slot
    return pa.array(order[left <= np.repeat(np.maximum(many, 0), counts)])


def _lookup(schema: pa.Schema) -> Lookup:
    return Lookup([_bits_type(flat_type(field.type)) for field in schema])


def _bits(rows: pa.Table) -> list[Column]:
    """Columns that are equal just where the bits are: −0.0 is not 0.0."""
    found = []
    for column in rows.columns:
        one = flat(column, exact=True)
        found.append(Column(one.array.view(_bits_type(one.type))) if one.kind == FLOAT else one)
    return found


def _bits_type(type_: pa.DataType) -> pa.DataType:
    if kind_of(type_) != FLOAT:
        return type_
    return pa.int32() if pa.types.is_float32(type_) else pa.int64()
