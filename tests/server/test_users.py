"""Users, roles and tokens: what is kept of them, and that it is enough to log in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater
from headwater.errors import AccessError, Error
from headwater.execute.verifiers import fits, make_verifier, mock_verifier, parse_verifier

SETTINGS = {"eager_spark": False}


@pytest.fixture
def db() -> Iterator[headwater.Database]:
    """A database without Spark."""
    with headwater.connect(settings=SETTINGS) as opened:
        yield opened


def test_verifiers_are_postgresqls() -> None:
    """A verifier made by PostgreSQL fits its password, and ours come out the same."""
    salt = b"0123456789abcdef"
    text = str(make_verifier("pencil", salt))
    assert text.startswith("SCRAM-SHA-256$4096:MDEyMzQ1Njc4OWFiY2RlZg==$")
    assert fits("pencil", parse_verifier(text))
    assert not fits("pencils", parse_verifier(text))
    assert not fits("pencil", mock_verifier("nobody", b"secret"))
    # RFC 7677 §3: the exchange of user "user", password "pencil"
    known = parse_verifier(
        "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"
        "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    )
    assert fits("pencil", known)


def test_users_survive_a_restart_without_their_passwords(tmp_path: Path) -> None:
    """What is on disk is a verifier and a role; the password stands nowhere in the folder."""
    with headwater.connect(tmp_path / "d", settings=SETTINGS) as db:
        db.sql("CREATE USER ada PASSWORD 'correct horse' ROLE WRITER")
        token = db.sql("CREATE TOKEN probe ROLE READER").rows()[0][0]
    for path in (tmp_path / "d").rglob("*"):
        if path.is_file():
            assert b"correct horse" not in path.read_bytes()
            assert token.encode() not in path.read_bytes()
    with headwater.connect(tmp_path / "d", settings=SETTINGS) as db:
        login = db.users.verifier_of("ADA")
        assert login is not None
        assert (login.role, fits("correct horse", login.verifier)) == ("writer", True)
        assert db.users.token(token) == ("probe", "reader")
        assert len(db.users) == 1


def test_alter_and_drop(db: headwater.Database) -> None:
    """A new password takes the place of the old one; a dropped user or token is nobody's."""
    db.sql("CREATE USER ada PASSWORD 'a' ROLE ADMIN")
    db.sql("ALTER USER ada PASSWORD 'b'")
    login = db.users.verifier_of("ada")
    assert login is not None
    assert [fits(p, login.verifier) for p in "ab"] == [False, True]
    assert login.role == "admin"
    db.sql("ALTER USER ada ROLE READER")
    assert db.sql("SHOW USERS").rows()[0][:2] == ("ada", "reader")
    token = db.sql("CREATE TOKEN k").rows()[0][0]
    assert db.sql("SHOW TOKENS").rows()[0][:2] == ("k", "reader")
    db.sql("DROP TOKEN k; DROP USER ada; DROP USER IF EXISTS ada")
    assert db.users.verifier_of("ada") is None
    assert db.users.token(token) is None


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("CREATE USER ADA PASSWORD 'x'", "42P07"),
        ("CREATE USER b PASSWORD ''", "22023"),
        ("ALTER USER b ROLE READER", "42704"),
        ("DROP USER b", "42704"),
        ("DROP TOKEN b", "42704"),
    ],
)
def test_refusals(db: headwater.Database, text: str, sqlstate: str) -> None:
    """Names that are taken or unknown, and empty passwords, are refused."""
    db.sql("CREATE USER ada PASSWORD 'a' ROLE ADMIN")
    with pytest.raises(Error) as caught:
        db.sql(text)
    assert caught.value.sqlstate == sqlstate


def test_a_verifier_is_taken_as_it_is(db: headwater.Database) -> None:
    """Users move over from PostgreSQL with what its dump holds."""
    text = str(make_verifier("pencil", b"0123456789abcdef"))
    db.sql(f"CREATE USER ada PASSWORD '{text}' ROLE ADMIN")
    login = db.users.verifier_of("ada")
    assert login is not None
    assert str(login.verifier) == text


def test_without_an_admin_there_is_a_notice(db: headwater.Database) -> None:
    """Whoever locks himself out of the server is told."""
    assert "admin" in (db.sql("CREATE USER ada PASSWORD 'a'").notice or "")
    assert db.sql("CREATE USER root PASSWORD 'a' ROLE ADMIN").notice is None


def test_a_procedure_has_the_rights_of_its_caller(db: headwater.Database) -> None:
    """CALL is anybody's; the statements inside are checked against the role."""
    db.sql("CREATE TABLE t (a INT)")
    db.sql("CREATE PROCEDURE add_one() AS BEGIN INSERT INTO t VALUES (1); END")
    with pytest.raises(AccessError):
        db.statement("CALL add_one()", role="reader")
    db.statement("CALL add_one()", role="writer")
    assert db.sql("SELECT a FROM t").rows() == [(1,)]


def test_secrets_of_spark_are_not_shown() -> None:
    """Whoever may SHOW settings does not see keys of the outside world."""
    name = "spark.hadoop.fs.s3a.secret.key"
    with headwater.connect(settings={**SETTINGS, name: "hunter2", "spark.x": "seen"}) as db:
        settings = dict(db.sql("SELECT name, value FROM headwater.settings").rows())
        assert (settings[name], settings["spark.x"]) == ("***", "seen")
        assert db.sql(f"SHOW {name}").rows() == [("***",)]
