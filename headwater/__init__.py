"""Headwater: a streaming database on Spark.

import headwater

with headwater.connect("./data") as db:
    db.sql("CREATE TABLE t (a INT, b STRING)")
    db.insert("t", [(1, "x"), (2, "y")])
    db.sql("SELECT b, count(*) FROM t GROUP BY b").show()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater._version import __version__
    from headwater.database import Database, connect
    from headwater.errors import Error
    from headwater.result import Result

__all__ = ["Database", "Error", "Result", "__version__", "connect"]

_HOMES = {
    "Database": "headwater.database",
    "Error": "headwater.errors",
    "Result": "headwater.result",
    "__version__": "headwater._version",
    "connect": "headwater.database",
}


def __getattr__(name: str) -> Any:
    """Loads a public name when it is first used, so that `import headwater` costs nothing."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'headwater' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    """The public names, also those that are not loaded yet."""
    return list(__all__)
