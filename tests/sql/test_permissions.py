"""The permission matrix: every statement class × every role."""

from __future__ import annotations

from typing import get_args

import pytest

from headwater.sql import parser, statements
from headwater.sql.permissions import NEEDED, permitted
from headwater.sql.statements.base import Statement
from headwater.sql.statements.user import Role

ROLES: tuple[Role, ...] = get_args(Role)
READS = (
    "SELECT 1",
    "VALUES (1)",
    "SUBSCRIBE q",
    "SHOW CREATE t",
    "SHOW TABLES",
    "SHOW USERS",
    "SHOW time_zone",
    "DESCRIBE t",
    "EXPLAIN SELECT 1",
    "EXPLAIN CREATE VIEW v AS SELECT 1",
    "EXPLAIN QUERY q",
    "VERIFY VIEW v",
    "COPY t TO STDOUT",
    "COPY (SELECT 1) TO STDOUT CSV",
    "CALL p(1)",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT a",
    "RELEASE a",
    "ROLLBACK TO a",
    "SET TRANSACTION READ ONLY",
    "DECLARE c CURSOR FOR SELECT 1",
    "FETCH 5 FROM c",
    "CLOSE c",
    "DISCARD ALL",
    "DEALLOCATE p",
    "UNLISTEN *",
    "SELECT 'reflect(x)', reflect FROM t",
    "SELECT IDENTIFIER('a'), (1) FROM IDENTIFIER('t')",
    "SELECT transform(a, x -> x + 1) FROM t JOIN u USING (b)",
)
WRITES = (
    "INSERT INTO t VALUES (1)",
    "UPDATE t SET a = 1",
    "DELETE FROM t",
    "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE t",
    "COPY t FROM STDIN",
    "ADVANCE t TO 5",
    "FLUSH",
)
ADMINS = (
    "CREATE TABLE t (a INT)",
    "CREATE STREAMING TABLE t (a INT)",
    "CREATE STREAM t (a INT)",
    "CREATE INDEX i ON t (a)",
    "CREATE VIEW v AS SELECT 1",
    "CREATE CONTINUOUS QUERY q AS SELECT a FROM t [ROWS 3] SAMPLE 3 ROWS",
    "CREATE MATERIALIZED VIEW m AS SELECT a FROM t [ROWS 3] SAMPLE 3 ROWS",
    "CREATE FUNCTION f(x INT) RETURNS INT RETURN x",
    "CREATE PROCEDURE p() AS BEGIN SELECT 1; END",
    "CREATE SOURCE s INTO t FROM 'csv:/x'",
    "CREATE SINK k FROM q INTO 'csv:/x'",
    "CREATE USER u PASSWORD 'x'",
    "ALTER TABLE t SET CLOCK TO 5",
    "ALTER TABLE t SET MAX_CLOCK_AHEAD DEFAULT",
    "ALTER USER u ROLE ADMIN",
    "CREATE TOKEN k",
    "DROP TABLE t",
    "DROP USER u",
    "DROP TOKEN k",
    "ALTER TABLE t ADD COLUMN b INT",
    "ALTER TABLE t DROP COLUMN b",
    "ALTER TABLE t RENAME TO u",
    "ALTER TABLE t RENAME COLUMN a TO b",
    "ALTER TABLE t SET RANGE FOREVER",
    "ALTER VIEW v REFRESH STATIC",
    "ALTER VIEW v SET (parts = 2)",
    "ALTER QUERY q SET (parts = auto)",
    "ALTER QUERY q RESET LANDMARK",
    "PAUSE QUERY q",
    "KILL QUERY q",
    "PAUSE SINK k",
    "RESUME SINK k",
    "PAUSE SOURCE s",
    "SET block_rows = 5000",
    "RESET ALL",
    "COPY t FROM '/etc/passwd' CSV",
    "COPY t TO '/tmp/x' CSV",
    "INSERT INTO t FROM STREAM 'csv:/x'",
    "SELECT reflect('java.lang.System', 'exit', 0)",
    "SELECT `java_method` /* */ ('java.lang.System', 'exit', 0)",
    "SELECT IDENTIFIER('re' || 'flect')('java.lang.System', 'exit', 0)",
    "INSERT INTO t SELECT try_reflect('java.lang.System', 'getenv', 'HOME')",
    "SELECT TRANSFORM (a) USING 'touch x' AS b FROM t",
    "FROM t MAP a USING r'touch x' AS b",
    'COPY (SELECT * FROM (FROM t REDUCE a using /* */ "cat" AS b)) TO STDOUT',
)
LEAST: dict[str, Role] = (
    dict.fromkeys(READS, "reader") | dict.fromkeys(WRITES, "writer") | dict.fromkeys(ADMINS, "admin")
)  # fmt: skip


def classes() -> list[type[Statement]]:
    """Every statement of the grammar."""
    found = [getattr(statements, name) for name in statements.__all__]
    return [c for c in found if issubclass(c, Statement) and c is not Statement]


def test_every_statement_class_has_an_entry() -> None:
    """A new statement fails here until somebody has said who may run it."""
    assert set(classes()) == set(NEEDED)


def test_every_statement_class_is_in_the_matrix() -> None:
    """The texts of the matrix below cover the grammar."""
    assert {type(parser.parse(text)) for text in LEAST} == set(classes())


@pytest.mark.parametrize("role", ROLES)
def test_the_matrix(role: Role) -> None:
    """Each role may run exactly what its rank allows; a refusal has SQLSTATE 42501 and no text."""
    for text, least in LEAST.items():
        refusal = permitted(role, parser.parse(text))
        allowed = ROLES.index(role) >= ROLES.index(least)
        assert (refusal is None) == allowed, (role, text)
        if refusal is not None:
            assert refusal.sqlstate == "42501"
            assert least in (refusal.hint or "")
            assert "'" not in str(refusal)


def test_explain_analyze_takes_what_its_statement_takes() -> None:
    """EXPLAIN ANALYZE runs the statement; what runs it must be allowed to."""
    refusal = permitted("reader", parser.parse("EXPLAIN ANALYZE SELECT java_method('a', 'b')"))
    assert refusal is not None
