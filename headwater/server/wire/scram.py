"""SCRAM-SHA-256, the server's side (RFC 5802, RFC 7677), without channel binding.

Owns the exchange of two messages; verifiers are made in `execute/verifiers.py`. Pure: the nonce is
passed in. Must never keep or log a password.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re

from headwater.errors import Error
from headwater.execute.verifiers import (
    MECHANISM,
    Verifier,
    encoded,
    hmac_of,
    make_verifier,
    mock_verifier,
    parse_verifier,
    prepared,
)

__all__ = [
    "MECHANISM",
    "Exchange",
    "LoginError",
    "Verifier",
    "make_verifier",
    "mock_verifier",
    "parse_verifier",
    "prepared",
]


class LoginError(Error):
    """A login that failed."""

    default_sqlstate = "28P01"


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise LoginError("a login message is not base64", sqlstate="08P01") from error


class Exchange:
    """One login: the client's first message, our answer, its proof, our signature."""

    def __init__(self, verifier: Verifier, nonce: str) -> None:
        self._verifier = verifier
        self._nonce = nonce
        self._header = ""
        self._so_far = ""
        self._full_nonce = ""

    def first(self, data: bytes) -> bytes:
        """Our answer to client-first-message; LoginError if that makes no sense."""
        message = _text(data)
        found = re.fullmatch(r"((?:n|y|p=[^,]+),([^,]*),)(n=[^,]*,r=([!-+\--~]+)(?:,.*)?)", message)
        if found is None:
            raise _senseless()
        header, authorization, bare, client_nonce = found.groups()
        if header.startswith("p="):
            raise LoginError("channel binding is not supported", sqlstate="08P01")
        if authorization:
            raise LoginError("logging in as another user is not supported", sqlstate="0A000")
        self._header = header
        self._full_nonce = client_nonce + self._nonce
        v = self._verifier
        answer = f"r={self._full_nonce},s={encoded(v.salt)},i={v.iterations}"
        self._so_far = f"{bare},{answer}"
        return answer.encode()

    def final(self, data: bytes) -> bytes:
        """Our signature for client-final-message; LoginError if the proof is wrong."""
        message = _text(data)
        found = re.fullmatch(r"(c=([^,]+),r=([^,]+)(?:,(?!p=)[^,]*)*),p=([^,]+)", message)
        if found is None or found.group(3) != self._full_nonce:
            raise _senseless()
        if _decoded(found.group(2)) != self._header.encode():
            raise LoginError("channel binding does not fit", sqlstate="08P01")
        signed = f"{self._so_far},{found.group(1)}".encode()
        proof, v = _decoded(found.group(4)), self._verifier
        signature = hmac_of(v.stored_key, signed)
        if len(proof) != len(signature):
            raise _senseless()
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        if not hmac.compare_digest(hashlib.sha256(client_key).digest(), v.stored_key):
            raise LoginError("password authentication failed")
        return f"v={encoded(hmac_of(v.server_key, signed))}".encode()


def _senseless() -> LoginError:
    return LoginError("a login message makes no sense", sqlstate="08P01")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _senseless() from error
