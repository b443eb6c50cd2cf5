"""Where every node of a tree stands in the user's text.

sqlglot keeps positions of names only. Here each method of its parser that reads a whole construct
notes from which token to which it read; what is put together in between (`a + b + c`) stands where
its parts stand. Must never: change a tree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sqlglot import exp
from sqlglot.parser import Parser

from headwater.sql.names import words
from headwater.sql.text import Span

SPAN = "span"
_BEGUN = "begun"
# The methods whose result begins with the first token that they read, or with an operand read before.
_WHOLE = words(
    "alias at_time_zone boolean bracket column column_ops cte escape from function group having interval is "
    "join lambda lateral limit null offset order ordered primary qualify query_modifiers range "
    "select_query set_operations sort statement table table_alias type types unary unnest value "
    "where window with"
)
# They go on after an operand that has just been read: f(…) before OVER, a[0] before [1].
_AFTER_OPERAND = ("_parse_window", "_parse_bracket")
# These of a query's parts stand at its end; sqlglot moves them from the last SELECT to its UNION.
_MODIFIERS = ("order", "limit", "offset", "sort", "cluster", "distribute", "qualify")

Read = Callable[..., Any]
P = TypeVar("P", bound=type[Parser])


def recording(parser: P) -> P:
    """The parser class, whose nodes know where they stand."""
    for name in (f"_parse_{word}" for word in _WHOLE):
        read = getattr(parser, name, None)
        if read is not None:
            setattr(parser, name, _noted(read, ends_operand=name in _AFTER_OPERAND))
    return parser


def _noted(read: Read, ends_operand: bool) -> Read:
    def noted(self: Any, *arguments: Any, **options: Any) -> Any:
        first = self._index
        if ends_operand and isinstance(arguments[0], exp.Expr):
            _extend(
                arguments[0], None, self._tokens[first - 1].end + 1
            )  # f(…), before FILTER or OVER
        node = read(self, *arguments, **options)
        if isinstance(node, exp.Expr) and self._index > first:
            _extend(node, self._tokens[first].start, self._prev.end + 1)
            if isinstance(node, exp.SetOperation) and read.__name__ == "_parse_select_query":
                _begin(node, self._tokens[first].start)
        return node

    return noted


def _begin(union: exp.SetOperation, start: int) -> None:
    """The first SELECT of a UNION begins where the UNION did when it was first read, after any WITH."""
    node: exp.Expr = union
    while isinstance(node, exp.SetOperation):
        node = node.this
    if isinstance(node, exp.Select) and _BEGUN not in node.meta:
        node.meta[_BEGUN] = True
        _extend(node, start, start)


def _extend(node: exp.Expr, start: int | None, end: int) -> None:
    known = node.meta.get(SPAN)
    if known is not None:
        first, last = known
        if start is None or (first is not None and first < start):
            start = first
        end = max(end, last)
    node.meta[SPAN] = (start, end)


def settle(tree: exp.Expr) -> list[exp.Expr]:
    """Gives every node of a tree its span, that of its own words and of all its parts; the nodes."""
    nodes, parts = [tree], []
    for node in nodes:  # more come behind it
        parts.append(list(node.iter_expressions()))
        nodes += parts[-1]
    for node, inner in zip(reversed(nodes), reversed(parts), strict=True):
        start, end = _own(node)
        for part in inner:
            inside = part.meta.get(SPAN)
            if inside is not None:
                start = inside.start if start is None else min(start, inside.start)
                end = inside.end if end is None else max(end, inside.end)
        if start is None or end is None:
            node.meta.pop(SPAN, None)
            continue
        node.meta[SPAN] = Span(start, end)
        if isinstance(node, exp.Not) and _starts_at(node.this, start):
            del node.this.meta[SPAN]  # of `a NOT IN (b)` no text is `a IN (b)`
    for node in nodes:
        if isinstance(node, exp.SetOperation):
            _shorten(node)
    return nodes


def _starts_at(node: exp.Expr, start: int) -> bool:
    known = node.meta.get(SPAN)
    return known is not None and known.start == start


def _own(node: exp.Expr) -> tuple[int | None, int | None]:
    known = node.meta.get(SPAN, (None, None))
    # A node that sqlglot put into the tree twice has its span already.
    start, end = (known.start, known.end) if isinstance(known, Span) else known
    if "start" in node.meta:
        named = node.meta["start"], node.meta["end"] + 1
        start = named[0] if start is None else min(start, named[0])
        end = named[1] if end is None else max(end, named[1])
    return start, end


def _shorten(union: exp.SetOperation) -> None:
    """The last SELECT of a UNION does not hold the ORDER BY and LIMIT of the whole."""
    moved = [part for name in _MODIFIERS if (part := union.args.get(name)) is not None]
    starts = [span_of(part).start for part in moved if SPAN in part.meta]
    node: exp.Expr = union
    while starts and isinstance(node, exp.SetOperation):
        node = node.expression
        known = node.meta.get(SPAN)
        if known is not None and known.end > min(starts):
            inner = [p.meta[SPAN].end for p in node.iter_expressions() if SPAN in p.meta]
            node.meta[SPAN] = Span(known.start, max(inner, default=known.start))


def span_of(node: exp.Expr) -> Span:
    """Where a node stands; ValueError for one that sqlglot made up."""
    known = node.meta.get(SPAN)
    if known is None:
        raise ValueError(f"{type(node).__name__} stands nowhere in the text")
    return known


def has_span(node: exp.Expr) -> bool:
    """Whether a node stands in the text."""
    return SPAN in node.meta
