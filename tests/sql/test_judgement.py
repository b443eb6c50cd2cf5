"""Texts that take an admin, however they are written, and texts that everybody may run."""

from __future__ import annotations

import pytest

from headwater.errors import AccessError, Error
from headwater.sql import judgement, parser, scripts
from headwater.sql.judgement import Judgement, judged
from headwater.sql.permissions import judgement_of, permitted, text_refusal
from headwater.sql.spark_functions import ADMIN_ONLY, ALLOWED, OPERATORS, WITH_OPTIONS

XSD = "map('rowValidationXSDPath', 'http://127.0.0.1/evil.xsd')"
REFUSED = (
    f"SELECT from_xml('<a>1</a>', 'a INT', {XSD})",
    f"SELECT from_xml('<a>1</a>', 'a INT', named_struct('x', {XSD}).x)",
    "SELECT FROM_XML(s, 'a INT') FROM t",
    "SELECT from_xml\n(s, 'a INT') FROM t",
    "SELECT from_xml -- a\n (s, 'a INT') FROM t",
    "SELECT from_xml/* /* */ */(s, 'a INT') FROM t",
    "SELECT `from_xml`(s, 'a INT') FROM t",
    "SELECT `From_XML` /**/ (s, 'a INT') FROM t",
    "SELECT system.builtin.from_xml(s, 'a INT') FROM t",
    "SELECT `system`.`builtin`.`from_xml`(s, 'a INT') FROM t",
    "SELECT spark_catalog.default.reflect(s) FROM t",
    "SELECT from_xml\u00a0(s, 'a INT') FROM t",
    "SELECT from_xml\u200b(s, 'a INT') FROM t",
    "SELECT from_xml\x0b(s, 'a INT') FROM t",
    "SELECT \"from_xml\"(s, 'a INT') FROM t",
    "SELECT IDENTIFIER('from_xml')(s, 'a INT') FROM t",
    "SELECT IDENTIFIER('from' || '_xml')(s, 'a INT') FROM t",
    "SELECT IDENTIFIER('from_' 'xml')(s, 'a INT') FROM t",
    "SELECT identifier(r'from_xml') /* */ (s, 'a INT') FROM t",
    "SELECT * FROM IDENTIFIER('csv.`/etc/passwd`')",
    "SELECT transform(array(s), x -> from_xml(x, 'a INT')) FROM t",
    "SELECT aggregate(array(s), '', (a, b) -> reflect(a, b)) FROM t",
    "SELECT * FROM t, LATERAL (SELECT from_xml(s, 'a INT'))",
    "SELECT * FROM t LATERAL VIEW explode(array(from_xml(s, 'a INT'))) AS x",
    "FROM t |> SELECT from_xml(s, 'a INT')",
    "FROM t |> WHERE reflect(a, b) = 1",
    "TABLE t |> EXTEND reflect(a, b) AS c",
    "WITH c(a) AS (SELECT from_xml(s, 'a INT') FROM t) SELECT * FROM c",
    "WITH reflect(a) AS (SELECT 1) SELECT reflect(a, a) FROM t",
    "SELECT a, reflect(a, b) AS (c, d) FROM t",
    "SELECT a, reflect(a, b) AS (select, d) FROM t",
    "SELECT (a), reflect(a, b) FROM t",
    "SELECT CASE WHEN (a) THEN reflect(a, b) END FROM t",
    "SELECT 1 FROM t WHERE (a) AND reflect(a, b)",
    "SELECT 1 FROM t JOIN u ON reflect(a, b)",
    "SELECT 1 FROM t QUALIFY reflect(a, b)",
    "SELECT /*+ h('*/') */ reflect('java.lang.System', 'exit') -- '",
    "SELECT /*+ h(\"*/\") */ reflect('java.lang.System', 'exit') -- \"",
    "SELECT /*+ h(`*/`) */ reflect('java.lang.System', 'exit') -- `",
    "SELECT /*+ repartition(reflect('java.lang.System', 'exit')) */ 1 FROM t",
    "SELECT /*+ a */ /*+ h('*/') */ 1, reflect('java.lang.System', 'exit') -- '",
    "SELECT input_file_name() FROM t",
    "SELECT input_file_block_start(), input_file_block_length() FROM t",
    "SELECT * FROM python_worker_logs()",
    "SELECT from_avro(s, 'x', map('avroSchemaUrl', 'file:/etc/passwd')) FROM t",
    "SELECT from_protobuf(s, 'X', '/etc/passwd') FROM t",
    "SELECT schema_of_xml('<a/>', map('rowTag', 'a'))",
    "SELECT from_json(s, 'a INT', map('rowValidationXSDPath', 'x')) FROM t",
    "SELECT from_json(s, 'a INT', map('mode', s)) FROM t",
    "SELECT from_json(s, 'a INT', map('mo' || 'de', 'FAILFAST')) FROM t",
    "SELECT from_json(s, 'a INT', map('mode', 'FAILFAST') || m) FROM t",
    "SELECT from_json(s, 'a INT', map(s, 'x')) FROM t",
    "SELECT from_json(s, 'a INT', map_from_arrays(array('x'), array('y'))) FROM t",
    "SELECT from_json(s, 'a INT', options => map('mode', 'FAILFAST')) FROM t",
    "SELECT from_json(s, 'a INT', m) FROM t",
    "SELECT from_json(*) FROM t",
    "SELECT from_json(t.*) FROM t",
    "SELECT to_csv(struct(a), map('compression', 'java.lang.Object')) FROM t",
    "SELECT to_json(struct(a), map('mode', 'x', 'compression', 'y')) FROM t",
    "SELECT from_csv(s, 'a INT', map('maxColumns', 2000000000)) FROM t",
    "SELECT TRANSFORM (a) USING 'touch x' AS b FROM t",
    "SELECT TRANSFORM (a) uſing 'touch x' AS b FROM t",
    "SELECT TRANSFORM (a) USING ? AS b FROM t",
)
ALLOWED_TEXTS = (
    "SELECT 'from_xml(x)', \"reflect(\", reflect, from_xml FROM t -- reflect(",
    "SELECT `reflect` FROM t /* reflect(a) */",
    "SELECT a.b.c, count(*) FILTER (WHERE x > 1) OVER (PARTITION BY (a) ORDER BY (b)) FROM t",
    "SELECT * FROM (VALUES (1, 2)) AS v(a, b)",
    "SELECT * FROM (VALUES (1, 2)) v(a, b)",
    "SELECT * FROM range(3) AS r(n)",
    "SELECT * FROM range(3) r(n)",
    "WITH c(a, b) AS (SELECT 1, 2), d(x) AS (VALUES (1)) SELECT * FROM c, d",
    "WITH RECURSIVE r(n) MAX RECURSION LEVEL 10 AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT 1 FROM r",
    "WITH c AS (SELECT 1) (SELECT * FROM c)",
    "INSERT INTO t (a, b) VALUES (1, 2), (3, 4)",
    "INSERT INTO TABLE t (a, b) SELECT 1, 2",
    "COPY t (a, b) FROM STDIN WITH (FORMAT csv)",
    "COPY t TO STDOUT (FORMAT csv)",
    "MERGE INTO t USING u ON (t.a = u.a) WHEN NOT MATCHED THEN INSERT (a, b) VALUES (u.a, 1)",
    "SELECT CAST(a AS DECIMAL(10, 2)), TRY_CAST(b AS VARCHAR(3)), c :: NUMERIC(4) FROM t",
    "SELECT extract(YEAR FROM t.ts), trim(BOTH 'x' FROM t.s), position('a' IN t.s) FROM t",
    "SELECT timestampadd(DAY, 1, ts), timestampdiff(DAY, a, b) FROM t",
    "SELECT a FROM t WHERE (a, b) IN ((1, 2)) AND NOT (EXISTS (SELECT 1)) AND s LIKE ANY ('a', 'b')",
    "SELECT a FROM t GROUP BY GROUPING SETS ((a), ()), ROLLUP (b), CUBE (c) HAVING (count(*) > 1)",
    "SELECT * FROM t PIVOT (sum(a) FOR (b) IN (1, 2))",
    "SELECT * FROM t UNPIVOT INCLUDE NULLS (v FOR k IN (a, b)) TABLESAMPLE (10 PERCENT) REPEATABLE (1)",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a), listagg(s, ',') FROM t",
    "SELECT * EXCEPT (a) FROM t JOIN u USING (b) CROSS JOIN LATERAL (SELECT 1)",
    "SELECT transform(a, x -> x + 1), filter(a, (x, i) -> x > i) FROM t",
    "SELECT named_struct('a', 1), map('a', 1), array(1), struct(1) FROM t",
    "SELECT /*+ BROADCAST(t), REPARTITION(3, a) */ a FROM t",
    "SELECT from_json(s, 'a INT') FROM t",
    "SELECT from_json(s, schema_of_json('{}'), map('mode', 'FAILFAST', 'allowComments', true)) FROM t",
    "SELECT to_json(struct(a), map('dateFormat', 'dd, MM')), to_csv(struct(a), map('sep', '|')) FROM t",
    "SELECT schema_of_csv('1,2', map('delimiter', ',')), from_csv(s, 'a INT') FROM t",
    "SELECT PREV(a), CURRENT_INSTANT() FROM t [ROWS 3] WHERE VALID(t) OVERLAPS PERIOD(1, 2)",
    "SELECT count(*) FROM STREAM(s, 'CUT ON ts BY 60 SECS', 'BLOCK', 12)",
    "SELECT IDENTIFIER('a'), (1) FROM IDENTIFIER('t')",
    "SUBSCRIBE TO (SELECT a FROM t SAMPLE 3 ROWS) CONFLATE BY (a)",
    "CALL p(upper('x'))",
    "EXPLAIN (SELECT 1)",
    "DESCRIBE (SELECT 1)",
    "SELECT `sum`(a), system.builtin.upper(s), current_user, user FROM t",
    "FROM t |> WHERE (a > 1) |> AGGREGATE sum(a) GROUP BY b |> EXTEND (1) AS c",
)


