"""What Spark calls a column of a select list that was given no name.

Owns: the rule, for what people write without a name: columns, constants, arithmetic, comparisons, casts and
calls of common functions. tests/plan/test_shown_names.py compares each with Spark. Must never: guess; what is
not known has no name here, and Spark answers the query.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise

from sqlglot import exp

from headwater.sql.names import words
from headwater.sql.spans import has_span, span_of

SIGNS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.NullSafeEQ: "<=>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.And: "AND",
    exp.Or: "OR",
}
WRITTEN: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.EQ: ("=", "=="),
    exp.NEQ: ("<>", "!="),
    exp.Mod: ("%",),
    exp.Div: ("/",),
}  # others as they are shown
# Spark calls these as they are written, in lower case; by how many arguments they have.
FUNCTIONS: dict[int | None, frozenset[str]] = {
    None: words("coalesce concat count greatest least"),
    0: words("now current_date current_timestamp"),
    1: words(
        """abs any_value avg bool_and bool_or collect_list collect_set every first last length lower ltrim max
        mean median min mode reverse round rtrim size some std stddev stddev_pop stddev_samp sum to_date trim
        upper var_pop var_samp variance year month day hour minute second"""
    ),
    2: words("corr ifnull max_by min_by nullif nvl percentile round substr substring"),
    3: words("lpad regexp_replace replace rpad substr substring"),
}
DEFAULTS = {  # arguments that Spark adds
    ("round", 1): "0",
    ("percentile", 2): "1",
    ("substr", 2): "2147483647",
    ("substring", 2): "2147483647",
    ("regexp_replace", 3): "1",
}
LEAST_DIGIT = -6  # smaller numbers are shown with an exponent
NUMBER = re.compile(r"(0|[1-9]\d*)(\.\d+)?")
TYPES = words("BIGINT BOOLEAN DATE DOUBLE FLOAT INT SMALLINT STRING TIMESTAMP TINYINT")


def shown_name(item: exp.Expr, text: str) -> str | None:
    """The name of a column of a select list; None where that is not plain. `text`: of the query."""
    if isinstance(item, exp.Alias):
        return str(item.alias)
    if isinstance(item, exp.Column):
        return item.name or None
    if isinstance(item, exp.Cast) and isinstance(item.this, exp.Column):
        return _written(item.this, text)  # of any kind: CAST, `::`, TRY_CAST
    return _written(item, text)


def _written(node: exp.Expr, text: str) -> str | None:
    """How Spark writes an expression inside a name."""
    if isinstance(node, exp.Column):
        return node.name if node.name and _is_whole(node) else None
    if isinstance(node, exp.Literal):
        return str(node.this) if node.is_string or _is_shown(str(node.this)) else None
    if isinstance(node, exp.Boolean):
        return "true" if node.this else "false"
    if isinstance(node, exp.Paren):
        return _written(node.this, text)
    if isinstance(node, exp.Cast):
        return _cast(node, text)
    if isinstance(node, exp.Case):
        return _case(node, text)
    if type(node) in SIGNS:
        return _with_sign(node, text)
    if isinstance(node, exp.Func):
        return _call(node, text) if has_span(node) else None
    return _with_words(node, text)


def _is_shown(number: str) -> bool:
    """Whether Spark shows a number as it is written: 0.0000001 it shows as 1E-7."""
    return NUMBER.fullmatch(number) is not None and Decimal(number).adjusted() >= LEAST_DIGIT


def _is_whole(node: exp.Column) -> bool:
    """Whether it is a column of a relation of FROM, and surely no field of one: `at.x` in `(at.x + 1)`."""
    select = node.find_ancestor(exp.Select)
    if not node.table or node.args.get("db") or select is None:
        return not node.table
    first, joins = select.args.get("from_"), select.args.get("joins") or []
    relations = [one.this for one in (first, *joins) if one is not None]
    return node.table.casefold() in {one.alias_or_name.casefold() for one in relations}


def _with_sign(node: exp.Expr, text: str) -> str | None:
    """Arithmetic, comparisons and conditions, unless a function is called: mod(a, b) is not a % b."""
    names, sides = _all_written([node.this, node.expression], text), (node.this, node.expression)
    if names is None or not all(map(has_span, sides)):
        return None
    shown = SIGNS[type(node)]
    sign = text[span_of(sides[0]).end : span_of(sides[1]).start].strip("() \n").casefold()
    if sign not in WRITTEN.get(type(node), (shown.casefold(),)):
        return None
    return f"(NOT ({' = '.join(names)}))" if shown == "<>" else f"({f' {shown} '.join(names)})"


def _with_words(node: exp.Expr, text: str) -> str | None:
    """A sign before an expression, IS NULL, IN with a list, and BETWEEN."""
    known = isinstance(node, exp.Neg | exp.Not | exp.Is | exp.In | exp.Between)
    inner = _written(node.this, text) if known else None
    if inner is None:
        return None
    if isinstance(node, exp.Neg):
        return f"-{inner}" if isinstance(node.this, exp.Literal) else f"(- {inner})"
    if isinstance(node, exp.Not):
        starts = has_span(node) and span_of(node).of(text)[:3].casefold() == "not"
        return f"(NOT {inner})" if starts else None  # a IS NOT NULL is another word to Spark
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return f"({inner} IS NULL)"
    if isinstance(node, exp.In) and node.expressions:
        names = _all_written(node.expressions, text)
        return None if names is None else f"({inner} IN ({', '.join(names)}))"
    if isinstance(node, exp.Between):
        names = _all_written([node.args["low"], node.args["high"]], text)
        return None if names is None else f"between({inner}, {', '.join(names)})"
    return None


def _all_written(nodes: Sequence[exp.Expr | None], text: str) -> list[str] | None:
    """The same of several; None if one of them is not plain."""
    found = [None if node is None else _written(node, text) for node in nodes]
    names = [name for name in found if name is not None]
    return names if len(names) == len(found) else None


def _cast(node: exp.Cast, text: str) -> str | None:
    """CAST or `::` of what is no column; sqlglot's class of both is that of TRY_CAST, 1L and DATE '…'."""
    inner, type_ = _written(node.this, text), node.to.sql("spark")
    written = span_of(node).of(text).lower() if has_span(node) else ""
    plain = written.startswith("cast") or ("::" in written and not written.startswith("try"))
    return f"CAST({inner} AS {type_})" if plain and type_ in TYPES and inner is not None else None


