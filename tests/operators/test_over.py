"""Window functions against evaluating all rows anew in plain Python."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest

from headwater.errors import DataError, NotSupportedError
from headwater.fold.aggregates import Aggregate
from headwater.fold.snapshot import dump, load
from headwater.operators import arrangement
from headwater.operators.over import OverRows, WindowFrame, WindowFunction
from tests.fold.brute import ALL_TYPES, DECIMALS, NUMBERS, evaluate, key
from tests.operators.model import Row, changes_of, ordering, random_row, run, tuples

FRAMES = [
    None,
    WindowFrame("range", None, None),
    WindowFrame("range", None, 0),
    WindowFrame("range", 0, 0),
    WindowFrame("range", 0, None),
    WindowFrame("rows", None, 0),
    WindowFrame("rows", -2, 1),
    WindowFrame("rows", 0, None),
    WindowFrame("rows", 1, 3),
    WindowFrame("rows", -4, -2),
    WindowFrame("rows", None, None),
]


class Part:
    """The rows of one partition, sorted."""

    def __init__(self, rows: list[Row], schema: pa.Schema, order: list[tuple[str, bool, bool]]):
        self.schema, self.ordered = schema, bool(order)
        keys = [(schema.names.index(n), ordering(d, first)) for n, d, first in order]
        self.keys = [[make(row[place]) for place, make in keys] for row in rows]
        places = sorted(range(len(rows)), key=lambda n: self.keys[n])
        self.rows = [rows[n] for n in places]
        self.keys = [self.keys[n] for n in places]

    def column(self, name: str) -> list[Any]:
        return [row[self.schema.names.index(name)] for row in self.rows]

    def peers(self, place: int) -> tuple[int, int]:
        same = [n for n, other in enumerate(self.keys) if other == self.keys[place]]
        return same[0], same[-1] + 1

    def frame(self, frame: WindowFrame | None, place: int) -> range:
        frame = frame or WindowFrame("range", None, 0 if self.ordered else None)
        first, last = self.peers(place) if frame.unit == "range" else (place, place + 1)
        start = 0 if frame.start is None else first + frame.start
        end = len(self.rows) if frame.end is None else last + frame.end
        return range(max(start, 0), max(min(end, len(self.rows)), 0))


def brute(one: WindowFunction, part: Part, place: int) -> Any:
    """One function for one row."""
    name, count = one.function, len(part.rows)
    first, last = part.peers(place)
    simple = {"row_number": place + 1, "rank": first + 1, "cume_dist": last / count}
    if name in simple:
        return simple[name]
    if name == "dense_rank":
        return len({part.peers(n)[0] for n in range(place + 1)})
    if name == "percent_rank":
        return first / (count - 1) if count > 1 else 0.0
    if name == "ntile":
        sizes = [count // one.number + (n < count % one.number) for n in range(one.number)]
        return next(n + 1 for n in range(one.number) if place < sum(sizes[: n + 1]))
    values = part.column(one.arguments[0]) if one.arguments else part.rows
    frame = part.frame(one.frame, place)
    if name in ("lag", "lead"):
        return shifted(one, part, values, place)
    if name in ("first_value", "last_value", "nth_value"):
        seen = [values[n] for n in frame if values[n] is not None or not one.ignore_nulls]
        chosen = {"first_value": 0, "last_value": len(seen) - 1}.get(name, one.number - 1)
        return seen[chosen] if 0 <= chosen < len(seen) else None
    if not one.arguments:
        return len(frame)
    type_ = part.schema.field(one.arguments[0]).type
    return evaluate(Aggregate(name, 0, type_, ""), [(values[n], 0, n) for n in frame])


def shifted(one: WindowFunction, part: Part, values: list[Any], place: int) -> Any:
    step = one.number if one.function == "lead" else -one.number
    if step == 0:
        return values[place]
    seen = [n for n, value in enumerate(values) if value is not None or not one.ignore_nulls]
    beyond = [n for n in seen if n > place] if step > 0 else [n for n in seen if n < place][::-1]
    if len(beyond) >= abs(step):
        return values[beyond[abs(step) - 1]]
    return part.column(one.arguments[1])[place] if len(one.arguments) > 1 else None


PEERS = ["rank", "dense_rank", "percent_rank", "cume_dist"]  # equal for rows of equal order
SINGLE = ["row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value"]


def random_function(
    rng: random.Random, type_: pa.DataType, in_order: bool, name: str
) -> WindowFunction:
    """One function; `in_order`: perhaps one that depends on the order of rows that are equal in it."""
    framed = ["count", "count", "min", "max"]
    framed += ["sum", "avg"] if type_ in NUMBERS or type_ in DECIMALS else []
    framed += ["bool_and", "bool_or"] if pa.types.is_boolean(type_) else []
    function = rng.choice([*PEERS, *framed, *(SINGLE if in_order else [])])
    arguments: tuple[str, ...] = ("v",)
    if function in ("row_number", "ntile", *PEERS) or (function == "count" and rng.random() < 0.5):
        arguments = ()
    elif function in ("lag", "lead") and rng.random() < 0.5:
        arguments = ("v", "d")
    numbers = {
        "ntile": [1, 3, 4],
        "nth_value": [1, 2, 3],
        "lag": [-1, 0, 1, 2],
        "lead": [-1, 0, 1, 2],
    }
    return WindowFunction(
        function,
        arguments,
        name,
        frame=rng.choice([f for f in FRAMES if in_order or f is None or f.unit == "range"]),
        number=rng.choice(numbers.get(function, [1])),
        ignore_nulls=rng.random() < 0.5,
    )


def check_over(seed: int) -> None:
    rng = random.Random(seed)
    type_ = rng.choice(ALL_TYPES)
    fields = [("k", rng.choice([pa.int64(), pa.string()])), ("a", rng.choice(ALL_TYPES))]
    schema = pa.schema([*fields, ("v", type_), ("d", type_), ("u", pa.int64())])
    partition = rng.choice([[], ["k"], ["k"]])
    names = rng.sample(["a", "v", "d"], rng.choice([0, 1, 1, 2]))
    order = [(name, rng.random() < 0.5, rng.random() < 0.5) for name in names]
    takes_back, duplicates = rng.random() < 0.7, rng.random() < 0.4
    functions = [
        random_function(rng, type_, not duplicates, f"f{number}")
        for number in range(rng.choice([1, 3, 12]))
    ]
    unique = itertools.count()

    def draw() -> Row:
        return (*random_row(rng, schema)[:-1], 0 if duplicates else next(unique))

    def expected(rows: list[Row]) -> list[Row]:
        parts: dict[Any, list[Row]] = defaultdict(list)
        for row in rows:
            parts[key(row[schema.names.index(name)] for name in partition)].append(row)
        sorted_ = [Part(part, schema, order) for part in parts.values()]
        return [
            (*row, *(brute(one, part, place) for one in functions))
            for part in sorted_
            for place, row in enumerate(part.rows)
        ]

    def make() -> OverRows:
        return OverRows(schema, partition, order, functions, takes_back)

    run(rng, make, schema, expected, takes_back, draw, duplicates, batches=8)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_window_functions_equal_all_rows_evaluated(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrangement, "LEAST_DEAD", 2)
    for seed in range(first, first + 20):
        check_over(seed)


SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64())])


def test_only_rows_whose_values_changed_are_given_anew() -> None:
    over = OverRows(
        SCHEMA, ["k"], [("v", False, True)], [WindowFunction("lag", ("v",), "before")], True
    )
    over.apply(changes_of([(1, 10), (1, 20), (1, 30), (2, 1)], [], SCHEMA))
    out = over.apply(changes_of([(1, 15)], [], SCHEMA))
    found = list(zip(out.signs.tolist(), tuples(out.rows), strict=True))
    assert sorted(found) == [(-1, (1, 20, 10)), (1, (1, 15, 10)), (1, (1, 20, 15))]


def test_exact_sums_of_frames_that_do_not_fit_one_word() -> None:
    most = 2**63 - 1
    functions = [
        WindowFunction("sum", ("v",), "s", frame=WindowFrame("rows", -1, 0)),
        WindowFunction("avg", ("v",), "a", frame=WindowFrame("rows", None, None)),
    ]
    over = OverRows(SCHEMA, [], [("k", False, True)], functions, True)
    rows = [(1, most), (2, -most), (3, most)]
    out = tuples(over.apply(changes_of(rows, [], SCHEMA)).rows)
    assert sorted(out) == [
        (1, most, most, most / 3),
        (2, -most, 0, most / 3),
        (3, most, 0, most / 3),
    ]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_sum_that_does_not_fit_raises_until_the_row_is_gone(restarted: bool) -> None:
    def make() -> OverRows:
        return OverRows(SCHEMA, ["k"], [], [WindowFunction("sum", ("v",), "s")], True)

    over, large = make(), 2**63 - 1
    over.apply(changes_of([(1, large), (2, 1)], [], SCHEMA))
    with pytest.raises(DataError, match="out of range"):
        over.apply(changes_of([(1, 1), (2, 5)], [(2, 1)], SCHEMA))
    with pytest.raises(DataError, match="out of range"):
        over.apply(changes_of([], [], SCHEMA))
    if restarted:
        again = make()
        load(again, dump(over))
        over = again
    out = over.apply(changes_of([], [(1, large)], SCHEMA))
    found = list(zip(out.signs.tolist(), tuples(out.rows), strict=True))
    assert sorted(found) == [
        (-1, (1, large, large)),
        (-1, (2, 1, 1)),
        (1, (1, 1, 1)),
        (1, (2, 5, 5)),
    ]


def test_what_is_not_kept_is_refused() -> None:
    with pytest.raises(NotSupportedError):
        OverRows(SCHEMA, [], [], [WindowFunction("stddev", ("v",), "s")], True)


def near(rows: list[Row], frame: WindowFrame, way: tuple[bool, bool], place: int) -> list[Row]:
    """The rows of a frame by values; `rows` are sorted by (order value, any value)."""
    descending, nulls_first = way
    own, sign = rows[place][1], -1 if descending else 1
    found = []
    for row in rows:
        if own is None or row[1] is None:
            both = own is None and row[1] is None
            before = (row[1] is None) == nulls_first
            open_end = frame.start is None if before else frame.end is None
            inside = both or open_end
        else:
            far = sign * (row[1] - own)
            inside = (frame.start is None or far >= frame.start) and (
                frame.end is None or far <= frame.end
            )
        found += [row] if inside else []
    return found


@pytest.mark.parametrize("way", [*itertools.product([False, True], [False, True])])
def test_frames_by_values_of_the_order(way: tuple[bool, bool]) -> None:
    schema = pa.schema([("k", pa.int64()), ("a", pa.int16()), ("v", pa.int64())])
    frames = [(-2, 1), (None, -1), (1, None), (2, 5), (-5, -2), (0, 3)]

    def expected(rows: list[Row], frame: WindowFrame) -> list[Row]:
        found = []
        for row in rows:
            part = [other for other in rows if other[0] == row[0]]
            seen = near(part, frame, way, part.index(row))
            values = [other[2] for other in seen if other[2] is not None]
            found.append((*row, sum(values) if values else None, len(seen)))
        return found

    for seed, bounds in enumerate(frames * 2):
        frame = WindowFrame("range", *bounds)
        functions = [
            WindowFunction("sum", ("v",), "total", frame=frame),
            WindowFunction("count", (), "many", frame=frame),
        ]
        rng = random.Random(seed)
        run(
            rng,
            lambda functions=functions: OverRows(schema, ["k"], [("a", *way)], functions, True),
            schema,
            lambda rows, frame=frame: expected(rows, frame),
            True,
            lambda rng=rng: (
                rng.randrange(2),
                rng.choice([None, *range(-4, 5)]),
                rng.choice([None, 1, 2]),
            ),
            duplicates=True,
        )


def test_a_bound_that_the_order_cannot_hold_raises() -> None:
    schema = pa.schema([("a", pa.int16()), ("v", pa.int64())])
    one = WindowFunction("sum", ("v",), "total", frame=WindowFrame("range", 0, 1))
    over = OverRows(schema, [], [("a", False, True)], [one], True)
    over.apply(changes_of([(32766, 1), (None, 2)], [], schema))
    with pytest.raises(DataError):
        over.apply(changes_of([(32767, 1)], [], schema))


def test_offsets_need_one_order_of_whole_numbers() -> None:
    schema = pa.schema([("a", pa.int16()), ("x", pa.float64())])
    one = WindowFunction("count", (), "n", pa.int64(), frame=WindowFrame("range", -1, 1))
    for order in ([], [("x", False, True)], [("a", False, True), ("x", False, True)]):
        with pytest.raises(NotSupportedError):
            OverRows(schema, [], order, [one], True)
