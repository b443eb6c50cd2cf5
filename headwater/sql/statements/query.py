"""A query: SELECT, WITH, VALUES, FROM-first or in parentheses, with our clauses found.

A query is never refused because sqlglot cannot read it: then `tree` is None and Spark decides.
All spans are places in `Query.text`; in a larger statement `offset` says where that text starts.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from sqlglot import exp

from headwater.errors import Error, NotSupportedError, SqlSyntaxError
from headwater.sql import dialect
from headwater.sql.calls import Calls
from headwater.sql.clauses import Clauses
from headwater.sql.cursor import CLOSING, OPENING, Cursor, syntax_error, unclosed
from headwater.sql.dialect import Parsed
from headwater.sql.extensions import (
    CurrentInstant,
    Cut,
    EmitClause,
    NamedRelation,
    Near,
    PairNewest,
    Previous,
    Sample,
    UpdateMode,
    Valid,
    VersionClause,
    WindowClause,
)
from headwater.sql.forms import Form, form_of
from headwater.sql.identifiers import cte_names, identifiers
from headwater.sql.lexer import Kind, Token, tokenize
from headwater.sql.literals import string_value
from headwater.sql.opaque import read_opaque
from headwater.sql.statements.base import Statement
from headwater.sql.text import EditedText, Name, Span

FIRST_WORDS = frozenset({"SELECT", "WITH", "VALUES", "FROM", "TABLE", "("})
CHANGES = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})
BRACKETS = CLOSING.union(OPENING)
MOST_FORMS = 512


@dataclass(frozen=True)
class Query(Statement):
    """A query and what we add to it."""

    offset: int
    clauses: Clauses
    calls: Calls
    relations: tuple[NamedRelation, ...]  # every name where a table may stand, CTEs too
    known: Parsed | SqlSyntaxError | Shared = field(compare=False, repr=False)

    @property
    def span(self) -> Span:
        """Where the query stands in the statement that holds it."""
        return Span(self.offset, self.offset + len(self.text))

    @property
    def sample(self) -> Sample | None:
        """The SAMPLE clause."""
        return self.clauses.sample

    @property
    def emit(self) -> EmitClause | None:
        """The EMIT clause."""
        return self.clauses.emit

    @property
    def update_mode(self) -> UpdateMode | None:
        """The clause WITH APPEND, WITH UPDATES or WITH SHEDDING."""
        return self.clauses.update_mode

    @property
    def pair_newest(self) -> PairNewest | None:
        """The PAIR NEWEST clause."""
        return self.clauses.pair_newest

    @property
    def windows(self) -> tuple[WindowClause, ...]:
        """All windows in the order of the text."""
        return tuple(r.window for r in self.relations if r.window is not None)

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """All cuts in the order of the text."""
        return tuple(r.cut for r in self.relations if r.cut is not None)

    @property
    def versions(self) -> tuple[VersionClause, ...]:
        """All `VERSION AS OF` in the order of the text."""
        return tuple(r.version for r in self.relations if r.version is not None)

    @property
    def previous(self) -> tuple[Previous, ...]:
        """All calls of PREV."""
        return self.calls.previous

    @property
    def valid(self) -> tuple[Valid, ...]:
        """All calls of VALID, with their OVERLAPS PERIOD."""
        return self.calls.valid

    @property
    def instants(self) -> tuple[CurrentInstant, ...]:
        """All calls of CURRENT_INSTANT."""
        return self.calls.instants

    @property
    def near(self) -> tuple[Near, ...]:
        """All calls of NEAR."""
        return self.calls.near

    @property
    def spans(self) -> tuple[Span, ...]:
        """What must be taken out to leave a query in Spark's grammar, in the order of the text.

        Functions are not among them: PREV, VALID, NEAR and CURRENT_INSTANT are calls to any grammar, and
        what replaces them (and OVERLAPS PERIOD) is the planner's choice.
        """
        windows = [window.span for window in self.windows]
        cuts = [span for cut in self.cuts for span in cut.removals]
        versions = [version.span for version in self.versions]
        return tuple(sorted([*windows, *cuts, *versions, *self.clauses.spans]))

    @property
    def is_plain(self) -> bool:
        """Whether nothing of ours is in the query."""
        bare = not any(r.window or r.cut or r.version for r in self.relations)
        return bare and self.clauses == Clauses() and self.calls == Calls()

    def edited(self) -> EditedText:
        """The query's text with our clauses taken out; more edits may follow."""
        edited = EditedText(self.text)
        for span in self.spans:
            edited.remove(span)
        return edited

    @property
    def shared(self) -> Shared | None:
        """What the query has in common with others, if that was enough to know it without reading it."""
        return self.known if isinstance(self.known, Shared) else None

    @cached_property
    def read(self) -> Parsed | SqlSyntaxError:
        """The query as sqlglot reads it."""
        if isinstance(self.known, Shared):
            return dialect.read_query(self.text, tokenize(self.text))
        return self.known

    @property
    def tree(self) -> exp.Expr | None:
        """sqlglot's tree of the text; do not change it. None if sqlglot cannot read the query."""
        return None if isinstance(self.read, SqlSyntaxError) else self.read.tree

    @property
    def tree_error(self) -> SqlSyntaxError | None:
        """Why there is no tree; a guess at what is wrong, never a verdict."""
        return self.read if isinstance(self.read, SqlSyntaxError) else None

    @cached_property
    def has_as_of(self) -> bool:
        """Whether an as-of join stands in the query, or would if sqlglot could read it."""
        if "asof" not in self.text.lower():
            return False
        if self.tree is not None:
            return any(join.args.get("method") == "ASOF" for join in self.tree.find_all(exp.Join))
        words = [token.text.upper() for token in tokenize(self.text)]
        return any(
            word == "ASOF" and words[place - 1] != "AS" and "JOIN" in words[place + 1 : place + 4]
            for place, word in enumerate(words)
        )

    @cached_property
    def table_references(self) -> tuple[NamedRelation, ...]:
        """The names that mean objects of the catalog, in the order of the text.

        With a tree the names of CTEs are left out where they are in scope; without one every
        name that is some CTE's is left out.
        """
        if isinstance(self.known, Shared):
            return self.relations
        if isinstance(self.known, Parsed):
            return self.known.references
        names = cte_names(self.text)
        return tuple(r for r in self.relations if r.name.key not in names)

    @cached_property
    def identifiers(self) -> frozenset[str]:
        """Every name in the text, in lower case, whatever it may mean."""
        return identifiers(self.text)


