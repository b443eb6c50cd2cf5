"""A series of messages that came before is answered by the bytes that answered it before.

Clients that ask for a view again and again send the same bytes: one Query, or Bind, Describe, Execute and
Sync. Once such a series was answered without work (`Session.known`), the next one that is equal byte for byte
needs no reading of messages: it is compared, its answer is looked up in the one cache of answers, and the
same reply goes out. Owns the last few series of one connection; how long an answer is good is the cache's to
say. Must never repeat a reply whose answer, prepared statement or promised columns are not those that it was
made of: then the messages are read one by one, as ever.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headwater.server.wire import messages as m
from headwater.server.wire import replies
from headwater.server.wire.answers import Encoded, known_bytes
from headwater.server.wire.machine import Machine
from headwater.server.wire.outcome import Prepared
from headwater.server.wire.session import Session

MOST_SERIES = 4
LONGEST_SERIES = 8 << 10  # bytes
LARGEST_REPLY = 64 << 10  # bytes; larger ones are not kept with every connection
_READY = replies.ready("I")  # known answers are for sessions outside of transactions


@dataclass(frozen=True, slots=True)
class _Repeat:
    """One series, its reply, and what the reply was made of."""

    sent: bytes
    reply: bytes
    text: str
    formats: tuple[int, ...]
    answer: Encoded
    parsed: m.Parse | None = None  # the unnamed statement that the series makes
    name: str = ""  # or the one that it uses
    statement: Prepared | None = None
    promised: pa.Schema | None = None
    statements: int = 1  # how often the series executes it


class Repeats:
    """The series of one connection that may come again."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: list[_Repeat] = []
        self._sent: bytes | None = None  # the series under way, if it may be remembered

    def answered(self, machine: Machine) -> bool:
        """Between two series: whether the next one was answered, because it is known."""
        session = self._session
        if session.known is not None:
            self._remember(session.known)
            session.known = None
        for repeat in self._known:
            if machine.starts_with(repeat.sent):
                if self._is_valid(repeat):
                    self._effects(repeat)
                    session.count_known(repeat.answer, repeat.statements)
                    machine.repeat(len(repeat.sent), repeat.reply)
                    return True
                self._known.remove(repeat)
                break
        self._sent = machine.upcoming(LONGEST_SERIES)
        return False

    def _is_valid(self, repeat: _Repeat) -> bool:
        session, statement = self._session, repeat.statement
        if not session.is_plain:
            return False
        if statement is not None and (
            session.prepared.get(repeat.name) is not statement
            or statement.columns is not repeat.promised
        ):
            return False
        return known_bytes(session.database, repeat.text, repeat.formats) is repeat.answer

    def _effects(self, repeat: _Repeat) -> None:
        """What the messages of a series leave behind in the session."""
        parsed = repeat.parsed
        if parsed is not None:
            self._session.prepared[""] = Prepared(parsed.text, parsed.types)
        if parsed is not None or repeat.statement is not None:
            self._session.sync()

    def _remember(self, known: tuple[str, tuple[int, ...], Encoded]) -> None:
        """Keeps the series that has just ended, if its shape is one of those that come again."""
        sent, self._sent = self._sent, None
        repeat = None if sent is None else self._made(sent, known)
        if repeat is not None and len(repeat.reply) <= LARGEST_REPLY:
            self._known = [repeat, *self._known[: MOST_SERIES - 1]]

    def _made(self, sent: bytes, known: tuple[str, tuple[int, ...], Encoded]) -> _Repeat | None:
        answer = known[2]
        match m.read_all(sent):
            case [m.QueryMessage()]:
                return _Repeat(sent, answer.columns + answer.rows + _READY, *known)
            case [m.Parse("", text, ()) as parse, m.Bind("", "") as bind, *rest] if "$" not in text:
                reply = _reply([bind, *rest], answer)
                whole = replies.PARSE_COMPLETE + (reply or b"")
                times = _executed(rest)
                if reply is None:
                    return None
                return _Repeat(sent, whole, *known, parsed=parse, statements=times)
            case [m.Bind("", name), *_] as series:
                reply, found = _reply(series, answer), self._session.prepared.get(name)
                if reply is None or found is None:
                    return None
                times = _executed(series)
                return _Repeat(sent, reply, *known, None, name, found, found.columns, times)
        return None


def _executed(series: list[m.Message]) -> int:
    return sum(isinstance(message, m.Execute) for message in series)


def _reply(series: list[m.Message], answer: Encoded) -> bytes | None:
    """What answers Bind, maybe Describe, and Execute, once or several times alike, and a Sync."""
    *asked, last = series
    described = asked[1:2] == [m.DescribeMessage("P", "")]
    size = 3 if described else 2
    count = len(asked) // size
    if asked[size - 1 : size] != [m.Execute("", 0)] or asked != asked[:size] * count:
        return None
    if last != m.Sync():
        return None
    one = replies.BIND_COMPLETE + (answer.columns if described else b"") + answer.rows
    return one * count + _READY
