"""EXPLAIN as a tree: how the lines of a plan are arranged and drawn."""

from __future__ import annotations

import pytest

from headwater.cli.grid import Look
from headwater.cli.plan_tree import plan_tree
from headwater.cli.tree import Node, drawn

CONTINUOUS = """\
continuous query warmth, running
fold 0: expanding replication
  stream pipeline: readings [3600 s], operators
  static: inner sensors, read again when it changes
  where: celsius > 0
  group by: place
  merge: two-level, 1 held
upper: Spark
mode fold; fold not measured
results: 2, response mean 1.00 ms, worst 2.00 ms
rows folded by operators: 1 in 1 runs"""

CONTINUOUS_DRAWN = """\
continuous query warmth, running
├─ upper: Spark
│  └─ fold 0: expanding replication
│     ├─ stream pipeline: readings [3600 s], operators
│     │  ├─ where: celsius > 0
│     │  └─ group by: place
│     ├─ static: inner sensors, read again when it changes
│     └─ merge: two-level, 1 held
├─ mode fold; fold not measured
└─ measured
   ├─ results: 2, response mean 1.00 ms, worst 2.00 ms
   └─ rows folded by operators: 1 in 1 runs"""

VIEW = """\
continuous view extremes, maintenance split
at each insert:
fold_0: stream pipeline over readings, operators
  inner sensors
  group by: place AS _k0
tables as of creation or REFRESH STATIC: sensors
at each read: operators
  SELECT _k0 AS place
  FROM fold_0"""

VIEW_DRAWN = """\
continuous view extremes, maintenance split
├─ tables as of creation or REFRESH STATIC: sensors
└─ at each read: operators
   │  SELECT _k0 AS place
   │  FROM fold_0
   └─ at each insert
      └─ fold_0: stream pipeline over readings, operators
         ├─ inner sensors
         └─ group by: place AS _k0"""

CREATED = """\
at each insert:
fold_0: stream pipeline over readings, operators
  group by: place AS _k0
at each read: operators
  SELECT _k0 AS place FROM fold_0"""

CREATED_DRAWN = """\
plan
└─ at each read: operators  SELECT _k0 AS place FROM fold_0
   └─ at each insert
      └─ fold_0: stream pipeline over readings, operators
         └─ group by: place AS _k0"""

OPERATORS = """\
continuous view above, maintenance split
at each insert:
  filter (amount > value)
    left join on customer = key
      orders: customer, amount
      group by key: avg(argument)
        orders: customer, amount
rows taken in: 0 in 0 runs
rows held: 1
in memory: 9 bytes
  filter: 0 changes in, 0 out, 0.0 ms, 0 bytes"""

OPERATORS_DRAWN = """\
continuous view above, maintenance split
├─ at each insert
│  └─ filter (amount > value)
│     └─ left join on customer = key
│        ├─ orders: customer, amount
│        └─ group by key: avg(argument)
│           └─ orders: customer, amount
└─ measured
   ├─ rows taken in: 0 in 0 runs
   ├─ rows held: 1
   └─ in memory: 9 bytes
      └─ filter: 0 changes in, 0 out, 0.0 ms, 0 bytes"""

SPARK = """\
run by Spark
blocks of readings: 2 in all, 1 after the interval index; the tail is staged
== Physical Plan ==
AdaptiveSparkPlan (6)
+- Sort (5)
   +- BroadcastHashJoin Inner BuildLeft (4)
      :- BroadcastExchange (2)
      :  +- Scan parquet  (1)
      +- Scan parquet  (3)


(1) Scan parquet
Output [2]: [id#2, celsius#3]
Location: InMemoryFileIndex [file:/dev/shm/headwater-scratch-8937/staged-0.parquet]
PushedFilters: [IsNotNull(id)]

(2) BroadcastExchange
Arguments: HashedRelationBroadcastMode(List(cast(input[0, int, false] as bigint)),false), [plan_id=46]

(3) Scan parquet
Location: InMemoryFileIndex [file:/tmp/x/tables/sensors-1/part-8c58.parquet]
PushedFilters: []

(4) BroadcastHashJoin
Left keys [1]: [id#2]
Right keys [1]: [id#0]
Join condition: None

(5) Sort
Arguments: [place#1L ASC NULLS FIRST], true, 0

(6) AdaptiveSparkPlan
Arguments: isFinalPlan=false
"""

