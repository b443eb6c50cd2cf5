"""Tokens: the place of one result among the results of a query, as text that a reader keeps.

Owns: the text. A token names the query, which incarnation of it (dropped and made again, a query
starts over), the position of the result and its instant. Must never: be trusted for more than a
place; what it names is checked against the results that are kept. DESIGN §3, §8.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass

from headwater.errors import DataError

FORMAT = 1
CHECKSUM_BYTES = 4
HINT = "give the token of a result as it came, or 'earliest'"


@dataclass(frozen=True)
class ResultToken:
    """What a token says."""

    query_id: int
    incarnation: str
    position: int
    instant: int


def encode(query_id: int, incarnation: str, position: int, instant: int) -> str:
    """The token of one result: short, safe in URLs and in SQL."""
    parts = [_packed(query_id), _packed(position), _packed(instant), incarnation.encode()]
    data = bytes([FORMAT]) + b"".join(parts)
    return urlsafe_b64encode(data + _checksum(data)).decode().rstrip("=")


def decode(text: str, query_id: int | None = None, incarnation: str | None = None) -> ResultToken:
    """What the token says; DataError 22023 if it is none, or one of another query."""
    token = _read(text)
    if query_id is not None and token.query_id != query_id:
        raise DataError("the token is of another query", sqlstate="22023", hint=HINT)
    if incarnation is not None and token.incarnation != incarnation:
        raise DataError(
            "the token is of an earlier query of this name",
            sqlstate="22023",
            detail="the query was dropped and made again, or the token is from another database",
            hint="'earliest' starts with the oldest result that is kept",
        )
    return token


def _read(text: str) -> ResultToken:
    try:
        data = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
        body = data[:-CHECKSUM_BYTES]
        query_id, at = _unpacked(body, 1)
        position, at = _unpacked(body, at)
        instant, at = _unpacked(body, at)
        token = ResultToken(query_id, body[at:].decode(), position, instant)
        if encode(query_id, token.incarnation, position, instant) != text:
            raise ValueError  # the format, the checksum, or letters that base64 passes over
        return token
    except (ValueError, IndexError, binascii.Error) as error:
        shown = text if len(text) <= 60 else text[:57] + "…"
        raise DataError(f"{shown!r} is no token", sqlstate="22023", hint=HINT) from error


def _packed(number: int) -> bytes:
    """A length byte and as many bytes as the number needs."""
    size = number.bit_length() // 8 + 1
    return bytes([size]) + number.to_bytes(size, "big", signed=True)


def _unpacked(data: bytes, at: int) -> tuple[int, int]:
    end = at + 1 + data[at]
    return int.from_bytes(data[at + 1 : end], "big", signed=True), end


def _checksum(data: bytes) -> bytes:
    return binascii.crc32(data).to_bytes(CHECKSUM_BYTES, "big")
