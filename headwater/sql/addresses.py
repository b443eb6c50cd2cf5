"""Addresses of sources and sinks: `kind:rest`.

Owns how one is taken apart and what is said of one that is wrong. Which kinds there are is theirs to say.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.errors import NotSupportedError, SettingError
from headwater.sql.names import nearest


def kind_and_rest(
    url: str, what: str, kinds: Sequence[str], later: Sequence[str], example: str
) -> tuple[str, str]:
    """The parts of the address of a source or sink; an error names a kind that is not there (yet)."""
    kind, _, rest = url.partition(":")
    kind = kind.strip().lower()
    if kind in later:
        raise NotSupportedError(
            f"{what}s of kind {kind} are not supported yet", hint="kinds: " + ", ".join(kinds)
        )
    if kind not in kinds:
        near = nearest(kind, kinds)
        raise SettingError(
            f"there is no kind of {what} named {kind!r}",
            hint=f"did you mean {near}?" if near else "kinds: " + ", ".join(kinds),
        )
    if not rest.strip():
        raise SettingError(f"the address '{url}' is not complete", hint=f"write {example}")
    return kind, rest.strip()
