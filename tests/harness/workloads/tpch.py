"""TPC-H's eight tables, small and always the same, in chunks: a row may come before those it refers to.

Names, types and words are such that each query gives rows; some columns have NULLs, which TPC-H has not.
"""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

Row = tuple[Any, ...]
Chunk = dict[str, list[Row]]

MONEY = "DECIMAL(15, 2)"
STREAMS = {
    "region": "r_regionkey BIGINT, r_name STRING, r_comment STRING",
    "nation": "n_nationkey BIGINT, n_name STRING, n_regionkey BIGINT, n_comment STRING",
    "supplier": (
        "s_suppkey BIGINT, s_name STRING, s_address STRING, s_nationkey BIGINT, s_phone STRING, "
        f"s_acctbal {MONEY}, s_comment STRING"
    ),
    "part": (
        "p_partkey BIGINT, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, p_size INT, "
        f"p_container STRING, p_retailprice {MONEY}, p_comment STRING"
    ),
    "partsupp": (
        f"ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INT, ps_supplycost {MONEY}, ps_comment STRING"
    ),
    "customer": (
        "c_custkey BIGINT, c_name STRING, c_address STRING, c_nationkey BIGINT, c_phone STRING, "
        f"c_acctbal {MONEY}, c_mktsegment STRING, c_comment STRING"
    ),
    "orders": (
        f"o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus STRING, o_totalprice {MONEY}, "
        "o_orderdate DATE, o_orderpriority STRING, o_clerk STRING, o_shippriority INT, o_comment STRING"
    ),
    "lineitem": (
        "l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT, "
        f"l_quantity {MONEY}, l_extendedprice {MONEY}, l_discount {MONEY}, l_tax {MONEY}, "
        "l_returnflag STRING, l_linestatus STRING, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, "
        "l_shipinstruct STRING, l_shipmode STRING, l_comment STRING"
    ),
}
REGIONS = ("AMERICA", "EUROPE", "ASIA")
NATIONS = {
    **{"BRAZIL": 0, "CANADA": 0, "FRANCE": 1, "GERMANY": 1, "INDIA": 2, "SAUDI ARABIA": 2},
}
TYPES = (
    "ECONOMY ANODIZED STEEL",
    "LARGE PLATED BRASS",
    "MEDIUM POLISHED TIN",
    "PROMO BURNISHED BRASS",
)
BRANDS = ("Brand#12", "Brand#23", "Brand#34", "Brand#45")
CONTAINERS = {
    "Brand#12": "SM BOX",
    "Brand#23": "MED BOX",
    "Brand#34": "LG BOX",
    "Brand#45": "MED BAG",
}
COLOURS = ("forest green", "green lace", "forest snow", "dim blue")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "5-LOW")
MODES, SEGMENTS = ("MAIL", "SHIP", "AIR", "AIR REG"), ("BUILDING", "MACHINERY")
FIRST_DAY, DAYS = date(1993, 7, 1), 1300
SUPPLIERS, PARTS, CUSTOMERS, ORDERS = 12, 16, 24, 150


class TpchData:
    """Makes all rows at once, and gives them out in chunks."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.rows: Chunk = {name: [] for name in STREAMS}
        self.rows["region"] = [(n, name, "") for n, name in enumerate(REGIONS)]
        self.rows["nation"] = [
            (number, name, region, "") for number, (name, region) in enumerate(NATIONS.items())
        ]
        self.rows["supplier"] = [self._supplier(number) for number in range(SUPPLIERS)]
        self.rows["part"] = [self._part(number) for number in range(PARTS)]
        self.rows["partsupp"] = [
            self._partsupp(part, (part + step) % SUPPLIERS)
            for part in range(PARTS)
            for step in range(4)
        ]
        self.rows["customer"] = [self._customer(number) for number in range(CUSTOMERS)]
        for number in range(ORDERS):
            self._order(number)

    def chunks(self, count: int) -> list[Chunk]:
        """The rows of each table in so many parts; those of the smallest tables come in the first two."""
        made: list[Chunk] = []
        for number in range(count):
            made.append({name: rows[number::count] for name, rows in self.rows.items()})
        return made

    def _money(self, low: int, high: int) -> Decimal:
        return Decimal(self._random.randint(low * 100, high * 100)) / 100

    def _maybe(self, value: Any, chance: float = 0.03) -> Any:
        return None if self._random.random() < chance else value

    def _phone(self, nation: int) -> str:
        return f"{13 + nation}-{self._random.randint(100, 999)}"

    def _supplier(self, number: int) -> Row:
        nation = number % len(NATIONS)
        words = "Customer sad Complaints" if number in (3, 7) else "fine"
        balance = self._money(-900, 9000)
        return (
            number, f"Supplier {number}", "street", nation, self._phone(nation), balance, self._maybe(words),
        )  # fmt: skip

    def _part(self, number: int) -> Row:
        brand = BRANDS[number % 4]
        kind = self._maybe(TYPES[number // 4 % 4], 0.1)
        size = self._random.choice((3, 9, 15))
        name = self._random.choice(COLOURS)
        return (
            number,
            name,
            "maker 1",
            brand,
            kind,
            size,
            CONTAINERS[brand],
            self._money(900, 2000),
            "",
        )

    def _partsupp(self, part: int, supplier: int) -> Row:
        cost = Decimal(self._random.choice((5, 10, 500)))  # ties of the cheapest
        return (part, self._maybe(supplier), self._maybe(self._random.randint(1, 60)), cost, "")

    def _customer(self, number: int) -> Row:
        nation = number % len(NATIONS)
        balance = self._maybe(self._money(-900, 9000))
        segment = self._random.choice(SEGMENTS)
        return (
            number, f"Customer {number}", "street", nation, self._phone(nation), balance, segment, "",
        )  # fmt: skip

    def _order(self, number: int) -> None:
        random = self._random
        customer = self._maybe(random.randrange(0, CUSTOMERS, 3) + random.choice((0, 1)))
        day = FIRST_DAY + timedelta(days=random.randrange(DAYS))
        status = random.choice(("F", "F", "O"))
        words = random.choice(("special packages requests", "quick", None))
        price, priority = self._money(1000, 9000), self._maybe(random.choice(PRIORITIES))
        self.rows["orders"].append(
            (number, customer, status, price, day, priority, "clerk", 0, words)
        )
        for line in range(random.randint(1, 6)):
            self.rows["lineitem"].append(self._line(number, line, day))

    def _line(self, order: int, line: int, day: date) -> Row:
        random = self._random
        part = random.randrange(PARTS)
        supplier = self._maybe((part + random.randrange(4)) % SUPPLIERS)
        quantity = Decimal(random.randint(1, 50))
        numbers = (quantity, self._money(900, 2000), Decimal(random.randint(0, 10)) / 100)
        shipped = day + timedelta(days=random.randint(1, 60))
        promised = self._maybe(day + timedelta(days=random.randint(20, 60)))
        received = shipped + timedelta(days=random.randint(1, 20))
        flags = (random.choice("RAN"), random.choice("OF"))
        how = (random.choice(("DELIVER IN PERSON", "NONE")), random.choice(MODES))
        tax = Decimal(random.randint(0, 8)) / 100
        dates = (shipped, promised, received)
        return (order, part, supplier, line, *numbers, tax, *flags, *dates, *how, "")
