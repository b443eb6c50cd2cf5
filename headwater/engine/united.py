"""Equal stream pipelines as one fold, with the aggregates of all.

Owns: what a pipeline must have in common with another to be the same one, and the fold that stands for
several: of window queries (`sharing.py`), of views (`view_pipeline.py`). Must never: know whose they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from headwater.compile.fold import FoldSpec, make_spec
from headwater.expression.terms import Terms
from headwater.plan.folds import AggregateCall
from headwater.plan.pieces import Piece
from headwater.plan.text import RowsSlot

AggregateKey = tuple[str, Piece | None]


def pipeline_signature(spec: FoldSpec) -> tuple[object, ...]:
    """What is done to each row before it is aggregated, whichever leaf of a query it is."""
    plan, leaf = spec.plan, spec.plan.leaves[0]
    source = plan.from_text.replaced({RowsSlot("stream", leaf.number): RowsSlot("stream", 0)})
    return (source, plan.where, plan.keys, spec.tier)


def aggregate_keys(spec: FoldSpec) -> tuple[AggregateKey, ...]:
    """The aggregates of a fold, in order."""
    return tuple((a.function, a.argument) for a in spec.plan.aggregates)


def united(specs: Sequence[FoldSpec], functions: Terms) -> FoldSpec:
    """One fold with the aggregates of several that have the same signature."""
    first = specs[0]
    aggregates: dict[AggregateKey, AggregateCall] = {}
    types: dict[Piece, pa.DataType] = {}
    needed: dict[str, None] = {}
    for spec in specs:
        assert spec.aggregation is not None
        aggregates |= zip(aggregate_keys(spec), spec.plan.aggregates, strict=True)
        types |= {p: spec.aggregation.types[n] for n, p in enumerate(spec.argument_pieces)}
        needed |= dict.fromkeys(spec.plan.leaves[0].needed)
    plan = replace(
        first.plan,
        leaves=(replace(first.plan.leaves[0], needed=tuple(needed)),),
        aggregates=tuple(aggregates.values()),
        finish=None,
    )
    assert first.aggregation is not None
    arguments = dict.fromkeys(a.argument for a in plan.aggregates if a.argument is not None)
    known = [*first.aggregation.key_types, *(types[piece] for piece in arguments)]
    return make_spec(plan, functions, lambda _text: known)
