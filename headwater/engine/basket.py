"""A basket: rows of one table that wait for a continuous query to read them.

Owns: the rows released and not yet taken, and the rows that the table's clock has not released yet.
Must never: read or write storage, decide what is late (the clock does), or copy rows that come in
order.
It has no lock: the caller appends in commit order. DataCell §2 (DC2); DESIGN §5, Clock.

Rows are released in the order (T, _seq), and a position counts the rows released since the basket
was made. Released rows are pieces, slices of the appended tables; their first positions and last
ticks stand beside them, so that every question is a bisection. A piece goes when all of it was
taken. Rows that take too much memory are set aside: the caller says how, and they stay where they
are in the order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pyarrow as pa

from headwater.storage.clock import NO_TICKS, TICK_MIN, Ticks

_PASSED = 64  # places of pieces already gone that a list may carry
_TICKS = "_ticks"  # beside rows that are set aside

Aside = Callable[[pa.Table], pa.Table]  # the same rows, in batches, from elsewhere than memory


class Basket:
    """Rows in release order; they go once they are taken."""

    def __init__(
        self,
        time: str,
        ticks: Callable[[pa.ChunkedArray | pa.Array], Ticks],
        sequence: str = "_seq",
    ) -> None:
        """`time` names the column T, `ticks` gives it as int64; `sequence` settles ties."""
        self._time = time
        self._ticks = ticks
        self._sequence = sequence
        self._empty = pa.table({})  # with the rows' columns once rows have come
        self._clock: int | None = None
        self.position = 0  # how many released rows were taken
        self._meter = _Meter()
        self._rows = _ReleasedRows(self._meter)
        self._waiting = _WaitingRows(self._meter, sequence)

    # Rows

    def append(self, rows: pa.Table, released: int | None) -> None:
        """Rows of one commit, none of them late, and the table's clock after it.

        Rows with T at or below the clock are released; the others wait.
        """
        piece = self._piece(rows)
        self._clock = _furthest(self._clock, released)
        self._let_out(piece)

    def hold(self, rows: pa.Table) -> None:
        """Rows that come in parts, in any order: all wait for `release`."""
        piece = self._piece(rows)
        if piece is not None:
            self._waiting.add(piece)

    def _piece(self, rows: pa.Table) -> _Piece | None:
        """New rows in order; None if there are none."""
        if self._empty.num_columns == 0:
            self._empty = rows.slice(0, 0)
        if rows.num_rows == 0:
            return None
        piece = _Piece(self._ticks(rows.column(self._time)), rows)
        if not _in_order(piece, self._sequence):
            piece = _merged([piece], self._sequence)
        last = self._rows.last
        if last is not None and piece.ticks[0] < last:
            raise ValueError(f"a row of time {piece.ticks[0]} comes after {last} was released")
        return piece

    def set_aside(self, aside: Aside) -> None:
        """All rows leave memory; they are found as before."""
        self._rows.set_aside(aside)
        self._rows.drop_until(self.position)  # in smaller pieces some may have been taken
        self._waiting.set_aside(aside)

    def release(self, clock: int | None) -> None:
        """The clock has moved without rows."""
        self._clock = _furthest(self._clock, clock)
        self._let_out(None)

    @property
    def released(self) -> int:
        """How many rows were released since the basket was made: the next one's position."""
        return self._rows.end

    @property
    def row_count(self) -> int:
        """How many rows are held: waiting ones, and released ones that were not taken."""
        return self._waiting.count + self.waiting

    @property
    def bytes(self) -> int:
        """What the held pieces occupy, those set aside not counted; one goes as a whole."""
        return self._meter.bytes()

    @property
    def is_aside(self) -> bool:
        """Whether the next released rows are among those set aside."""
        return self._rows.is_aside

    # Reading

    @property
    def waiting(self) -> int:
        """How many released rows were not taken."""
        return self._rows.end - self.position

    def count_until(self, tick: int) -> int:
        """How many of them have T at or below the tick."""
        return max(0, self._rows.position_after(tick) - self.position)

    def last_tick(self, count: int) -> int | None:
        """T of the count-th of them; None if it is not there yet."""
        if count < 1:
            raise ValueError(f"rows are counted from 1, not {count}")
        place = self.position + count - 1
        return None if place >= self._rows.end else self._rows.tick_at(place)

    def distinct_ticks(self, tick: int) -> Ticks:
        """The distinct T of the rows that take_until would give, ascending."""
        pieces = self._rows.between(self.position, self._rows.position_after(tick))
        found = [_distinct(piece.ticks) for piece in pieces]
        return _distinct(np.concatenate(found)) if found else NO_TICKS

    def rows_since(self, position: int) -> pa.Table:
        """The released rows from a position on; none of them may be gone."""
        tables = [piece.rows for piece in self._rows.between(position, self._rows.end)]
        return pa.concat_tables(tables) if tables else self._empty

    def take_until(self, tick: int) -> pa.Table:
        """The next released rows with T at or below the tick."""
        return self._take(self._rows.position_after(tick))

    def take_rows(self, count: int) -> pa.Table:
        """The next `count` released rows, fewer if there are fewer."""
        return self._take(min(self.position + count, self._rows.end))

    # Tests

    def validate(self) -> None:
        """Raise AssertionError if the state contradicts itself."""
        assert 0 <= self.position <= self._rows.end, "the place is nowhere"
        self._rows.validate(self.position)
        self._waiting.validate(self._clock)

    # Steps

    def _let_out(self, new: _Piece | None) -> None:
        """Release what the clock allows, of the waiting rows and of new ones."""
        parts = self._waiting.release(self._clock)
        if new is not None:
            count = _count_until(new.ticks, self._clock)
            if count:
                parts.append([new.slice(0, count)])
            if count < len(new.ticks):
                self._waiting.add(new.slice(count, len(new.ticks)))
        for piece in parts[0] if len(parts) == 1 else _ordered(parts, self._sequence):
            self._rows.append(piece)

    def _take(self, stop: int) -> pa.Table:
        tables = [piece.rows for piece in self._rows.between(self.position, stop)]
        if not tables:
            return self._empty
        self.position = stop
        self._rows.drop_until(stop)
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables)


