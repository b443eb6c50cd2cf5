"""A small file of checksums by file name, which carries a checksum of its own.

It is never synced and always rebuilt whole: one that is damaged, torn or gone reads as empty, so that whoever
keeps it checks less, and is never wrong.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from crc32c import crc32c

from headwater.storage.modes import FILE


def read_sums(path: Path) -> dict[str, int]:
    """The sums in a file; none if it cannot be trusted."""
    try:
        sum_, _, text = path.read_bytes().partition(b"\n")
        if sum_ != b"%08x" % crc32c(text):
            return {}
        return {str(name): int(each) for name, each in json.loads(text).items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def write_sums(path: Path, sums: Mapping[str, int]) -> None:
    """Puts other sums in their place; what cannot be written is not checked."""
    text = json.dumps(dict(sums)).encode()
    with contextlib.suppress(OSError), open(path, "wb", opener=partial(os.open, mode=FILE)) as file:
        file.write(b"%08x\n" % crc32c(text) + text)
