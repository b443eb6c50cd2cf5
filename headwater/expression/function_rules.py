"""How sqlglot's nodes of functions are read.

Owns: the step from sqlglot's names and shapes to functions of the table: sqlglot puts several of Spark's
functions into one node, and has none for some. Must never: decide on types; the table does.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from sqlglot import exp

from headwater.expression.bind import (
    PREDICATE,
    RULES,
    TWO,
    Binder,
    NotBound,
    Read,
    listed,
    named,
    negated,
    pair,
    rule,
)
from headwater.expression.coercion import DATE, INT, MOMENTS, STRING
from headwater.expression.functions import patterns, times
from headwater.expression.nodes import NULL, Bound, BoundConstant
from headwater.expression.signature import constant
from headwater.sql.dialect import given


def _trim(binder: Binder, node: exp.Expr) -> Bound | None:
    names = {None: "trim", "": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
    name = names.get(node.args.get("position"))
    return None if name is None else named(name, "this", "expression")(binder, node)


def _filled(binder: Binder, node: exp.Expr, name: str, third: str, text: str) -> Bound | None:
    """A function of three texts, the third of which may be left out."""
    parts = [binder.argument(node, "this"), binder.argument(node, "expression")]
    given = node.args.get(third) is not None
    parts.append(binder.argument(node, third) if given else BoundConstant(text, STRING))
    return binder.call(name, *parts)


def _pad(binder: Binder, node: exp.Expr) -> Bound | None:
    name = "lpad" if node.args.get("is_left") else "rpad"
    return _filled(binder, node, name, "fill_pattern", " ")


def _replace(binder: Binder, node: exp.Expr) -> Bound | None:
    return _filled(binder, node, "replace", "replacement", "")


def _escaped(binder: Binder, node: exp.Expr) -> Bound | None:
    """LIKE … ESCAPE."""
    like, escape = node.this, node.expression
    if type(like) is not exp.Like or not isinstance(escape, exp.Literal):
        return None
    binder.check(like, RULES[exp.Like])
    if not escape.is_string or len(escape.this) != 1 or escape.this in "%_":
        return None
    sides = (binder.argument(like, "this"), binder.argument(like, "expression"))
    return negated(binder, like, binder.call("like", *sides, escape=escape.this))


def _ilike(binder: Binder, node: exp.Expr) -> Bound | None:
    found = patterns.ilike(binder.argument(node, "this"), binder.argument(node, "expression"))
    return negated(binder, node, found)


def _dot(binder: Binder, node: exp.Expr) -> Bound | None:
    """A field of what is no column."""
    name = node.expression
    if not isinstance(name, exp.Identifier):
        return None
    return binder.call("field", binder.argument(node, "this"), field=name.name)


def _bracket(binder: Binder, node: exp.Expr) -> Bound | None:
    """`a[i]`, `m[k]`, ELEMENT_AT and TRY_ELEMENT_AT."""
    if len(node.expressions) != 1:
        return None
    whole, place = binder.argument(node, "this"), binder.bound(node.expressions[0])
    if pa.types.is_map(whole.type):
        return binder.call("value", whole, place)
    offset, tried = node.args.get("offset"), node.args.get("safe")
    if offset not in (None, 0, 1):
        return None
    name = "item" if not offset else "try_element_at" if tried else "element_at"
    return binder.call(name, whole, place)


def _map(binder: Binder, node: exp.Expr) -> Bound | None:
    """MAP(key, value, …), which sqlglot reads as two arrays."""
    sides = [node.args.get("keys"), node.args.get("values")]
    if not all(type(side) is exp.Array and given(side) == {"expressions"} for side in sides):
        return None
    keys, values = (binder.arguments(side) for side in sides if side is not None)
    return binder.call("map", *(part for pair in zip(keys, values, strict=True) for part in pair))


def _struct(binder: Binder, node: exp.Expr) -> Bound | None:
    """STRUCT and NAMED_STRUCT; a field has a name of its own."""
    parts = node.expressions
    named = all(isinstance(p, exp.PropertyEQ) and isinstance(p.this, exp.Identifier) for p in parts)
    if not named or not parts:
        return None
    values = [binder.bound(part.expression) for part in parts]
    return binder.call("struct", *values, names=tuple(part.this.name for part in parts))


def _extract(binder: Binder, node: exp.Expr) -> Bound | None:
    name = times.PARTS.get(node.this.name.upper())
    return None if name is None else binder.call(name, binder.argument(node, "expression"))


def _unit(name: str) -> Read:
    """DATE_TRUNC and TRUNC by a constant unit."""

    def read(binder: Binder, node: exp.Expr) -> Bound | None:
        unit = node.args.get("unit")
        if not isinstance(unit, exp.Var | exp.Literal):
            return None
        return binder.call(name, binder.argument(node, "this"), unit=unit.name.upper())

    return read


def _dated(binder: Binder, node: exp.Expr) -> Bound:
    """An argument that sqlglot notes may be text; only a date is one."""
    inner = node.this if type(node) is exp.TsOrDsToDate and set(node.args) == {"this"} else node
    found: Bound | None = binder.bound(inner)
    if found is not None and found.type in MOMENTS:
        found = binder.call("cast", found, to=DATE)
    if found is None or found.type != DATE:
        raise NotBound("only a date or a time is read as one here")
    return found


def _name_of(name: str) -> Read:
    return lambda binder, node: binder.call(name, _dated(binder, node.this))


def _timestamp_diff(binder: Binder, node: exp.Expr) -> Bound | None:
    unit = node.args.get("unit")
    if not isinstance(unit, exp.Var):
        return None
    later, earlier = binder.argument(node, "this"), binder.argument(node, "expression")
    return binder.call("timestampdiff", earlier, later, unit=unit.name.upper())


def _date_diff(binder: Binder, node: exp.Expr) -> Bound | None:
    return binder.call("datediff", _dated(binder, node.this), _dated(binder, node.expression))


def _date_add(binder: Binder, node: exp.Expr) -> Bound | None:
    """DATE_ADD, and DATE_SUB, which is the same times -1 to sqlglot."""
    if node.args["unit"].name.upper() != "DAY":
        return None
    days, sign = node.expression, 1
    if type(days) is exp.Mul and days.expression == exp.Neg(this=exp.Literal.number(1)):
        days, sign = days.this, -1
    return binder.call("add_days", binder.argument(node, "this"), binder.bound(days), sign=sign)


def _to_date(binder: Binder, node: exp.Expr) -> Bound | None:
    return binder.call("cast", binder.argument(node, "this"), to=DATE)


def _unix_timestamp(binder: Binder, node: exp.Expr) -> Bound | None:
    """Of a time; a format says how text is read, which is not ours."""
    form = node.args.get("format")
    if form is not None and form.name != DEFAULT_FORMAT:
        return None
    return binder.call("unix_timestamp", binder.argument(node, "this"))


DEFAULT_FORMAT = "%Y-%mstrict-%dstrict %Hstrict:%Mstrict:%Sstrict"


def _initcap(binder: Binder, node: exp.Expr) -> Bound | None:
    """INITCAP; sqlglot notes what parts words, which here only blanks do."""
    blank = node.args.get("expression")
    plain = blank is None or (isinstance(blank, exp.Literal) and blank.name == " ")
    return binder.call("initcap", binder.argument(node, "this")) if plain else None


def _nvl2(binder: Binder, node: exp.Expr) -> Bound | None:
    absent = binder.call("is null", binder.argument(node, "this"))
    if absent is None:
        return None
    return binder.call(
        "case", absent, binder.argument(node, "false"), binder.argument(node, "true")
    )


def _decode(binder: Binder, node: exp.Expr) -> Bound | None:
    """DECODE(value, search, result, …, default): NULL equals NULL."""
    asked, *rest = binder.arguments(node)
    default = rest.pop() if len(rest) % 2 else BoundConstant(None, NULL)
    parts: list[Bound] = []
    for search, result in zip(rest[::2], rest[1::2], strict=True):
        same = binder.call("<=>", asked, search)
        if same is None:
            return None
        parts += [same, result]
    return binder.call("case", *parts, default) if parts else None


def _anonymous(binder: Binder, node: exp.Expr) -> Bound | None:
    """A function that sqlglot has no node for."""
    name = str(node.this).lower()
    read = ANONYMOUS.get(name)
    if read is None or name in binder.terms.functions:
        return None
    return read(binder, binder.arguments(node))


def _straight(
    name: str, *counts: int, then: tuple[Bound, ...] = ()
) -> Callable[[Binder, list[Bound]], Bound | None]:
    """The arguments, of which there are so many, and what stands behind them."""
    return lambda binder, parts: binder.call(name, *parts, *then) if len(parts) in counts else None


def _from_unixtime(binder: Binder, parts: list[Bound]) -> Bound | None:
    """In UTC; without a pattern it is that of a time."""
    pattern = [BoundConstant("yyyy-MM-dd HH:mm:ss", STRING)][: 2 - len(parts)]
    if binder.terms.time_zone != "UTC" or len(parts) not in (1, 2):
        return None
    return binder.call("from_unixtime", *parts, *pattern)


def _is_not_null(binder: Binder, parts: list[Bound]) -> Bound | None:
    absent = binder.call("is null", *parts) if len(parts) == 1 else None
    return None if absent is None else binder.call("not", absent)


def _date_part(binder: Binder, parts: list[Bound]) -> Bound | None:
    first = constant(parts[0]) if len(parts) == 2 and parts[0].type == STRING else None
    name = None if first is None else times.PARTS.get(first.upper())
    return None if name is None else binder.call(name, parts[1])


ANONYMOUS: dict[str, Callable[[Binder, list[Bound]], Bound | None]] = {
    **{name: _straight(name, 1) for name in ("octet_length", "weekday", "timestamp_seconds")},
    **{name: _straight(name, 1) for name in ("timestamp_millis", "timestamp_micros")},
    **{name: _straight(name, 1) for name in ("log10", "log2")},
    **{name: _straight(name, 2) for name in ("date_format", "get_json_object")},
    "json_array_length": _straight("json_array_length", 1),
    "isnull": _straight("is null", 1),
    "isnotnull": _is_not_null,
    "cardinality": _straight("size", 1),
    "crc32": _straight("crc32", 1),
    "from_unixtime": _from_unixtime,
    "map_values": _straight("map_values", 1),
    "try_mod": _straight("try %", 2),
    "pmod": _straight("pmod", 2),
    "get": _straight("get", 2),
    "regexp": _straight("rlike", 2),
    "make_date": _straight("make_date", 3),
    "zeroifnull": _straight("coalesce", 1, then=(BoundConstant(0, INT),)),
    "nullifzero": _straight("nullif", 1, then=(BoundConstant(0, INT),)),
    "date_part": _date_part,
    "datepart": _date_part,
    "bround": _straight("bround", 1, 2),
    "btrim": _straight("trim", 1, 2),
}


def _field(name: str) -> Read:
    def read(binder: Binder, node: exp.Expr) -> Bound | None:
        inner = node.this
        if type(inner) is exp.TsOrDsToDate and set(inner.args) == {"this"}:
            inner = inner.this  # sqlglot's note that the argument may be text
        return binder.call(name, binder.bound(inner))

    return read


# Nodes that are calls of the first of their names, by the arguments that they may have, in this order.
_CALLS: dict[str, dict[type[exp.Expr], str]] = {
    "this": {
        exp.Abs: "abs",
        exp.Floor: "floor",
        exp.Ceil: "ceil ceiling",
        exp.Length: "length len char_length character_length",
        exp.LastDay: "last_day last_day_of_month",
        exp.UnixSeconds: "unix_seconds",
        exp.UnixMillis: "unix_millis",
        exp.UnixMicros: "unix_micros",
        exp.UnixDate: "unix_date",
        exp.DateFromUnixDate: "date_from_unix_date",
        exp.Upper: "upper ucase",
        exp.Lower: "lower lcase",
        exp.Reverse: "reverse",
        exp.Ascii: "ascii",
        exp.BitLength: "bit_length",
        exp.Sqrt: "sqrt",
        exp.Exp: "exp",
        exp.Ln: "ln log",
        exp.Sign: "sign signum",
        exp.IsNan: "isnan is_nan",
        exp.Negative: "negative",
        exp.ArraySize: "size array_size array_length",
        exp.ArrayMax: "array_max",
        exp.ArrayMin: "array_min",
        exp.MapKeys: "map_keys",
        exp.JSONKeys: "json_object_keys json_keys",
        exp.SHA: "sha1 sha",
    },
    TWO: {
        exp.AddMonths: "add_months",
        exp.Log: "log",
        exp.Left: "left",
        exp.Right: "right",
        exp.StartsWith: "startswith starts_with",
        exp.EndsWith: "endswith ends_with",
        exp.Contains: "contains",
        exp.RegexpSplit: "split regexp_split",
        exp.ArrayPosition: "array_position",
    },
    "this key": {exp.MapContainsKey: "map_contains_key"},
    "this length": {exp.SHA2: "sha2"},
    "this expression null": {exp.ArrayToString: "array_join array_to_string"},
    "this start length": {exp.Substring: "substring substr ts_or_ds_to_date_str"},
    "substr this position": {
        exp.StrPosition: "locate instr position charindex strpos str_position"
    },
    "this times": {exp.Repeat: "repeat"},
    "this delimiter part_index": {exp.SplitPart: "split_part"},
    "this delimiter count": {exp.SubstringIndex: "substring_index"},
    "this from_ to": {exp.Translate: "translate"},
    "this expression replacement": {exp.RegexpReplace: "regexp_replace"},
    "this decimals": {exp.Round: "round"},
}
# Parts of a date or time, which sqlglot may note to be text.
_FIELDS: dict[type[exp.Expr], str] = {
    exp.Year: "year",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day dayofmonth day_of_month",
    exp.WeekOfYear: "weekofyear week_of_year",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
    exp.Quarter: "quarter",
    exp.DayOfWeek: "dayofweek day_of_week",
    exp.DayOfYear: "dayofyear day_of_year",
}

RULES |= {
    node: rule(named(names.split()[0], *arguments.split()), arguments, names=names)
    for arguments, nodes in _CALLS.items()
    for node, names in nodes.items()
}
RULES |= {
    node: rule(_field(names.split()[0]), "this", names=names) for node, names in _FIELDS.items()
}
RULES |= {
    exp.Concat: rule(listed("concat"), "expressions", names="concat"),
    exp.Extract: rule(_extract, TWO, names="extract"),
    exp.TimestampTrunc: rule(_unit("date_trunc"), "this unit", names="date_trunc timestamp_trunc"),
    exp.DateTrunc: rule(_unit("trunc"), "this unit", names="trunc"),
    exp.DateDiff: rule(_date_diff, TWO, names="datediff date_diff"),
    exp.TimestampDiff: rule(
        _timestamp_diff,
        "this expression unit",
        names="timestampdiff timestamp_diff datediff date_diff",
    ),
    exp.TsOrDsAdd: rule(
        _date_add,
        "this expression unit",
        names="date_add date_sub dateadd timestampadd ts_or_ds_add",
    ),
    exp.TsOrDsToDate: rule(_to_date, "this", names="to_date ts_or_ds_to_date"),
    exp.StrToUnix: rule(
        _unix_timestamp, "this format", names="unix_timestamp to_unix_timestamp str_to_unix"
    ),
    exp.Dayname: rule(_name_of("dayname"), "this", names="dayname"),
    exp.Monthname: rule(_name_of("monthname"), "this", names="monthname"),
    exp.Trim: rule(_trim, "this expression position", names="trim ltrim rtrim"),
    exp.Initcap: rule(_initcap, TWO, names="initcap"),
    exp.ConcatWs: rule(listed("concat_ws"), "expressions flatten", names="concat_ws"),
    exp.Replace: rule(_replace, "this expression replacement", names="replace"),
    exp.Pad: rule(_pad, "this expression fill_pattern is_left", names="lpad rpad leftpad rightpad"),
    exp.Escape: rule(_escaped, TWO, PREDICATE, "like ilike"),
    exp.ILike: rule(_ilike, "this expression negate", PREDICATE, "ilike lower lcase"),
    exp.RegexpLike: rule(pair("rlike"), TWO, PREDICATE, "rlike regexp_like regexp"),
    exp.RegexpExtract: rule(
        named("regexp_extract", "this", "expression", "group"),
        "this expression group null_if_pos_overflow",
        names="regexp_extract",
    ),
    exp.Pow: rule(pair("square"), TWO, names="pow power"),
    exp.Nvl2: rule(_nvl2, "this true false", names="nvl2"),
    exp.DecodeCase: rule(_decode, "expressions", names="decode decode_case"),
    exp.Struct: rule(_struct, "expressions", names="struct named_struct"),
    exp.Array: rule(listed("array"), "expressions", names="array"),
    exp.VarMap: rule(_map, "keys values", names="map var_map"),
    exp.EqualNull: rule(pair("<=>"), TWO, names="equal_null"),
    exp.SafeAdd: rule(pair("try +"), TWO, names="try_add safe_add"),
    exp.SafeSubtract: rule(pair("try -"), TWO, names="try_subtract safe_subtract"),
    exp.SafeMultiply: rule(pair("try *"), TWO, names="try_multiply safe_multiply"),
    exp.SafeDivide: rule(pair("try /"), TWO, names="try_divide safe_divide"),
    exp.ArrayContains: rule(
        pair("array_contains"), "this expression ensure_variant", names="array_contains array_has"
    ),
    exp.Bracket: rule(_bracket, "this expressions offset safe", names="element_at try_element_at"),
    exp.Dot: rule(_dot, TWO),
    exp.Anonymous: rule(_anonymous, "this expressions", names="weight_string"),
}
