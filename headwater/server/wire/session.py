"""What the statements of one connection do: plain Python that runs in a thread of the server's.

Owns prepared statements, portals, the transaction and the parameters of one session. Every method that may
take long is a generator of bytes to send; whoever drives it waits for the client between two of them,
so that a slow reader slows the statement down. Must never touch the socket.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import pyarrow as pa

from headwater.database import Database
from headwater.errors import AccessError, BindError, Error, NotSupportedError
from headwater.kernel.cancellation import Cancellation
from headwater.result import Result
from headwater.server.counts import Counts
from headwater.server.wire import copying, encode, replies
from headwater.server.wire.answers import Encoded, known_bytes
from headwater.server.wire.catalog.engine import CatalogEngine
from headwater.server.wire.commands import Commands
from headwater.server.wire.copying import IncomingRows
from headwater.server.wire.inference import cast_types, parameter_types
from headwater.server.wire.messages import Bind, Parse
from headwater.server.wire.outcome import Outcome, Portal, Prepared, Sent
from headwater.server.wire.parameters import parameter_text, sample
from headwater.server.wire.rows import RowSource, of_table
from headwater.server.wire.spelling import spelled
from headwater.server.wire.transaction import Transaction
from headwater.sql import scripts
from headwater.sql import statements as s
from headwater.sql.caller import Caller
from headwater.sql.kinds import gives_rows
from headwater.sql.parameters import bind
from headwater.sql.scripts import Asked
from headwater.sql.statements.query import make_query
from headwater.sql.statements.user import Role
from headwater.sql.text import Span
from headwater.sql.types import quoted

COUNTED = frozenset({"UPDATE", "DELETE", "MERGE", "COPY", "SELECT", "FETCH", "MOVE"})
MOST_STATEMENTS = 1000  # prepared statements, and portals, of one session


class Session:
    """One connection's session."""

    def __init__(
        self,
        database: Database,
        catalog: CatalogEngine,
        commands: Commands,
        role_of: Callable[[], Role | None] | None = None,
    ) -> None:
        """`role_of`: the role that the user has now, None once there is no such user; or an admin."""
        self.role_of = role_of or _admin
        self.database = database
        self.catalog = catalog
        self.commands = commands
        self.transaction = Transaction()
        self.prepared: dict[str, Prepared] = {}
        self.portals: dict[str, Portal] = {}
        self.cancellation = Cancellation()
        self.counts = Counts()
        self.known: tuple[str, tuple[int, ...], Encoded] | None = None  # the last answer, if it was

    @property
    def role(self) -> Role:
        """The user's role; AccessError if the user was dropped."""
        found = self.role_of()
        if found is None:
            raise AccessError("the user of this connection was dropped", sqlstate="28000")
        return found

    @property
    def is_plain(self) -> bool:
        """Whether a known answer may be given: to a user that is there, outside of a transaction."""
        return not self.transaction.is_open and self.role_of() is not None

    @property
    def status(self) -> str:
        """I, T or E, for ReadyForQuery."""
        return self.transaction.status

    # The simple protocol

    def script(self, text: str) -> Sent:
        """Runs a script; errors are placed in it."""
        script = scripts.read(text, spelled)
        if not script:
            yield replies.EMPTY_QUERY
        for asked in script:
            try:
                outcome = self._run(asked, text if len(script) == 1 else "")
                yield from self._sent(outcome, ())
            except Error as error:
                self.transaction.fail()
                raise _moved(error, asked.text, text, asked.original_position) from None

    def answer_now(self, text: str) -> bytes | None:
        """The answer to a script that is known without work; None if there is some to do."""
        found = known_bytes(self.database, text, ()) if self.is_plain else None
        if found is None:
            return None
        self.known = text, (), found
        self.count_known(found)
        return found.columns + found.rows

    def count_known(self, answer: Encoded, times: int = 1) -> None:
        """Statements were answered by bytes that were known."""
        self.counts.add(Counts(times, 0, times * answer.count))

    # The extended protocol

    def parse(self, name: str, text: str, types: Sequence[int]) -> None:
        """Prepares a statement."""
        if name and name in self.prepared:
            raise BindError(f"prepared statement {name} already exists", sqlstate="42P05")
        script = scripts.read(text, spelled)
        if len(script) > 1:
            start, end = (script[1].original_position(p) for p in (0, len(script[1].text)))
            raise BindError(
                "a prepared statement is one statement",
                sqlstate="42601",
                place=Span(start, end).place(text),
            )
        _check_room(self.prepared, "prepared statements")
        oids = tuple(types)
        if script and "$" in text:
            said = cast_types(text, types)
            oids = parameter_types(script[0], said, self.catalog.columns)
        slots = script[0] if oids and script and self._is_query(script[0]) else None
        self.prepared[name] = Prepared(text, oids, slots=slots)

    def _is_query(self, asked: Asked) -> bool:
        """Whether a statement is a query of users' tables even without values for its parameters."""
        try:
            is_query = isinstance(self.database.parsed(asked), s.Query)
        except Error:  # with values it may be one
            return False
        return is_query and not self.catalog.wants(asked)

    def prepare(self, message: Parse | Bind) -> Sent:
        """Parse or Bind of a message that is too large for the event loop."""
        if isinstance(message, Parse):
            self.parse(message.name, message.text, message.types)
            yield replies.PARSE_COMPLETE
        else:
            self.bind(message)
            yield replies.BIND_COMPLETE

    def bind(self, message: Bind) -> None:
        """Makes a portal."""
        found = self._statement(message.statement)
        if len(message.values) != len(found.types):
            raise BindError(
                f"the statement has {len(found.types)} parameters, {len(message.values)} came",
                sqlstate="08P01",
            )
        strange = {*message.formats, *message.result_formats} - {encode.TEXT, encode.BINARY}
        if strange:
            raise BindError(f"there is no format {strange.pop()}", sqlstate="22023")
        formats = encode.column_formats(len(message.values), message.formats)
        texts = [
            parameter_text(value, oid, format_)
            for value, oid, format_ in zip(message.values, found.types, formats, strict=True)
        ]
        if message.portal and message.portal in self.portals:
            raise BindError(f"portal {message.portal} already exists", sqlstate="42P03")
        _check_room(self.portals, "portals")
        edited = bind(found.text, texts) if texts else None
        text = found.text if edited is None else edited.text
        promised = found.columns if found.is_described else None
        self.portals[message.portal] = Portal(
            text, message.result_formats, edited, promised, slots=found.slots, values=tuple(texts)
        )

    def describe_now(self, name: str) -> bytes | None:
        """The columns of a portal whose answer is known without work."""
        portal = self.portals.get(name)
        if portal is None or portal.outcome is not None or not self.is_plain:
            return None
        found = known_bytes(self.database, portal.text, portal.formats)
        if found is None or not _keeps(portal.promised, found.schema):
            return None
        portal.answer = found
        return found.columns

    def execute_now(self, name: str, limit: int) -> bytes | None:
        """The rows of a portal whose answer is known without work."""
        portal = self.portals.get(name)
        if portal is None or limit or (portal.answer is None and self.describe_now(name) is None):
            return None
        if portal.outcome is not None or portal.answer is None:
            return None
        portal.outcome = Outcome("SELECT", RowSource(pa.schema([]), iter(())))  # it has no more
        self.known = portal.text, portal.formats, portal.answer
        self.count_known(portal.answer)
        return portal.answer.rows

    def describe_statement(self, name: str) -> Sent:
        """The parameters and columns of a prepared statement."""
        found = self._statement(name)
        yield replies.parameter_description(found.types)
        if not found.is_described:
            found.columns = self._columns(found)
            found.is_described = True
        yield _described(found.columns, ())

    def describe_portal(self, name: str) -> Sent:
        """The columns of a portal; a query is run to know them."""
        portal = self._portal(name)
        script = scripts.read(portal.text, spelled) if portal.slots is None else ()
        if portal.slots or (script and gives_rows(self.database.parsed(script[0]))):
            outcome = self.open_portal(portal)
            yield _described(None if outcome.rows is None else outcome.rows.schema, portal.formats)
        else:
            yield replies.NO_DATA

    def execute(self, name: str, limit: int) -> Sent:
        """Runs a portal, or sends more of its rows."""
        portal = self._portal(name)
        if portal.slots is None and not scripts.read(portal.text, spelled):
            yield replies.EMPTY_QUERY
            return
        outcome = self.open_portal(portal)
        if outcome.rows is None or outcome.copy is not None:
            yield from self._sent(outcome, portal.formats)
            return
        yield from map(replies.notice, outcome.notices)
        outcome.notices.clear()
        count = 0
        for part in outcome.rows.parts(limit):
            self.cancellation.check()
            count += part.num_rows
            self.counts.rows_out += part.num_rows
            yield encode.data_rows(part, portal.formats)
        if limit and count >= limit:
            yield replies.PORTAL_SUSPENDED
        else:
            yield replies.complete(_tag(outcome, count))

    def close(self, kind: str, name: str) -> None:
        """Forgets a statement or a portal; unknown names are no error."""
        if kind == "S":
            self.prepared.pop(name, None)
        else:
            self.portals.pop(name, None)

    def sync(self) -> None:
        """The end of a series: outside of a transaction, portals end with it."""
        if not self.transaction.is_open:
            self._end_portals()

    def _end_portals(self) -> None:
        """Portals end with their transaction, but for cursors WITH HOLD."""
        self.portals = {name: portal for name, portal in self.portals.items() if portal.holds}

    def _statement(self, name: str) -> Prepared:
        found = self.prepared.get(name)
        if found is None:
            raise BindError(f"prepared statement {name} does not exist", sqlstate="26000")
        return found

    def _portal(self, name: str) -> Portal:
        found = self.portals.get(name)
        if found is None:
            raise BindError(f"portal {name} does not exist", sqlstate="34000")
        return found

    def open_portal(self, portal: Portal) -> Outcome:
        if portal.outcome is None:
            try:
                outcome = self._scanned(portal)
                if outcome is None:
                    outcome = self._run(scripts.read(portal.text, spelled)[0], portal.text)
                if outcome.rows is not None and portal.promised is not None:
                    outcome.rows = outcome.rows.promised(portal.promised)
                portal.outcome = outcome
            except Error as error:
                self.transaction.fail()
                raise _of_portal(error, portal) from None
        return portal.outcome

    def _columns(self, found: Prepared) -> pa.Schema | None:
        """The columns of a statement, without values for its parameters."""
        samples = [sample(oid) for oid in found.types]
        script = scripts.read(bind(found.text, samples).text if samples else found.text, spelled)
        statement = self.database.parsed(script[0]) if script else None
        if statement is None or not gives_rows(statement) or isinstance(statement, s.Call):
            return None
        if isinstance(statement, s.Subscribe):
            self.database.authorise(statement, self.role)
            schema, results = self.database.follow(statement, Cancellation(), self.role)
            cast("Callable[[], None]", results.close)()  # type: ignore[attr-defined]
            return schema
        if self.catalog.wants(script[0]):
            return self.catalog.described(script[0])
        if isinstance(statement, s.Query):
            self.database.authorise(statement, self.role)
            return self.database.columns(script[0], self.cancellation, self.role)
        outcome = self._outcome(script[0], statement, "")
        return None if outcome.rows is None else outcome.rows.schema

    # Running

    def _run(self, asked: Asked, whole: str) -> Outcome:
        """One statement, within the rules of the transaction; `whole`: the text that is all of it."""
        self.cancellation.check()
        _ = self.role  # a user who was dropped runs nothing more
        self.counts.statements += 1
        statement = self.database.parsed(asked)
        ended = self._transaction_statement(statement)
        if ended is not None:
            return ended
        warnings = list(self.transaction.check(statement))
        outcome = self._outcome(asked, statement, whole)
        outcome.notices = [*warnings, *outcome.notices]
        self.counts.rows_in += (outcome.count or 0) if outcome.tag == "INSERT" else 0
        return outcome

    def _scanned(self, portal: Portal) -> Outcome | None:
        """The rows of a plain scan that takes values; None for everything else, which is read with them."""
        if portal.slots is None or self.transaction.status == "E":
            return None
        self.cancellation.check()
        commands = self.commands
        caller = Caller(self.role, commands.user, commands.statement_timeout_s)
        result = self.database.scan_with_values(
            portal.slots, portal.values, self.cancellation, caller
        )
        if result is None:
            return None
        self.counts.statements += 1
        return _outcome_of(result)

    def _outcome(self, asked: Asked, statement: s.Statement, whole: str) -> Outcome:
        command = self.commands.run(self, asked, statement)
        if command is not None:
            return command
        if isinstance(statement, s.Copy):
            return self._copy(asked, statement)
        if isinstance(statement, s.Subscribe):
            self.database.authorise(statement, self.role)
            schema, pieces = self.database.follow(statement, self.cancellation, self.role)
            return Outcome("SUBSCRIBE", RowSource(schema, pieces))
        if isinstance(statement, s.Insert) and self.transaction.is_open:
            self.database.authorise(statement, self.role)
            table, rows = self.database.held_insert(statement, self.cancellation, self.role)
            return self._hold(table, rows, "INSERT")
        if not isinstance(statement, s.Query):
            return _outcome_of(self._statement_result(asked))
        if self.catalog.wants(asked):
            rows = self.catalog.run(asked, self.commands, self.cancellation)
            return Outcome("SELECT", of_table(rows))
        result = self._statement_result(asked)
        if whole:
            self.database.share_answer(asked, whole)
        return _outcome_of(result)

    def _statement_result(self, asked: str | Asked) -> Result:
        return self.database.statement(
            asked,
            self.cancellation,
            self.role,
            user=self.commands.user,
            limit_s=self.commands.statement_timeout_s,
        )

    def _hold(self, table: str, rows: pa.Table, tag: str) -> Outcome:
        self.database.check_together(dict.fromkeys([*self.transaction.tables, table]))
        self.transaction.hold(table, rows)
        return Outcome(tag, count=rows.num_rows)

    def _transaction_statement(self, statement: s.Statement) -> Outcome | None:
        """BEGIN, COMMIT, ROLLBACK and savepoints; None for everything else."""
        transaction = self.transaction
        match statement:
            case s.Begin():
                warning = transaction.begin()
                return Outcome("BEGIN", notices=[] if warning is None else [warning])
            case s.Commit():
                return self._commit()
            case s.RollbackToSavepoint(name=name):
                transaction.return_to(name.key)
                return Outcome("ROLLBACK")
            case s.Rollback():
                notices = [] if transaction.is_open else ["there is no transaction in progress"]
                transaction.end()
                self._end_portals()
                return Outcome("ROLLBACK", notices=notices)
            case s.Savepoint(name=name):
                list(transaction.check(statement))
                transaction.save(name.key)
                return Outcome("SAVEPOINT")
            case s.ReleaseSavepoint(name=name):
                list(transaction.check(statement))
                transaction.release(name.key)
                return Outcome("RELEASE")
        return None

    def _commit(self) -> Outcome:
        failed, held = self.status == "E", self.transaction.held()
        notices = [] if self.transaction.is_open else ["there is no transaction in progress"]
        self.transaction.end()
        self._end_portals()
        if failed:
            return Outcome("ROLLBACK")
        if held:
            self.database.insert_together(held)
        return Outcome("COMMIT", notices=notices)

    # Sending

    def _sent(self, outcome: Outcome, formats: Sequence[int]) -> Sent:
        """Everything that a statement sends."""
        yield from map(replies.notice, outcome.notices)
        if outcome.messages:
            yield outcome.messages
        if outcome.incoming is not None:
            yield outcome.incoming
            yield replies.complete(f"COPY {self._take_in(outcome.incoming)}")
        elif outcome.copy is not None:
            yield from self._copied(outcome)
        elif outcome.rows is None:
            yield replies.complete(_tag(outcome, outcome.count))
        else:
            yield replies.row_description(encode.fields_of(outcome.rows.schema, formats))
            count = 0
            for part in outcome.rows.parts():
                self.cancellation.check()
                count += part.num_rows
                self.counts.rows_out += part.num_rows
                yield encode.data_rows(part, formats)
            yield replies.complete(_tag(outcome, count))

    # COPY

    def _copy(self, asked: Asked, statement: s.Copy) -> Outcome:
        self.database.authorise(statement, self.role)
        if statement.path is not None:
            if statement.direction == "from" and self.transaction.is_open:
                raise NotSupportedError(
                    "COPY FROM a file cannot wait for COMMIT, so it is refused in a transaction",
                    hint="COPY … FROM STDIN can wait; or COMMIT first",
                )
            return _outcome_of(self._statement_result(asked))
        if statement.direction == "from":
            return Outcome("COPY", incoming=self._incoming(statement))
        if statement.format == "parquet":
            raise NotSupportedError("COPY … TO STDOUT writes text and CSV", hint="CSV or TEXT")
        return Outcome("COPY", self._copy_rows(statement), copy=statement)

    def _copy_rows(self, statement: s.Copy) -> RowSource:
        """The rows of COPY … TO STDOUT."""
        subject = statement.query
        if isinstance(subject, s.Subscribe):
            return RowSource(*self.database.follow(subject, self.cancellation, self.role))
        if subject is None:
            assert statement.table is not None
            names = ", ".join(map(quoted, statement.columns)) if statement.columns else "*"
            subject = make_query(f"SELECT {names} FROM {quoted(statement.table)}")
        assert isinstance(subject, s.Query)
        try:
            return of_table(self._statement_result(subject.text).arrow())
        except Error as error:
            if error.place is not None and error.place.text == subject.text and subject.offset:
                span = Span(error.place.start, error.place.end).shifted(subject.offset)
                error.place = span.place(statement.text)
            raise

    def _copied(self, outcome: Outcome) -> Sent:
        rows, statement = outcome.rows, outcome.copy
        assert rows is not None
        assert statement is not None
        yield replies.copy_out(len(rows.schema))
        yield copying.out_header(statement, rows.schema.names)
        count = 0
        for part in rows.parts():
            self.cancellation.check()
            count += part.num_rows
            self.counts.rows_out += part.num_rows
            yield copying.out_rows(statement, part)
        yield replies.COPY_DONE + replies.complete(f"COPY {count}")

    def _incoming(self, statement: s.Copy) -> IncomingRows:
        assert statement.table is not None
        schema = self.catalog.columns(str(statement.table)) or pa.schema([])
        self.database.checked_rows(str(statement.table), schema.empty_table())  # or why not
        if statement.columns is not None:
            schema = pa.schema([_column(schema, name) for name in statement.columns])
        megabytes = int(self.database.setting("copy_mb"))
        return IncomingRows(statement, schema, megabytes << 20)

    def _take_in(self, incoming: IncomingRows) -> int:
        """Adds the rows of a COPY, or holds them back; how many."""
        if incoming.failure is not None:
            raise incoming.failure
        table = str(incoming.statement.table)
        rows = self.database.checked_rows(table, incoming.rows())
        self.counts.rows_in += rows.num_rows
        if self.transaction.is_open:
            return self._hold(table, rows, "COPY").count or 0
        self.database.insert(table, rows)
        return rows.num_rows


