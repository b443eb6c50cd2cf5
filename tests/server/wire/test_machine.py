"""The protocol machine: every message in every state, whole conversations, and 50 000 fuzzed messages."""

from __future__ import annotations

import random

import pytest

from headwater.errors import BindError
from headwater.server.wire import machine as actions
from headwater.server.wire import messages as m
from headwater.server.wire import replies
from headwater.server.wire.machine import Machine
from headwater.server.wire.scram import make_verifier
from headwater.server.wire.states import TABLE, Reaction, State
from tests.server.frontend import ScramClient, encoded, error_fields, kinds, replies_of

MEBIBYTE = 1 << 20
STARTUP = m.Startup(3, 0, {"user": "me"})
VERIFIER = make_verifier("pencil", b"0123456789abcdef")
EXAMPLES: dict[type[m.Message], m.Message] = {
    type(message): message
    for message in (
        STARTUP, m.SslRequest(), m.GssRequest(), m.CancelRequest(7, b"abcd"),
        m.Password(b"x"), m.QueryMessage("SELECT 1"), m.Parse("", "SELECT 1", ()),
        m.Bind("", "", (), (), ()), m.DescribeMessage("P", ""), m.Execute("", 0), m.Close("S", "a"),
        m.FlushMessage(), m.Sync(), m.FunctionCall(), m.CopyData(b"1\n"), m.CopyDone(),
        m.CopyFail("enough"), m.Terminate(),
    )
}  # fmt: skip
UNTYPED = (m.Startup, m.SslRequest, m.GssRequest, m.CancelRequest)


def send(machine: Machine, *given: m.Message) -> actions.Action | None:
    """Sends messages; the first action that comes of them."""
    machine.feed(b"".join(map(encoded, given)))
    return machine.next()


def in_state(state: State) -> Machine:
    """A machine that a client has brought into a state, with nothing waiting to be sent."""
    machine = Machine(MEBIBYTE)
    if state is State.STARTUP:
        return machine
    send(machine, STARTUP)
    if state in (State.FIRST, State.FINAL):
        machine.challenge(VERIFIER, "servernonce")
        if state is State.FINAL:
            send(machine, m.Password(ScramClient("pencil").first()))
    elif state is not State.LOOKUP:
        machine.welcome({"TimeZone": "UTC"}, 7, b"abcd")
        _bring(machine, state)
    assert machine.state is state
    machine.taken_output()
    return machine


def _bring(machine: Machine, state: State) -> None:
    if state is State.SKIPPING:
        send(machine, m.Parse("", "SELEC", ()))
        machine.fail(BindError("no"), "I")
    elif state is State.ENDED:
        machine.end(None)
    elif state is not State.READY:
        send(machine, m.QueryMessage("COPY t FROM STDIN"))
        if state is State.STREAMING:
            machine.streams()
        elif state is State.COPY_IN:
            machine.copy_rows(b"")


def test_the_table_has_every_cell() -> None:
    """Every message has a reaction in every state; only messages without a first byte may be out."""
    assert set(TABLE) == set(State)
    for state in State:
        assert set(TABLE[state]) == set(EXAMPLES)
        never = {kind for kind, found in TABLE[state].items() if found is Reaction.NEVER}
        expected = set(EXAMPLES) - set(UNTYPED) if state is State.STARTUP else set(UNTYPED)
        assert never == expected


COPYING = (m.CopyData, m.CopyDone, m.CopyFail)
BUSY = (State.LOOKUP, State.WORKING, State.STREAMING)


def ruled(state: State, kind: type[m.Message]) -> Reaction:
    """What the protocol asks for, in the words of PostgreSQL's manual ("Message Flow")."""
    if state is State.STARTUP or kind in UNTYPED:
        return Reaction.TAKE if state is State.STARTUP and kind in UNTYPED else Reaction.NEVER
    if state is State.ENDED:
        return Reaction.SKIP
    if kind is m.Terminate:
        return Reaction.LEAVE
    if state in BUSY:
        return Reaction.WAIT
    if kind is m.Password or state in (State.FIRST, State.FINAL):
        due = kind is m.Password and state in (State.FIRST, State.FINAL)
        return Reaction.TAKE if due else Reaction.END
    if state is State.SKIPPING:
        return Reaction.TAKE if kind is m.Sync else Reaction.SKIP
    if state is State.COPY_IN and kind not in COPYING:
        return Reaction.SKIP if kind in (m.FlushMessage, m.Sync) else Reaction.REFUSE
    if state is State.READY and kind in COPYING:
        return Reaction.SKIP  # the rest of a COPY that has failed
    return Reaction.REFUSE if kind is m.FunctionCall else Reaction.TAKE


def test_the_table_is_the_protocols() -> None:
    """Each cell is what the rules of the protocol, written down a second time, ask for."""
    for state in State:
        for kind in EXAMPLES:
            assert TABLE[state][kind] is ruled(state, kind), (state, kind)


