"""How sqlglot's nodes of functions are read.

Owns: the step from sqlglot's names and shapes to functions of the table: sqlglot puts several of Spark's
functions into one node, and has none for some. Must never: decide on types; the table does.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from sqlglot import exp

from headwater.expression.binder import PREDICATE, RULES, Binder, NotBound, Read
from headwater.expression.coercion import DATE, INT, STRING
from headwater.expression.functions import patterns, times
from headwater.expression.nodes import NULL, Bound, BoundConstant
from headwater.expression.rules import TWO, listed, named, pair, rule, single
from headwater.expression.signature import constant


def _trim(binder: Binder, node: exp.Expr) -> Bound | None:
    names = {None: "trim", "": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
    name = names.get(node.args.get("position"))
    return None if name is None else named(name, "this", "expression")(binder, node)


def _pad(binder: Binder, node: exp.Expr) -> Bound | None:
    parts = [binder.argument(node, "this"), binder.argument(node, "expression")]
    filled = node.args.get("fill_pattern") is not None
    parts.append(binder.argument(node, "fill_pattern") if filled else BoundConstant(" ", STRING))
    return binder.call("lpad" if node.args.get("is_left") else "rpad", *parts)


def _replace(binder: Binder, node: exp.Expr) -> Bound | None:
    parts = [binder.argument(node, "this"), binder.argument(node, "expression")]
    given = node.args.get("replacement") is not None
    parts.append(binder.argument(node, "replacement") if given else BoundConstant("", STRING))
    return binder.call("replace", *parts)


def _escaped(binder: Binder, node: exp.Expr) -> Bound | None:
    """LIKE … ESCAPE."""
    like, escape = node.this, node.expression
    if type(like) is not exp.Like or not isinstance(escape, exp.Literal):
        return None
    binder.check(like, RULES[exp.Like])
    if not escape.is_string or len(escape.this) != 1 or escape.this in "%_":
        return None
    sides = (binder.argument(like, "this"), binder.argument(like, "expression"))
    found = binder.call("like", *sides, escape=escape.this)
    return found if found is None or not like.args.get("negate") else binder.call("not", found)


def _ilike(binder: Binder, node: exp.Expr) -> Bound | None:
    found = patterns.ilike(binder.argument(node, "this"), binder.argument(node, "expression"))
    return found if found is None or not node.args.get("negate") else binder.call("not", found)


def _dot(binder: Binder, node: exp.Expr) -> Bound | None:
    """A field of what is no column."""
    name = node.expression
    if not isinstance(name, exp.Identifier):
        return None
    return binder.call("field", binder.argument(node, "this"), field=name.name)


def _bracket(binder: Binder, node: exp.Expr) -> Bound | None:
    """`a[i]`, `m[k]`, ELEMENT_AT and TRY_ELEMENT_AT."""
    if len(node.expressions) != 1 or node.args.get("safe"):
        return None
    whole, place = binder.argument(node, "this"), binder.bound(node.expressions[0])
    if pa.types.is_map(whole.type):
        return binder.call("value", whole, place)
    offset = node.args.get("offset")
    if offset not in (None, 0, 1):
        return None
    return binder.call("element_at" if offset else "item", whole, place)


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
    found = binder.bound(inner)
    if found.type != DATE:
        raise NotBound("only a date is read as one here")
    return found


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


def _straight(name: str, count: int) -> Callable[[Binder, list[Bound]], Bound | None]:
    return lambda binder, parts: binder.call(name, *parts) if len(parts) == count else None


def _zero_if_null(binder: Binder, parts: list[Bound]) -> Bound | None:
    return binder.call("coalesce", *parts, BoundConstant(0, INT)) if len(parts) == 1 else None


def _null_if_zero(binder: Binder, parts: list[Bound]) -> Bound | None:
    return binder.call("nullif", *parts, BoundConstant(0, INT)) if len(parts) == 1 else None


def _is_not_null(binder: Binder, parts: list[Bound]) -> Bound | None:
    absent = binder.call("is null", *parts) if len(parts) == 1 else None
    return None if absent is None else binder.call("not", absent)


def _date_part(binder: Binder, parts: list[Bound]) -> Bound | None:
    first = constant(parts[0]) if len(parts) == 2 and parts[0].type == STRING else None
    name = None if first is None else times.PARTS.get(first.upper())
    return None if name is None else binder.call(name, parts[1])


def _round_half_even(binder: Binder, parts: list[Bound]) -> Bound | None:
    return binder.call("bround", *parts) if len(parts) in (1, 2) else None


def _both_trimmed(binder: Binder, parts: list[Bound]) -> Bound | None:
    return binder.call("trim", *parts) if len(parts) in (1, 2) else None


ANONYMOUS: dict[str, Callable[[Binder, list[Bound]], Bound | None]] = {
    **{name: _straight(name, 1) for name in ("octet_length", "weekday", "timestamp_seconds")},
    **{name: _straight(name, 1) for name in ("timestamp_millis", "timestamp_micros")},
    "isnull": _straight("is null", 1),
    "isnotnull": _is_not_null,
    "cardinality": _straight("size", 1),
    "pmod": _straight("pmod", 2),
    "get": _straight("get", 2),
    "regexp": _straight("rlike", 2),
    "make_date": _straight("make_date", 3),
    "zeroifnull": _zero_if_null,
    "nullifzero": _null_if_zero,
    "date_part": _date_part,
    "datepart": _date_part,
    "bround": _round_half_even,
    "btrim": _both_trimmed,
}


def _substring(binder: Binder, node: exp.Expr) -> Bound | None:
    names = ["this", "start", *(["length"] if node.args.get("length") else [])]
    return binder.call("substring", *(binder.argument(node, name) for name in names))


def _field(name: str) -> Read:
    def read(binder: Binder, node: exp.Expr) -> Bound | None:
        inner = node.this
        if type(inner) is exp.TsOrDsToDate and set(inner.args) == {"this"}:
            inner = inner.this  # sqlglot's note that the argument may be text
        return binder.call(name, binder.bound(inner))

    return read


RULES |= {
    exp.Abs: rule(single("abs"), "this", names="abs"),
    exp.Floor: rule(single("floor"), "this", names="floor"),
    exp.Ceil: rule(single("ceil"), "this", names="ceil ceiling"),
    exp.Length: rule(single("length"), "this", names="length len char_length character_length"),
    exp.Concat: rule(listed("concat"), "expressions", names="concat"),
    exp.Substring: rule(
        _substring, "this start length", names="substring substr ts_or_ds_to_date_str"
    ),
    exp.Year: rule(_field("year"), "this", names="year"),
    exp.Month: rule(_field("month"), "this", names="month"),
    exp.Day: rule(_field("day"), "this", names="day"),
    exp.DayOfMonth: rule(_field("day"), "this", names="dayofmonth day_of_month"),
    exp.WeekOfYear: rule(_field("weekofyear"), "this", names="weekofyear week_of_year"),
    exp.Hour: rule(_field("hour"), "this", names="hour"),
    exp.Minute: rule(_field("minute"), "this", names="minute"),
    exp.Second: rule(_field("second"), "this", names="second"),
    exp.Quarter: rule(_field("quarter"), "this", names="quarter"),
    exp.DayOfWeek: rule(_field("dayofweek"), "this", names="dayofweek day_of_week"),
    exp.DayOfYear: rule(_field("dayofyear"), "this", names="dayofyear day_of_year"),
    exp.Extract: rule(_extract, TWO, names="extract"),
    exp.TimestampTrunc: rule(_unit("date_trunc"), "this unit", names="date_trunc timestamp_trunc"),
    exp.DateTrunc: rule(_unit("trunc"), "this unit", names="trunc"),
    exp.DateDiff: rule(_date_diff, TWO, names="datediff date_diff"),
    exp.TsOrDsAdd: rule(
        _date_add,
        "this expression unit",
        names="date_add date_sub dateadd timestampadd ts_or_ds_add",
    ),
    exp.TsOrDsToDate: rule(_to_date, "this", names="to_date ts_or_ds_to_date"),
    exp.AddMonths: rule(pair("add_months"), TWO, names="add_months"),
    exp.LastDay: rule(single("last_day"), "this", names="last_day last_day_of_month"),
    exp.StrToUnix: rule(
        _unix_timestamp, "this format", names="unix_timestamp to_unix_timestamp str_to_unix"
    ),
    exp.UnixSeconds: rule(single("unix_seconds"), "this", names="unix_seconds"),
    exp.UnixMillis: rule(single("unix_millis"), "this", names="unix_millis"),
    exp.UnixMicros: rule(single("unix_micros"), "this", names="unix_micros"),
    exp.UnixDate: rule(single("unix_date"), "this", names="unix_date"),
    exp.DateFromUnixDate: rule(single("date_from_unix_date"), "this", names="date_from_unix_date"),
    exp.Upper: rule(single("upper"), "this", names="upper ucase"),
    exp.Lower: rule(single("lower"), "this", names="lower lcase"),
    exp.Trim: rule(_trim, "this expression position", names="trim ltrim rtrim"),
    exp.Left: rule(pair("left"), TWO, names="left"),
    exp.Right: rule(pair("right"), TWO, names="right"),
    exp.ConcatWs: rule(listed("concat_ws"), "expressions flatten", names="concat_ws"),
    exp.Replace: rule(_replace, "this expression replacement", names="replace"),
    exp.StrPosition: rule(
        named("locate", "substr", "this", "position"),
        "this substr position",
        names="instr locate position charindex strpos str_position",
    ),
    exp.Pad: rule(_pad, "this expression fill_pattern is_left", names="lpad rpad leftpad rightpad"),
    exp.Repeat: rule(named("repeat", "this", "times"), "this times", names="repeat"),
    exp.Reverse: rule(single("reverse"), "this", names="reverse"),
    exp.StartsWith: rule(pair("startswith"), TWO, names="startswith starts_with"),
    exp.EndsWith: rule(pair("endswith"), TWO, names="endswith ends_with"),
    exp.Contains: rule(pair("contains"), TWO, names="contains"),
    exp.SplitPart: rule(
        named("split_part", "this", "delimiter", "part_index"),
        "this delimiter part_index",
        names="split_part",
    ),
    exp.SubstringIndex: rule(
        named("substring_index", "this", "delimiter", "count"),
        "this delimiter count",
        names="substring_index",
    ),
    exp.Translate: rule(
        named("translate", "this", "from_", "to"), "this from_ to", names="translate"
    ),
    exp.Ascii: rule(single("ascii"), "this", names="ascii"),
    exp.BitLength: rule(single("bit_length"), "this", names="bit_length"),
    exp.Escape: rule(_escaped, TWO, PREDICATE, "like ilike"),
    exp.ILike: rule(_ilike, "this expression negate", PREDICATE, "ilike lower lcase"),
    exp.RegexpLike: rule(pair("rlike"), TWO, PREDICATE, "rlike regexp_like regexp"),
    exp.RegexpReplace: rule(
        named("regexp_replace", "this", "expression", "replacement"),
        "this expression replacement",
        names="regexp_replace",
    ),
    exp.RegexpExtract: rule(
        named("regexp_extract", "this", "expression", "group"),
        "this expression group null_if_pos_overflow",
        names="regexp_extract",
    ),
    exp.RegexpSplit: rule(pair("split"), TWO, names="split regexp_split"),
    exp.Round: rule(named("round", "this", "decimals"), "this decimals", names="round"),
    exp.Sqrt: rule(single("sqrt"), "this", names="sqrt"),
    exp.Pow: rule(pair("square"), TWO, names="pow power"),
    exp.Sign: rule(single("sign"), "this", names="sign signum"),
    exp.IsNan: rule(single("isnan"), "this", names="isnan is_nan"),
    exp.Negative: rule(single("negative"), "this", names="negative"),
    exp.Nvl2: rule(_nvl2, "this true false", names="nvl2"),
    exp.DecodeCase: rule(_decode, "expressions", names="decode decode_case"),
    exp.ArraySize: rule(single("size"), "this", names="size array_size array_length"),
    exp.Array: rule(listed("array"), "expressions", names="array"),
    exp.ArrayContains: rule(
        pair("array_contains"), "this expression ensure_variant", names="array_contains array_has"
    ),
    exp.Bracket: rule(_bracket, "this expressions offset", names="element_at try_element_at"),
    exp.Dot: rule(_dot, TWO),
    exp.Anonymous: rule(_anonymous, "this expressions", names="weight_string"),
}
