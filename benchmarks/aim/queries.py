"""The six queries of Table 2, with the paper's parameters; Q6 cannot be one view and is left out.

`{week}` is the current week in the words of the system that is asked.
"""

from __future__ import annotations

QUERIES = {
    "q1": (
        "SELECT avg(t_duration) AS duration FROM (SELECT sum(duration) AS t_duration FROM events "
        "WHERE week = {week} GROUP BY entity_id HAVING count(local_calls) > 2) t"
    ),
    "q2": (
        "SELECT max(max_cost) AS cost FROM (SELECT max(cost) AS max_cost FROM events "
        "WHERE week = {week} GROUP BY entity_id HAVING count(*) > 2) t"
    ),
    "q3": (
        "SELECT sum(t_cost) / sum(t_duration) AS cost_ratio FROM (SELECT sum(cost) AS t_cost, "
        "sum(duration) AS t_duration, count(*) AS num_calls FROM events "
        "WHERE week = {week} GROUP BY entity_id) t GROUP BY num_calls LIMIT 100"
    ),
    "q4": (
        "SELECT city_zip, avg(num_calls) AS calls, sum(duration_calls) AS duration FROM "
        "(SELECT entity_id, count(*) AS num_calls, sum(duration) AS duration_calls FROM events "
        "WHERE NOT long_distance AND week = {week} GROUP BY entity_id "
        "HAVING count(*) > 4 AND sum(duration) > 25) e, customers c "
        "WHERE e.entity_id = c.id GROUP BY city_zip"
    ),
    "q5": (
        "SELECT c.region_id, sum(long_distance_cost) AS cost_long, sum(local_cost) AS cost_local "
        "FROM events e, customers c WHERE e.entity_id = c.id AND week = {week} "
        "AND c.type = 2 AND c.category = 1 GROUP BY c.region_id"
    ),
    "q7": (
        "SELECT sum(cost) / sum(duration) AS cost_ratio FROM events e, customers c "
        "WHERE e.entity_id = c.id AND week = {week} AND c.value_type = 2"
    ),
}
ALL = tuple(QUERIES)


def query(name: str, week: str) -> str:
    """One query with the current week in it."""
    return QUERIES[name].format(week=week)
