"""Functions that people know from other systems, in the words that this one has.

In FROM, `TUMBLE(t, ts, size)`, `HOP(t, ts, slide, size)`, `CUMULATE(t, ts, step, size)` and
`SESSION(t, ts, gap, key, …)` give each row its `window_start` and `window_end`, as Flink, Materialize and
RisingWave have them; `TABLE t` and `DESCRIPTOR(ts)` are read too. `generate_series(a, b)` counts, `date_bin`
and `time_bucket` round times down. Owns: these forms, and the texts that stand for them. Must never: touch a
call of a function that the user made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from sqlglot import exp

from headwater.errors import BindError, Error
from headwater.sql.dialect import OF_OTHERS, relation_of
from headwater.sql.duration import NOT_FIXED, Duration, duration_of, unit_name
from headwater.sql.names import words
from headwater.sql.spans import has_span, span_of
from headwater.sql.statements.query import Query
from headwater.sql.text import EditedText, Span
from headwater.sql.types import quoted

NAMES = words("date_bin time_bucket generate_series").union(map(str.lower, OF_OTHERS))
HELD = "headwater_"  # begins the columns of the steps in between


@dataclass(frozen=True)
class OtherCall:
    """A call of one of these functions, and the text that it stands in."""

    name: str
    node: exp.Expr
    arguments: tuple[exp.Expr, ...]
    text: str

    def said(self, number: int) -> str:
        """An argument as it is written; a column without DESCRIPTOR around it."""
        node = self.arguments[number]
        if isinstance(node, exp.Anonymous) and node.name.lower() == "descriptor":
            node = node.expressions[0]
        return span_of(node).of(self.text)

    def duration(self, number: int) -> Duration:
        """An argument that is a length of time."""
        node = self.arguments[number]
        text = node.name if isinstance(node, exp.Literal) and node.is_string else self.said(number)
        try:
            return duration_of(text)
        except Error as error:
            raise self.refused(error.message, span_of(node), hint=error.hint) from error

    def refused(self, message: str, span: Span | None = None, hint: str | None = None) -> Error:
        """The error for an argument, or for the whole call."""
        place = (span or span_of(self.node)).place(self.text)
        return BindError(f"{self.name}: {message}", sqlstate="22023", hint=hint, place=place)

    @property
    def table(self) -> str:
        """The rows that a function of FROM is given: what stands behind FROM there."""
        first = self.arguments[0]
        relation = relation_of(first) if isinstance(first, exp.Table) else None
        start = span_of(first).start if relation is None else relation.span.start
        return self.text[start : span_of(first).end]


def put_familiar(query: Query, functions: Collection[str], step: EditedText) -> None:
    """Puts the texts in place; `functions`: those that the user has made, which come first."""
    if query.tree is None:
        return
    for node in query.tree.find_all(exp.Anonymous, exp.DateBin, exp.GenerateSeries):
        call = _call_of(node, query.text)
        if call is None or call.name.lower() in functions:
            continue
        text = _in_from(call) if isinstance(node.parent, exp.Table) else _in_place(call)
        span = span_of(node)
        if text is not None and step.is_free(span):
            step.replace(span.start, span.end, text)


def _call_of(node: exp.Expr, text: str) -> OtherCall | None:
    if not has_span(node):
        return None
    name = span_of(node).of(text).partition("(")[0].strip()
    if name.lower() not in NAMES:
        return None
    arguments = tuple(sorted(node.iter_expressions(), key=_start))
    return OtherCall(name, node, arguments, text) if all(map(has_span, arguments)) else None


def _start(node: exp.Expr) -> int:
    return span_of(node).start if has_span(node) else -1


# In FROM


def _in_from(call: OtherCall) -> str | None:
    make = _TABLES.get(call.name.lower())
    if make is None:
        return None
    least, most, form = _FORMS[call.name.lower()]
    if not least <= len(call.arguments) <= most:
        raise call.refused(f"{len(call.arguments)} arguments", hint=f"it is called {form}")
    beside = any(one.find(exp.Column) for one in call.arguments) and make is _series
    text = f"{'LATERAL ' if beside else ''}({make(call)})"
    assert call.node.parent is not None
    return text if call.node.parent.args.get("alias") else text + _alias(call)


def _alias(call: OtherCall) -> str:
    """A table goes on to be called by its own name."""
    first = call.arguments[0]
    bare = isinstance(first, exp.Table) and not first.db
    return f" AS {quoted(first.name)}" if bare else ""


def _tumble(call: OtherCall) -> str:
    size = call.duration(2)
    return _windowed(call, size, size, 3)


def _hop(call: OtherCall) -> str:
    slide, size = call.duration(2), call.duration(3)
    if slide > size:
        raise call.refused(
            "the slide is longer than the window",
            span_of(call.arguments[2]),
            hint="the slide comes first, then the size",
        )
    return _windowed(call, size, slide, 4)


def _windowed(call: OtherCall, size: Duration, slide: Duration, offset: int) -> str:
    """Each row in the windows that it lies in, as Spark's `window` has them."""
    lengths = [size, slide, *([call.duration(offset)] if len(call.arguments) > offset else [])]
    listed = ", ".join(f"'{one.microseconds} microseconds'" for one in lengths)
    window = f"window({call.said(1)}, {listed})"
    return f"SELECT *, {window}.start AS window_start, {window}.end AS window_end FROM {call.table}"


