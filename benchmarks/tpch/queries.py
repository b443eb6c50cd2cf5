"""Q1, Q3, Q6, Q15 and Q20 with the validation parameters, without ORDER BY and LIMIT, as in the paper."""

from __future__ import annotations

REVENUE = (
    "SELECT l_suppkey AS supplier_no, sum(l_extendedprice * (1 - l_discount)) AS total_revenue "
    "FROM lineitem WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01' "
    "GROUP BY l_suppkey"
)
QUERIES = {
    "q1": (
        "SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, "
        "sum(l_extendedprice) AS sum_base_price, "
        "sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price, "
        "sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge, "
        "avg(l_quantity) AS avg_qty, avg(l_extendedprice) AS avg_price, "
        "avg(l_discount) AS avg_disc, count(*) AS count_order "
        "FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus"
    ),
    "q3": (
        "SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, "
        "o_shippriority FROM customer, orders, lineitem "
        "WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey "
        "AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15' "
        "GROUP BY l_orderkey, o_orderdate, o_shippriority"
    ),
    "q6": (
        "SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem "
        "WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01' "
        "AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24"
    ),
    "q15": (
        f"WITH revenue AS ({REVENUE}) "
        "SELECT s_suppkey, s_name, s_address, s_phone, total_revenue FROM supplier, revenue "
        "WHERE s_suppkey = supplier_no "
        "AND total_revenue = (SELECT max(total_revenue) FROM revenue)"
    ),
    "q20": (
        "SELECT s_name, s_address FROM supplier, nation WHERE s_suppkey IN ("
        "SELECT ps_suppkey FROM partsupp WHERE ps_partkey IN ("
        "SELECT p_partkey FROM part WHERE p_name LIKE 'forest%') AND ps_availqty > ("
        "SELECT 0.5 * sum(l_quantity) FROM lineitem WHERE l_partkey = ps_partkey "
        "AND l_suppkey = ps_suppkey AND l_shipdate >= DATE '1994-01-01' "
        "AND l_shipdate < DATE '1995-01-01')) "
        "AND s_nationkey = n_nationkey AND n_name = 'CANADA'"
    ),
}
ALL = tuple(QUERIES)
