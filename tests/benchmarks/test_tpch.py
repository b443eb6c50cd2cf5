"""The benchmark of TPC-H's views over tables of a few rows: equal answers, voids, targets, pictures."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.tpch import answers, chunks, data, plots, tell, throughput
from benchmarks.tpch.queries import ALL
from benchmarks.tpch.targets import targets

MONEY = pa.decimal128(15, 2)
ROWS = 400


def money(values: Any) -> pa.Array:
    """Cents as decimals."""
    return pa.array([Decimal(int(v)).scaleb(-2) for v in values], MONEY)


def tables() -> dict[str, pa.Table]:
    """Tables in which every query finds something."""
    random = np.random.default_rng(0)
    first = date(1993, 6, 1)

    def days(count: int) -> pa.Array:
        return pa.array([first + timedelta(int(d)) for d in random.integers(0, 1200, count)])

    def below(bound: int, count: int) -> pa.Array:
        return pa.array(random.integers(0, bound, count))

    keys = {"nation": 2, "supplier": 6, "part": 8, "customer": 5, "orders": 60}
    ids = {name: pa.array(np.arange(count)) for name, count in keys.items()}
    text = {name: pa.array([f"{name} {n}" for n in range(c)]) for name, c in keys.items()}
    return {
        "nation": pa.table({"n_nationkey": ids["nation"], "n_name": pa.array(["CANADA", "PERU"])}),
        "supplier": pa.table(
            {
                "s_suppkey": ids["supplier"],
                "s_name": text["supplier"],
                "s_address": text["supplier"],
                "s_nationkey": below(2, 6),
                "s_phone": text["supplier"],
            }
        ),
        "part": pa.table(
            {
                "p_partkey": ids["part"],
                "p_name": pa.array(["forest green", "rose"] * 4),
            }
        ),
        "partsupp": pa.table(
            {
                "ps_partkey": pa.array(np.repeat(np.arange(8), 6)),
                "ps_suppkey": pa.array(np.tile(np.arange(6), 8)),
                "ps_availqty": pa.array(random.integers(1, 200, 48).astype(np.int32)),
            }
        ),
        "customer": pa.table(
            {
                "c_custkey": ids["customer"],
                "c_mktsegment": pa.array(["BUILDING", "MACHINERY"] * 2 + ["BUILDING"]),
            }
        ),
        "orders": pa.table(
            {
                "o_orderkey": ids["orders"],
                "o_custkey": below(5, 60),
                "o_orderdate": days(60),
                "o_shippriority": pa.array(np.zeros(60, np.int32)),
            }
        ),
        "lineitem": pa.table(
            {
                "l_orderkey": below(60, ROWS),
                "l_partkey": below(8, ROWS),
                "l_suppkey": below(6, ROWS),
                "l_quantity": money(random.integers(1, 51, ROWS) * 100),
                "l_extendedprice": money(random.integers(100, 10_000_000, ROWS)),
                "l_discount": money(random.integers(0, 11, ROWS)),
                "l_tax": money(random.integers(0, 9, ROWS)),
                "l_returnflag": pa.array(np.array(["A", "N", "R"])[random.integers(0, 3, ROWS)]),
                "l_linestatus": pa.array(np.array(["F", "O"])[random.integers(0, 2, ROWS)]),
                "l_shipdate": days(ROWS),
            }
        ),
    }


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, pa.Table]:
    """Tables of the test in the place of generated ones."""
    made = tables()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(data, "table", lambda _scale, name: made[name])
    return made


def test_views_equal_duckdb(tiny: dict[str, pa.Table]) -> None:
    """Ours, folded, and DuckDB's answers agree on every query, and none is empty."""
    assert tiny
    found = throughput.measure(1, 150, 1, durable=False)
    assert set(found) == set(ALL)
    for query, systems in found.items():
        assert systems["Headwater"].get("void", "missing") is None, (query, systems)
        assert systems["DuckDB deferred"]["ratio"] > 0
    _, expected = throughput.duck_deferred(1, [tiny["lineitem"]], 1, False)
    assert all(expected.values())


def test_strategies_agree(tiny: dict[str, pa.Table], monkeypatch: pytest.MonkeyPatch) -> None:
    """All four strategies answer Q6 as DuckDB does, chunk by chunk."""
    assert tiny
    monkeypatch.setattr(chunks, "ALL", ("q6",))
    monkeypatch.setattr(chunks, "CHUNK", 50)
    found = chunks.measure(1, 200, 2)["q6"]
    assert set(found) == {"DuckDB deferred", *chunks.STRATEGIES}
    assert [f["void"] for f in found.values()] == [None] * len(found)


def test_differences() -> None:
    """Bags are compared, decimals to their last digit, floats within 1e-9."""
    rows = [("a", 1, Decimal("0.05")), ("b", 2, None)]
    assert answers.difference(rows, [("b", 2, None), ("a", 1, 0.0500001)]) is None
    assert answers.difference(rows, [("b", 2, None), ("a", 1, Decimal("0.06"))]) is not None
    assert answers.difference(rows, [("b", 2, None), ("a", 1, 0.07)]) is not None
    assert answers.difference(rows, rows[:1]) == "2 rows of ours, 1 of theirs"
    assert answers.difference([(date(2026, 1, 1),)], [(date(2026, 1, 2),)]) is not None


def test_tables_and_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Targets are ratios of medians; a refused view is told with its reason."""

    def rate(median: float) -> dict[str, Any]:
        spread = {"median": median, "best": median, "worst": median}
        return {"per_s": spread, "void": None, "ratio": 1000.0 / median}

    systems = {
        "Headwater": {**rate(1000.0), "tier": "operators"},
        "DuckDB deferred": rate(500.0),
        "own deferred": rate(500.0),
    }
    refused = {**systems, "Headwater": {"missing": "it cannot be kept"}}
    refused["DuckDB deferred"] = {"per_s": rate(1.0)["per_s"], "void": None}
    chunk = {"rows_per_s": 1.0, "refreshes_per_s": 2.0, "void": None}
    found: dict[str, Any] = {
        "scale": 1.0,
        "batch": 10,
        "durable": {"q1": systems, "q3": refused},
        "memory": {"q1": systems, "q3": refused},
        "chunks": {"q1": {"split": chunk, "deferred": {"missing": "why"}}},
        "cores": {"cores": [1, 2], "per_s": {"Headwater": {"q1": [1.0, 1.5]}}},
    }
    found["targets"] = [target.row() for target in targets(found)]
    assert ("B6 q1, durable: times DuckDB deferred", "2.00", "≥ 1", "met") in found["targets"]
    assert ("B6 q1: times own deferred", "2.00", "≥ 3", "missed") in found["targets"]
    assert ("B6 q3, durable: times DuckDB deferred", "–", "≥ 1", "void or missing") in found[
        "targets"
    ]
    tell.everything(found)
    assert "missing: it cannot be kept" in capsys.readouterr().out
    pytest.importorskip("matplotlib")
    assert plots.draw(found, tmp_path / "tpch.png") is not None
