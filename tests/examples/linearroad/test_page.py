"""The road as a page of the console: what it is sent, and where its server listens."""

from __future__ import annotations

import json
import socket

import pytest
from headwater.examples.linearroad.demo import page as road_page
from headwater.examples.linearroad.demo.figures import Accident
from headwater.examples.linearroad.demo.page import console, page_of
from headwater.examples.linearroad.demo.screen import (
    Lane,
    Moment,
    Responses,
    RoadState,
    ScreenStep,
    Toll,
)

import headwater

SPEEDS: list[float | None] = [None, 10.4, 30.0, 50.0, 79.0] * 20
STATE = RoadState(
    second=9665,
    reports=1_234_567,
    reports_per_second=16_789.4,
    tolls_charged=4_321_000,
    freshness_s=0.042,
    lanes=[Lane(0, 0, SPEEDS, frozenset({7, 3})), Lane(0, 1, SPEEDS)],
    responses={"tolls": Responses(1000, 0.034, 0.4)},
    tolls=[Toll(9600, 7, 30, 12), Toll(9601, 8, None, 13)],
    moments=[Moment(10.0, 0.2, {"tolls": 0.1}), Moment(11.0, None, {"balances": 0.3})],
)
ACCIDENTS = [Accident(0, 0, 7, 9660), Accident(0, 1, 40, 9600)]


def test_what_the_page_is_sent() -> None:
    """The newest first, accidents with what is asked about them, and all of it small JSON."""
    found = page_of(STATE, ACCIDENTS, [], flowing=True)
    assert found["clock"] == "2:41:05"
    assert found["lanes"][0]["speeds"][:3] == [None, 10, 30]
    assert found["lanes"][0]["accidents"] == [3, 7]
    assert found["tolls"] == [["2:40:01", 8, None, 13], ["2:40:00", 7, 30, 12]]
    assert found["moments"] == [
        [10.0, 0.2, 0.1, None, None, None],
        [11.0, None, None, None, 0.3, None],
    ]
    assert found["responses"][:2] == [[1000, 0.034, 0.4], [0, 0, 0]]
    assert [(a["now"], a["place"]) for a in found["accidents"]] == [
        (True, "0, 0, 7, 9360, 9660"),
        (False, "0, 1, 40, 9300, 9600"),
    ]
    assert [q["sql"] for q in found["questions"]] == [
        "CALL accident_dynamics({place})",
        "CALL near({place})",
        "SELECT * FROM critical_segments",
    ]
    assert len(json.dumps(found)) < 10_000


def test_until_traffic_flows() -> None:
    """The page says what is under way."""
    found = page_of(RoadState(), [], [ScreenStep("Spark starts", 0.1)], flowing=False)
    assert found["steps"] == ["Spark starts"]
    assert found["lanes"] == found["accidents"] == []


def test_a_port_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual port gives way to a free one; a port that was asked for does not."""
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        headwater.connect(settings={"eager_spark": False}) as database,
    ):
        port = taken.getsockname()[1]
        monkeypatch.setattr(road_page, "PORT", port)
        with console(database, None, dict) as other:
            assert other.host == "127.0.0.1"
            assert other.port != port
        with pytest.raises(OSError, match="in use"), console(database, port, dict):
            pass