def _case(node: exp.Case, text: str) -> str | None:
    """CASE WHEN …, without a value that is compared."""
    parts = [part for one in node.args["ifs"] for part in (one.this, one.args["true"])]
    default = node.args.get("default")
    names = _all_written(parts, text)
    last = "" if default is None else _written(default, text)
    if node.this is not None or last is None or names is None:
        return None
    whens = [f"WHEN {a} THEN {b} " for a, b in zip(names[::2], names[1::2], strict=True)]
    return f"CASE {''.join(whens)}{f'ELSE {last} ' if default is not None else ''}END"


def _call(node: exp.Func, text: str) -> str | None:
    """A call as it is written, if its arguments are a plain list."""
    written = span_of(node).of(text)
    name = written.partition("(")[0].strip().lower()
    given = [_unwrapped(one, text) for one in node.iter_expressions()]
    if name not in FUNCTIONS.get(len(given), frozenset()) | FUNCTIONS[None]:
        return None
    if not given:
        return f"{name}()" if name in FUNCTIONS[0] else None
    if name == "count" and isinstance(given[0], exp.Star):
        return "count(1)"
    distinct = len(given) == 1 and isinstance(given[0], exp.Distinct)
    given = given[0].expressions if distinct else given
    if not written.endswith(")") or not all(map(has_span, given)):
        return None
    given = sorted(given, key=lambda one: span_of(one).start)
    names = _all_written(given, text)
    if names is None or not all(_comma_between(a, b, text) for a, b in pairwise(given)):
        return None
    added = DEFAULTS.get((name, len(names)))
    names += [] if added is None else [added]
    return f"{name}({'DISTINCT ' if distinct else ''}{', '.join(names)})"


def _comma_between(left: exp.Expr, right: exp.Expr, text: str) -> bool:
    """Whether nothing else stands there, such as FROM."""
    return text[span_of(left).end : span_of(right).start].strip("() \n") == ","


def _unwrapped(node: exp.Expr, text: str) -> exp.Expr:
    """An argument without the conversion to a date that sqlglot puts around it."""
    wrapped = isinstance(node, exp.TsOrDsToDate) and has_span(node)
    twice = isinstance(node.this, exp.TsOrDsToDate)
    called = wrapped and not twice and span_of(node).of(text).lower().startswith("to_date")
    inner: exp.Expr = node.this if wrapped and not called else node
    return inner
