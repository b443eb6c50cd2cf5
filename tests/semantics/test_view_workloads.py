"""The paper's workloads as views (CV-x): AIM Q1–Q5 and Q7, TPC-H Q1, Q3, Q6, Q15 and Q20, on small data.

Every one is folded at each insert, in both tiers, and equals DuckDB whenever it is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random

import duckdb
import pyarrow as pa
import pytest

import headwater
from tests.harness.continuous.compare import same_bag

TIERS: dict[str, dict[str, object]] = {
    "operators": {},
    "mixed": {},
    "Spark": {"spark_sql_only": True},
}
# What only Spark knows, in words that are evaluated without Spark.
PLAINER = {
    "week = weekofyear(current_date())": "ended > current_timestamp()",
    "DATE '1998-12-01' - INTERVAL '90' DAY": "DATE '1998-09-02'",
    "DATE '1994-01-01' + INTERVAL '1' YEAR": "DATE '1995-01-01'",
    "DATE '1996-01-01' + INTERVAL '3' MONTH": "DATE '1996-04-01'",
    "0.06 - 0.01": "0.05",
    "0.06 + 0.01": "0.07",
}
SOME_DAY, LAST_DAY = datetime(2001, 1, 1, tzinfo=UTC), datetime(2999, 1, 1, tzinfo=UTC)
THIS_WEEK = datetime.now(UTC).isocalendar().week
OTHER_WEEK = THIS_WEEK % 50 + 2
WEEK = "week = weekofyear(current_date())"
BY_ENTITY = f"FROM events WHERE {WEEK} GROUP BY entity_id"

AIM = {
    "q1": f"SELECT avg(t_duration) AS a FROM (SELECT sum(duration) AS t_duration {BY_ENTITY}"
    " HAVING count(local_call) > 1) t",
    "q2": f"SELECT max(max_cost) AS m FROM (SELECT max(cost) AS max_cost {BY_ENTITY}"
    " HAVING count(*) > 2) t",
    "q3": "SELECT sum(t_cost) / sum(t_duration) AS cost_ratio FROM (SELECT sum(cost) AS t_cost,"
    f" sum(duration) AS t_duration, count(*) AS num_calls {BY_ENTITY}) t GROUP BY num_calls LIMIT 100",
    "q4": "SELECT c.city_zip, avg(e.num_calls) AS n, sum(e.duration_calls) AS d FROM (SELECT entity_id,"
    " count(*) AS num_calls, sum(duration) AS duration_calls FROM events WHERE NOT long_distance AND"
    f" {WEEK} GROUP BY entity_id HAVING count(*) > 2 AND sum(duration) > 20) e, customers c"
    " WHERE e.entity_id = c.id GROUP BY c.city_zip",
    "q5": "SELECT c.region_id, sum(e.long_distance_cost) AS cost_long, sum(e.local_cost) AS cost_local"
    f" FROM events e, customers c WHERE e.entity_id = c.id AND {WEEK} AND c.type = 1 AND c.category = 2"
    " GROUP BY c.region_id",
    "q7": "SELECT sum(e.cost) / sum(e.duration) AS ratio FROM events e, customers c"
    f" WHERE e.entity_id = c.id AND {WEEK} AND c.value_type = 1",
}
EVENTS = pa.schema(
    [
        ("entity_id", pa.int32()),
        ("week", pa.int32()),
        ("ended", pa.timestamp("us", "UTC")),
        ("duration", pa.int32()),
        ("cost", pa.float64()),
        ("local_call", pa.int32()),
        ("long_distance", pa.bool_()),
        ("long_distance_cost", pa.float64()),
        ("local_cost", pa.float64()),
    ]
)
CUSTOMERS = pa.schema(
    [(n, pa.int32()) for n in ("id", "city_zip", "region_id", "type", "category", "value_type")]
)

TPCH = {
    "q1": "SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty,"
    " sum(l_extendedprice) AS sum_base_price, sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,"
    " sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge, avg(l_quantity) AS avg_qty,"
    " avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc, count(*) AS count_order FROM lineitem"
    " WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL '90' DAY GROUP BY l_returnflag, l_linestatus",
    "q3": "SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate,"
    " o_shippriority FROM customer, orders, lineitem WHERE c_mktsegment = 'BUILDING' AND"
    " c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate < DATE '1995-03-15' AND"
    " l_shipdate > DATE '1995-03-15' GROUP BY l_orderkey, o_orderdate, o_shippriority",
    "q6": "SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem WHERE"
    " l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR AND"
    " l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 AND l_quantity < 24",
    "q15": "WITH revenue AS (SELECT l_suppkey AS supplier_no, sum(l_extendedprice * (1 - l_discount)) AS"
    " total_revenue FROM lineitem WHERE l_shipdate >= DATE '1996-01-01' AND"
    " l_shipdate < DATE '1996-01-01' + INTERVAL '3' MONTH GROUP BY l_suppkey)"
    " SELECT s_suppkey, s_name, s_address, s_phone, total_revenue FROM supplier, revenue WHERE"
    " s_suppkey = supplier_no AND total_revenue = (SELECT max(total_revenue) FROM revenue)",
    "q20": "SELECT s_name, s_address FROM supplier, nation WHERE s_suppkey IN (SELECT ps_suppkey FROM"
    " partsupp WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%') AND"
    " ps_availqty > (SELECT 0.5 * sum(l_quantity) FROM lineitem WHERE l_partkey = ps_partkey AND"
    " l_suppkey = ps_suppkey AND l_shipdate >= DATE '1994-01-01' AND"
    " l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR)) AND s_nationkey = n_nationkey AND"
    " n_name = 'CANADA'",
}
MONEY = pa.decimal128(15, 2)
LINEITEM = pa.schema(
    [
        *((n, pa.int32()) for n in ("l_orderkey", "l_partkey", "l_suppkey")),
        *((n, MONEY) for n in ("l_quantity", "l_extendedprice", "l_discount", "l_tax")),
        *((n, pa.string()) for n in ("l_returnflag", "l_linestatus")),
        ("l_shipdate", pa.date32()),
    ]
)
SPARK_NAMES = {
    pa.int32(): "INT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.string(): "STRING",
    pa.date32(): "DATE",
    pa.timestamp("us", "UTC"): "TIMESTAMP",
    MONEY: "DECIMAL(15, 2)",
}


class Workload:
    """A database with tables and views, and DuckDB with the same rows."""

    def __init__(self, tier: str, db: headwater.Database, stream: str, schema: pa.Schema) -> None:
        self.tier, self.db, self.stream = tier, db, stream
        self.rows = schema.empty_table()
        self.duck = duckdb.connect()
        db.sql(f"CREATE STREAM {stream} ({_columns(schema)})")

    def table(self, name: str, rows: pa.Table) -> None:
        """A standard table."""
        self.db.sql(f"CREATE TABLE {name} ({_columns(rows.schema)})")
        self.db.insert(name, rows)
        self.duck.register(name, rows)

    def view(self, name: str, query: str, volatile: bool) -> None:
        """A view; it must be folded."""
        options = " WITH (volatile = 'at insert')" if volatile else ""
        self.db.sql(f"CREATE VIEW {name}{options} AS {query}")
        lines = [line for (line,) in self.db.sql(f"EXPLAIN VIEW {name}").rows()]
        assert lines[1] == "at each insert:", lines
        pipelines = [line for line in lines if "stream pipeline" in line]
        assert pipelines
        if self.tier != "mixed":
            assert all(line.endswith(self.tier) for line in pipelines), lines
        if self.tier == "operators":
            assert "at each read: operators" in lines, lines

    def insert(self, rows: pa.Table) -> None:
        """Rows of the stream."""
        self.db.insert(self.stream, rows)
        self.rows = pa.concat_tables([self.rows, rows])

    def check(self, name: str, query: str) -> None:
        """A view equals DuckDB over all rows."""
        self.duck.register(self.stream, self.rows)
        text = query.replace("weekofyear(current_date())", str(THIS_WEEK))
        text = text.replace("current_timestamp()", "TIMESTAMPTZ '2026-01-01 00:00:00+00'")
        wanted = list(map(tuple, self.duck.execute(text).fetchall()))
        found = self.db.sql(f"SELECT * FROM {name}").rows()
        assert same_bag(found, wanted), f"{name}: {found}, not {wanted}"
        assert wanted


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name} {SPARK_NAMES[f.type]}" for f in schema)


def _table(schema: pa.Schema, rows: list[tuple[object, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    """Each tier, and pipelines on Spark beside others by operators."""
    return str(request.param)


@pytest.fixture
def db(tier: str) -> Iterator[headwater.Database]:
    """A database of the tier."""
    with headwater.connect(":memory:", settings=TIERS[tier]) as database:
        yield database


def written(queries: dict[str, str], tier: str) -> dict[str, str]:
    """The queries as the tier can run them."""
    found = dict(queries)
    for old, new in PLAINER.items() if tier == "operators" else ():
        found = {name: query.replace(old, new) for name, query in found.items()}
    return found


def run(
    workload: Workload, queries: dict[str, str], batches: list[pa.Table], volatile: bool
) -> None:
    """Views before the first row; each read after some batches."""
    for name, query in queries.items():
        workload.view(name, query, volatile)
    names = list(queries)
    for place, batch in enumerate(batches):
        workload.insert(batch)
        if place:
            name = names[place % len(names)]
            workload.check(name, queries[name])
    for name, query in queries.items():
        workload.check(name, query)


def test_aim(tier: str, db: headwater.Database) -> None:
    """AIM Q1–Q5, Q7 over calls of this week and of another one."""
    random = Random(7)
    workload = Workload(tier, db, "events", EVENTS)
    customers: list[tuple[object, ...]] = [
        (n, random.randint(0, 5), n % 4, n % 2, n % 3, random.randint(0, 2)) for n in range(40)
    ]
    workload.table("customers", _table(CUSTOMERS, customers))
    batches = [_table(EVENTS, [_event(random) for _ in range(90)]) for _ in range(4)]
    run(workload, written(AIM, tier), batches, volatile=True)


def _event(random: Random) -> tuple[object, ...]:
    now = random.random() < 0.8
    when = (THIS_WEEK, LAST_DAY) if now else (OTHER_WEEK, SOME_DAY)
    far, cost = random.random() < 0.3, random.randint(1, 400) / 4
    local = None if far else 1
    duration = random.randint(1, 60)
    costs = (cost, local, far, cost * far, cost * (not far))
    return (random.randint(0, 45), *when, duration, *costs)


def test_tpch(tier: str, db: headwater.Database) -> None:
    """TPC-H Q1, Q3, Q6, Q15, Q20 without ORDER BY and LIMIT, line items as a stream."""
    random = Random(11)
    workload = Workload(tier, db, "lineitem", LINEITEM)
    for name, columns, rows in _tables(random):
        fields = [pa.field(c, pa.string() if s else pa.int32()) for c, s in columns]
        fields = [f.with_type(pa.date32()) if f.name == "o_orderdate" else f for f in fields]
        workload.table(name, _table(pa.schema(fields), rows))
    batches = [_table(LINEITEM, [_line(random) for _ in range(200)]) for _ in range(3)]
    run(workload, written(TPCH, tier), batches, volatile=False)


def _tables(
    random: Random,
) -> list[tuple[str, list[tuple[str, bool]], list[tuple[object, ...]]]]:
    """Name, columns (and whether they are texts) and rows of the standard tables."""
    segments = ["BUILDING", "MACHINERY"]
    orders: list[tuple[object, ...]] = [
        (n, random.randint(0, 9), date(1995, 1, 1) + timedelta(days=random.randint(0, 150)), n % 2)
        for n in range(60)
    ]
    return [
        (
            "customer",
            [("c_custkey", False), ("c_mktsegment", True)],
            [(n, segments[n % 2]) for n in range(10)],
        ),
        (
            "orders",
            [
                *(("o_orderkey", False), ("o_custkey", False)),
                *(("o_orderdate", False), ("o_shippriority", False)),
            ],
            orders,
        ),
        (
            "supplier",
            [
                *(("s_suppkey", False), ("s_name", True), ("s_address", True)),
                *(("s_phone", True), ("s_nationkey", False)),
            ],
            [(n, f"Supplier {n}", f"Street {n}", f"{n}-555", n % 3) for n in range(12)],
        ),
        (
            "nation",
            [("n_nationkey", False), ("n_name", True)],
            [(0, "CANADA"), (1, "KENYA"), (2, "PERU")],
        ),
        (
            "part",
            [("p_partkey", False), ("p_name", True)],
            [(n, f"{'forest' if n % 2 else 'lemon'} {n}") for n in range(8)],
        ),
        (
            "partsupp",
            [("ps_partkey", False), ("ps_suppkey", False), ("ps_availqty", False)],
            [(p, s, random.randint(1, 40)) for p in range(8) for s in range(12)],
        ),
    ]


def _line(random: Random) -> tuple[object, ...]:
    cents = [random.randint(100, 5000), random.randint(10_000, 900_000), random.randint(0, 10)]
    quantity, price, discount = (Decimal(n).scaleb(-2) for n in cents)
    shipped = random.choice(
        [date(1994, 1, 1), date(1995, 2, 1), date(1996, 1, 1), date(1998, 8, 1)]
    )
    return (
        *(random.randint(0, 70), random.randint(0, 9), random.randint(0, 13)),
        *(quantity, price, discount, Decimal(random.randint(0, 8)).scaleb(-2)),
        *(random.choice("ANR"), random.choice("OF")),
        shipped + timedelta(days=random.randint(0, 80)),
    )
