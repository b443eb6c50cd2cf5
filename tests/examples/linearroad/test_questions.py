"""The questions of the Linear Road demo: what is asked when, and the answers in words."""

from __future__ import annotations

import pyarrow as pa
from headwater.examples.linearroad.demo.figures import Accident
from headwater.examples.linearroad.demo.questions import (
    Questions,
    Trajectory,
    critical_in_words,
    dynamics_in_words,
    places,
    witnesses_in_words,
)


class Answers:
    """A database that knows the answers."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def sql(self, text: str) -> Answers:
        self.asked.append(text)
        return self

    def rows(self) -> list[tuple[object, ...]]:
        answers = {
            "CALL accident_dynamics": [(7, "1.0@50 → 2.0@0")],
            "CALL near": [(7, 9600, 9630, 0)],
            "CALL choose_critical": [(0, 1, 5)],
            "SELECT * FROM critical_segments": [(0, 1, 5, 80, 12.4, 9660)],
        }
        return next(rows for start, rows in answers.items() if self.asked[-1].startswith(start))


def test_a_trajectory_is_in_order_of_time() -> None:
    """Whatever the order of rows and parts; a car that stands is one point."""
    first, second = Trajectory(), Trajectory()
    first.init()
    second.init()
    first.add(pa.record_batch({"t": [9690, 9600], "pos": [10560, 5280], "speed": [0, 50]}))
    second.add(pa.record_batch({"t": [9660, 9630], "pos": [10560, 10560], "speed": [0, 30]}))
    first.merge(second)
    assert first.finish() == "1.0@50 → 2.0@30 → 2.0@0"


def test_the_questions_take_turns() -> None:
    """The newest accident is asked about; the list of critical segments is made once."""
    old, new = Accident(0, 1, 5, 9660), Accident(0, 0, 7, 9720)
    known: list[Accident] = []
    db = Answers()
    questions = Questions(db, lambda: known)  # type: ignore[arg-type]
    assert [questions.next() for _ in range(3)] == [None, None, None]
    assert db.asked == ["CALL choose_critical(4)"]
    known.append(old)
    found = [questions.next() for _ in range(3)]
    assert [q.title if q else "" for q in found] == [
        "critical segments",
        "accident dynamics",
        "possible witnesses",
    ]
    assert db.asked[2] == "CALL accident_dynamics(0, 1, 5, 9360, 9660)"
    known.insert(0, new)
    questions.next()
    questions.next()
    assert db.asked[-1] == f"CALL accident_dynamics({places(new)})"
    assert sum("choose" in text for text in db.asked) == 1


def test_answers_in_words() -> None:
    """Short enough for the screen: the last points of a trajectory, the slowest cars."""
    rows = [(7, "1.0@50 → 2.0@40 → 3.0@30 → 3.1@0"), (8, "3.1@0")]
    assert dynamics_in_words(rows) == (
        "2 cars, mile@mph: car 7 2.0@40 → 3.0@30 → 3.1@0; car 8 3.1@0"
    )
    near = [(vid, 9600, 9630, 60 - vid) for vid in range(1, 2001)]
    assert witnesses_in_words(near).startswith("2,000 cars passed within a mile; slowest 2000 (")
    assert witnesses_in_words([]) == "nobody"
    assert critical_in_words([(0, 1, 5, 80, 12.4, 9660), (0, 0, 6, 0, None, 9660)]) == (
        "mile 5← 80 cars, 12 mph; mile 6→ 0 cars, 0 mph"
    )