@dataclass(frozen=True)
class Shared:
    """The form of a query with slots for values, which many queries have, and the values of one."""

    form: Query
    values: tuple[str, ...]


# The forms of plain scans: None if one came, the query with slots from the second on.
_forms: OrderedDict[Form, Query | None] = OrderedDict()
_forms_lock = threading.Lock()


def share(query: Query) -> None:
    """A query that was read is a plain scan: from its second on, queries of its form need not be read."""
    found = None if isinstance(query.known, Shared) else form_of(tokenize(query.text))
    if found is None or "/*+" in query.text:  # hints are no tokens
        return
    form, values = found
    with _forms_lock:
        came = form in _forms
        kept = _forms.setdefault(form, None)
        _forms.move_to_end(form)
        while len(_forms) > MOST_FORMS:
            _forms.popitem(last=False)
    if came and kept is None:
        made = make_query(form.text)
        if _filled(made, values) == query.tree:
            with _forms_lock:
                _forms[form] = made


def _filled(form: Query, values: Sequence[str]) -> exp.Expr | None:
    """The tree of a form with literals for its slots."""

    def put(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Parameter):
            return node
        text = values[int(node.name) - 1]
        value = string_value(text) if text[0] == "'" else text
        return exp.Literal(this=value, is_string=text[0] == "'")

    return None if form.tree is None else form.tree.transform(put)


def _known_by_form(text: str, offset: int, tokens: Sequence[Token]) -> Query | None:
    """The query, if its form is known; it reads one table and has nothing of ours."""
    found = form_of(tokens)
    if found is None or "/*+" in text:
        return None
    with _forms_lock:
        form = _forms.get(found[0])
    if form is None:
        return None
    [relation] = form.relations
    moved = dict(zip((t.start for t in tokenize(form.text)), tokens, strict=True))
    ended = dict(zip((t.end for t in tokenize(form.text)), tokens, strict=True))

    def placed(name: Name) -> Name:
        return Name(str(name), Span(moved[name.span.start].start, ended[name.span.end].end))

    alias = None if relation.alias is None else placed(relation.alias)
    here = NamedRelation(placed(relation.name), alias)
    return Query(text, offset, form.clauses, form.calls, (here,), Shared(form, found[1]))