@pytest.mark.parametrize("text", REFUSED)
def test_what_takes_an_admin_is_found_however_it_is_written(text: str) -> None:
    """Readers and writers are refused by name or by option; an admin is not."""
    for role in ("reader", "writer"):
        refusal = text_refusal(role, text)  # type: ignore[arg-type]
        assert refusal is not None
        assert refusal.sqlstate in ("42501", "42883")
    assert text_refusal("admin", text) is None


@pytest.mark.parametrize("text", ALLOWED_TEXTS)
def test_what_everybody_may_ask_is_not_refused(text: str) -> None:
    """Words of the grammar, lists of columns and functions that were judged."""
    assert judged(text) == Judgement()


def test_a_refusal_names_the_function_and_the_reason() -> None:
    """Whoever is refused learns what it was, and no part of the text."""
    refusal = permitted("reader", parser.parse(REFUSED[0]))
    assert isinstance(refusal, AccessError)
    assert refusal.message == "role reader may not use from_xml"
    assert refusal.detail == ADMIN_ONLY["from_xml"]
    assert "admin" in (refusal.hint or "")
    assert "evil" not in str(refusal)


def test_a_function_that_nobody_has_is_said_to_be_none() -> None:
    """A slip of the pen is no question of rights."""
    refusal = text_refusal("reader", "SELECT uper(s) FROM t")
    assert isinstance(refusal, Error)
    assert (refusal.sqlstate, refusal.hint) == ("42883", "did you mean upper?")
    assert refusal.place is not None
    assert refusal.place.start == 7


