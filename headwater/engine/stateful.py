"""Functions with state over rows in order (EQ8): the state, its calls, and the values that are remembered.

Owns: how a function is called (an instance of a class, or a function over a dict), how its state becomes
bytes, when state begins anew, and the values of rows that windows may still show. Rows come in the order
(T, _seq). Must never: read a table, or know of a query.
"""

from __future__ import annotations

import inspect
import io
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.compile.arguments import compile_arguments
from headwater.engine.sampling import Sampling
from headwater.errors import BindError, DataError
from headwater.expression.compile import Compiled
from headwater.expression.terms import Terms
from headwater.plan.folds import Leaf, StateCall

Ticks = npt.NDArray[np.int64]
FUNCTION = "function"  # stands for the user's own class in the bytes of its state


# The state of one function


@dataclass(frozen=True)
class LiveState:
    """A function and its state: an instance of the class that it is, or a dict that it is given."""

    function: Any
    held: Any

    @classmethod
    def fresh(cls, function: Any) -> LiveState:
        """The state at the beginning of a life span."""
        return cls(function, function() if inspect.isclass(function) else {})

    def call(self, *values: Any) -> Any:
        """The value for one row."""
        if inspect.isclass(self.function):
            return self.held(*values)
        return self.function(self.held, *values)

    def dump(self) -> bytes:
        """The state as bytes; the function itself is not in them, so that it may be defined anywhere."""
        file = io.BytesIO()
        _Pickler(file, self.function).dump(self.held)
        return file.getvalue()

    @classmethod
    def load(cls, function: Any, data: bytes) -> LiveState:
        """The state again, under the function as it is now."""
        return cls(function, _Unpickler(io.BytesIO(data), function).load())


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, function: Any) -> None:
        super().__init__(file)
        self._function = function

    def persistent_id(self, obj: Any) -> str | None:
        return FUNCTION if obj is self._function else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, function: Any) -> None:
        super().__init__(file)
        self._function = function

    def persistent_load(self, pid: Any) -> Any:
        assert pid == FUNCTION
        return self._function


def dumped(name: str, state: LiveState) -> bytes:
    """The state of a function as bytes; DataError if it cannot be pickled."""
    try:
        return state.dump()
    except Exception as error:  # whatever the user's objects raise
        raise DataError(
            f"the state of function {name} cannot be pickled: {_told(error)}",
            sqlstate="38000",
            hint="state that lives for the query is kept on disk; __getstate__ can leave parts out",
        ) from error


def check_state(name: str, function: Any, life: str) -> None:
    """BindError unless a function can begin, and be kept on disk if its state lives for the query."""
    try:
        state = LiveState.fresh(function)
    except Exception as error:  # whatever the user's class raises
        raise BindError(
            f"the state of function {name} cannot be made: {_told(error)}",
            hint="the class is called without arguments at the beginning of each life span",
        ) from error
    if inspect.isclass(function) and not callable(state.held):
        raise BindError(
            f"the class of function {name} has no __call__",
            hint="def __call__(self, …) gives the value of a row",
        )
    if life == "query":
        dumped(name, state)


def check_count(name: str, function: Any, count: int) -> None:
    """BindError if a function does not take so many arguments."""
    try:
        called = function.__call__ if inspect.isclass(function) else function
        signature = inspect.signature(called)
    except (TypeError, ValueError):
        return  # written in C: the first call tells
    try:
        signature.bind("state", *range(count))
    except TypeError:
        raise BindError(
            f"function {name} does not take {count} argument{'' if count == 1 else 's'}",
            sqlstate="42883",
            hint=f"it is defined as {signature}, where the first is its state",
        ) from None


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


# Calls


