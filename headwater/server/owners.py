"""Whose socket is at the other end of a loopback connection: the kernel knows, in two ways.

Owns both. First a question about one connection is asked (sock_diag, netlink), which costs microseconds;
where that is not to be had, the table of all connections (/proc/net/tcp) is read, which grows with them. The
question and the answers are made and read by pure functions. Must never guess: None is nobody.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
ESTABLISHED = (
    1  # sockets in other states may belong to nobody any more, and are then shown as root's
)
ANSWER_S = 1.0
ANSWER_BYTES = 4096
SOCK_DIAG = 4  # the netlink protocol
BY_FAMILY = 20  # SOCK_DIAG_BY_FAMILY, the question and its answer
REQUEST = 1  # NLM_F_REQUEST
NO_COOKIE = b"\xff" * 8
HEAD = struct.Struct("=IHHII")  # struct nlmsghdr: length, type, flags, sequence, port
ASKED = struct.Struct("=BBBxI")  # struct inet_diag_req_v2: family, protocol, extensions, states
ENDS = struct.Struct("!HH16s16s")  # struct inet_diag_sockid: ports and addresses, local end first …
SCOPE = struct.Struct("=I8s")  # … the interface and the cookie
ANSWERED = struct.Struct("=BBxx")  # struct inet_diag_msg: family, state
NUMBERS = struct.Struct("=IIIII")  # … expires, two queues, the user, the inode
Endpoint = tuple[str, int]
Address = IPv4Address | IPv6Address


def owner_of_end(client: Endpoint, server: Endpoint) -> int | None:
    """The OS user whose socket is `client`'s end of a connection to `server`; None if nobody can tell."""
    answer = _asked_kernel(diag_request(client, server))
    if answer is not None:
        return owner_in_answer(answer, client, server)
    for path in TABLES:
        try:
            with path.open(encoding="ascii", errors="replace") as table:
                found = owner_in_table(table, client, server)
        except OSError:
            continue  # no such table on this machine
        if found is not None:
            return found
    return None


def plain(address: str) -> Address:
    """An address without its scope; one of IPv4 that was put into IPv6 is taken out."""
    found = ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return found if mapped is None else mapped


# One question


def diag_request(client: Endpoint, server: Endpoint) -> bytes:
    """The question for the socket at `client` that is connected to `server`."""
    near, far = plain(client[0]), plain(server[0])
    family = socket.AF_INET if near.version == 4 else socket.AF_INET6
    body = ASKED.pack(family, socket.IPPROTO_TCP, 0, 1 << ESTABLISHED)
    body += ENDS.pack(client[1], server[1], near.packed, far.packed) + SCOPE.pack(0, NO_COOKIE)
    return HEAD.pack(HEAD.size + len(body), BY_FAMILY, REQUEST, 1, 0) + body


def owner_in_answer(answer: bytes, client: Endpoint, server: Endpoint) -> int | None:
    """The OS user that an answer names; None where it is about no such connection."""
    size = HEAD.size + ANSWERED.size + ENDS.size + SCOPE.size + NUMBERS.size
    if len(answer) < size or HEAD.unpack_from(answer)[1] != BY_FAMILY:
        return None
    _family, state = ANSWERED.unpack_from(answer, HEAD.size)
    ends = ENDS.unpack_from(answer, HEAD.size + ANSWERED.size)
    near, far = plain(client[0]).packed, plain(server[0]).packed
    asked = ENDS.unpack(ENDS.pack(client[1], server[1], near, far))
    if state != ESTABLISHED or _ports_and_addresses(ends) != _ports_and_addresses(asked):
        return None
    numbers = NUMBERS.unpack_from(answer, size - NUMBERS.size)
    return int(numbers[3])


def _ports_and_addresses(ends: tuple[int, int, bytes, bytes]) -> tuple[int, int, bytes, bytes]:
    """With IPv4 addresses as the kernel writes them for a socket of either family."""
    return ends[0], ends[1], _without_prefix(ends[2]), _without_prefix(ends[3])


def _without_prefix(packed: bytes) -> bytes:
    mapped = b"\0" * 10 + b"\xff\xff"
    return packed[12:] + b"\0" * 12 if packed.startswith(mapped) else packed


def _asked_kernel(request: bytes) -> bytes | None:
    """The kernel's answer; None if it cannot be asked here."""
    if not hasattr(socket, "AF_NETLINK"):
        return None
    try:
        kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
        with socket.socket(socket.AF_NETLINK, kind, SOCK_DIAG) as kernel:
            kernel.settimeout(ANSWER_S)
            kernel.sendto(request, (0, 0))
            answer, sender = kernel.recvfrom(ANSWER_BYTES)
    except OSError:
        return None
    known = len(answer) >= HEAD.size and HEAD.unpack_from(answer)[1] == BY_FAMILY
    # Port 0 is the kernel. Errors say that there is no such connection, or no such question.
    return answer if known and sender[0] == 0 else None


# The table


def owner_in_table(
    table: Iterable[str], client: Endpoint, server: Endpoint, byte_order: str = sys.byteorder
) -> int | None:
    """The OS user of `client`'s end of a connection to `server`, in the text of /proc/net/tcp or tcp6."""
    near, far = _spellings(client, byte_order), _spellings(server, byte_order)
    for line in table:
        fields = line.split(maxsplit=10)
        if len(fields) < 10 or fields[1] not in near or fields[2] not in far:
            continue
        if fields[3] == f"{ESTABLISHED:02X}" and fields[7].isdecimal():
            return int(fields[7])
    return None


def _spellings(endpoint: Endpoint, byte_order: str) -> frozenset[str]:
    """An address and port as the tables write it; IPv4 may stand in the table of IPv6 too."""
    address, port = plain(endpoint[0]), endpoint[1]
    found = {_words(address.packed, byte_order)}
    if isinstance(address, IPv4Address):
        found.add(_words(b"\0" * 10 + b"\xff\xff" + address.packed, byte_order))
    return frozenset(f"{words}:{port:04X}" for words in found)


def _words(packed: bytes, byte_order: str) -> str:
    """Words of 32 bits, each as the machine's own number."""
    little = byte_order == "little"
    parts = (packed[i : i + 4] for i in range(0, len(packed), 4))
    return "".join((part[::-1] if little else part).hex().upper() for part in parts)
