"""Random aggregates over a part, in the words of Spark and of DuckDB.

What is computed with doubles in another order may differ in its last digits: it is made a whole number, from
which no such difference can be seen. NULL and NaN are one there.
"""

from __future__ import annotations

from tests.harness.circuits.base import DOUBLE, INT, TEXT, BaseMaker, Part

Call = tuple[str, str]  # a text and its type


def aggregate_calls(maker: BaseMaker, part: Part) -> list[Call]:
    """One to three calls, each of a kind that is drawn first: many of one kind are no likelier for it."""
    families = [_counts(maker, part)]
    if part.of(INT):
        families += [_of_numbers(maker, part)] * 2
        families += [_ordered(maker, part), _of_pairs(maker, part), _moments(maker, part)]
        families += [_distinct(maker, part), _bits_and_truth(maker, part)]
    if part.of(DOUBLE):
        families.append(_of_doubles(maker, part))
    if part.of(TEXT):
        families.append(_of_texts(maker, part))
    chosen = [maker.random.choice(family) for family in maker.random.choices(families, k=3)]
    return list(dict.fromkeys(chosen))[: maker.random.randint(1, 3)]


def whole(call: str) -> str:
    """A double as a number of thousandths; nowhere near where it would be rounded either way."""
    return (
        f"CASE WHEN {call} < 1000000D AND {call} > -1000000D "
        f"THEN CAST(floor({call} * 1000D + 0.3123D) AS INT) END"
    )


def _counts(maker: BaseMaker, part: Part) -> list[Call]:
    (name, type_), (other, kind) = (maker.random.choice(part.columns) for _ in range(2))
    shown = [
        f"CAST({n} + 0.0D AS STRING)" if t == DOUBLE else f"CAST({n} AS STRING)"
        for n, t in ((name, type_), (other, kind))  # 0.0 and -0.0 are one value
    ]
    condition = maker.condition(part)
    return [
        ("count(*)", INT),
        (f"count({name})", INT),
        (f"count({name}) FILTER (WHERE {condition})", INT),
        (maker.mark(f"count_if({condition})", f"count(CASE WHEN {condition} THEN 1 END)"), INT),
        (f"count(DISTINCT {name})", INT),
        (
            maker.mark(
                f"count(DISTINCT {name}, {other})",
                f"count(DISTINCT {shown[0]} || '/' || {shown[1]})",
            ),
            INT,
        ),
    ]


def _of_numbers(maker: BaseMaker, part: Part) -> list[Call]:
    name = maker.random.choice(part.of(INT))
    found = [(f"{call}({name})", INT) for call in ("sum", "min", "max")]
    found += [(f"{call}({name})", DOUBLE) for call in ("avg", "median")]
    found += [(f"sum({name}) FILTER (WHERE {maker.condition(part)})", INT)]
    found += [(maker.mark(f"try_sum({name})", f"sum({name})"), INT)]
    found += [
        (maker.mark(f"{call}({name})", f"avg({name})"), DOUBLE) for call in ("try_avg", "mean")
    ]
    decimal = f"CAST({name} AS DECIMAL(12, 2))"
    found += [(f"CAST(sum({decimal}) AS DOUBLE)", DOUBLE), (f"CAST(max({decimal}) AS INT)", INT)]
    return found


def _distinct(maker: BaseMaker, part: Part) -> list[Call]:
    name = maker.random.choice(part.of(INT))
    return [
        (f"sum(DISTINCT {name})", INT),
        (f"count(DISTINCT {name})", INT),
        (f"avg(DISTINCT {name})", DOUBLE),
        (f"min(DISTINCT {name})", INT),
        (estimate(maker, name), INT),
        (estimate(maker, name), INT),
        (maker.mark(f"size(collect_set({name}))", f"count(DISTINCT {name})"), INT),
        (maker.mark(f"size(collect_list({name}))", f"count({name})"), INT),
    ]


def estimate(maker: BaseMaker, name: str) -> str:
    """approx_count_distinct over few values, which no register of a sketch has twice."""
    few = f"{name} % 5"
    return maker.mark(f"approx_count_distinct({few})", f"count(DISTINCT {few})")


