"""Where queries go, and what moves: by what they cost, together where they share state."""

from __future__ import annotations

import random

import pytest

from headwater.factories.placement import (
    IDLE,
    LEAST_GAIN,
    REMEMBERED_S,
    SPLIT_LOAD,
    SPLIT_ROWS,
    UNITE_LOAD,
    Group,
    Loads,
    best,
    together,
    worth_moving,
    worth_splitting,
    worth_uniting,
)


def group(name: str, load: float = 0.0, *shares: str) -> Group:
    return Group((name,), load, frozenset(shares))


def test_a_query_goes_where_least_is_done() -> None:
    busy, idle = [group("a", 0.8)], [group("b", 0.1), group("c", 0.1), group("d", 0.1)]
    assert best([busy, idle], group("new")) == 1
    assert best([idle, busy], group("new")) == 0


def test_where_nothing_is_known_the_fewest_queries_decide() -> None:
    assert best([[group("a"), group("b")], [group("c")]], group("new")) == 1
    assert best([[group("a", 0.001)], []], group("new")) == 1
    assert best([[], []], group("new")) == 0
    united = Group(("a", "b", "c"), 0.0)
    assert best([[united], [group("d"), group("e")]], group("new")) == 1


def test_folds_that_can_be_shared_come_first() -> None:
    busy, idle = [group("a", 0.9, "fold")], [group("b", 0.0, "another")]
    assert best([idle, busy], group("new", 0.0, "fold")) == 1
    assert best([idle, busy], group("new")) == 0


def test_parts_of_a_view_go_apart() -> None:
    one, two, other = (
        Group((f"v/{n}",), 0.1, parts_of=frozenset([view])) for n, view in enumerate((7, 7, 8))
    )
    idle, many = [one], [group("a", 0.5), group("b", 0.3), group("c")]
    assert best([idle, many], two) == 1
    assert best([idle, many], other) == 0
    assert best([idle, [one, two, *many]], two) == 0


def test_a_view_that_is_too_much_for_a_factory_is_split() -> None:
    heavy, rows = group("v", SPLIT_LOAD + 0.1), {"v": SPLIT_ROWS, "w": SPLIT_ROWS}
    assert worth_splitting([[heavy], []], rows) == "v"
    assert worth_splitting([[group("a", 0.05)], [heavy, group("w", 0.1)]], rows) == "v"
    assert worth_splitting([[heavy]], rows) is None  # there is nowhere to go
    assert worth_splitting([[heavy], [group("a", IDLE + 0.1)]], rows) is None  # nobody is idle
    assert worth_splitting([[heavy, group("a", 0.3)], []], rows) is None  # a move helps
    assert worth_splitting([[group("v", SPLIT_LOAD - 0.1)], []], rows) is None
    assert (
        worth_splitting([[heavy], []], {"v": SPLIT_ROWS - 1}) is None
    )  # small inserts: each costs the same
    assert (
        worth_splitting([[heavy], []], {"w": SPLIT_ROWS}) is None
    )  # somebody said how many parts it has
    shared = Group(("v", "w"), SPLIT_LOAD + 0.1)
    assert worth_splitting([[shared], []], rows) is None


def test_many_queries_without_load_are_spread_evenly() -> None:
    places: list[list[Group]] = [[], [], []]
    for number in range(30):
        new = group(f"q{number}")
        places[best(places, new)].append(new)
    assert [len(place) for place in places] == [10, 10, 10]


def test_what_has_something_in_common_is_one_group() -> None:
    shares = {"a": ["x"], "b": ["y"], "c": [], "d": ["x", "y"], "e": ["z"], "f": ["z"], "g": []}
    assert together(shares) == [("a", "b", "d"), ("c",), ("e", "f"), ("g",)]
    assert together({}) == []


@pytest.mark.parametrize("seed", range(20))
def test_groups_are_the_parts_that_hang_together(seed: int) -> None:
    choose = random.Random(seed)
    shares = {f"q{n}": choose.sample(range(12), choose.choice((0, 0, 1, 1, 2))) for n in range(20)}
    groups = together(shares)
    assert sorted(name for members in groups for name in members) == sorted(shares)
    of = {name: number for number, members in enumerate(groups) for name in members}
    reached = {name: {name} for name in shares}
    for _ in shares:
        for one in shares:
            for other in shares:
                if set(shares[one]) & set(shares[other]):
                    reached[one] |= reached[other]
    for one in shares:
        assert {other for other in shares if of[other] == of[one]} == reached[one]


def test_a_move_takes_from_the_busiest_what_evens_out_best() -> None:
    busy = [group("large", 0.9), group("middle", 0.5), group("small", 0.1)]
    move = worth_moving([busy, [group("other", 0.2)], [group("third", 0.6)]])
    assert move is not None
    assert (move.group.names, move.origin, move.target) == (("middle",), 0, 1)


def test_no_move_where_it_does_not_pay() -> None:
    assert worth_moving([]) is None
    assert worth_moving([[group("a", 5.0)]]) is None  # nowhere to go
    assert worth_moving([[], []]) is None
    assert worth_moving([[group("a", 0.9)], []]) is None  # one alone is as busy there
    assert worth_moving([[group("a", 0.5), group("b", 0.04)], [group("c", 0.3)]]) is None
    assert worth_moving([[group("a", LEAST_GAIN / 2), group("b", LEAST_GAIN / 2)], []]) is None
    assert worth_moving([[group("a", 0.3), group("b", 0.3)], []]) is not None


@pytest.mark.parametrize("seed", range(20))
def test_moves_come_to_an_end(seed: int) -> None:
    """Each rids the busiest of something, so none is undone by the next."""
    choose = random.Random(seed)
    places = [
        [group(f"{p}.{n}", choose.random()) for n in range(choose.randint(0, 9))] for p in range(4)
    ]
    moves = 0
    while (move := worth_moving(places)) is not None:
        most = max(sum(one.load for one in there) for there in places)
        places[move.origin].remove(move.group)
        places[move.target].append(move.group)
        loads = [sum(one.load for one in there) for there in places]
        assert max(loads[move.origin], loads[move.target]) <= most - LEAST_GAIN + 1e-9
        moves += 1
        assert moves < 40


def test_loads_follow_what_is_measured() -> None:
    loads = Loads()
    loads.note({"a": 0.5}, ["a", "b"], 1.0)
    assert (loads.of(["a"]), loads.of(["b"]), loads.of(["unknown"])) == (0.5, 0.0, 0.0)
    for _ in range(50):
        loads.note({"b": 1.8}, ["a", "b"], 2.0)
    assert loads.of(["a"]) < 0.01
    assert loads.of(["b"]) == pytest.approx(0.9, abs=0.01)
    loads.note({}, ["b"], REMEMBERED_S)
    assert loads.of(["b"]) == pytest.approx(0.9 / 2.718, abs=0.02)
    loads.note({"b": 9.0}, ["b"], 0.0)  # no time has passed
    loads.keep({"a"})
    assert loads.of(["b"]) == 0.0


def test_parts_that_do_not_pay_are_united() -> None:
    assert worth_uniting({}, 2) is None
    assert worth_uniting({"v": (2, UNITE_LOAD)}, 2) is None
    assert worth_uniting({"v": (2, 1.0), "w": (2, UNITE_LOAD / 2)}, 2) == ("w", 1)
    assert worth_uniting({"v": (4, 1.0)}, 2) == ("v", 2)
    assert worth_uniting({"v": (4, 0.0)}, 2) == ("v", 1)
