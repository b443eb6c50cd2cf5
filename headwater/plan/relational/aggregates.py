"""Aggregate calls of sqlglot's trees: which function over which arguments, as operators know them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from headwater.expression.bind import called
from headwater.plan.relational.expressions import refuse
from headwater.plan.relational.trees import check_arguments, ordinal

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
    exp.Skewness: "skewness",
    exp.Kurtosis: "kurtosis",
    exp.ArrayAgg: "collect_list",
    exp.ArrayUniqueAgg: "collect_set",
    exp.BitwiseAndAgg: "bit_and",
    exp.BitwiseOrAgg: "bit_or",
    exp.BitwiseXorAgg: "bit_xor",
}
# Names that sqlglot does not know as aggregates.
BY_NAME = {
    "every": "bool_and",
    "mean": "avg",
    "some": "bool_or",
    "std": "stddev_samp",
    "try_avg": "try_avg",
    "try_sum": "try_sum",
}
# They go by an order; where rows have one by themselves, by that.
EDGES: dict[type[exp.Expr], str] = {
    exp.First: "first",
    exp.FirstValue: "first",
    exp.AnyValue: "first",
    exp.Last: "last",
    exp.LastValue: "last",
}
OF_EDGES = ("first", "first_ignore_nulls", "last", "last_ignore_nulls")
BY_ORDER = (*OF_EDGES, "collect_list", "listagg")
PAIRS: dict[type[exp.Expr], str] = {
    exp.ArgMax: "max_by",
    exp.ArgMin: "min_by",
    exp.Corr: "corr",
    exp.CovarPop: "covar_pop",
    exp.CovarSamp: "covar_samp",
    exp.RegrSxx: "regr_sxx",
    exp.RegrSyy: "regr_syy",
    exp.RegrSxy: "regr_sxy",
    exp.RegrSlope: "regr_slope",
    exp.RegrIntercept: "regr_intercept",
    exp.RegrR2: "regr_r2",
}
LEAST_ERROR, MOST_ERROR = 0.005, 0.39  # of approx_count_distinct; beyond it is Spark's to answer
# Over the rows in which neither argument is NULL: of the first or second argument, or of a 1.
OF_PAIRS: dict[type[exp.Expr], tuple[str, str | None]] = {
    exp.RegrCount: ("count", None),
    exp.RegrAvgx: ("avg", "expression"),
    exp.RegrAvgy: ("avg", "this"),
}
DISTINCT = ("count", "sum", "avg", "min", "max", "bool_and", "bool_or", "collect_set", "listagg")


@dataclass(frozen=True)
class AggregateTree:
    """An aggregate, its arguments as trees."""

    function: str
    arguments: tuple[exp.Expr, ...]
    distinct: bool = False
    order: tuple[exp.Ordered, ...] = ()
    delimiter: str = ""
    percentages: float | tuple[float, ...] = 0.5
    descending: bool = False
    accuracy: int = 10_000
    error: float = 0.05


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node calls an aggregate (also one that is not known here); a window function does not."""
    outer = node.parent
    while isinstance(outer, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        outer = outer.parent
    if isinstance(outer, exp.Window):
        return False
    if isinstance(node, exp.IgnoreNulls):
        return is_aggregate(node.this)
    return (
        isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup) or _by_name(node) is not None
    )


def _by_name(node: exp.Expr) -> str | None:
    """The aggregate that a call of an unknown name is."""
    return BY_NAME.get(node.name.casefold()) if isinstance(node, exp.Anonymous) else None


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
    if isinstance(node, exp.ApproxDistinct):
        return _approximate(node)
    if isinstance(node, exp.GroupConcat):
        return _listagg(node)
    if isinstance(node, exp.WithinGroup):
        return _within(node)
    if isinstance(node, exp.IgnoreNulls) and type(node.this) in EDGES:
        inner = aggregate_of(node.this)
        return replace(inner, function=f"{inner.function}_ignore_nulls")
    if type(node) in EDGES:
        check_arguments(node, "this")
        return AggregateTree(EDGES[type(node)], (node.this,))
    if isinstance(node, exp.Max | exp.Min | exp.ArgMax | exp.ArgMin):
        fields = node.expression or node.this
        if isinstance(fields, exp.Struct):
            return _best_struct(node, fields)
    if (function := _by_name(node)) is not None:
        if len(node.expressions) != 1:
            raise refuse(f"{function} of {len(node.expressions)} arguments", node)
        return AggregateTree(function, (node.expressions[0],))
    if type(node) in PAIRS:
        check_arguments(node, "this expression")
        return AggregateTree(PAIRS[type(node)], (node.this, node.expression))
    if type(node) in OF_PAIRS:
        check_arguments(node, "this expression")
        return _of_pairs(node)
    if type(node) in PLAIN:
        check_arguments(node, "this nulls_excluded")
        return _maybe_distinct(PLAIN[type(node)], node)
    raise refuse(f"aggregate {called(node)} has no operator", node)


