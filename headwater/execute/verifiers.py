"""SCRAM verifiers: what is kept of a password, in PostgreSQL's form (RFC 5802, RFC 7677).

Owns making, reading and checking them. Must never keep or log a password.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import stringprep
import unicodedata
from dataclasses import dataclass

ITERATIONS = 4096
MECHANISM = "SCRAM-SHA-256"
LARGEST_ITERATIONS = 10_000_000


@dataclass(frozen=True)
class Verifier:
    """What the server keeps of a password."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def __str__(self) -> str:
        salt, stored, server = (encoded(b) for b in (self.salt, self.stored_key, self.server_key))
        return f"{MECHANISM}${self.iterations}:{salt}${stored}:{server}"


def encoded(data: bytes) -> str:
    """Bytes as text."""
    return base64.b64encode(data).decode()


def hmac_of(key: bytes, data: bytes) -> bytes:
    """The signature of data by a key."""
    return hmac.digest(key, data, "sha256")


def make_verifier(password: str, salt: bytes, iterations: int = ITERATIONS) -> Verifier:
    """The verifier of a password."""
    salted = hashlib.pbkdf2_hmac("sha256", prepared(password).encode(), salt, iterations)
    stored = hashlib.sha256(hmac_of(salted, b"Client Key")).digest()
    return Verifier(iterations, salt, stored, hmac_of(salted, b"Server Key"))


def parse_verifier(text: str) -> Verifier:
    """The verifier of a text in PostgreSQL's form; ValueError if it is none."""
    found = re.fullmatch(r"SCRAM-SHA-256\$(\d+):([^$]+)\$([^:]+):(.+)", text)
    if found is None:
        raise ValueError("not a SCRAM-SHA-256 verifier")
    salt, stored, server = (base64.b64decode(part, validate=True) for part in found.groups()[1:])
    iterations = int(found.group(1))
    if not 1 <= iterations <= LARGEST_ITERATIONS or len(stored) != 32 or len(server) != 32:
        raise ValueError("not a SCRAM-SHA-256 verifier")
    return Verifier(iterations, salt, stored, server)


def mock_verifier(user: str, secret: bytes) -> Verifier:
    """A verifier that nothing fits, always the same one for a name: it tells nobody who exists.

    Names are compared as the catalog does: ADA and ada have one salt, whether she exists or not.
    """
    salt = hmac_of(secret, user.casefold().encode())[:16]
    return Verifier(ITERATIONS, salt, hmac_of(secret, b"s" + salt), hmac_of(secret, b"k" + salt))


def prepared(password: str) -> str:
    """SASLprep (RFC 4013); a password that it forbids is taken as it is, as PostgreSQL does."""
    mapped = "".join(
        " " if stringprep.in_table_c12(c) else c for c in password if not stringprep.in_table_b1(c)
    )
    found = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    forbidden = (
        stringprep.in_table_c12, stringprep.in_table_c21_c22, stringprep.in_table_c3,
        stringprep.in_table_c4, stringprep.in_table_c5, stringprep.in_table_c6,
        stringprep.in_table_c7, stringprep.in_table_c8, stringprep.in_table_c9,
        stringprep.in_table_a1,
    )  # fmt: skip
    if not found or any(test(c) for c in found for test in forbidden):
        return password
    return found if _right_direction(found) else password


def _right_direction(text: str) -> bool:
    """RFC 3454 §6: letters of both directions do not mix."""
    if not any(stringprep.in_table_d1(c) for c in text):
        return True
    if any(stringprep.in_table_d2(c) for c in text):
        return False
    return bool(stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1]))


def fits(password: str, verifier: Verifier) -> bool:
    """Whether a password is the one that a verifier was made of."""
    found = make_verifier(password, verifier.salt, verifier.iterations)
    return hmac.compare_digest(found.stored_key, verifier.stored_key)
