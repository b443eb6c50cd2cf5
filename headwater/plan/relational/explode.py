"""explode and posexplode, in LATERAL VIEW or as an item of a select list → one row for each element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from headwater.plan.relational.building import Building
from headwater.plan.relational.expressions import Expressions, refuse, stand_in
from headwater.plan.relational.joining import with_columns
from headwater.plan.relational.layer import Layer
from headwater.plan.relational.names import KnownColumn, KnownRelation, Names
from headwater.plan.relational.nodes import ExplodeNode, Node
from headwater.plan.relational.trees import check_arguments

GENERATORS = (exp.Explode, exp.Posexplode)


@dataclass(frozen=True)
class Exploded:
    """A node over elements, and the columns that these have."""

    node: ExplodeNode
    columns: tuple[KnownColumn, ...]


def with_laterals(
    building: Building, node: Node, names: Names, laterals: Sequence[exp.Lateral]
) -> tuple[Node, Names]:
    """LATERAL VIEW after LATERAL VIEW; each sees those before it."""
    for lateral in laterals:
        check_arguments(lateral, "this view outer alias")
        alias = lateral.args.get("alias")
        given = [] if alias is None else [name.name for name in alias.args.get("columns") or ()]
        layer = Layer(building, node, Expressions(names, building.terms))
        made = _exploded(layer, lateral.this, given, bool(lateral.args.get("outer")))
        name = None if alias is None or alias.this is None else alias.this.name
        node, names = made.node, names.beside([KnownRelation(name, made.columns)])
    return node, names


def has_generator(item: exp.Expr) -> bool:
    """Whether an item makes several rows of one."""
    return item.find(*GENERATORS) is not None


def with_generator(layer: Layer, items: Sequence[exp.Expr]) -> tuple[Layer, list[exp.Expr]]:
    """A select list whose one generator is written out as the columns of its elements."""
    found = [item for item in items if has_generator(item)]
    if not found:
        return layer, list(items)
    item = found[0]
    call = item.this if isinstance(item, exp.Alias) else item
    if len(found) > 1 or not isinstance(call, GENERATORS):
        raise refuse("a generator within an expression", item)
    given = [item.alias] if isinstance(item, exp.Alias) else []
    made = _exploded(layer, call, given, outer=False)
    columns = [
        exp.Alias(this=stand_in(c.name, c.type), alias=exp.to_identifier(c.shown))
        for c in made.columns
    ]
    place = list(items).index(item)
    written = [*items[:place], *columns, *items[place + 1 :]]
    return layer.over(made.node), written


def _exploded(layer: Layer, call: exp.Expr, given: Sequence[str], outer: bool) -> Exploded:
    if not isinstance(call, GENERATORS):
        raise refuse(f"{call.key} in LATERAL VIEW", call)
    check_arguments(call, "this")
    bound = layer.bound(call.this)
    node, (column,) = with_columns(layer.building, layer.node, [bound])
    position = isinstance(call, exp.Posexplode)
    shown = _columns_of(bound.type, position, call)
    if given and len(given) != len(shown):
        raise refuse("names of a generator's columns", call)
    names = list(given) or [name for name, _ in shown]
    columns = tuple(
        KnownColumn(name, layer.building.fresh(name), type_)
        for name, (_, type_) in zip(names, shown, strict=True)
    )
    outputs = tuple((one.name, one.type) for one in columns)
    outer = outer or type(call).__name__.endswith("Outer")
    return Exploded(ExplodeNode(node, column, outputs, position, outer), columns)


def _columns_of(
    type_: pa.DataType, position: bool, call: exp.Expr
) -> list[tuple[str, pa.DataType]]:
    """What Spark calls the columns of elements, and their types."""
    if pa.types.is_map(type_):
        found = [("key", type_.key_type), ("value", type_.item_type)]
    elif pa.types.is_list(type_) or pa.types.is_large_list(type_):
        found = [("col", type_.value_type)]
    else:
        raise refuse("explode of what is no array or map", call)
    return [("pos", pa.int32()), *found] if position else found