@dataclass
class StatefulCall:
    """One call of a query, ready to be made for rows."""

    plan: StateCall
    function: Any
    arguments: tuple[Compiled, ...]
    state: LiveState | None = None

    def values(self, rows: pa.Table, begins: npt.NDArray[np.bool_], time: pa.ChunkedArray) -> Any:
        """The values of rows in order; where `begins` is true the state is fresh."""
        columns = [argument.evaluate(rows).to_pylist() for argument in self.arguments]
        given = list(zip(*columns, strict=True)) if columns else [()] * rows.num_rows
        found = []
        for place, (begin, values) in enumerate(zip(begins.tolist(), given, strict=True)):
            try:
                if begin or self.state is None:
                    self.state = LiveState.fresh(self.function)
                found.append(self.state.call(*values))
            except Exception as error:  # whatever the user's code raises
                raise self._failed(_told(error), time[place]) from error
        return self._converted(found, time)

    def _failed(self, what: str, time: pa.Scalar) -> DataError:
        return DataError(
            f"function {self.plan.name} failed for the row at {time.as_py()}: {what}",
            sqlstate="38000",
        )

    def _converted(self, values: list[Any], time: pa.ChunkedArray) -> pa.Array:
        try:
            return _typed(values, self.plan.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            for place, value in enumerate(values):
                try:
                    _typed([value], self.plan.type)
                except (pa.ArrowException, TypeError, ValueError, OverflowError):
                    what = f"{value!r} is no {self.plan.type}"
                    raise self._failed(what, time[place]) from None
            raise


def _typed(values: list[Any], type_: pa.DataType) -> pa.Array:
    plain = [value.as_py() if isinstance(value, pa.Scalar) else value for value in values]
    try:
        return pa.array(plain, type_)
    except (pa.ArrowException, TypeError):
        return pa.array(plain).cast(type_)


def make_call(plan: StateCall, leaf: Leaf, function: Any, functions: Terms) -> StatefulCall:
    """A call over a leaf's rows; its arguments are evaluated without Spark."""
    check_count(plan.name, function, len(plan.arguments))
    return StatefulCall(plan, function, compile_arguments(plan, leaf, functions))


def scanned(
    rows: pa.Table, calls: Sequence[StatefulCall], ticks: Ticks, sequences: Ticks, time: str
) -> pa.Table:
    """Rows with the values of calls whose state is fresh for this scan, in the order they came."""
    order = np.lexsort((sequences, ticks))
    ordered = rows.take(pa.array(order))
    begins = np.zeros(rows.num_rows, np.bool_)
    begins[:1] = True
    back = np.empty(rows.num_rows, np.int64)
    back[order] = np.arange(rows.num_rows)
    for call in calls:
        values = call.values(ordered, begins, ordered.column(time))
        rows = rows.append_column(call.plan.column, values.take(pa.array(back)))
    return rows


# Life spans


def chunk_numbers(sampling: Sampling, before: bool, ticks: Ticks, place: int) -> Ticks:
    """To which chunk, or to which instant's new rows, each row belongs; the last stands at the place.

    `before`: an instant does not see rows at its own tick, as with every cut by time.
    """
    if sampling.kind == "rows":
        count = len(ticks)
        return (place - count + np.arange(count, dtype=np.int64)) // sampling.step
    if sampling.kind == "realtime":
        return ticks
    return ticks // sampling.step if before else -(-ticks // sampling.step)


def chunk_start(sampling: Sampling, before: bool, tick: int) -> int:
    """The first tick of the chunk that a row at a tick belongs to, where time makes the chunks."""
    if sampling.kind == "realtime":
        return tick
    step = sampling.step
    return tick // step * step if before else (-(-tick // step) - 1) * step + 1


class Remembered:
    """Calls made once per row: their state, and the values of the rows that may still be shown."""

    def __init__(self, calls: Sequence[StatefulCall], by_chunk: bool) -> None:
        self.calls, self._by_chunk = tuple(calls), by_chunk
        self.forget()

    def forget(self) -> None:
        """Begins anew: no state, no values."""
        empty = np.empty(0, np.int64)
        self.ticks, self.sequences, self._chunks = empty, empty, empty
        self._last_chunk: int | None = None
        self.columns = [pa.array([], call.plan.type) for call in self.calls]
        for call in self.calls:
            call.state = None

    def take(
        self, rows: pa.Table, time: str, ticks: Ticks, sequences: Ticks, chunks: Ticks
    ) -> None:
        """Makes the calls for rows that come after all those before."""
        if not rows.num_rows:
            return
        begins = np.zeros(rows.num_rows, np.bool_)
        if self._by_chunk:
            begins[0] = self._last_chunk is None or chunks[0] != self._last_chunk
            begins[1:] = chunks[1:] != chunks[:-1]
        made = [call.values(rows, begins, rows.column(time)) for call in self.calls]
        self.ticks = np.concatenate([self.ticks, ticks])
        self.sequences = np.concatenate([self.sequences, sequences])
        self._chunks = np.concatenate([self._chunks, chunks])
        self._last_chunk = int(chunks[-1])
        pairs = zip(self.columns, made, strict=True)
        self.columns = [pa.concat_arrays([old, new]) for old, new in pairs]

    def add_to(self, rows: pa.Table, sequences: Ticks) -> pa.Table:
        """Rows with their values; NULL for a row that no call was made for."""
        order = np.argsort(self.sequences, kind="stable")
        known = self.sequences[order]
        places = np.searchsorted(known, sequences)
        inside = np.minimum(places, max(len(known) - 1, 0))
        missing = known[inside] != sequences if len(known) else np.ones(len(sequences), np.bool_)
        indices = order[inside] if len(known) else inside
        taken = pa.array(indices, pa.int64(), mask=missing)
        for call, values in zip(self.calls, self.columns, strict=True):
            rows = rows.append_column(call.plan.column, values.take(taken))
        return rows

    def trim(self, sequences: Ticks, tick: int) -> None:
        """Forgets values that no later window shows: not these rows, and none from the tick on.

        Chunks stay whole, so that their calls can be made again from the rows that are kept.
        """
        keep = np.isin(self.sequences, sequences) | (self.ticks >= tick)
        if self._by_chunk:
            keep = np.isin(self._chunks, self._chunks[keep])
        if keep.all():
            return
        self.ticks, self.sequences = self.ticks[keep], self.sequences[keep]
        self._chunks = self._chunks[keep]
        self.columns = [values.filter(pa.array(keep)) for values in self.columns]

    @property
    def first_tick(self) -> int | None:
        """T of the first row whose value is remembered."""
        return int(self.ticks[0]) if len(self.ticks) else None

    def state(self) -> dict[str, Any]:
        """For a snapshot: the values, and the state of each call as bytes."""
        states = [
            None
            if call.state is None
            else np.frombuffer(dumped(call.plan.name, call.state), np.uint8)
            for call in self.calls
        ]
        return {
            "ticks": self.ticks,
            "sequences": self.sequences,
            "columns": list(self.columns),
            "states": states,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Takes up a snapshot."""
        self.ticks, self.sequences = state["ticks"], state["sequences"]
        self._chunks = np.zeros(len(self.ticks), np.int64)
        self.columns = list(state["columns"])
        for call, held in zip(self.calls, state["states"], strict=True):
            call.state = None if held is None else _loaded(call, held.tobytes())


def _loaded(call: StatefulCall, data: bytes) -> LiveState:
    try:
        return LiveState.load(call.function, data)
    except Exception as error:  # whatever the user's objects raise
        raise DataError(
            f"the state of function {call.plan.name} cannot be read back: {_told(error)}",
            sqlstate="38000",
            hint="what its state is made of must be importable, as when it was kept",
        ) from error
