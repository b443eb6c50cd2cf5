"""Who has to go when too many connections have not logged in, and how many may be logged in."""

from __future__ import annotations

import random

from headwater.server.waiting import Waiting, places


def test_the_oldest_of_a_full_address_goes() -> None:
    """The newest always gets in; another address loses nobody."""
    found: Waiting[int] = Waiting()
    for number in range(5):
        assert found.add(number, "10.0.0.1", most=100, most_of_address=5) is None
    assert found.add(100, "10.0.0.2", most=100, most_of_address=5) is None
    assert found.add(5, "10.0.0.1", most=100, most_of_address=5) == 0
    assert sorted(found) == [1, 2, 3, 4, 5, 100]


def test_the_largest_crowd_loses_first() -> None:
    """Where all together are too many, whoever has the most makes way, not the one that comes."""
    found: Waiting[int] = Waiting()
    for number in range(8):
        found.add(number, "10.0.0.1", most=10, most_of_address=10)
    for number in (20, 21):
        found.add(number, f"10.0.1.{number}", most=10, most_of_address=10)
    assert found.add(30, "10.0.2.1", most=10, most_of_address=10) == 0
    assert {20, 21, 30} <= set(found)


def test_who_has_left_takes_no_place() -> None:
    """A client that logged in or left is counted no more; leaving twice is nothing."""
    found: Waiting[int] = Waiting()
    found.add(1, "10.0.0.1", most=1, most_of_address=1)
    assert found.remove(1)
    assert not found.remove(1)
    assert found.add(2, "10.0.0.1", most=1, most_of_address=1) is None


def test_the_bounds_hold() -> None:
    """Whatever comes and goes, neither bound is ever passed, and nothing is kept of those who left."""
    dice = random.Random(3)
    found: Waiting[int] = Waiting()
    where: dict[int, str] = {}
    for number in range(5000):
        where[number] = f"10.0.0.{dice.randrange(8)}"
        gone = found.add(number, where[number], most=20, most_of_address=6)
        assert gone != number
        if dice.random() < 0.4:
            found.remove(dice.choice(list(found)))
        places_now = [where[each] for each in found]
        assert len(found) <= 20
        assert max(map(places_now.count, places_now), default=0) <= 6
    for each in found:
        found.remove(each)
    assert not found._places


def test_places() -> None:
    """The last places are an admin's; a server with few of them is not closed to others."""
    assert places(100, 3, admin=True) == 100
    assert places(100, 3, admin=False) == 97
    assert places(2, 3, admin=False) == 1
