"""Who may run what: statements with the least role that may, and a database with a user of each role."""

from __future__ import annotations

import headwater
from headwater.sql.statements.user import Role

RANKS: tuple[Role, ...] = ("reader", "writer", "admin")
STATEMENTS: dict[str, Role] = {
    "SHOW TABLES": "reader",
    "SELECT a FROM t": "reader",
    "DESCRIBE t": "reader",
    "INSERT INTO t VALUES (1)": "writer",
    "ADVANCE e TO 5": "writer",
    "FLUSH": "writer",
    "CREATE TABLE IF NOT EXISTS t (a INT)": "admin",
    "CREATE USER IF NOT EXISTS r PASSWORD 'x'": "admin",
    "ALTER USER r ROLE READER": "admin",
    "SET block_rows = 5000": "admin",
    "DROP TABLE IF EXISTS zzz": "admin",
    "COPY t FROM '/nowhere' CSV": "admin",
    "COPY t TO '/nowhere/x' CSV": "admin",
}


def fill(db: headwater.Database) -> None:
    """The tables of the statements, and users r, w and a."""
    db.sql("CREATE TABLE t (a INT)")
    db.sql("CREATE STREAMING TABLE e (a BIGINT) TIMESTAMP BY a")
    for role in RANKS:
        db.sql(f"CREATE USER {role[0]} PASSWORD 'pw-{role}' ROLE {role.upper()}")