@dataclass(slots=True, eq=False)
class _Piece:
    """Some rows in order, and their T."""

    ticks: Ticks
    rows: pa.Table
    size: int | None = None  # in bytes, once measured
    is_aside: bool = False  # not in memory; its size is 0

    def slice(self, start: int, stop: int) -> _Piece:
        """Some of them, without copying."""
        if start == 0 and stop == len(self.ticks):
            return self
        rows = self.rows.slice(start, stop - start)
        return _Piece(self.ticks[start:stop], rows, 0 if self.is_aside else None, self.is_aside)


def _put_aside(pieces: list[_Piece], aside: Aside) -> list[_Piece]:
    """The same rows as pieces elsewhere, with their ticks."""
    ticks = pa.array(np.concatenate([piece.ticks for piece in pieces]))
    rows = pa.concat_tables([piece.rows for piece in pieces]).append_column(_TICKS, ticks)
    return [
        _Piece(
            batch.column(_TICKS).to_numpy(),
            pa.Table.from_batches([batch]).drop_columns([_TICKS]),
            0,
            is_aside=True,
        )
        for batch in aside(rows).to_batches()
    ]


class _Meter:
    """The bytes of pieces, measured when somebody asks: that takes longer than an append."""

    def __init__(self) -> None:
        self._measured = 0
        self._others: dict[int, _Piece] = {}

    def add(self, piece: _Piece) -> None:
        if piece.size is None:
            self._others[id(piece)] = piece
        else:
            self._measured += piece.size

    def remove(self, piece: _Piece) -> None:
        if piece.size is None:
            del self._others[id(piece)]
        else:
            self._measured -= piece.size

    def bytes(self) -> int:
        for piece in self._others.values():
            piece.size = piece.rows.nbytes
            self._measured += piece.size
        self._others.clear()
        return self._measured