SPARK_DRAWN = """\
run by Spark
├─ blocks of readings: 2 in all, 1 after the interval index; the tail is staged
└─ Sort  [place ASC NULLS FIRST]
   └─ BroadcastHashJoin Inner BuildLeft  left keys [id]; right keys [id]
      ├─ BroadcastExchange
      │  └─ Scan parquet  reads rows staged for it; filters [IsNotNull(id)]
      └─ Scan parquet  reads sensors"""

SCAN = "plain scan, no Spark\nreads 1 files of t, version 1\nrows: (id == 1)\ncolumns: id"
SCAN_DRAWN = """\
plain scan, no Spark
├─ reads 1 files of t, version 1
├─ rows: (id == 1)
└─ columns: id"""


BOXES = Look(unicode=True)


def picture(text: str, look: Look = BOXES) -> str:
    return "\n".join(drawn(plan_tree(text.split("\n")), look))


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (CONTINUOUS, CONTINUOUS_DRAWN),
        (VIEW, VIEW_DRAWN),
        (CREATED, CREATED_DRAWN),
        (OPERATORS, OPERATORS_DRAWN),
        (SPARK, SPARK_DRAWN),
        (SCAN, SCAN_DRAWN),
    ],
    ids=["continuous", "view", "created", "operators", "spark", "scan"],
)
def test_plans(plan: str, expected: str) -> None:
    """The upper part stands over the folds, Spark's operators over their inputs; no line is lost."""
    assert picture(plan) == expected


def test_without_unicode() -> None:
    """Where there are no box characters the tree is ASCII."""
    assert picture(SCAN, Look()).splitlines()[-1] == "`- columns: id"
    assert picture(CONTINUOUS, Look()).isascii()


def test_lines_that_nobody_foresaw_are_kept() -> None:
    """A plan of another form is drawn line by line."""
    assert picture("something new\nwith a part\n  and its part") == (
        "something new\n└─ with a part\n   └─ and its part"
    )
    assert picture("run by Spark\n== Physical Plan ==\n???\n!!!") == "run by Spark\n├─ ???\n└─ !!!"
    assert picture("") == "plan"


def test_subqueries_hang_beside_the_query() -> None:
    """Spark prints the plans of subqueries behind the details; they are drawn too."""
    text = (
        "run by Spark\n== Physical Plan ==\n* Project (1)\n\n\n(1) Project\nOutput [1]: [a#1]\n\n"
        "===== Subqueries =====\n\nSubquery:1 Hosting operator id = 1 Hosting Expression = x\n"
        "* Scan parquet (2)\n\n\n(2) Scan parquet\nReadSchema: struct<>\n"
    )
    assert picture(text) == "run by Spark\n├─ Project  output [a]\n└─ Scan parquet"


def test_long_lines_are_broken_within_the_tree() -> None:
    """On a screen no line is longer than it, and what goes on stands under its own line."""
    tree = Node("root", (Node("a: " + "word " * 20, (Node("b"),)), Node("c", (), "note " * 20)))
    lines = list(drawn(tree, Look(40, unicode=True)))
    assert max(map(len, lines)) <= 40
    assert lines[2].startswith("│  │  word")
    assert lines[-1].startswith("      note")


def test_colours_and_control_characters() -> None:
    """Where a part runs has a colour; text from a query cannot talk to the terminal."""
    lines = list(drawn(plan_tree(CONTINUOUS.split("\n")), Look(colour=True, unicode=True)))
    assert "\x1b[33mSpark\x1b[0m" in lines[1]
    assert "\x1b[32moperators\x1b[0m" in lines[3]
    assert "\x1b" not in picture("x\nwhere: a = '\x1b[2J'")
