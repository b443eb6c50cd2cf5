"""Both tiers fold every kind of DC4; the cheaper of folding and re-evaluating is found (DC4, DC5, DC8)."""

from __future__ import annotations

import pytest

import headwater
from headwater.engine.mode import FOLD, REEVALUATE, ModeChooser

pytestmark = pytest.mark.here  # the tests read the counters of queries, and set how one is run

ROWS_PER_SECOND = 40
KINDS = {
    "concatenation": "SELECT k, v + 1 AS w FROM s [INTERVAL 6 SECONDS BEFORE] WHERE v > 10",
    "compensation": "SELECT k, sum(v) AS t, min(v) AS low, max(v) AS high FROM s"
    " [INTERVAL 6 SECONDS BEFORE] GROUP BY k",
    "distinct": "SELECT DISTINCT k FROM s [INTERVAL 6 SECONDS BEFORE]",
    "expanding replication": "SELECT avg(v) AS a, stddev(v) AS d FROM s [INTERVAL 6 SECONDS BEFORE]",
    "synchronous replication": "SELECT k, count(*) AS n, count(DISTINCT v) AS m, avg(v) AS a FROM s"
    " [INTERVAL 6 SECONDS BEFORE] GROUP BY k HAVING count(*) > 1 ORDER BY n DESC, k LIMIT 3",
    "landmark": "SELECT k, count(*) AS n FROM s [LANDMARK] GROUP BY k",
    "with a table": "SELECT name, sum(v) AS t FROM s [INTERVAL 6 SECONDS BEFORE] JOIN names USING (k)"
    " GROUP BY name",
}  # fmt: skip


def _rows(second: int) -> list[tuple[int, int, int]]:
    return [(second, (second + n) % 5, (7 * second + n) % 50) for n in range(ROWS_PER_SECOND)]


def _fed(spark_sql_only: bool) -> headwater.Database:
    db = headwater.connect(settings={"spark_sql_only": spark_sql_only})
    db.sql("CREATE STREAMING TABLE s (ts INT, k INT, v INT) TIMESTAMP BY ts")
    db.sql("CREATE TABLE names (k INT, name STRING)")
    db.sql("INSERT INTO names VALUES (0, 'zero'), (1, 'one'), (2, 'two')")
    for number, text in enumerate(KINDS.values()):
        text = text.replace("BEFORE]", f"BEFORE] AS a{number}")  # so that no two share a pipeline
        head = f"CREATE CONTINUOUS QUERY q{number} WITH (mode = 'fold') AS "
        db.sql(f"{head}{text} SAMPLE INTERVAL 2 SECONDS")
    for slide in range(0, 12, 2):
        db.insert("s", _rows(slide) + _rows(slide + 1))
        db.advance("s", slide + 1)
        db.flush()
    db.advance("s", 12)
    db.flush()
    return db


def _results(db: headwater.Database, name: str) -> list[tuple[object, list[str]]]:
    found = db.subscribe(name, after="earliest", timeout=0.01)
    return [(out.time, sorted(map(_rounded, out.rows()))) for out in found]


def _rounded(row: tuple[object, ...]) -> str:
    """A row for comparison; floats are equal within rounding."""
    return repr([f"{value:.9g}" if isinstance(value, float) else value for value in row])


def test_every_kind_folds_in_both_tiers_and_spark_reads_the_new_pane_only() -> None:
    """DC4, DC5: with spark_sql_only Spark reads each row once, in the slide that brings it."""
    with _fed(True) as spark, _fed(False) as operators:
        for number, kind in enumerate(KINDS):
            name = f"q{number}"
            runs = [db._context.engine.find(name) for db in (spark, operators)]
            assert [run.error for run in runs if run is not None] == [None, None], kind
            assert runs[0].counters.rows_by_operators == 0, kind
            assert runs[0].counters.rows_on_spark == 12 * ROWS_PER_SECOND, kind
            assert runs[0].counters.last_spark_rows <= 2 * ROWS_PER_SECOND, kind
            assert runs[1].counters.rows_on_spark == 0, kind
            lines = [row[0] for row in spark.sql(f"EXPLAIN ANALYZE QUERY {name}").rows()]
            assert any(f"{runs[0].counters.last_spark_rows} by the last" in line for line in lines)
            assert any(f"stream pipeline: s {_window(kind)}, Spark" in line for line in lines), (
                lines
            )
            assert _results(spark, name) == _results(operators, name), kind
            assert len(_results(spark, name)) == 7, kind


def _window(kind: str) -> str:
    return "[LANDMARK]" if kind == "landmark" else "[6 s BEFORE]"


SMALL = "SELECT soundex(k) AS b, soundex(CAST(avg(v) AS STRING)) AS a FROM s [INTERVAL 2 SECONDS] GROUP BY 1"
LARGE = "SELECT k, sum(v) AS t FROM s [INTERVAL 400 SECONDS] GROUP BY k"


@pytest.mark.parametrize("start", [FOLD, REEVALUATE])
@pytest.mark.parametrize(("text", "best"), [(SMALL, REEVALUATE), (LARGE, FOLD)])
def test_the_cheaper_mode_runs_within_twenty_slides(text: str, best: str, start: str) -> None:
    """DC8: a tiny window that only Spark reads is cheaper evaluated again, a long one folded."""
    with headwater.connect() as db:
        db.sql("CREATE STREAMING TABLE s (ts INT, k STRING, v INT) TIMESTAMP BY ts")
        db.sql(f"CREATE CONTINUOUS QUERY q AS {text} SAMPLE INTERVAL 1 SECOND")
        query = db._context.engine.find("q")
        assert query is not None
        if best == FOLD:
            db.insert(
                "s",
                [(second, "abc"[second % 3], n) for second in range(-400, 0) for n in range(500)],
            )
        modes = []
        query.chooser = ModeChooser("auto", start)
        for second in range(30):
            db.insert("s", [(second, "a", second), (second, "b", 1)])
            db.advance("s", second)
            db.flush()
            modes.append(query.chooser.mode)
        assert query.error is None
        # Costs are measured: one slide that another process held up may bring a second trial.
        assert modes[20:].count(best) > 7, (modes, query.chooser.explain())