def _admin() -> Role:
    """Whoever comes while there are no users."""
    return "admin"


def _of_portal(error: Error, portal: Portal) -> Error:
    """The error with its place in the text that was prepared."""
    if error.place is None:
        return error
    asked, bound = scripts.read(portal.text, spelled)[0], portal.edited
    if bound is None:
        return _moved(error, asked.text, portal.text, asked.original_position)

    def place(position: int) -> int:
        return bound.original_position(asked.original_position(position))

    return _moved(error, asked.text, bound.original, place)


def _column(schema: pa.Schema, name: str) -> pa.Field[pa.DataType]:
    for column in schema:
        if column.name.casefold() == name.casefold():
            return column
    raise BindError(f"column {name} does not exist", sqlstate="42703")


def _check_room(names: dict[str, Prepared] | dict[str, Portal], what: str) -> None:
    if len(names) >= MOST_STATEMENTS:
        raise BindError(
            f"a session has at most {MOST_STATEMENTS} {what}",
            sqlstate="53400",
            hint="close some; DEALLOCATE ALL closes all prepared statements",
        )


def _keeps(promised: pa.Schema | None, schema: pa.Schema) -> bool:
    """Whether columns are of the types that a client was told of."""
    return promised is None or promised.types == schema.types


def _described(schema: pa.Schema | None, formats: Sequence[int]) -> bytes:
    if schema is None:
        return replies.NO_DATA
    return replies.row_description(encode.fields_of(schema, formats))


def _outcome_of(result: Result) -> Outcome:
    notices = [result.notice] if result.notice else []
    rows = of_table(result.arrow()) if result.has_rows else None
    return Outcome(result.kind, rows, result.row_count, notices)


def _tag(outcome: Outcome, count: int | None) -> str:
    if outcome.tag == "INSERT":
        return f"INSERT 0 {count or 0}"
    return f"{outcome.tag} {count or 0}" if outcome.tag in COUNTED else outcome.tag


def _moved(error: Error, piece: str, whole: str, place: Callable[[int], int]) -> Error:
    """The error with its place in the text that the client sent."""
    found = error.place
    if found is not None and found.text.strip() == piece.strip():
        error.place = Span(place(found.start), place(found.end)).place(whole)
    return error
