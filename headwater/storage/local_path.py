"""Paths on a local disk: what we write ourselves lies there and nowhere else.

Owns: what counts as an address of some other file system. `s3a://bucket` is a fine name for a folder under
the working one, which is never what was meant; so it is refused. `file:///data` is a local path.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

from headwater.errors import NotSupportedError, SettingError

# A Path has one slash left of two. One letter is no scheme.
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):/", re.IGNORECASE)


def scheme_of(given: str | Path) -> str | None:
    """The scheme of an address (`s3a` of `s3a://bucket/x`); None for a path."""
    found = _SCHEME.match(str(given).strip())
    return found.group(1).lower() if found else None


def local_path(given: str | Path, what: str, hint: str) -> Path:
    """The path that is meant; NotSupportedError if it lies on another file system.

    `what` is the thing that lies there, as the error calls it.
    """
    scheme = scheme_of(given)
    if scheme is None:
        return Path(given)
    if scheme != "file":
        raise NotSupportedError(
            f"{what} cannot lie on {scheme}://, only on a local disk", hint=hint
        )
    rest = str(given).strip()[len("file:") :]
    host, path = rest[2:].partition("/")[::2] if rest.startswith("//") else ("", rest[1:])
    if host not in ("", "localhost"):
        raise SettingError(
            f"{what} cannot lie on another machine, {host}", hint="write file:///path"
        )
    return Path("/", unquote(path))