@pytest.mark.parametrize("state", State, ids=lambda state: state.value)
def test_every_message_in_every_state(state: State) -> None:
    """The machine does to each message what the table says, seen from outside."""
    for kind in EXAMPLES:
        _check_cell(state, kind)


def _check_cell(state: State, kind: type[m.Message]) -> None:
    machine = in_state(state)
    reaction = TABLE[state][kind]
    action = send(machine, EXAMPLES[kind])
    output = machine.taken_output()
    if reaction is Reaction.NEVER:
        _check_never(machine, state, action, output)
    elif reaction is Reaction.WAIT:
        assert (action, output, machine.state) == (None, b"", state)
        assert machine.waiting == len(encoded(EXAMPLES[kind]))
    elif reaction is Reaction.SKIP:
        assert (action, output, machine.state, machine.waiting) == (None, b"", state, 0)
    elif reaction is Reaction.LEAVE:
        assert (action, output, machine.state) == (actions.End(), b"", State.ENDED)
    elif reaction is Reaction.END:
        assert isinstance(action, actions.End)
        [(letter, body)] = replies_of(output)
        fields = error_fields(body)
        assert (letter, fields["S"], fields["C"]) == ("E", "FATAL", "08P01")
    elif reaction is Reaction.REFUSE:
        _check_refused(machine, state, kind, action, output)
    else:
        _check_taken(machine, state, EXAMPLES[kind], action, output)


def _check_never(
    machine: Machine, state: State, action: actions.Action | None, output: bytes
) -> None:
    """Bytes of a message that cannot be read here end the connection, or wait to be read."""
    if machine.state is State.ENDED and state is not State.ENDED:
        assert kinds(output) == "E"
    else:
        assert action is None
        assert output == b""


def _check_refused(
    machine: Machine,
    state: State,
    kind: type[m.Message],
    action: actions.Action | None,
    output: bytes,
) -> None:
    if state is State.COPY_IN:
        assert isinstance(action, m.CopyFail)
        assert kind.__name__.removesuffix("Message") in action.reason
        machine.fail(BindError(action.reason), "E")
        assert kinds(machine.taken_output()) == "EZ"
    else:
        assert action == m.Sync()
        assert kinds(output) == "E"
        machine.done("I", synced=True)
        assert machine.taken_output() == replies.ready("I")
    assert machine.state is State.READY


def _check_taken(
    machine: Machine,
    state: State,
    message: m.Message,
    action: actions.Action | None,
    output: bytes,
) -> None:
    if isinstance(message, m.SslRequest | m.GssRequest):
        assert (action, output, machine.state) == (None, b"N", State.STARTUP)
    elif isinstance(message, m.CancelRequest):
        assert action == actions.CancelOther(7, b"abcd")
        assert machine.state is State.ENDED
    elif isinstance(message, m.Startup):
        assert action == actions.LogIn("me", {"user": "me"})
        assert machine.state is State.LOOKUP
    elif isinstance(message, m.Password):
        assert isinstance(action, actions.End)  # it made no sense
        assert kinds(output) == "E"
    elif isinstance(message, m.FlushMessage):
        assert (action, output, machine.state) == (None, b"", State.READY)
    else:
        assert action == message
        assert machine.state is State.WORKING


def test_logging_in() -> None:
    """The right password comes in, the wrong one gets 28P01; neither is told before the driver says so."""
    for password in ("pencil", "pen"):
        machine, client = in_state(State.FIRST), ScramClient(password)
        send(machine, m.Password(client.first()))
        [(_, body)] = replies_of(machine.taken_output())
        action = send(machine, m.Password(client.final(body[4:])))
        assert (machine.state, machine.taken_output()) == (State.LOOKUP, b"")
        if password == "pencil":
            assert action == actions.LoggedIn()
            machine.welcome({"TimeZone": "UTC"}, 7, b"abcd")
            assert kinds(machine.taken_output()) == "RRSKZ"
        else:
            assert isinstance(action, actions.LoginFailed)
            machine.end(action.error)
            [(_, body)] = replies_of(machine.taken_output())
            assert error_fields(body)["C"] == "28P01"


def test_nothing_large_is_taken_of_a_stranger() -> None:
    """Before the login a message is small or the connection ends, at its head; afterwards it may be large."""
    head = b"Q" + (1 << 20).to_bytes(4)
    machine = in_state(State.FIRST)
    machine.feed(head)
    assert machine.next() == actions.End()
    [(_, body)] = replies_of(machine.taken_output())
    assert error_fields(body)["C"] == "08P01"
    machine = in_state(State.READY)
    machine.feed(head)
    assert machine.next() is None
    assert machine.state is State.READY


