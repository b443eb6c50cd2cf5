"""`[k ROWS n]` where only rows of the instant are asked for; views that are sampled less often."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import headwater

FORMS = (
    ("s [k ROWS 3]", "t = CURRENT_INSTANT()"),
    ("s [k ROWS 2] a", "v < 8 AND CURRENT_INSTANT() = a.t"),
    ("s [k ROWS 3]", "t = CURRENT_INSTANT() - 1"),
    ("s [k ROWS 3]", "(t = CURRENT_INSTANT() OR v = 1)"),
)


def _results(db: headwater.Database, name: str) -> list[Any]:
    found = db.subscribe(name, after="earliest", timeout=0.05)
    return [(out.time, sorted(out.rows(), key=repr)) for out in found]


@pytest.mark.parametrize("range_", ["", "RANGE INTERVAL '6' SECOND"])
def test_rows_of_now_are_those_of_the_whole_window(range_: str, tmp_path: Path) -> None:
    """Folding and re-evaluation agree, with ties, gaps, several instants at once and a restart."""
    rng = random.Random(len(range_))
    selects = [
        f"SELECT k, t, v, PREV(v) AS p, PREV(v + t, 2) AS q FROM {source} WHERE {condition} "
        f"SAMPLE INTERVAL {1 + number % 2} SECOND"
        for number, (source, condition) in enumerate(FORMS)
    ]
    with headwater.connect(tmp_path) as db:
        db.sql(f"CREATE STREAMING TABLE s (k INT, t INT, v INT) TIMESTAMP BY t {range_}")
        for number, select in enumerate(selects):
            for mode in ("fold", "reevaluate"):
                db.sql(f"CREATE CONTINUOUS QUERY {mode}{number} WITH (mode = '{mode}') AS {select}")
        _feed(db, rng, range(1, 15))
    with headwater.connect(tmp_path) as db:
        _feed(db, rng, range(15, 28))
        for number, _ in enumerate(selects):
            folded = _results(db, f"fold{number}")
            assert folded == _results(db, f"reevaluate{number}")
            assert any(rows for _, rows in folded)


def test_several_evaluations_at_one_time_see_all_its_rows() -> None:
    """By SAMPLE n ROWS a time may be that of several evaluations: keys without a new row count too."""
    select = "SELECT k, v FROM s [k ROWS 2] WHERE t = CURRENT_INSTANT() SAMPLE 1 ROWS"
    with headwater.connect() as db:
        db.sql("CREATE STREAMING TABLE s (k INT, t INT, v INT) TIMESTAMP BY t")
        for mode in ("fold", "reevaluate"):
            db.sql(f"CREATE CONTINUOUS QUERY {mode} WITH (mode = '{mode}') AS {select}")
        db.insert("s", [(1, 5, 10), (2, 5, 20), (3, 6, 30), (1, 6, 40)])
        db.advance("s", 6)
        db.flush()
        found = _results(db, "fold")
        assert [[row[0] for row in rows] for _, rows in found] == [[1], [1, 2], [3], [1, 3]]
        assert found == _results(db, "reevaluate")


def _feed(db: headwater.Database, rng: random.Random, seconds: range) -> None:
    for second in seconds:
        rows = [(rng.randrange(4), second, rng.randrange(10)) for _ in range(rng.randrange(6))]
        db.insert("s", rows)
        if rng.random() < 0.4:
            db.advance("s", second)
    db.advance("s", seconds[-1])
    db.flush()


def test_a_view_holds_nothing_back_between_its_instants() -> None:
    """A query each second sees what a view per ten seconds said last, without waiting for the next."""
    with headwater.connect() as db:
        db.sql("CREATE STREAMING TABLE s (t INT, v INT, k INT) TIMESTAMP BY t")
        db.sql("CREATE MATERIALIZED VIEW tens AS SELECT k, sum(v) AS total FROM s "
               "[INTERVAL 10 SECONDS BEFORE] GROUP BY k SAMPLE INTERVAL 10 SECONDS")  # fmt: skip
        db.sql("CREATE CONTINUOUS QUERY now AS SELECT a.v, b.total FROM "
               "(SELECT k, v FROM s [INTERVAL 1 SECOND] WHERE t = CURRENT_INSTANT()) a LEFT JOIN "
               "(SELECT k, total FROM tens [INTERVAL 9 SECONDS]) b ON a.k = b.k "
               "SAMPLE INTERVAL 1 SECOND")  # fmt: skip
        db.sql("CREATE CONTINUOUS QUERY alone AS SELECT count(*) AS n FROM tens "
               "[INTERVAL 20 SECONDS] SAMPLE INTERVAL 5 SECONDS")  # fmt: skip
        for second in (*range(10, 14), *range(18, 22)):
            db.insert("s", [(second, second, 1)])
            db.advance("s", second)
            db.flush()
            found = _results(db, "now")
            assert found[-1][0] == second
            total = None if second < 20 else 10 + 11 + 12 + 13 + 18 + 19
            assert found[-1][1] == [(second, total, second)]
        assert _results(db, "alone") == [(20, [(1, 20)])]  # of a view alone its own clock decides
