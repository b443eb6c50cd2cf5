"""Which message gets which answer in which state: the table of the wire protocol.

Owns the table and nothing else; `machine` acts by it and a test visits every cell.

    take   the message is acted on
    wait   it stays where it is until the work under way is done
    skip   it is dropped without an answer
    refuse an error is answered, and the session goes on
    end    an error is answered, and the connection ends
    leave  the connection ends without a word
    -      cannot occur: messages without a first byte are read in the state `startup` only
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from headwater.server.wire import messages as m


class State(Enum):
    """Where a connection is."""

    STARTUP = "startup"  # nothing has come, or TLS has just begun
    LOOKUP = "lookup"  # a user is being looked up, or TLS is being started
    FIRST = "first"  # the first message of SCRAM is due
    FINAL = "final"  # the proof is due
    READY = "ready"  # for a query, or in a series of the extended protocol
    WORKING = "working"  # a message is being acted on
    STREAMING = "streaming"  # rows go out: a large result, COPY TO STDOUT or SUBSCRIBE
    COPY_IN = "copy_in"  # rows come in
    SKIPPING = "skipping"  # after an error in the extended protocol, until Sync
    ENDED = "ended"


class Reaction(Enum):
    """What becomes of a message."""

    TAKE = "take"
    WAIT = "wait"
    SKIP = "skip"
    REFUSE = "refuse"
    END = "end"
    LEAVE = "leave"
    NEVER = "-"


GRID = """
                startup lookup first final ready  working streaming copy_in skipping ended
Startup         take    -      -     -     -      -       -         -       -        -
SslRequest      take    -      -     -     -      -       -         -       -        -
GssRequest      take    -      -     -     -      -       -         -       -        -
CancelRequest   take    -      -     -     -      -       -         -       -        -
Password        -       wait   take  take  end    wait    wait      end     end      skip
QueryMessage    -       wait   end   end   take   wait    wait      refuse  skip     skip
Parse           -       wait   end   end   take   wait    wait      refuse  skip     skip
Bind            -       wait   end   end   take   wait    wait      refuse  skip     skip
DescribeMessage -       wait   end   end   take   wait    wait      refuse  skip     skip
Execute         -       wait   end   end   take   wait    wait      refuse  skip     skip
Close           -       wait   end   end   take   wait    wait      refuse  skip     skip
FlushMessage    -       wait   end   end   take   wait    wait      skip    skip     skip
Sync            -       wait   end   end   take   wait    wait      skip    take     skip
FunctionCall    -       wait   end   end   refuse wait    wait      refuse  skip     skip
CopyData        -       wait   end   end   skip   wait    wait      take    skip     skip
CopyDone        -       wait   end   end   skip   wait    wait      take    skip     skip
CopyFail        -       wait   end   end   skip   wait    wait      take    skip     skip
Terminate       -       leave  leave leave leave  leave   leave     leave   leave    skip
"""


def _table() -> dict[State, Mapping[type[m.Message], Reaction]]:
    head, *lines = GRID.strip().splitlines()
    columns: dict[State, dict[type[m.Message], Reaction]] = {State(w): {} for w in head.split()}
    for line in lines:
        name, *cells = line.split()
        kind: type[m.Message] = getattr(m, name)
        for state, cell in zip(columns, cells, strict=True):
            columns[state][kind] = Reaction(cell)
    return {state: MappingProxyType(column) for state, column in columns.items()}


TABLE = MappingProxyType(_table())
