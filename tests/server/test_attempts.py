"""Wrong passwords are counted, and a guesser is made to wait."""

from __future__ import annotations

import pytest

import headwater
from headwater.server.attempts import (
    MOST_FAILURES,
    REMEMBERED,
    WINDOW_S,
    Attempts,
    ThrottledError,
    key_of,
)
from headwater.server.http.server import HttpOptions, HttpServer
from tests.server.http.client import Client, basic
from tests.server.live import Live

HERE, THERE = key_of("10.0.0.1", "ada"), key_of("10.0.0.2", "ada")


def test_the_bound() -> None:
    """After so many failures nothing is told, from that address, until the time is over."""
    now = 0.0
    found = Attempts(lambda: now)
    for _ in range(MOST_FAILURES):
        found.check(HERE)
        found.settle(HERE, right=False)
    now = 20.0
    with pytest.raises(ThrottledError) as caught:
        found.check(HERE)
    assert (caught.value.sqlstate, caught.value.wait_s) == ("28000", WINDOW_S - 20)
    found.check(THERE)
    now = WINDOW_S + 1
    found.check(HERE)
    found.settle(HERE, right=False)
    found.check(HERE)


def test_guesses_side_by_side_are_bounded_too() -> None:
    """Guesses that were begun before the bound was reached tell nothing after it, not even the right one."""
    found = Attempts()
    for _ in range(MOST_FAILURES):
        found.settle(HERE, right=False)
    for right in (True, False):
        with pytest.raises(ThrottledError):
            found.settle(HERE, right=right)


def test_a_right_password_forgives() -> None:
    """Whoever mistypes now and then is never locked out."""
    found = Attempts()
    for _ in range(5):
        for _ in range(MOST_FAILURES - 1):
            found.settle(HERE, right=False)
        found.settle(HERE, right=True)


def test_the_memory_is_bounded() -> None:
    """Names that somebody makes up cost no more than the bound, however long they are."""
    found = Attempts()
    for number in range(REMEMBERED + 100):
        found.settle(key_of("10.0.0.1", str(number)), right=False)
    assert len(found._failures) == REMEMBERED
    assert len(key_of("10.0.0.1", "x" * 100_000)[1]) < 1000


def test_one_user_has_one_count() -> None:
    """Names are compared as the catalog does, and an address is what one subscriber has of them."""
    assert key_of("10.0.0.1", "ADA") == key_of("::ffff:10.0.0.1", "ada") == HERE
    assert key_of("2001:db8::1", "ada") == key_of("2001:db8::ffff:2", "ada")
    assert key_of("2001:db8::1", "ada") != key_of("2001:db8:0:1::1", "ada")


def test_over_http() -> None:
    """The right password does not show either once there were too many wrong ones; others go on."""
    with headwater.connect(settings={"eager_spark": False}) as database:
        database.sql("CREATE USER ada PASSWORD 'right' ROLE READER")
        database.sql("CREATE USER bob PASSWORD 'right' ROLE READER")
        with Live(HttpServer(database, HttpOptions(port=0))) as live:
            for _ in range(MOST_FAILURES):
                with Client(live, basic("ada", "wrong")) as client:
                    assert client.ask("GET", "/console/names").status == 401
            with Client(live, basic("ada", "right")) as client:
                answer = client.ask("GET", "/console/names")
                assert (answer.status, answer.sqlstate) == (429, "28000")
                assert 0 < int(answer.headers["retry-after"]) <= 60
            with Client(live, basic("bob", "right")) as client:
                assert client.ask("GET", "/console/names").status == 200
