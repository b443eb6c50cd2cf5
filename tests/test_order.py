"""The files of tests that are known to take long are there, and come before the others."""

from __future__ import annotations

from pathlib import Path

from tests.harness import order


def test_the_files_that_take_long_exist() -> None:
    assert [path for path in order.LONG_S if not (order.ROOT / path).is_file()] == []


def test_long_files_come_before_those_with_many_short_tests() -> None:
    long, short = order.ROOT / max(order.LONG_S, key=order.LONG_S.__getitem__), Path(__file__)
    assert order.work_s(long, 1) == order.LONG_S["tests/test_cases.py"]
    assert order.work_s(short, 0) == 0
    assert order.work_s(short, 2) < order.work_s(short, 100) < order.work_s(long, 1)
