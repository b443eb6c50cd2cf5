"""Text → statements: splitting a script, and finding which statement a text is.

Owns the table of first words. Each statement has its own file under `statements/`, which owns
the rest of its grammar. The parser knows no catalog: whether a table exists is asked later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headwater.errors import Error, NotSupportedError, SqlSyntaxError
from headwater.sql.cursor import Cursor, syntax_error
from headwater.sql.identifiers import identifiers
from headwater.sql.lexer import Kind, Token, tokenize
from headwater.sql.masking import hide_secrets, masked
from headwater.sql.mistakes import hinted
from headwater.sql.names import did_you_mean
from headwater.sql.names import words as keywords
from headwater.sql.statements import (
    advance,
    alter,
    call,
    control,
    copy,
    create_continuous_query,
    create_function,
    create_index,
    create_materialized_view,
    create_procedure,
    create_sink,
    create_source,
    create_streaming_table,
    create_table,
    create_token,
    create_view,
    cursors,
    delete,
    describe,
    drop,
    explain,
    flush,
    insert,
    merge,
    query,
    session,
    setting,
    show,
    subscribe,
    transaction,
    truncate,
    update,
    user,
    verify,
)
from headwater.sql.statements.base import Statement
from headwater.sql.statements.create_procedure import is_block_start
from headwater.sql.text import Span

BY_FIRST_WORD: dict[str, Callable[[Cursor], Statement]] = {
    "ABORT": transaction.parse_rollback,
    "ADVANCE": advance.parse,
    "ALTER": lambda cursor: _alter(cursor),
    "BEGIN": transaction.parse_begin,
    "CALL": call.parse,
    "COMMIT": transaction.parse_commit,
    "COPY": copy.parse,
    "CREATE": lambda cursor: _create(cursor),
    "DELETE": delete.parse,
    "DESC": describe.parse,
    "DESCRIBE": describe.parse,
    "DROP": drop.parse,
    "END": transaction.parse_commit,
    "EXPLAIN": lambda cursor: explain.parse(cursor, _inner),
    "FLUSH": flush.parse,
    "FROM": query.parse,
    "INSERT": insert.parse,
    "KILL": control.parse,
    "MERGE": merge.parse,
    "PAUSE": control.parse,
    "RESET": setting.parse_reset,
    "RESUME": control.parse,
    "ROLLBACK": transaction.parse_rollback,
    "SELECT": query.parse,
    "SET": setting.parse_set,
    "SHOW": show.parse,
    "START": transaction.parse_begin,
    "SUBSCRIBE": subscribe.parse,
    "TABLE": query.parse,
    "TRUNCATE": truncate.parse,
    "UPDATE": update.parse,
    "VALUES": query.parse,
    "VERIFY": verify.parse,
    "WITH": query.parse,
}
# Read for sessions of PostgreSQL's protocol, which alone carry them out.
OF_SESSIONS: dict[str, Callable[[Cursor], Statement]] = {
    "CLOSE": cursors.parse_close,
    "DEALLOCATE": session.parse_deallocate,
    "DECLARE": cursors.parse_declare,
    "DISCARD": session.parse_discard,
    "FETCH": cursors.parse_fetch,
    "MOVE": cursors.parse_fetch,
    "RELEASE": transaction.parse_release,
    "SAVEPOINT": transaction.parse_savepoint,
    "UNLISTEN": session.parse_unlisten,
}
CREATES: dict[tuple[str, ...], Callable[[Cursor, bool], Statement]] = {
    ("TABLE",): create_table.parse,
    ("STREAMING", "TABLE"): create_streaming_table.parse_table,
    ("STREAM",): create_streaming_table.parse_stream,
    ("FOREIGN", "TABLE"): create_streaming_table.parse_foreign,
    ("INDEX",): create_index.parse,
    ("SOURCE",): create_source.parse,
    ("SINK",): create_sink.parse,
    ("CONTINUOUS", "QUERY"): create_continuous_query.parse,
    ("MATERIALIZED", "VIEW"): create_materialized_view.parse,
    ("VIEW",): create_view.parse,
    ("USER",): user.parse_create,
    ("TOKEN",): create_token.parse,
    ("FUNCTION",): create_function.parse,
    ("PROCEDURE",): lambda cursor, replace: _create_procedure(cursor, replace),
}
ALTERS: dict[tuple[str, ...], Callable[[Cursor], Statement]] = {
    ("QUERY",): alter.parse_query,
    ("CONTINUOUS", "QUERY"): alter.parse_query,
    ("VIEW",): alter.parse_view,
    ("TABLE",): alter.parse_table,
    ("STREAMING", "TABLE"): alter.parse_table,
    ("STREAM",): alter.parse_table,
    ("MATERIALIZED", "VIEW"): alter.parse_table,
    ("USER",): user.parse_alter,
}
# Statements of Spark's and PostgreSQL's that mean nothing here.
REFUSED = keywords(
    "ANALYZE CACHE CLEAR COMMENT EXECUTE GRANT LIST LISTEN LOAD LOCK MSCK NOTIFY OPTIMIZE PREPARE "
    "REFRESH REPAIR REVOKE UNCACHE UNLOCK USE VACUUM"
)
BY_THEMSELVES = "nothing needs it: files are joined and removed by themselves"
ROLES = "CREATE USER and ALTER USER give a user the ROLE READER, WRITER or ADMIN"
ONE_FOLDER = "a data folder is one database; names of tables stand alone"
INSTEAD = {
    "ANALYZE": "nothing needs it: EXPLAIN ANALYZE shows what a statement does",
    "GRANT": ROLES,
    "LISTEN": "SUBSCRIBE follows a continuous query, a view or a table",
    "OPTIMIZE": BY_THEMSELVES,
    "REFRESH": "views are always up to date; ALTER VIEW v REFRESH STATIC reads a view's tables again",
    "REVOKE": ROLES,
    "USE": ONE_FOLDER,
    "VACUUM": BY_THEMSELVES,
    "DATABASE": ONE_FOLDER,
    "SCHEMA": ONE_FOLDER,
    "UNIQUE": "CREATE INDEX … makes an index; no key is checked",
}
"""What to do instead of statements that are refused, by their word."""


@dataclass(frozen=True)
class StatementText:
    """The text of one statement in a script, without its semicolon, and where it starts."""

    text: str
    start: int


def split(text: str) -> list[StatementText]:
    """The statements of a script; empty ones are left out."""
    pieces: list[StatementText] = []
    tokens = _tokens(text)
    first, depth = 0, 0
    procedure = _is_procedure(tokens, 0)
    for index, token in enumerate(tokens):
        ended = token.kind is Kind.END
        if ended or (token.text == ";" and not depth):
            if index > first:
                start, end = tokens[first].start, tokens[index - 1].end
                pieces.append(StatementText(text[start:end], start))
            first, depth = index + 1, 0
            procedure = not ended and _is_procedure(tokens, first)
        elif procedure:
            depth = _depth(tokens, index, depth)
    return pieces


def _is_procedure(tokens: tuple[Token, ...], first: int) -> bool:
    """Whether a statement starts with CREATE [OR REPLACE] PROCEDURE."""
    words = [token.upper for token in tokens[first : first + 4]]
    return words[:2] == ["CREATE", "PROCEDURE"] or words == ["CREATE", "OR", "REPLACE", "PROCEDURE"]


def _tokens(text: str) -> tuple[Token, ...]:
    try:
        return tokenize(text)
    except Error as error:
        raise hide_secrets(error, text) from None


def _depth(tokens: tuple[Token, ...], index: int, depth: int) -> int:
    if is_block_start(tokens, index):
        return depth + 1
    ends = tokens[index].upper == "END" and tokens[index - 1].text != "."
    return max(depth - 1, 0) if ends else depth


def is_complete(text: str) -> bool:
    """Whether a text ends with the semicolon of a statement; for shells that read line by line."""
    try:
        pieces = split(text)
    except SqlSyntaxError:
        return False
    tokens = tokenize(text)
    if not pieces:
        return True
    last = pieces[-1]
    return len(tokens) > 1 and tokens[-2].text == ";" and last.start + len(last.text) < len(text)


def parse(text: str, *, time_zone: str = "UTC") -> Statement:
    """The one statement that a text is; a trailing semicolon is allowed."""
    try:
        cursor = Cursor(text)
        cursor.time_zone = time_zone
        return _statement(cursor)
    except Error as error:
        raise hide_secrets(hinted(error, text), text) from None


def _statement(cursor: Cursor) -> Statement:
    first = cursor.peek()
    if first.kind is Kind.END or first.text == ";":
        raise syntax_error(cursor.text, first, "expected a statement")
    if first.text == "(":
        return query.parse(cursor)
    word = first.upper if first.kind is Kind.WORD else ""
    found = BY_FIRST_WORD.get(word) or OF_SESSIONS.get(word)
    if found is None:
        raise _unknown(cursor)
    statement = found(cursor)
    cursor.finish()
    return statement


def _unknown(cursor: Cursor) -> Error:
    first = cursor.peek()
    if first.upper in REFUSED:
        place = first.span.place(cursor.text)
        hint = INSTEAD.get(first.upper)
        return NotSupportedError(f"{first.upper} is not supported", hint=hint, place=place)
    hint = did_you_mean(first.text, BY_FIRST_WORD) if first.kind is Kind.WORD else None
    return syntax_error(cursor.text, first, "expected a statement", hint)


def _create(cursor: Cursor) -> Statement:
    cursor.expect("CREATE")
    replace = cursor.accept("OR", "REPLACE")
    for words, parse_rest in CREATES.items():
        if cursor.accept(*words):
            return parse_rest(cursor, replace)
    if cursor.at_any(("TEMPORARY", "TEMP", "GLOBAL", "EXTERNAL", "DATABASE", "SCHEMA", "UNIQUE")):
        word = cursor.peek().upper
        cursor.refuse(f"CREATE {word} is not supported", hint=INSTEAD.get(word))
    if cursor.at("CONTINUOUS", "VIEW"):
        cursor.refuse(
            "a view is not CREATEd CONTINUOUS", hint="CREATE VIEW …: it is kept as rows come"
        )
    raise cursor.error("TABLE, STREAMING TABLE, STREAM, VIEW, …", words=_known(CREATES))


def _create_procedure(cursor: Cursor, replace: bool) -> Statement:
    """A procedure; statements that use no parameter are checked now, the others at CALL."""
    found = create_procedure.parse(cursor, replace)
    names = {parameter.name.key for parameter in found.parameters}
    for span in found.body:
        if not names & identifiers(cursor.text, span):
            _inner(cursor, span)
    return found


def _alter(cursor: Cursor) -> Statement:
    cursor.expect("ALTER")
    for words, parse_rest in ALTERS.items():
        if cursor.accept(*words):
            return parse_rest(cursor)
    raise cursor.error("TABLE, VIEW, QUERY or USER", words=_known(ALTERS))


def _known(table: dict[tuple[str, ...], Callable[..., Statement]]) -> list[str]:
    return [" ".join(words) for words in table] + [words[0] for words in table]


def _inner(cursor: Cursor, span: Span) -> Statement:
    """The statement in a span of another one; errors are placed in the outer text."""
    try:
        return parse(span.of(cursor.text), time_zone=cursor.time_zone)
    except Error as error:
        if error.place is not None:
            inner = Span(error.place.start, error.place.end).shifted(span.start)
            error.place = inner.place(masked(cursor.text))
        raise
