"""What is under way in a database: who is cancelled, when, and who waits for whom."""

from __future__ import annotations

import threading

from headwater.kernel.cancellation import Cancellation, UnderWay
from tests.harness.patience import PATIENCE_S


def wait_for(cancellation: Cancellation) -> None:
    """Until somebody cancels it."""
    asked = threading.Event()
    cancellation._actions.append(asked.set)
    assert cancellation.requested or asked.wait(PATIENCE_S)


def watchers() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "headwater-statement-limits"]


def test_what_takes_too_long_is_cancelled_and_nothing_else() -> None:
    """A shorter limit that comes later is kept too; one thread watches all of them."""
    under_way = UnderWay()
    free, long, short = Cancellation(), Cancellation(), Cancellation()
    under_way.begin(free)
    assert not watchers(), "without a limit nobody watches"
    under_way.begin(long, 3600.0, "long")
    under_way.begin(short, 0.01, "short")
    wait_for(short)
    assert short.reason == "short"
    assert not free.requested
    assert not long.requested
    assert len(watchers()) == 1
    for each in (free, long, short):
        under_way.end(each)
    under_way.close(PATIENCE_S)
    assert not watchers()


def test_a_statement_that_has_ended_is_not_cancelled() -> None:
    under_way = UnderWay()
    done, late = Cancellation(), Cancellation()
    under_way.begin(done, 0.01, "done")
    under_way.end(done)
    under_way.begin(late, 0.02, "late")
    wait_for(late)
    assert not done.requested
    under_way.end(late)
    under_way.close(PATIENCE_S)


def test_a_watcher_that_ended_is_followed_by_another() -> None:
    under_way = UnderWay()
    for _ in range(2):
        first, last = Cancellation(), Cancellation()
        under_way.begin(first, 0.001, "late")
        wait_for(first)
        under_way.end(first)
        for watcher in watchers():  # nothing is left to watch
            watcher.join(PATIENCE_S)
        under_way.begin(last, 0.001, "late")
        wait_for(last)
        under_way.end(last)
    under_way.close(PATIENCE_S)
    assert not watchers()


def test_nobody_watches_after_the_end() -> None:
    under_way = UnderWay()
    under_way.close(PATIENCE_S)
    under_way.begin(Cancellation(), 3600.0, "long")
    assert not watchers()


def test_closing_cancels_and_waits() -> None:
    under_way = UnderWay()
    each = Cancellation()
    under_way.begin(each, 3600.0, "long")
    closing = threading.Thread(target=under_way.close, args=[PATIENCE_S])
    closing.start()
    wait_for(each)
    assert len(under_way) == 1
    under_way.end(each)
    closing.join(PATIENCE_S)
    assert not closing.is_alive()
    assert not watchers()
