"""What runs in the Spark task of a factory: it connects to the driver, and is a host until the line ends."""

from __future__ import annotations

import os
import platform
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import headwater.pandas_later  # noqa: F401  (first: parts make arrays as they are loaded)

# isort: split
import pyarrow as pa

from headwater._version import __version__
from headwater.factories.frames import Frame, encoded, received
from headwater.factories.host import FactoryHost
from headwater.factories.line import Line

LINE_WORKERS = 4
SWITCH_S = 0.0005  # a read waits no longer than that for a fold that holds the interpreter


@dataclass(frozen=True)
class DriverAddress:
    """How a task finds the driver: a Unix socket on the same machine, else a port."""

    path: str | None
    host: str
    port: int
    secret: str


def versions() -> list[str]:
    """What both ends must have in common."""
    return [__version__, platform.python_version(), pa.__version__]


def run(address: DriverAddress, number: int, incarnation: int) -> Iterator[int]:
    """A factory, from its hello to the end of its line."""
    sys.setswitchinterval(SWITCH_S)
    connection = _connected(address)
    hello = {
        "kind": "hello",
        "number": number,
        "incarnation": incarnation,
        "secret": address.secret,
        "pid": os.getpid(),
        "versions": versions(),
    }
    for part in encoded(Frame(hello)):
        connection.sendall(part)
    welcome = received(connection)
    if welcome is not None and welcome.kind == "welcome":
        line = Line(connection, "the driver", LINE_WORKERS, lambda: None)
        host = FactoryHost(line, welcome.head)
        try:
            line.serve()
        finally:
            host.close()
    yield number


def _connected(address: DriverAddress) -> socket.socket:
    if address.path is not None and os.path.exists(address.path):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(address.path)
        return connection
    connection = socket.create_connection((address.host, address.port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection
