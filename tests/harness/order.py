"""Which files of tests come first where several processes share them: those that take longest.

A file is the unit that a process takes. If a long one were among the last, one process would end long before
the other. Owns the figures; `tests/conftest.py` sorts by them. Must never: decide which tests run.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Files that take longer than the number of their tests tells: seconds on a quiet machine, roughly. Those that
# wait for processes of their own are early too: beside them the others have the cores.
LONG_S = {
    "tests/test_cases.py": 100,
    "tests/factories/test_kills.py": 80,
    "tests/factories/test_driver_kills.py": 65,
    "tests/semantics/test_views_oracle.py": 55,
    "tests/kernel/test_work_when_spark_ends.py": 50,
    "tests/crash/test_damage.py": 60,
    "tests/semantics/test_constructs.py": 47,
    "tests/factories/test_moves.py": 40,
    "tests/factories/test_plans.py": 35,
    "tests/semantics/test_time_and_zones.py": 40,
    "tests/execute/test_disk_failures.py": 39,
    "tests/crash/test_query_crashes.py": 38,
    "tests/semantics/test_stream_joins.py": 38,
    "tests/crash/test_view_crashes.py": 31,
    "tests/benchmarks/test_linearroad.py": 29,
    "tests/expression/test_expression.py": 29,
    "tests/kernel/test_callers_session.py": 27,
    "tests/semantics/test_hidden_columns.py": 24,
    "tests/storage/streaming/test_followed.py": 23,
    "tests/semantics/test_rows_taken_back.py": 22,
    "tests/semantics/test_tiers_and_modes.py": 22,
    "tests/semantics/test_followed_changes.py": 21,
    "tests/kernel/test_spark_ends.py": 20,
    "tests/semantics/test_functions_with_state.py": 19,
    "tests/semantics/test_kept_views.py": 19,
    "tests/semantics/test_split_views.py": 19,
    "tests/kernel/test_exit.py": 18,
    "tests/execute/test_indexed_scan.py": 17,
    "tests/crash/test_stream_crashes.py": 15,
    "tests/server/console/test_browser.py": 15,
    "tests/factories/test_on_spark.py": 13,
    "tests/semantics/test_continuous_queries.py": 13,
    "tests/semantics/test_epoch_paper_queries.py": 13,
    "tests/semantics/test_followed_selects.py": 13,
    "tests/semantics/test_nested_types.py": 13,
    "tests/expression/test_many_values.py": 12,
    "tests/semantics/test_view_workloads.py": 12,
    "tests/sources/test_stream.py": 12,
    "tests/test_docs.py": 12,
    "tests/engine/test_result_changes.py": 11,
    "tests/engine/test_sharing.py": 11,
    "tests/expression/test_random.py": 11,
    "tests/semantics/test_circuits_oracle.py": 25,
    "tests/semantics/test_update_queries.py": 11,
    "tests/engine/test_update_query.py": 10,
    "tests/examples/linearroad/test_demo.py": 10,
    "tests/kernel/test_functions.py": 10,
    "tests/semantics/test_last_rows_of_now.py": 10,
    "tests/sources/test_checkpoint.py": 10,
    "tests/crash/test_epoch_crashes.py": 9,
    "tests/engine/test_stored_results.py": 9,
    "tests/plan/test_scan.py": 9,
    "tests/semantics/test_following.py": 9,
    "tests/server/test_overload.py": 9,
    "tests/engine/test_eager_windows.py": 8,
    "tests/engine/update_queue/test_queue.py": 8,
    "tests/kernel/test_kernel.py": 7,
    "tests/semantics/test_continuous_oracle.py": 7,
    "tests/semantics/test_views_on_views.py": 7,
    "tests/semantics/test_epoch_joins.py": 6,
}
TEST_S = 0.2  # of any other test that is not quick


def work_s(path: Path, tests: int) -> float:
    """How long a file with so many tests that are not quick takes, about."""
    known = LONG_S.get(path.relative_to(ROOT).as_posix(), 0)
    return max(known, TEST_S * tests)
