"""Digests of text.

Owns: SHA1, SHA2, CRC32. Must never: see bytes that are no text.
"""

from __future__ import annotations

import hashlib
import zlib

from headwater.expression.coercion import BIGINT, STRING
from headwater.expression.nodes import Bound, BoundCall
from headwater.expression.operand import Kernel
from headwater.expression.signature import by_row, constant, fixed
from headwater.expression.table import called, operation

_SHA2 = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}


def _digest(text: str, algorithm: str) -> str:
    return hashlib.new(algorithm, text.encode(), usedforsecurity=False).hexdigest()


fixed("sha1", [[STRING]], STRING, by_row(lambda text: _digest(text, "sha1")))
fixed("crc32", [[STRING]], BIGINT, by_row(lambda text: zlib.crc32(text.encode())))


def _sha2(text: Bound, bits: Bound) -> Bound | None:
    """SHA2(text, bits) of a constant number of bits that there is."""
    algorithm = _SHA2.get(constant(bits))
    return called("sha2", (text,), STRING, algorithm) if algorithm and text.type == STRING else None


def _sha2_kernel(call: BoundCall) -> Kernel:
    (algorithm,) = call.parameters
    return by_row(lambda text: _digest(text, str(algorithm)))(call)


operation("sha2", _sha2, _sha2_kernel)
