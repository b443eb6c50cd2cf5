"""Aggregate calls of sqlglot's trees: which function over which arguments, as operators know them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from headwater.plan.relational.expressions import refuse
from headwater.plan.relational.trees import check_arguments

PLAIN: dict[type[exp.Expr], str] = {
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.Median: "median",
    exp.Mode: "mode",
}
PAIRS: dict[type[exp.Expr], str] = {
    exp.ArgMax: "max_by",
    exp.ArgMin: "min_by",
    exp.Corr: "corr",
    exp.CovarPop: "covar_pop",
    exp.CovarSamp: "covar_samp",
}
DISTINCT = ("count", "sum", "avg", "min", "max", "bool_and", "bool_or")


@dataclass(frozen=True)
class AggregateTree:
    """An aggregate, its arguments as trees."""

    function: str
    arguments: tuple[exp.Expr, ...]
    distinct: bool = False
    percentage: float = 0.5


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node calls an aggregate (also one that is not known here); a window function does not."""
    if isinstance(node.parent, exp.Window):
        return False
    return isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup)


def aggregate_of(node: exp.Expr) -> AggregateTree:
    """The aggregate that a node calls; NotKept if Spark must compute it."""
    if isinstance(node, exp.Filter):
        return _filtered(node)
    if isinstance(node, exp.Count):
        return _count(node)
    if isinstance(node, exp.CountIf):
        check_arguments(node, "this")
        return AggregateTree("count", (_when(node.this, exp.Literal.number(1)),))
    if isinstance(node, exp.Quantile):
        return _quantile(node)
    if type(node) in PAIRS:
        check_arguments(node, "this expression")
        return AggregateTree(PAIRS[type(node)], (node.this, node.expression))
    if type(node) in PLAIN:
        check_arguments(node, "this")
        return _maybe_distinct(PLAIN[type(node)], node)
    raise refuse(f"aggregate {node.key} has no operator", node)


def _count(node: exp.Count) -> AggregateTree:
    check_arguments(node, "this big_int")
    if isinstance(node.this, exp.Star):
        return AggregateTree("count", ())
    if isinstance(node.this, exp.Literal):
        return AggregateTree("count", ())
    return _maybe_distinct("count", node)


def _maybe_distinct(function: str, node: exp.Expr) -> AggregateTree:
    if not isinstance(node.this, exp.Distinct):
        return AggregateTree(function, (node.this,))
    check_arguments(node.this, "expressions")
    if len(node.this.expressions) != 1:
        raise refuse("DISTINCT over several columns", node)
    if function not in DISTINCT:
        raise refuse(f"{function}(DISTINCT …) has no operator", node)
    return AggregateTree(function, (node.this.expressions[0],), distinct=True)


def _quantile(node: exp.Quantile) -> AggregateTree:
    check_arguments(node, "this quantile")
    share = node.args.get("quantile")
    if not isinstance(share, exp.Literal) or share.is_string:
        raise refuse("a percentile that is no constant", node)
    return AggregateTree("percentile", (node.this,), percentage=float(share.name))


def _filtered(node: exp.Filter) -> AggregateTree:
    """FILTER (WHERE c): what does not pass is NULL, which these aggregates leave out."""
    check_arguments(node, "this expression")
    inner, condition = aggregate_of(node.this), node.expression.this
    if inner.function in ("max_by", "min_by", "mode"):
        raise refuse(f"{inner.function} with FILTER", node)
    first = inner.arguments[0] if inner.arguments else exp.Literal.number(1)
    return replace(inner, arguments=(_when(condition, first), *inner.arguments[1:]))


def _when(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    """CASE WHEN condition THEN value END."""
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])
