"""What views in one host have in common: stream pipelines, by what they compute, and the rows of tables."""

from __future__ import annotations

import threading
from collections.abc import Callable
from weakref import WeakValueDictionary

import pyarrow as pa

from headwater.compile.fold import FoldSpec
from headwater.engine.united import pipeline_signature
from headwater.engine.view_pipeline import PipelinePlace, ViewPipeline
from headwater.kernel.relation import Relation


def signature(spec: FoldSpec, place: PipelinePlace) -> tuple[object, ...]:
    """What folds must have in common to be one pipeline; what may fail is part of it."""
    plan = spec.plan
    files = tuple(sorted((n, r.files) for n, r in place.static.relations.items()))
    return (
        place.table.definition.id,
        place.start,
        place.at_insert,
        place.owner,
        place.time_zone,
        place.share,
        pipeline_signature(spec),
        frozenset(piece for piece in spec.argument_pieces if not piece.is_name),
        files if plan.statics or plan.where else (),
    )


class Pipelines:
    """All pipelines of a database, by what they compute."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[str, ViewPipeline] = {}
        self._reading = threading.Lock()  # one reads rows, the others wait for them
        self._rows: WeakValueDictionary[object, pa.Table] = WeakValueDictionary()

    def table_rows(self, relation: Relation, read: Callable[[], pa.Table]) -> pa.Table:
        """The rows of a standard table at a version: one copy, in one piece, while anybody has it."""
        wanted = (relation.files, tuple(relation.schema))
        with self._reading:
            rows = self._rows.get(wanted)
            if rows is None:
                rows = self._rows[wanted] = read().combine_chunks()
            return rows

    def join(
        self, member: str, spec: FoldSpec, place: PipelinePlace, make: Callable[[], ViewPipeline]
    ) -> ViewPipeline:
        """The pipeline for a fold: one that is there, or a new one."""
        with self._lock:
            wanted = signature(spec, place)
            for known in self._found.values():
                if known.is_lent or known.awaited:
                    continue  # its groups are not here, or its snapshot is another view's too
                if signature(known.spec, known.place) == wanted and known.join(member, spec):
                    return known
            made = make()
            made.join(member, spec)
            self._found[made.number] = made
            return made

    def find(self, number: str) -> ViewPipeline | None:
        """The pipeline of that number."""
        with self._lock:
            return self._found.get(number)

    def add(self, pipeline: ViewPipeline) -> None:
        """A pipeline that was taken up."""
        with self._lock:
            self._found[pipeline.number] = pipeline

    def drop(self, pipeline: ViewPipeline) -> None:
        """A pipeline that another host goes on with; its snapshot stays."""
        with self._lock:
            pipeline.place.table.folded_by.pop(pipeline.number, None)
            self._found.pop(pipeline.number, None)
        pipeline.place.table.made_room()

    def leave(self, member: str, pipeline: ViewPipeline) -> None:
        """A fold takes part no more; a pipeline without members goes, with its snapshot."""
        with self._lock:
            pipeline.leave(member)
            if not pipeline.members:
                pipeline.place.table.folded_by.pop(pipeline.number, None)
                self._found.pop(pipeline.number, None)
                if not pipeline.awaited:
                    pipeline.remove()
