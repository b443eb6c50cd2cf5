"""pyarrow without pandas, until a program loads it.

pyarrow looks for pandas when it makes its first array, and loads it if it is installed: a quarter of a
second of processor time at each start, for something that few programs hand us. Whoever imports this module
before any part that makes arrays has it find none. As soon as anybody loads pandas, pyarrow is told, and
behaves as if it had been there from the start.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import pyarrow as pa

PANDAS = "pandas"


def _find_no_pandas() -> None:
    """pyarrow looks for pandas now, in vain; where it is loaded already nothing changes."""
    if PANDAS in sys.modules:
        return
    nobody = _NotFound()
    sys.meta_path.insert(0, nobody)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(nobody)
    if PANDAS not in sys.modules:
        sys.meta_path.insert(0, _Noticed())


class _NotFound(MetaPathFinder):
    """There is no pandas."""

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == PANDAS:
            raise ModuleNotFoundError(f"No module named {PANDAS!r}", name=PANDAS)
        return None


class _Noticed(MetaPathFinder):
    """Finds what the others find, and has pyarrow told once it is loaded."""

    def __init__(self) -> None:
        self._asks_others = False

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != PANDAS or self._asks_others:
            return None
        self._asks_others = True
        try:
            spec = importlib.util.find_spec(PANDAS)
        finally:
            self._asks_others = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Telling(spec.loader)
        return spec


class _Telling(Loader):
    """Loads pandas as its own loader does, then tells pyarrow."""

    def __init__(self, own: Loader) -> None:
        self._own = own

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._own
        self._own.exec_module(module)
        _tell_pyarrow()


def _tell_pyarrow() -> None:
    """pandas is there: what needs it makes pyarrow look for it again, whatever it found before."""
    try:
        pa.lib._pandas_api.pd  # noqa: B018  (it looks when it is asked)
    except ImportError:
        pass  # one that is too old for pyarrow, which says so to whoever hands it a frame


_find_no_pandas()
