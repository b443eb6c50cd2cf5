"""Random window functions over a part, each of them with the rows in an order of all columns."""

from __future__ import annotations

from tests.harness.circuits.base import DOUBLE, INT, BaseMaker, Part

NEAR = (
    *("1 PRECEDING AND 2 FOLLOWING", "UNBOUNDED PRECEDING AND 1 PRECEDING"),
    *("CURRENT ROW AND UNBOUNDED FOLLOWING", "2 PRECEDING AND CURRENT ROW"),
)


def over_calls(maker: BaseMaker, part: Part, by: str, order: str) -> list[tuple[str, str]]:
    """Calls and their types; `order`: of all columns, so that only equal rows tie."""
    random = maker.random
    partition = f"PARTITION BY {by} " if random.random() < 0.85 else ""
    over = f"({partition}ORDER BY {order})"
    number = f"ntile({random.randint(2, 3)})"
    found = [(f"{call}() OVER {over}", INT) for call in ("row_number", "rank", "dense_rank")]
    found += [(f"{call}() OVER {over}", DOUBLE) for call in ("percent_rank", "cume_dist")]
    found += [(f"{number} OVER {over}", INT), (f"count(*) OVER ({partition.strip()})", INT)]
    name, type_ = random.choice(part.columns)
    rows = f"({partition}ORDER BY {order} ROWS BETWEEN {random.choice(NEAR)})"
    nulls = random.choice(("", " IGNORE NULLS"))
    found += [
        (f"{call}({name}){nulls} OVER {random.choice((over, rows))}", type_)
        for call in ("first_value", "last_value")
    ]
    found += [(f"nth_value({name}, 2) OVER {rows}", type_)]
    found += [
        (f"{call}({name}){nulls} OVER {over}", type_) for call in ("lag", "lead", "lead", "lag")
    ]
    found += [(_of_a_condition(maker, part, rows), INT)]
    for number in random.sample(part.of(INT), min(1, len(part.of(INT)))):
        way = random.choice(("ASC NULLS FIRST", "DESC NULLS LAST", "ASC NULLS LAST"))
        values = f"({partition}ORDER BY {number} {way} RANGE BETWEEN {random.choice(NEAR)})"
        for call, kind in (("sum", INT), ("avg", DOUBLE), ("min", INT), ("max", INT)):
            found.append((f"{call}({number}) OVER {random.choice((over, rows, values))}", kind))
        found += [(f"count(*) OVER {values}", INT), (f"lead({number}, 2) OVER {over}", INT)]
    return found


def _of_a_condition(maker: BaseMaker, part: Part, rows: str) -> str:
    call, condition = maker.random.choice(("bool_and", "bool_or")), maker.condition(part)
    asked = f"{call}({condition}) OVER {rows}"
    return f"CASE WHEN {asked} THEN 1 WHEN NOT {asked} THEN 0 END"
