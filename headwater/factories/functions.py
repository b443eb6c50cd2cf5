"""Users' functions on their way to a factory: code, packed as Spark packs that of every task."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

from headwater.kernel.factory_job import packed


def sendable(functions: Mapping[str, Any]) -> tuple[bytes, frozenset[str]]:
    """The functions that can be sent, packed, and the names of those that cannot."""
    able: dict[str, Any] = {}
    unable = set()
    for name, function in functions.items():
        try:
            packed(function)
        except (pickle.PicklingError, TypeError, AttributeError, RecursionError):
            unable.add(name)
        else:
            able[name] = function
    return packed(able), frozenset(unable)