def _ordered(maker: BaseMaker, part: Part) -> list[Call]:
    """Which of several equal ones it is never shows."""
    name = maker.random.choice(part.of(INT))
    by, down = maker.random.choice(part.columns), [n for n, _ in part.columns]
    maker.random.shuffle(down)
    fields = ", ".join(f"{n} AS f{i}" for i, n in enumerate(down))
    most = ", ".join(f"{n} DESC NULLS LAST" for n in down)
    least = ", ".join(f"{n} ASC NULLS FIRST" for n in down)
    share = maker.random.choice(("0.25", "0.5", "0.0", "1.0"))
    way = maker.random.choice(("", " DESC"))
    return [
        (f"max_by({name} % 3, {name})", INT),
        (f"min_by({name} % 3, {name})", INT),
        (
            maker.mark(
                f"max_by({by[0]}, named_struct({_fields(down)}))", f"first({by[0]} ORDER BY {most})"
            ),
            by[1],
        ),
        (
            maker.mark(f"min_by({by[0]}, struct({fields}))", f"first({by[0]} ORDER BY {least})"),
            by[1],
        ),
        (
            maker.mark(
                f"mode() WITHIN GROUP (ORDER BY {name}{way})", f"mode({name} ORDER BY {name}{way})"
            ),
            INT,
        ),
        (maker.mark(f"percentile({name}, {share})", f"quantile_cont({name}, {share})"), DOUBLE),
        (
            maker.mark(
                f"percentile_cont({share}) WITHIN GROUP (ORDER BY {name})",
                f"quantile_cont({name}, {share})",
            ),
            DOUBLE,
        ),
        (
            maker.mark(
                f"percentile_disc({share}) WITHIN GROUP (ORDER BY {name})",
                f"CAST(quantile_disc({name}, {share}) AS DOUBLE)",
            ),
            DOUBLE,
        ),
        (maker.mark(f"percentile_approx({name}, {share})", f"quantile_disc({name}, {share})"), INT),
        (maker.mark(f"approx_percentile({name}, {share})", f"quantile_disc({name}, {share})"), INT),
    ]


def _fields(names: list[str]) -> str:
    return ", ".join(f"'f{place}', {name}" for place, name in enumerate(names))


def _moments(maker: BaseMaker, part: Part) -> list[Call]:
    name = maker.random.choice(part.of(INT))
    calls = ("var_samp", "var_pop", "stddev_samp", "stddev_pop", "variance", "stddev")
    found = [(whole(f"{call}({name})"), INT) for call in calls]
    skewness = (
        f"CASE WHEN var_pop({name}) > 0 THEN (avg(1D * {name} * {name} * {name})"
        f" - 3 * avg({name}) * avg(1D * {name} * {name}) + 2 * pow(avg({name}), 3))"
        f" / pow(var_pop({name}), 1.5) END"
    )
    pairs = ((f"skewness({name})", skewness), (f"kurtosis({name})", f"kurtosis_pop({name})"))
    return [*found, *((maker.mark(whole(spark), whole(judge)), INT) for spark, judge in pairs)]


def _of_pairs(maker: BaseMaker, part: Part) -> list[Call]:
    one, other = (maker.random.choice(part.of(INT)) for _ in range(2))
    calls = (
        *("covar_samp", "covar_pop", "corr", "regr_sxx", "regr_syy", "regr_sxy", "regr_slope"),
        *("regr_intercept", "regr_r2", "regr_avgx", "regr_avgy"),
    )
    found = [(whole(f"{call}({one}, {other})"), INT) for call in calls]
    return [*found, (f"regr_count({one}, {other})", INT)]


def _bits_and_truth(maker: BaseMaker, part: Part) -> list[Call]:
    name, condition = maker.random.choice(part.of(INT)), maker.condition(part)
    found = [(f"{call}({name})", INT) for call in ("bit_and", "bit_or", "bit_xor")]
    for call in ("bool_and", "bool_or", "every", "some"):
        judge = {"every": "bool_and", "some": "bool_or"}.get(call, call)
        words = (
            f"CASE WHEN {one}({condition}) THEN 1 WHEN NOT {one}({condition}) THEN 0 END"
            for one in (call, judge)
        )
        found.append((maker.mark(*words), INT))
    return found


def _of_doubles(maker: BaseMaker, part: Part) -> list[Call]:
    """NaN is among them."""
    name = maker.random.choice(part.of(DOUBLE))
    calls = ("sum", "max", "min", "avg")
    return [
        *((f"{call}({name})", DOUBLE) for call in calls),
        (f"count(DISTINCT {name})", INT),
        (f"max({name}) FILTER (WHERE {maker.condition(part)})", DOUBLE),
        (f"max_by({name}, {name})", DOUBLE),
    ]


def _of_texts(maker: BaseMaker, part: Part) -> list[Call]:
    name = maker.random.choice(part.of(TEXT))
    way = maker.random.choice(("", " DESC"))
    return [
        (f"min({name})", TEXT),
        (f"max({name})", TEXT),
        (f"count(DISTINCT {name})", INT),
        (
            maker.mark(
                f"listagg({name}, '+') WITHIN GROUP (ORDER BY {name}{way})",
                f"string_agg({name}, '+' ORDER BY {name}{way})",
            ),
            TEXT,
        ),
        (
            maker.mark(
                f"listagg(DISTINCT {name}, '') WITHIN GROUP (ORDER BY {name})",
                f"string_agg(DISTINCT {name}, '' ORDER BY {name})",
            ),
            TEXT,
        ),
    ]
