"""Who is at the other end of a connection: its address and, on this machine, the OS user that it belongs to.

Owns the rule about who needs no password where there are no users. The credentials of a Unix socket are read
here, the owner of a loopback connection is looked up in `owners`. Must never guess: None is nobody.
"""

from __future__ import annotations

import os
import socket
import struct
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_network

from headwater.errors import AccessError
from headwater.server.owners import ESTABLISHED, Endpoint, owner_of_end, plain

ROOT = 0
CREDENTIALS = struct.Struct("iII")  # struct ucred: process, user, group
HOME_BITS = 64  # of an IPv6 address: what one subscriber has to choose from


@dataclass(frozen=True)
class Peer:
    """The other end of a connection."""

    address: str  # nothing for a Unix socket
    uid: int | None = None  # the OS user that it belongs to, if that was asked for and can be told

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine."""
        return is_local(self.address)

    @property
    def is_own(self) -> bool:
        """Whether it belongs to the OS user that this process runs as, or to root, who can be anybody."""
        return self.uid is not None and self.uid in (os.geteuid(), ROOT)


def peer_of(connection: socket.socket, *, with_user: bool) -> Peer:
    """The other end of a connection; to be asked for when it has just been accepted."""
    if connection.family == socket.AF_UNIX:
        return Peer("", _user_of_unix(connection) if with_user else None)
    try:
        address, port = connection.getpeername()[:2]
        own_address, own_port = connection.getsockname()[:2]
    except OSError:
        return Peer("gone")  # no address is like this: nobody is trusted
    if not with_user or not is_local(address):
        return Peer(address)
    return Peer(address, _user_of_tcp(connection, (address, port), (own_address, own_port)))


def is_local(address: str) -> bool:
    """Whether an address is this machine's alone; that of a Unix socket is nothing."""
    try:
        return not address or plain(address).is_loopback
    except ValueError:
        return False


def neighbourhood(address: str) -> str:
    """What counts as one place: an IPv4 address, or the 64 bits of IPv6 that one subscriber has."""
    try:
        found = plain(address)
    except ValueError:
        return address
    if isinstance(found, IPv4Address) or found.is_loopback:
        return str(found)
    return str(ip_network((found, HOME_BITS), strict=False))


def refusal(peer: Peer) -> AccessError:
    """Why somebody does not get in where there are no users."""
    make = "CREATE USER me PASSWORD '…' ROLE ADMIN as the OS user of the server, or --password-file"
    if not peer.is_local:
        text = "there are no users, and only connections from this machine are trusted"
        return AccessError(text, sqlstate="28000", hint=make)
    if peer.uid is None:
        text = "there are no users, and this machine does not tell whose connection this is"
        hint = f"use the Unix socket, or headwater serve --trust-loopback; {make}"
        return AccessError(text, sqlstate="28000", hint=hint)
    return AccessError(
        "there are no users, and only the OS user of the server comes in without a password",
        sqlstate="28000",
        detail=f"this connection belongs to the OS user with number {peer.uid}",
        hint=make,
    )


def _user_of_tcp(connection: socket.socket, client: Endpoint, server: Endpoint) -> int | None:
    found = owner_of_end(client, server) if _is_established(connection) else None
    # As long as our end stands, no other connection can have had these two addresses.
    return found if _is_established(connection) else None


def _is_established(connection: socket.socket) -> bool:
    if not hasattr(socket, "TCP_INFO"):
        return False
    try:
        state = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    except OSError:
        return False
    return state == ESTABLISHED


def _user_of_unix(connection: socket.socket) -> int | None:
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    try:
        found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    except OSError:
        return None
    _process, user, _group = CREDENTIALS.unpack(found)
    return int(user)