def _best_struct(node: exp.Expr, fields: exp.Struct) -> AggregateTree:
    """max and min of a struct of expressions, max_by and min_by by one: the first row by its fields."""
    check_arguments(node, "this expression" if node.args.get("expression") else "this")
    check_arguments(fields, "expressions")
    most = isinstance(node, exp.Max | exp.ArgMax)
    values = [f.expression if isinstance(f, exp.PropertyEQ) else f for f in fields.expressions]
    order = [exp.Ordered(this=v.copy(), desc=most, nulls_first=not most) for v in values]
    return AggregateTree("first", (node.this,), order=tuple(order))


def _of_pairs(node: exp.Expr) -> AggregateTree:
    function, which = OF_PAIRS[type(node)]
    value = exp.Literal.number(1) if which is None else node.args[which]
    for argument in (node.this, node.expression):
        value = _when(exp.Not(this=exp.Is(this=argument.copy(), expression=exp.Null())), value)
    return AggregateTree(function, (value,))


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
    if function == "count" and len(node.this.expressions) > 1:
        return AggregateTree("count_distinct", tuple(node.this.expressions))
    if len(node.this.expressions) != 1:
        raise refuse("DISTINCT over several columns", node)
    if function not in DISTINCT:
        raise refuse(f"{function}(DISTINCT …) has no operator", node)
    return AggregateTree(function, (node.this.expressions[0],), distinct=True)


def _quantile(node: exp.Quantile) -> AggregateTree:
    check_arguments(node, "this quantile accuracy")
    shares, accuracy = _shares(node.args.get("quantile"), node), node.args.get("accuracy")
    if not isinstance(node, exp.ApproxQuantile):
        if accuracy is not None:
            raise refuse("a percentile with frequencies", node)
        return AggregateTree("percentile", (node.this,), percentages=shares)
    place = 9_999 if accuracy is None else ordinal(accuracy)
    if place is None or place < 0:
        raise refuse("an accuracy that is no constant", node)
    found = AggregateTree("percentile_approx", (node.this,), percentages=shares)
    return replace(found, accuracy=place + 1)


def _approximate(node: exp.ApproxDistinct) -> AggregateTree:
    """approx_count_distinct, where the error that it may have is one that a sketch keeps to."""
    check_arguments(node, "this accuracy")
    given = node.args.get("accuracy")
    error = 0.05 if given is None else _share(given, node)
    if not LEAST_ERROR <= error <= MOST_ERROR:
        raise refuse(f"approx_count_distinct with an error of {error}", node)
    return AggregateTree("approx_count_distinct", (node.this,), error=error)


def _shares(node: exp.Expr | None, call: exp.Expr) -> float | tuple[float, ...]:
    """One percentage, or several."""
    if isinstance(node, exp.Array):
        return tuple(_share(one, call) for one in node.expressions)
    return _share(node, call)


def _share(node: exp.Expr | None, call: exp.Expr) -> float:
    if not isinstance(node, exp.Literal) or node.is_string:
        raise refuse("a percentile that is no constant", call)
    if not 0 <= float(node.name) <= 1:
        raise refuse("a percentile that is no share", call)
    return float(node.name)


def _listagg(node: exp.GroupConcat) -> AggregateTree:
    """listagg(x, ','), with WITHIN GROUP (ORDER BY …) as sqlglot has it: the order is of the argument."""
    check_arguments(node, "this separator")
    value = node.this
    order: tuple[exp.Ordered, ...] = ()
    if isinstance(value, exp.Order):
        check_arguments(value, "this expressions")
        value, order = value.this, tuple(value.expressions)
    delimiter = node.args.get("separator")
    if delimiter is not None and not (isinstance(delimiter, exp.Literal) and delimiter.is_string):
        raise refuse("a delimiter that is no text", node)
    text = "" if delimiter is None else delimiter.name
    found = _maybe_distinct("listagg", exp.GroupConcat(this=value))
    if found.distinct and any(one.this != found.arguments[0] for one in order):
        raise refuse("different values in another order", node)
    return replace(found, order=order, delimiter=text)


def _within(node: exp.WithinGroup) -> AggregateTree:
    """An aggregate over the values that its WITHIN GROUP orders by."""
    check_arguments(node, "this expression")
    call, order = node.this, node.expression.expressions
    names = {exp.PercentileCont: "percentile", exp.PercentileDisc: "percentile_disc"}
    if len(order) != 1 or (type(call) not in names and not isinstance(call, exp.Mode)):
        raise refuse(f"{called(call)} within such a group", node)
    check_arguments(order[0], "this desc nulls_first")
    by, descending = order[0].this, bool(order[0].args.get("desc"))
    if isinstance(call, exp.Mode):
        check_arguments(call, "")
        return AggregateTree("mode", (by,), descending=descending)
    check_arguments(call, "this")
    shares = _shares(call.this, node)
    return AggregateTree(names[type(call)], (by,), percentages=shares, descending=descending)


def _filtered(node: exp.Filter) -> AggregateTree:
    """FILTER (WHERE c): what does not pass is NULL, which these aggregates leave out."""
    check_arguments(node, "this expression")
    inner, condition = aggregate_of(node.this), node.expression.this
    if inner.function in ("max_by", "min_by", "mode", "first", "last"):
        raise refuse(f"{inner.function} with FILTER", node)
    first = inner.arguments[0] if inner.arguments else exp.Literal.number(1)
    return replace(inner, arguments=(_when(condition, first), *inner.arguments[1:]))


def _when(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    """CASE WHEN condition THEN value END."""
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])
