"""The benchmark of epochs at tiny sizes: right answers, voids, targets, pictures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.datacell.series import Answers, Series, difference
from benchmarks.ecq import data, duck, ours, plots, run
from benchmarks.ecq.ours import Work
from benchmarks.ecq.queries import Q_B, Q_C, Q_D, Query
from benchmarks.ecq.sizes import Sizes
from benchmarks.ecq.targets import ON_SPARK, OURS, targets

SIZE = 300
CHUNKS = 2
TINY = Sizes(
    chunk_sizes=(SIZE,),
    chunks=1,
    warm_up=0,
    slow_chunks=1,
    slow_warm_up=0,
    many_size=SIZE,
    many_chunks=1,
    spark_sizes=(SIZE,),
    plain_sizes=(),
)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Databases and reports go into a folder of the test."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def by_hand(query: Query) -> Answers:
    """What each chunk's answer must be, in plain Python."""
    return {data.end_of(number): _answer(query, number) for number in range(CHUNKS)}


def _answer(query: Query, number: int) -> tuple[float, ...]:
    rows = {name: table.to_pylist() for name, table in data.chunk(number, SIZE).items()}
    if query is Q_D:
        return number, sum(row["bytes"] for row in rows["rt1"]) / SIZE
    if query is Q_B:
        host = {row["ip"]: row["host_id"] for row in data.hosts().to_pylist()}
        sums: Counter[tuple[int, int]] = Counter()
        for row in rows["rt1"]:
            sums[host[row["from_ip"]], host[row["to_ip"]]] += row["bytes"]
        weighted = [sum(pair[side] * total for pair, total in sums.items()) for side in (0, 1)]
        return len(sums), sum(sums.values()), *weighted
    seen = {row["pid"]: row["seen"] for row in rows["rt1"]}
    delays = [row["seen"] - seen[row["pid"]] for row in rows["rt2"] if row["pid"] in seen]
    assert len(delays) == round(data.BOTH * SIZE)
    return number, sum(delays) / len(delays)


@pytest.mark.parametrize(
    "query",
    [pytest.param(Q_B, marks=pytest.mark.large), Q_C, Q_D],
    ids=lambda query: query.name,
)
def test_all_systems_answer_as_by_hand(query: Query) -> None:
    """Epochs by operators and on Spark, iterated queries over both kinds of tables, and DuckDB."""
    expected = by_hand(query)
    work = Work(query, SIZE, CHUNKS - 1, 1)
    peer, with_loading = duck.one_time(work)
    found = {
        OURS: ours.epochs(work),
        ON_SPARK: ours.epochs(work, spark_sql_only=True),
        "streaming table": ours.iterated(work, "STREAMING TABLE"),
        "table": ours.iterated(work, "TABLE"),
        "DuckDB": peer,
        "DuckDB, loading": with_loading,
    }
    for name, series in found.items():
        assert series.answers.keys() == expected.keys(), name
        assert difference(expected, series.answers) is None, name
        assert len(series.response_ms) == CHUNKS - 1, name  # the warm-up is not counted
    assert found[ON_SPARK].notes["tier"] == "Spark"


@pytest.mark.parametrize("query", [Q_C, Q_D], ids=lambda query: query.name)
def test_what_the_engine_did_is_noted(query: Query) -> None:
    """Q_c, whose argument reads both streams, and Q_d are answered by operators."""
    series = ours.epochs(Work(query, SIZE, CHUNKS, 0))
    assert difference(by_hand(query), series.answers) is None
    assert series.notes["tier"] == "operators"
    assert series.notes["with_cut_ms"] >= min(series.response_ms)


def test_a_run_keeps_figures_and_pictures(own_folder: Path) -> None:
    """One small run: nothing void, all systems there, a JSON file and two pictures."""
    pytest.importorskip("matplotlib")
    assert run.measure(TINY, quick=True) == 0
    kept = json.loads((own_folder / report.FOLDER / "ecq.json").read_text())
    assert set(kept["fig6"]) == {"Q_b", "Q_c"}
    (point,) = kept["fig7"]["Q_c"]
    assert set(point["systems"]) == set(plots.STYLES) - {
        "iterated, table",
        "plain Spark SQL, Parquet",
    }
    assert all(found["void"] is None for found in point["systems"].values())
    assert len(kept["targets"]) == 2 + 2 * 2
    for name in ("fig6", "fig7"):
        picture = own_folder / report.FOLDER / f"ecq_{name}.png"
        assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_wrong_answer_makes_a_row_void(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A peer that differs is void, reaches no target, and the run fails."""

    def series(answer: float) -> Series:
        return Series([2.0], [3.0], {60: (0, answer)}, {"query_ms": 1.0})

    monkeypatch.setattr(ours, "epochs", lambda *_, **__: series(1.0))
    monkeypatch.setattr(ours, "iterated", lambda *_: series(1.5))
    monkeypatch.setattr(duck, "one_time", lambda *_: (series(1.0), series(1.0)))
    monkeypatch.setattr(plots, "draw", lambda *_: [])
    assert run.measure(replace(TINY, spark_sizes=()), quick=True) == 1
    told = capsys.readouterr().out
    assert "void: fig6 Q_b systems iterated, table: at 60: (0, 1.5) instead of (0, 1.0)" in told
    assert told.count("void or missing") == 4


def test_the_target_is_the_fastest_iterated_query() -> None:
    """The ratio is that of medians, to the faster kind of table; one below five is missed."""

    def system(median_ms: float) -> dict[str, object]:
        return {"median_ms": median_ms, "void": None}

    slow, fast = system(90.0), system(60.0)
    systems = {OURS: system(10.0), ON_SPARK: system(20.0), "iterated, a": slow, "iterated, b": fast}
    figures = {"fig6": {}, "fig7": {"Q_c": [{"size": 10, "systems": systems}]}}
    rows = [target.row() for target in targets(figures)]
    assert [row[1:] for row in rows] == [("6.00", "≥ 5", "met"), ("3.00", "≥ 5", "missed")]