def test_tls_is_offered_once_and_nothing_may_come_before_it() -> None:
    """S where TLS is there, then N; plain bytes behind the request end the connection."""
    machine = Machine(MEBIBYTE, tls=True)
    assert send(machine, m.SslRequest()) == actions.StartTls()
    assert machine.taken_output() == replies.TLS
    machine.tls_started()
    assert send(machine, m.SslRequest()) is None
    assert machine.taken_output() == replies.NO_TLS
    hasty = Machine(MEBIBYTE, tls=True)
    assert send(hasty, m.SslRequest(), STARTUP) == actions.End()
    assert kinds(hasty.taken_output()) == "E"


@pytest.mark.parametrize(
    ("startup", "sent"),
    [
        (m.Startup(2, 0, {"user": "me"}), "E"),
        (m.Startup(3, 0, {}), "E"),
        (m.Startup(3, 2, {"user": "me"}), "v"),
        (m.Startup(3, 0, {"user": "me", "_pq_.x": "1"}), "v"),
    ],
)
def test_startup_messages(startup: m.Startup, sent: str) -> None:
    """Other protocols and a missing user are refused; newer minor versions are negotiated."""
    machine = Machine(MEBIBYTE)
    send(machine, startup)
    assert kinds(machine.taken_output()) == sent


def test_an_error_in_a_series_skips_to_sync() -> None:
    """After an error in the extended protocol nothing is answered until Sync, which is."""
    machine = in_state(State.READY)
    series = [m.Parse("", "x", ()), m.Bind("", "", (), (), ()), m.Execute("", 0), m.Sync()]
    assert send(machine, *series) == series[0]
    machine.fail(BindError("no such table", sqlstate="42P01"), "E")
    assert machine.next() == m.Sync()
    machine.done("E", synced=True)
    assert kinds(machine.taken_output()) == "EZ"
    assert machine.state is State.READY


def test_copy_in_by_the_extended_protocol() -> None:
    """Sync and Flush between the rows of a COPY are passed over; an error skips to Sync."""
    machine = in_state(State.READY)
    send(machine, m.Execute("", 0), m.Sync(), m.FlushMessage(), m.CopyData(b"1\n"))
    machine.copy_rows(b"")
    assert machine.next() == m.CopyData(b"1\n")
    machine.copy_rows(b"")
    assert send(machine, m.CopyFail("enough")) == m.CopyFail("enough")
    machine.fail(BindError("enough"), "I")
    assert machine.state is State.SKIPPING


def test_an_ended_machine_stays_so() -> None:
    """What the work under way still reports after the client has left changes nothing."""
    machine = in_state(State.WORKING)
    machine.end(None)
    machine.done("I")
    machine.fail(BindError("late"), "I")
    machine.copy_rows(b"x")
    machine.write(b"x")
    assert (machine.state, machine.taken_output(), machine.next()) == (State.ENDED, b"", None)


FUZZED = 50_000


def test_fuzzed_messages() -> None:
    """50 000 messages, right, mixed up or broken: no exception, no endless loop, whole replies."""
    chance = random.Random(20_261_116)
    sent = 0
    while sent < FUZZED:
        machine = in_state(chance.choice(list(State)))
        for _ in range(chance.randrange(1, 60)):
            machine.feed(_fuzzed(chance))
            sent += 1
            steps = 0
            while (action := machine.next()) is not None and steps < 1000:
                steps += 1
                _answer(machine, action, chance)
            assert steps < 1000
            output = machine.taken_output()
            if output.strip(b"N"):
                kinds(output.lstrip(b"N"))  # whole messages only
            if machine.state is State.ENDED:
                break
            if machine.is_busy and chance.random() < 0.5:
                machine.done("I")


def _fuzzed(chance: random.Random) -> bytes:
    data = bytearray(encoded(chance.choice(list(EXAMPLES.values()))))
    damage = chance.random()
    if damage < 0.1:
        data[chance.randrange(len(data))] = chance.randrange(256)
    elif damage < 0.15:
        del data[chance.randrange(len(data)) :]
    elif damage < 0.2:
        data += chance.randbytes(chance.randrange(1, 9))
    return bytes(data)


def _answer(machine: Machine, action: actions.Action, chance: random.Random) -> None:
    """What a server might report of an action, at random."""
    if isinstance(action, actions.LogIn):
        if chance.random() < 0.5:
            machine.challenge(VERIFIER, "servernonce")
        else:
            machine.welcome({"a": "b"}, 1, b"abcd")
    elif isinstance(action, actions.LoggedIn):
        machine.welcome({}, 1, b"abcd")
    elif isinstance(action, actions.LoginFailed):
        machine.end(action.error)
    elif isinstance(action, m.Sync):
        machine.done("I", synced=True)
    elif not isinstance(action, actions.End | actions.CancelOther):
        chance.choice(
            [
                lambda: machine.done("T"),
                lambda: machine.fail(BindError("no"), "E"),
                lambda: machine.copy_rows(replies.copy_in(2)),
                machine.streams,
            ]
        )()