class _ReleasedRows:
    """Pieces in release order: their first positions, last ticks, and the position after all.

    Pieces that are gone leave their places in the lists until these are half of them.
    """

    def __init__(self, meter: _Meter) -> None:
        self.end = 0
        self.last: int | None = None  # the T released last
        self._meter = meter
        self._pieces: list[_Piece | None] = []
        self._starts: list[int] = []
        self._lasts: list[int] = []
        self._gone = 0  # so many pieces are None

    def append(self, piece: _Piece) -> None:
        self._pieces.append(piece)
        self._starts.append(self.end)
        self.last = int(piece.ticks[-1])
        self._lasts.append(self.last)
        self.end += len(piece.ticks)
        self._meter.add(piece)

    def position_after(self, tick: int) -> int:
        """The position after the last row with T at or below the tick, of those still here."""
        index = bisect_right(self._lasts, tick, lo=self._gone)
        if index == len(self._pieces):
            return self.end
        return self._starts[index] + _count_until(self._piece(index).ticks, tick)

    def tick_at(self, position: int) -> int:
        index = bisect_right(self._starts, position, lo=self._gone) - 1
        return int(self._piece(index).ticks[position - self._starts[index]])

    def between(self, start: int, stop: int) -> Iterator[_Piece]:
        """The rows of these positions, piece by piece."""
        index = bisect_right(self._starts, start, lo=self._gone) - 1
        while start < stop:
            piece, first = self._piece(index), self._starts[index]
            until = min(stop - first, len(piece.ticks))
            yield piece.slice(start - first, until)
            start, index = first + until, index + 1

    def drop_until(self, position: int) -> None:
        """Pieces that end at or before the position go."""
        if position == self.end:
            kept = len(self._pieces)
        else:
            kept = bisect_right(self._starts, position, lo=self._gone) - 1
        for index in range(self._gone, kept):
            self._meter.remove(self._piece(index))
            self._pieces[index] = None
        self._gone = max(self._gone, kept)
        if self._gone == len(self._pieces) or self._gone > max(_PASSED, len(self._pieces) // 2):
            del self._pieces[: self._gone], self._starts[: self._gone], self._lasts[: self._gone]
            self._gone = 0

    def set_aside(self, aside: Aside) -> None:
        """Pieces in memory become others."""
        held = [piece for piece in self._pieces if piece is not None]
        if all(piece.is_aside for piece in held):
            return
        made: list[_Piece] = []
        for is_aside, group in groupby(held, key=lambda piece: piece.is_aside):
            pieces = list(group)
            made += pieces if is_aside else _put_aside(pieces, aside)
        self.end = self._starts[self._gone]
        self._pieces, self._starts, self._lasts, self._gone = [], [], [], 0
        for piece in held:
            self._meter.remove(piece)
        for piece in made:
            self.append(piece)

    @property
    def is_aside(self) -> bool:
        return self._gone < len(self._pieces) and self._piece(self._gone).is_aside

    def validate(self, first: int) -> None:
        pieces = [piece for piece in self._pieces if piece is not None]
        assert self._pieces[: self._gone] == [None] * self._gone, "a piece is not gone"
        assert len(pieces) == len(self._pieces) - self._gone, "a piece is gone"
        assert len(self._pieces) == len(self._starts) == len(self._lasts), "lists are apart"
        assert self._lasts == sorted(self._lasts), "released out of order"
        starts = self._starts[self._gone :]
        ends = [start + len(p.ticks) for start, p in zip(starts, pieces, strict=True)]
        assert ends == [*starts[1:], self.end][: len(ends)], "a hole"
        assert not starts or starts[0] <= first < ends[0], "rows that were taken are held"

    def _piece(self, index: int) -> _Piece:
        piece = self._pieces[index]
        assert piece is not None, "rows that are gone were asked for"
        return piece


class _WaitingRows:
    """Rows beyond the clock, as runs of pieces in order, each run at most half the one before.

    New rows go behind the run that they follow, without being copied; only rows out of order
    begin a run. Runs of similar size are merged, so a row is copied O(log n) times at most; runs
    that are set aside, at most one more each time, stay as they are and stand first.
    """

    def __init__(self, meter: _Meter, sequence: str) -> None:
        self.count = 0
        self._meter = meter
        self._sequence = sequence
        self._runs: list[_Run] = []

    def add(self, piece: _Piece) -> None:
        self.count += len(piece.ticks)
        self._meter.add(piece)
        before = [run for run in self._runs if _follows(run.pieces[-1], piece, self._sequence)]
        if before:
            max(before, key=lambda run: int(run.pieces[-1].ticks[-1])).append(piece)
        else:
            self._runs.append(_Run([piece]))
        for place in range(len(self._runs) - 1, 0, -1):
            before_it = self._runs[place - 1]
            if not before_it.is_aside and 2 * self._runs[place].count > before_it.count:
                self._merge(place)

    def set_aside(self, aside: Aside) -> None:
        """Runs in memory become one; what each run holds in memory becomes other pieces."""
        while len(self._runs) > 1 and not self._runs[-2].is_aside:
            self._merge(len(self._runs) - 1)
        for run in self._runs:
            others = [piece for piece in run.pieces if not piece.is_aside]
            if others:
                made = _put_aside(others, aside)
                for piece in others:
                    self._meter.remove(piece)
                kept = [piece for piece in run.pieces if piece.is_aside]
                run.pieces, run.is_aside = deque([*kept, *made]), True

    def release(self, clock: int | None) -> list[list[_Piece]]:
        """The rows up to the clock, which leave: some pieces in order for each run."""
        parts = [part for run in self._runs if (part := self._released(run, clock))]
        if parts:
            self._runs = [run for run in self._runs if run.pieces]
        return parts

    def validate(self, clock: int | None) -> None:
        assert self.count == sum(run.count for run in self._runs), "waiting rows are miscounted"
        aside = [run.is_aside for run in self._runs]
        assert aside == sorted(aside, reverse=True), "a run in memory before one set aside"
        assert len(self._runs) - sum(aside) <= 64, "too many runs"
        for run in self._runs:
            pieces = list(run.pieces)
            assert run.count == sum(len(piece.ticks) for piece in pieces) > 0, "an empty run"
            assert clock is None or pieces[0].ticks[0] > clock, "a released row waits"
            assert _ordered([pieces], self._sequence) == pieces, "a run out of order"

    def _released(self, run: _Run, clock: int | None) -> list[_Piece]:
        """The front of one run."""
        found: list[_Piece] = []
        while run.pieces and (count := _count_until(run.pieces[0].ticks, clock)):
            piece = run.pieces.popleft()
            self._meter.remove(piece)
            found.append(piece.slice(0, count))
            run.count -= count
            self.count -= count
            if count < len(piece.ticks):
                rest = piece.slice(count, len(piece.ticks))
                self._meter.add(rest)
                run.pieces.appendleft(rest)
                break
        return found

    def _merge(self, place: int) -> None:
        """A run and the one before it become one."""
        one, other = self._runs[place - 1], self._runs.pop(place)
        pieces = [*one.pieces, *other.pieces]
        whole = _merged(pieces, self._sequence)
        for piece in pieces:
            self._meter.remove(piece)
        self._meter.add(whole)
        self._runs[place - 1] = _Run([whole])


class _Run:
    """Pieces of which each follows the one before."""

    def __init__(self, pieces: Iterable[_Piece]) -> None:
        self.pieces = deque(pieces)
        self.count = sum(len(piece.ticks) for piece in self.pieces)
        self.is_aside = False  # its first rows were set aside: it is merged no more

    def append(self, piece: _Piece) -> None:
        self.pieces.append(piece)
        self.count += len(piece.ticks)


def _ordered(parts: list[list[_Piece]], sequence: str) -> list[_Piece]:
    """The pieces of several runs in order; those that overlap are merged."""
    pieces = [piece for part in parts for piece in part]
    pieces.sort(key=lambda piece: _key(piece, 0, sequence))
    groups: list[list[_Piece]] = []
    last = (TICK_MIN - 1, 0)
    for piece in pieces:
        if _key(piece, 0, sequence) > last:
            groups.append([])
        groups[-1].append(piece)
        last = max(last, _key(piece, len(piece.ticks) - 1, sequence))
    return [group[0] if len(group) == 1 else _merged(group, sequence) for group in groups]


def _key(piece: _Piece, row: int, sequence: str) -> tuple[int, int]:
    """What a row is ordered by."""
    return int(piece.ticks[row]), piece.rows.column(sequence)[row].as_py()


def _merged(pieces: list[_Piece], sequence: str) -> _Piece:
    """All rows in one piece, sorted by (T, _seq)."""
    rows = pa.concat_tables([piece.rows for piece in pieces]).combine_chunks()
    ticks = np.concatenate([piece.ticks for piece in pieces])
    order = np.lexsort((_sequences(rows, sequence), ticks))
    return _Piece(ticks[order], rows.take(pa.array(order)))


def _in_order(piece: _Piece, sequence: str) -> bool:
    """Whether the rows are sorted by (T, _seq)."""
    ticks = piece.ticks
    if len(ticks) == 1:
        return True
    rising = ticks[1:] > ticks[:-1]
    if rising.all():
        return True
    if (ticks[1:] < ticks[:-1]).any():
        return False
    sequences = _sequences(piece.rows, sequence)
    return bool((rising | (sequences[1:] > sequences[:-1])).all())


def _follows(one: _Piece, other: _Piece, sequence: str) -> bool:
    """Whether the other's rows all come after this one's."""
    last, first = one.ticks[-1], other.ticks[0]
    if last != first:
        return bool(last < first)
    return _key(one, len(one.ticks) - 1, sequence) < _key(other, 0, sequence)


def _sequences(rows: pa.Table, sequence: str) -> Ticks:
    return rows.column(sequence).to_numpy()


def _count_until(ticks: Ticks, tick: int | None) -> int:
    """How many of the sorted ticks are at or below the tick, which may lie outside int64."""
    if tick is None or ticks[0] > tick:
        return 0
    if ticks[-1] <= tick:
        return len(ticks)
    return int(np.searchsorted(ticks, tick, side="right"))


def _distinct(ticks: Ticks) -> Ticks:
    """Sorted ticks without repetition."""
    changes = np.empty(len(ticks), np.bool_)
    changes[0] = True
    np.not_equal(ticks[1:], ticks[:-1], out=changes[1:])
    return ticks[changes]


def _furthest(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return max(one, other)