def test_functions_of_users_may_be_called_under_their_names() -> None:
    """But a name of Spark's that was judged stays judged: the longer name would reach Spark's own."""
    text = "SELECT twice(a), `Twice`(a), v.x FROM t, LATERAL pairs(a) AS v(x)"
    assert text_refusal("reader", text) is not None
    assert text_refusal("reader", text, {"twice", "pairs"}) is None
    assert text_refusal("reader", "SELECT reflect(a)", {"reflect"}) is not None


def test_a_function_has_one_judgement() -> None:
    """The four lists do not overlap, and no word of the grammar hides a function."""
    lists = [ALLOWED, ADMIN_ONLY.keys(), WITH_OPTIONS.keys(), OPERATORS]
    assert sum(map(len, lists)) == len(frozenset().union(*lists))
    assert not {word.lower() for word in judgement.GRAMMAR} & {*ADMIN_ONLY, *WITH_OPTIONS}


def test_a_text_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts that come again, and rows without calls however many, cost no second look at their tokens."""
    looked = []
    real = judgement.tokenize
    monkeypatch.setattr(judgement, "tokenize", lambda text: looked.append(text) or real(text))
    for _ in range(3):
        judgement_of(scripts.read_one("SELECT /* once */ upper(s) FROM t_once").statement())
    judged("INSERT INTO t VALUES " + ", ".join(f"({n}, 'row {n}')" for n in range(5000)))
    assert len(looked) == 1
