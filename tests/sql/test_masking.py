"""No password gets out by way of an error."""

from __future__ import annotations

import pytest

import headwater
from headwater.errors import Error
from headwater.sql import parser
from headwater.sql.masking import masked, without_passwords

SECRET = "hunter2"


@pytest.mark.parametrize(
    "text",
    [
        "CREATE USER u PASSWORD 'hunter2' ROLE KING",
        "CREATE USER u PASWORD 'hunter2'",
        "CREATE USER u 'hunter2'",
        "CREATE OR REPLACE USER u PASSWORD 'hunter2'",
        "ALTER USER u PASSWORD 'hunter2' 'hunter2'",
        'create /* x */ user u password "hunter2" x',
        "CREATE USER u PASSWORD 'hunter2",
        "ALTER USER PASSWORD 'hunter2",
        "ALTER TABLE t PASSWORD 'hunter2'",
        "CREATE SINK k FROM q INTO 'postgresql://u:hunter2@h/d' WITH",
        "CREATE SINK k FROM q INTO 'postgresql://u:x@hunter2@h/d' x",
        "CREATE SINK k FROM q INTO 'postgresql://h/d?user=u&password=hunter2' WITH",
        "CREATE SINK k FROM q INTO 'postgresql://u:hunter2@h/d",
        "CREATE SOURCE s INTO t FROM 'kafka://h/t' WITH (sasl_password = 'hunter2',, x = 1)",
        "CREATE SOURCE s INTO t FROM 'kafka://h/t' WITH (client_secret = 'hunter2'",
    ],
)
def test_errors_do_not_show_passwords(text: str) -> None:
    """However the statement is wrong, neither message, hint nor the marked line has the password."""
    with pytest.raises(Error) as caught:
        parser.parse(text)
    error = caught.value
    said = [str(error), repr(error), str(error.args), error.place.text if error.place else ""]
    assert SECRET not in " ".join(said)


def test_a_mistake_elsewhere_in_a_script_does_not_show_them() -> None:
    """The line of another statement's error is shown without the password beside it."""
    text = "CREATE USER u PASSWORD 'hunter2'; SELEC 1"
    with headwater.connect(settings={"eager_spark": False}) as db, pytest.raises(Error) as caught:
        db.sql(text)
    assert SECRET not in str(caught.value)
    assert caught.value.place is not None
    assert caught.value.place.start == text.index("SELEC")


def test_the_database_places_errors_without_them() -> None:
    """`db.sql` places errors in the whole text, masked."""
    text = "SHOW TABLES; CREATE USER u PASSWORD 'hunter2' ROLE KING"
    with headwater.connect(settings={"eager_spark": False}) as db:
        with pytest.raises(Error) as caught:
            db.sql(text)
        with pytest.raises(Error) as later:
            db.sql("CREATE USER u PASSWORD 'hunter2'; SELEC 1")
    assert SECRET not in str(caught.value) + str(later.value)
    assert caught.value.place is not None
    assert caught.value.place.start == text.index("KING")


def test_masked_texts_keep_their_length_and_everything_else() -> None:
    """Places stay right, and strings that are no passwords are not touched."""
    text = "CREATE USER u PASSWORD 'a''b' ROLE READER; SELECT 'x', 'USER'"
    assert masked(text) == "CREATE USER u PASSWORD '****' ROLE READER; SELECT 'x', 'USER'"
    assert masked("SELECT 'hunter2'") == "SELECT 'hunter2'"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://u:s3@h/d", "postgresql://u:…@h/d"),
        ("postgresql://u:a@b/c@h/d", "postgresql://u:…@h/d"),
        ("no route to postgresql://u:s3@h/d, port 1", "no route to postgresql://u:…@h/d, port 1"),
        ("postgresql://h/d?user=u&password=s3&x=1", "postgresql://h/d?user=u&password=…&x=1"),
        ("postgresql://u:${env:PW}@h/d", "postgresql://u:${env:PW}@h/d"),
        ("postgresql://u@h:5432/d", "postgresql://u@h:5432/d"),
        ("kafka://h:9092,i:9092/topic", "kafka://h:9092,i:9092/topic"),
        ("csv:/data/out", "csv:/data/out"),
    ],
)
def test_addresses_without_their_passwords(text: str, shown: str) -> None:
    """Neither before the host nor among the parameters; all else stays."""
    assert without_passwords(text) == shown
