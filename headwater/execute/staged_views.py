"""Rows of views as relations, for continuous queries that join them: one file for each version that is read.

Owns: the files, and the numbers by which queries know versions apart: none is ever given twice, also not by
another process, since a query's snapshot names the one that it was made of. A query reads a view as it does a
standard table, as it is at the moment; the file of a version stays until a newer one was asked for and nobody
reads it any more.
"""

from __future__ import annotations

import contextlib
import itertools
import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from headwater.engine.view import ContinuousView
from headwater.engine.view_versions import Version
from headwater.kernel.relation import Relation, Staging

PROCESS_BITS, VERSION_BITS = 29, 24  # together what a number of JSON holds exactly


@dataclass
class _Staged:
    """A version in a file."""

    version: Version
    relation: Relation
    number: int
    readers: int = 0
    newest: bool = True


@dataclass
class StagedViews:
    """The versions of views that queries read."""

    staging: Staging
    _numbers: Iterator[int] = field(
        default_factory=lambda: itertools.count(secrets.randbits(PROCESS_BITS) << VERSION_BITS)
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _staged: dict[str, _Staged] = field(default_factory=dict)  # the newest of each, by incarnation
    _gone: set[str] = field(default_factory=set)  # incarnations that are not there any more

    @contextlib.contextmanager
    def holding(self, view: ContinuousView) -> Iterator[tuple[Relation, int]]:
        """The view's rows with every acknowledged insert, and the number of that version here."""
        version = view.read()
        with self._lock:
            staged = self._staged.get(view.incarnation)
            if staged is None or staged.version is not version:
                self._put_off(view.incarnation)
                relation = self.staging.stage(version.rows)
                staged = _Staged(version, relation, next(self._numbers))
                staged.newest = view.incarnation not in self._gone
                if staged.newest:
                    self._staged[view.incarnation] = staged
            staged.readers += 1
        try:
            yield staged.relation, staged.number
        finally:
            with self._lock:
                staged.readers -= 1
                self._let_go(staged)

    def forget(self, incarnation: str) -> None:
        """The view is gone; whoever reads it still takes what was staged along."""
        with self._lock:
            self._gone.add(incarnation)
            self._put_off(incarnation)

    def _put_off(self, incarnation: str) -> None:
        staged = self._staged.pop(incarnation, None)
        if staged is not None:
            staged.newest = False
            self._let_go(staged)

    def _let_go(self, staged: _Staged) -> None:
        if not staged.readers and not staged.newest:
            self.staging.release(staged.relation)
