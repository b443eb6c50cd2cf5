"""Wrong passwords are counted, and a guesser is made to wait."""

from __future__ import annotations

import pytest

import headwater
from headwater.server.attempts import MOST_FAILURES, REMEMBERED, WINDOW_S, Attempts
from headwater.server.http.failure import HttpError
from headwater.server.http.server import HttpOptions, HttpServer
from tests.server.http.client import Client, basic
from tests.server.live import Live

HERE, THERE = ("10.0.0.1", "ada"), ("10.0.0.2", "ada")


def test_the_bound() -> None:
    """After so many failures nothing is checked, from that address, until the time is over."""
    now = 0.0
    found = Attempts(lambda: now)
    for _ in range(MOST_FAILURES):
        found.check(HERE)
        found.failed(HERE)
    with pytest.raises(HttpError) as caught:
        found.check(HERE)
    assert caught.value.status == 429
    found.check(THERE)
    now = WINDOW_S + 1
    found.check(HERE)
    found.failed(HERE)
    found.check(HERE)


def test_a_right_password_forgives() -> None:
    """Whoever mistypes now and then is never locked out."""
    found = Attempts()
    for _ in range(5):
        for _ in range(MOST_FAILURES - 1):
            found.failed(HERE)
        found.check(HERE)
        found.passed(HERE)


def test_the_memory_is_bounded() -> None:
    """Names that somebody makes up cost no more than the bound."""
    found = Attempts()
    for number in range(REMEMBERED + 100):
        found.failed(("10.0.0.1", str(number)))
    assert len(found._failures) == REMEMBERED


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
                assert answer.headers["retry-after"] == "60"
            with Client(live, basic("bob", "right")) as client:
                assert client.ask("GET", "/console/names").status == 200
