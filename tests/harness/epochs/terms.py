"""Expressions that are both SQL and Python: conditions of joins, items, aggregates.

A text names sources as `<a>`; the caller writes there what stands for the source. A value is worked out over
a joined row: by alias its row, None where an outer join found no partner; under ROWS all kept rows by alias.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

Joined = dict[str, Any]
ROWS = "rows of"
INT_COLUMNS = ("k", "v", "id")
ZONE = "Asia/Kolkata"  # in which the queries are created; then another is set


@dataclass(frozen=True)
class Term:
    """An expression."""

    text: str
    value: Callable[[Joined], Any]


def column(alias: str, name: str) -> Term:
    """A column; NULL where the source has no row."""

    def value(row: Joined) -> Any:
        return None if row[alias] is None else row[alias][name]

    return Term(f"{alias}.{name}", value)


def constant(number: int) -> Term:
    """A whole number."""
    return Term(str(number), lambda _: number)


def hour_of(number: Term) -> Term:
    """The hour, in the zone of the query, of so many half hours after 1970 began."""

    def value(row: Joined) -> Any:
        found = number.value(row)
        return None if found is None else _moment(found).hour

    return Term(f"hour(timestamp_seconds({number.text} * 1800))", value)


def _moment(half_hours: int) -> datetime:
    start = datetime(1970, 1, 1, tzinfo=UTC)
    return (start + timedelta(seconds=half_hours * 1800)).astimezone(ZoneInfo(ZONE))


def plus(left: Term, right: Term, sign: str) -> Term:
    """A sum or a difference of numbers."""

    def value(row: Joined) -> Any:
        a, b = left.value(row), right.value(row)
        if a is None or b is None:
            return None
        return a + b if sign == "+" else a - b

    return Term(f"{left.text} {sign} {right.text}", value)


def compared(left: Term, sign: str, right: Term) -> Term:
    """A comparison: unknown with NULL, but for IS NOT DISTINCT FROM."""

    def value(row: Joined) -> bool | None:
        a, b = left.value(row), right.value(row)
        if sign == "IS NOT DISTINCT FROM":
            return bool(a == b) if a is not None and b is not None else a is b
        if a is None or b is None:
            return None
        tests = {"=": a == b, "<>": a != b} if isinstance(a, str) else _order(a, b)
        return bool(tests[sign])

    return Term(f"{left.text} {sign} {right.text}", value)


def _order(a: Any, b: Any) -> dict[str, bool]:
    return {"=": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}


def near_in_time(left: str, right: str, units: float, is_integer: bool) -> Term:
    """b.ts - a.ts < so much."""
    if is_integer:
        gap: Any = int(units) + 1
        text = str(gap)
    else:
        gap = timedelta(seconds=units)
        text = f"INTERVAL '{units}' SECOND"

    def value(row: Joined) -> bool | None:
        a, b = row[left], row[right]
        return None if a is None or b is None else bool(b["ts"] - a["ts"] < gap)

    return Term(f"{right}.ts - {left}.ts < {text}", value)


def both(terms: Iterable[Term]) -> Term:
    """AND."""
    parts = list(terms)

    def value(row: Joined) -> bool | None:
        found = [part.value(row) for part in parts]
        return False if False in found else None if None in found else True

    return Term(" AND ".join(_wrapped(part.text) for part in parts), value)


def either(left: Term, right: Term) -> Term:
    """OR."""

    def value(row: Joined) -> bool | None:
        found = [left.value(row), right.value(row)]
        return True if True in found else None if None in found else False

    return Term(f"({left.text} OR {right.text})", value)


def _wrapped(text: str) -> str:
    return f"({text})" if " OR " in text else text


def exists(alias: str, on: Term, wanted: bool) -> Term:
    """[NOT] EXISTS over the kept chunks of one more source."""

    def value(row: Joined) -> bool:
        kept = row[ROWS][alias]
        return any(on.value({**row, alias: other}) is True for other in kept) is wanted

    word = "EXISTS" if wanted else "NOT EXISTS"
    return Term(f"{word} (SELECT 1 FROM <{alias}> WHERE {on.text})", value)


def is_in(left: Term, alias: str, name: str, wanted: bool) -> Term:
    """[NOT] IN over a column of the kept chunks of one more source; NULLs make it unknown."""

    def value(row: Joined) -> bool | None:
        values = [other[name] for other in row[ROWS][alias]]
        mine = left.value(row)
        found: bool | None = False
        if values and (mine is None or None in values):
            found = None
        if mine is not None and mine in values:
            found = True
        return found if wanted or found is None else not found

    word = "IN" if wanted else "NOT IN"
    return Term(f"{left.text} {word} (SELECT {alias}.{name} FROM <{alias}>)", value)


# Aggregates: over a list of joined rows


@dataclass(frozen=True)
class Aggregate:
    """An aggregate of a group."""

    text: str
    value: Callable[[list[Joined]], Any]


def count_all() -> Aggregate:
    """count(*)."""
    return Aggregate("count(*)", len)


def aggregate(name: str, argument: Term) -> Aggregate:
    """An aggregate of one argument; NULLs do not count."""

    def value(rows: list[Joined]) -> Any:
        values = [v for v in map(argument.value, rows) if v is not None]
        if name == "count":
            return len(values)
        if name == "count_distinct":
            return len(set(values))
        if not values:
            return None
        return {"sum": sum, "min": min, "max": max, "avg": _average}[name](values)

    call = f"count(DISTINCT {argument.text})" if name == "count_distinct" else None
    return Aggregate(call or f"{name}({argument.text})", value)


def _average(values: list[int]) -> float:
    return sum(values) / len(values)


# Conditions at random


def equal(random: Random, left: str, right: str) -> Term:
    """An equality of keys, sometimes of two."""
    name = random.choice(["k", "k", "k", "g"])
    sign = "IS NOT DISTINCT FROM" if random.random() < 0.12 else "="
    first = compared(column(left, name), sign, column(right, name))
    if random.random() < 0.2:
        other = "g" if name == "k" else "k"
        return both([first, compared(column(left, other), "=", column(right, other))])
    return first


def theta(random: Random, left: str, right: str, is_integer: bool) -> Term:
    """A condition that is no equality."""
    kind = random.random()
    if kind < 0.3:
        units = random.choice([0.2, 1, 3])
        return near_in_time(*random.sample([left, right], 2), units, is_integer)
    if kind < 0.5:
        return compared(column(left, "ts"), random.choice(["<", "<="]), column(right, "ts"))
    signs = ["<", ">", "<=", ">=", "<>"]
    a, b = column(left, random.choice(INT_COLUMNS)), column(right, random.choice(INT_COLUMNS))
    if kind < 0.65:
        b = plus(b, constant(random.randint(-3, 3)), "+")
    return compared(a, random.choice(signs), b)


def filtering(random: Random, alias: str) -> Term:
    """A condition on one source."""
    name = random.choice(["v", "k"])
    if random.random() < 0.15:
        return compared(hour_of(column(alias, name)), ">", constant(random.randint(4, 6)))
    return compared(
        column(alias, name), random.choice(["<", ">", "=", "<>"]), constant(random.randint(-2, 5))
    )


def on_condition(random: Random, left: str, right: str, is_integer: bool) -> Term:
    """What a join goes by."""
    kind = random.random()
    if kind < 0.5:
        return equal(random, left, right)
    if kind < 0.7:
        return both([equal(random, left, right), theta(random, left, right, is_integer)])
    if kind < 0.8:
        return both([equal(random, left, right), filtering(random, random.choice([left, right]))])
    if kind < 0.86:
        return either(equal(random, left, right), theta(random, left, right, is_integer))
    return theta(random, left, right, is_integer)
