"""Which files of tests come first where two processes share them: those that take longest.

A file is the unit that a process takes. If a long one were among the last, one process would end long before
the other. Owns the figures; `tests/conftest.py` sorts by them. Must never: decide which tests run.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Files that take longer than the number of their tests tells: seconds on a quiet machine, roughly. Those that
# wait for processes of their own are early too: beside them the other process has both cores.
LONG_S = {
    "tests/test_cases.py": 80,
    "tests/kernel/test_work_when_spark_ends.py": 60,
    "tests/semantics/test_constructs.py": 50,
    "tests/crash/test_damage.py": 40,
    "tests/semantics/test_views_oracle.py": 40,
    "tests/semantics/test_continuous_oracle.py": 30,
    "tests/benchmarks/test_linearroad.py": 30,
    "tests/execute/test_disk_failures.py": 30,
    "tests/semantics/test_hidden_columns.py": 30,
    "tests/crash/test_query_crashes.py": 25,
    "tests/crash/test_view_crashes.py": 25,
    "tests/kernel/test_callers_session.py": 25,
    "tests/semantics/test_stream_joins.py": 25,
    "tests/semantics/test_time_and_zones.py": 25,
    "tests/factories/test_kills.py": 20,
    "tests/kernel/test_spark_ends.py": 20,
    "tests/expression/test_expression.py": 18,
    "tests/factories/test_on_spark.py": 15,
    "tests/kernel/test_exit.py": 15,
    "tests/semantics/test_epoch_joins.py": 15,
    "tests/server/console/test_browser.py": 15,
    "tests/server/test_overload.py": 15,
    "tests/crash/test_epoch_crashes.py": 12,
    "tests/crash/test_stream_crashes.py": 12,
    "tests/crash/test_update_crashes.py": 10,
    "tests/kernel/test_kernel.py": 10,
    "tests/crash/test_sink_crashes.py": 8,
    "tests/fold/test_probe.py": 8,
    "tests/engine/update_queue/test_queue.py": 8,
    "tests/fold/test_order.py": 8,
}
TEST_S = 0.2  # of any other test that is not quick


def work_s(path: Path, tests: int) -> float:
    """How long a file with so many tests that are not quick takes, about."""
    known = LONG_S.get(path.relative_to(ROOT).as_posix(), 0)
    return max(known, TEST_S * tests)
