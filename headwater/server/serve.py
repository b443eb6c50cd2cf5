"""One process, one event loop, several listeners: what `headwater serve` runs.

Owns the order of starting and stopping, and the rule about listening beyond this machine. A listener is
anything with `start`, `stop` and `address`.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Protocol, cast

from headwater.errors import SettingError

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Listener(Protocol):
    """Something that clients connect to."""

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""

    async def start(self) -> None:
        """Listens; raises OSError if the port is taken."""

    async def stop(self) -> None:
        """Takes no more clients, lets what they have under way end for a while, and ends them."""


def address_of(server: asyncio.Server | None) -> tuple[str, int]:
    """Where a server that was started listens."""
    assert server is not None
    return cast("tuple[str, int]", server.sockets[0].getsockname()[:2])


def check_reach(host: str, *, users: int, tls: bool, insecure: bool) -> None:
    """Refuses to listen beyond this machine without passwords and TLS, unless told to."""
    if insecure or is_loopback(host):
        return
    wanted = (("no users with passwords", users), ("no TLS", tls))
    missing = [word for word, there in wanted if not there]
    if missing:
        raise SettingError(
            f"{host} can be reached from other machines, and the server has {' and '.join(missing)}",
            sqlstate="28000",
            hint="--tls-certificate, --tls-key and --password-file; or --insecure in a trusted network",
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address; every address of a name counts."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise SettingError(f"host {host} is not known", detail=str(error)) from error
    return all(ip_address(entry[4][0]).is_loopback for entry in found)


def tls_context(certificate: Path, key: Path | None) -> ssl.SSLContext:
    """TLS 1.2 or newer with a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise SettingError(
            f"the certificate {certificate} cannot be used", detail=str(error)
        ) from error
    return context


async def serve(
    listeners: Sequence[Listener], started: Callable[[], None], stopping: Callable[[], None]
) -> None:
    """Runs the listeners until SIGINT or SIGTERM, then stops all at once; a second signal does not wait."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stopped.set)
    running: list[Listener] = []
    try:
        for listener in listeners:
            await listener.start()
            running.append(listener)
        started()
        await stopped.wait()
        stopping()
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)
    finally:
        await asyncio.gather(*(listener.stop() for listener in running))