def _cumulate(call: OtherCall) -> str:
    """Windows that begin together and end a step later each: of those that slide, the ones begun by then."""
    step, size = call.duration(2), call.duration(3)
    if size.microseconds % step.microseconds:
        raise call.refused("the size is not a number of steps", span_of(call.arguments[3]))
    begun, at = f"{HELD}begun", f"{HELD}at"
    whole = f"window({call.said(1)}, '{size.microseconds} microseconds')"
    window = f"window({at}, '{size.microseconds} microseconds', '{step.microseconds} microseconds')"
    return (
        f"SELECT * EXCEPT ({begun}, {at}) FROM (SELECT *, {window}.start AS {begun}, "
        f"{window}.end AS window_end FROM (SELECT *, {call.said(1)} AS {at}, "
        f"{whole}.start AS window_start FROM {call.table})) WHERE {begun} <= window_start"
    )


def _session(call: OtherCall) -> str:
    """Rows of equal keys belong together until none has come for as long as the gap."""
    gap = str(call.duration(2))
    keys = ", ".join(call.said(number) for number in range(3, len(call.arguments)))
    first, session, at = f"{HELD}first", f"{HELD}session", f"{HELD}at"
    of_keys = f"PARTITION BY {keys} " if keys else ""
    before = f"lag({at}) OVER ({of_keys}ORDER BY {at})"
    within = f"OVER (PARTITION BY {keys}{', ' if keys else ''}{session})"
    return (
        f"SELECT * EXCEPT ({first}, {session}, {at}), min({at}) {within} AS window_start, "
        f"max({at}) {within} + {gap} AS window_end FROM "
        f"(SELECT *, sum({first}) OVER ({of_keys}ORDER BY {at}) AS {session} FROM "
        f"(SELECT *, CASE WHEN {at} <= {before} + {gap} THEN 0 ELSE 1 END AS {first} FROM "
        f"(SELECT *, {call.said(1)} AS {at} FROM {call.table}) WHERE {at} IS NOT NULL))"
    )


def _series(call: OtherCall) -> str:
    """The numbers or times from one to another, and none where the other is before it."""
    parent = call.node.parent
    alias = None if parent is None else parent.args.get("alias")
    name = "generate_series" if alias is None or not alias.name else alias.name
    return f"SELECT {_exploded(call)} AS {quoted(name)}"


def _exploded(call: OtherCall) -> str:
    first, last, *step = (f"({call.said(number)})" for number in range(len(call.arguments)))
    up, down = f"{first} <= {last}", f"{first} >= {last}"
    is_down = _is_below_zero(call.arguments[2]) if step else False
    ways = down if is_down else up
    if is_down is None:
        ways = f"CASE WHEN {first} + {step[0]} < {first} THEN {down} ELSE {up} END"
    return f"explode(CASE WHEN {ways} THEN sequence({', '.join([first, last, *step])}) END)"


def _is_below_zero(step: exp.Expr) -> bool | None:
    """Whether a constant is; None for what is told by the rows."""
    if isinstance(step, exp.Paren):
        return _is_below_zero(step.this)
    if isinstance(step, exp.Neg):
        below = _is_below_zero(step.this)
        return None if below is None else not below
    length = step.this if isinstance(step, exp.Interval) else step
    if isinstance(step, exp.Interval) and isinstance(length, exp.Neg):
        return _is_below_zero(length)
    return length.name.startswith("-") if isinstance(length, exp.Literal) else None


_Maker = Callable[[OtherCall], str]
_TABLES: dict[str, _Maker] = {
    "tumble": _tumble,
    "hop": _hop,
    "cumulate": _cumulate,
    "session": _session,
    "generate_series": _series,
}
_FORMS = {
    "tumble": (3, 4, "TUMBLE(table, time, size [, offset])"),
    "hop": (4, 5, "HOP(table, time, slide, size [, offset])"),
    "cumulate": (4, 4, "CUMULATE(table, time, step, size)"),
    "session": (3, 16, "SESSION(table, time, gap [, key, …])"),
    "generate_series": (2, 3, "generate_series(first, last [, step])"),
}


# In place of an expression


def _in_place(call: OtherCall) -> str | None:
    name = call.name.lower()
    if name == "generate_series" and 2 <= len(call.arguments) <= 3:
        return _named(call, _exploded(call))
    if name in ("date_bin", "time_bucket") and 2 <= len(call.arguments) <= 3:
        return _named(call, _binned(call))
    return None


def _named(call: OtherCall, text: str) -> str:
    """A column of a select list is called like the function."""
    parent = call.node.parent
    item = isinstance(parent, exp.Select) and call.node.arg_key == "expressions"
    return f"{text} AS {quoted(call.name.lower())}" if item else text


def _binned(call: OtherCall) -> str:
    """A time, rounded down to a whole number of widths since the origin, which is 1970 unless it is given."""
    time = call.said(1)
    unit = _calendar_unit(call)
    if unit is not None:
        return f"date_trunc('{unit}', {time})"
    return _rounded(time, call.duration(0), _origin(call))


def _rounded(time: str, width: Duration, origin: str = "") -> str:
    micros = f"unix_micros(CAST({time} AS TIMESTAMP))"
    return f"timestamp_micros({micros} - pmod({micros}{origin}, {width.microseconds}L))"


def _origin(call: OtherCall) -> str:
    """What is taken from a time before it is divided."""
    if len(call.arguments) == 3:
        return f" - unix_micros(CAST({call.said(2)} AS TIMESTAMP))"
    if call.name.lower() == "time_bucket" and _is_weeks(call):
        return " - 345600000000L"  # weeks begin on Mondays: 1970-01-05 was the first
    return ""


def _is_weeks(call: OtherCall) -> bool:
    week = 7 * 86_400_000_000
    return call.duration(0).microseconds % week == 0


def _calendar_unit(call: OtherCall) -> str | None:
    """The month, quarter or year that a width of time_bucket is."""
    width = call.arguments[0]
    if isinstance(width, exp.Interval) and width.this is not None and width.unit is not None:
        count, word = width.this.name, width.unit.name
    else:
        count, _, word = width.name.partition(" ")
    unit = unit_name(word)
    known = count == "1" and unit in NOT_FIXED and len(call.arguments) == 2
    return unit if known and call.name.lower() == "time_bucket" else None