def make_query(text: str, offset: int = 0) -> Query:
    """The query that a text is; the text has no trailing semicolon."""
    tokens = tokenize(text)
    words = {token.upper for token in tokens}
    if not words.isdisjoint(BRACKETS):
        _check_brackets(text, tokens)
    if not words.isdisjoint(CHANGES):
        _check_reads(text, tokens)
    if "OF" in words:
        _check_times(text, tokens)
    known = _known_by_form(text, offset, tokens)
    if known is not None:
        return known
    read = dialect.read_query(text, tokens)
    if isinstance(read, SqlSyntaxError):
        return Query(text, offset, *read_opaque(text, tokens), read)
    return Query(text, offset, read.clauses, read.calls, read.relations, read)


def _check_brackets(text: str, tokens: Sequence[Token]) -> None:
    """Raise if a bracket has no partner."""
    opened: list[Token] = []
    for token in tokens:
        if token.text in OPENING:
            opened.append(token)
        elif token.text in CLOSING or token.kind is Kind.END:
            outermost = opened[0] if opened else None
            if outermost is not None and OPENING[opened.pop().text] != token.text:
                raise unclosed(text, outermost)
            if outermost is None and token.kind is not Kind.END:
                hint = "this bracket was never opened"
                raise syntax_error(text, token, "expected the end of the query", hint)


def _check_reads(text: str, tokens: Sequence[Token]) -> None:
    """Raise if the text changes rows: to Spark `FROM t INSERT …` and `WITH … INSERT …` are statements."""
    depth, has_verb, is_with = 0, False, tokens[0].upper == "WITH"
    for before, token in pairwise(tokens):
        depth += (before.text in OPENING) - (before.text in CLOSING)
        after_ctes = (
            is_with and not has_verb and before.text == ")" and token.upper not in (",", "AS")
        )
        if depth:
            continue
        inserts = before.upper == "INSERT" and token.upper in ("INTO", "OVERWRITE")
        if inserts or (after_ctes and token.upper in CHANGES):
            verb = before if inserts else token
            raise NotSupportedError(
                f"a query cannot {verb.upper}",
                hint="the statement begins with that word: INSERT INTO t WITH … SELECT …",
                place=verb.span.place(text),
            )
        has_verb = has_verb or after_ctes


def _check_times(text: str, tokens: Sequence[Token]) -> None:
    """Raise for a table as of an earlier time: only views have versions."""
    words = [token.upper for token in tokens]
    for index, token in enumerate(tokens[:-3]):
        plain = token.kind is Kind.WORD and words[index + 1 : index + 3] == ["AS", "OF"]
        if plain and words[index] in ("SYSTEM_TIME", "SYSTEM_VERSION", "TIMESTAMP"):
            first = index - 1 if index and words[index - 1] == "FOR" else index
            place = Span(tokens[first].start, tokens[index + 2].end)
            raise NotSupportedError(
                "a table has no earlier versions to read",
                hint="a window or a condition on the time column tells which rows are meant; "
                "VERSION AS OF n reads a version of a continuous view",
                place=place.place(text),
            )


def at_query(cursor: Cursor) -> bool:
    """Whether a query can start here."""
    return cursor.at_any(FIRST_WORDS)


def take_query(cursor: Cursor) -> Query:
    """The rest of the statement as a query."""
    if not at_query(cursor):
        cursor.fail("a query", words=("SELECT", "WITH", "VALUES", "FROM"))
    start = cursor.start
    cursor.skip_to_end()
    return subquery(cursor, cursor.span_from(start))


def take_parenthesised_query(cursor: Cursor) -> Query:
    """A query in parentheses; the query's text is without them."""
    start = cursor.start
    if not cursor.at("("):
        cursor.fail("(")
    if cursor.peek(1).upper not in FIRST_WORDS:
        cursor.take()
        cursor.fail("a query", words=("SELECT", "WITH", "VALUES", "FROM"))
    span = cursor.skip_brackets()
    inner = Span(start + 1, span.end - 1)
    return subquery(cursor, inner)


def subquery(cursor: Cursor, span: Span) -> Query:
    """The query in a span; errors are placed in the whole statement."""
    try:
        return make_query(span.of(cursor.text), span.start)
    except Error as error:
        if error.place is not None:
            inner = Span(error.place.start, error.place.end)
            error.place = inner.shifted(span.start).place(cursor.text)
        raise


def parse(cursor: Cursor) -> Query:
    """A statement that is a query; its text is the statement's without a trailing semicolon."""
    return take_query(cursor)
