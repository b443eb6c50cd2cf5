"""SCRAM-SHA-256: the published example, verifiers, and everything a client may get wrong."""

from __future__ import annotations

import base64

import pytest

from headwater.server.wire.scram import (
    Exchange,
    LoginError,
    make_verifier,
    mock_verifier,
    parse_verifier,
    prepared,
)

# RFC 7677 §3
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_NONCE, SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = f"n,,n=user,r={CLIENT_NONCE}".encode()
FINAL = (
    f"c=biws,r={CLIENT_NONCE}{SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
).encode()


def exchange() -> Exchange:
    return Exchange(make_verifier("pencil", SALT), SERVER_NONCE)


def test_the_example_of_the_rfc() -> None:
    """Our answers are those of RFC 7677, to the letter."""
    found = exchange()
    answer = f"r={CLIENT_NONCE}{SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert found.first(FIRST).decode() == answer
    assert found.final(FINAL) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_verifiers_have_postgresqls_form() -> None:
    """A verifier is written as PostgreSQL writes it, and read back; the password is not in it."""
    verifier = make_verifier("pencil", SALT)
    text = str(verifier)
    assert text.startswith("SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$")
    assert parse_verifier(text) == verifier
    assert "pencil" not in text


@pytest.mark.parametrize(
    "text",
    ["", "md5abc", "SCRAM-SHA-256$0:aaaa$bbbb:cccc", "SCRAM-SHA-256$4096:W22Z$W22Z:W22Z"],
)
def test_what_is_no_verifier(text: str) -> None:
    """Texts of other forms, and keys of another length, are refused."""
    with pytest.raises(ValueError, match="verifier"):
        parse_verifier(text)


def test_a_wrong_password() -> None:
    """A proof from another password is refused with 28P01."""
    found = Exchange(make_verifier("pen", SALT), SERVER_NONCE)
    found.first(FIRST)
    with pytest.raises(LoginError) as caught:
        found.final(FINAL)
    assert caught.value.sqlstate == "28P01"


def test_a_user_who_does_not_exist() -> None:
    """The verifier for an unknown name is always the same one and fits nothing."""
    assert mock_verifier("x", b"k") == mock_verifier("x", b"k")
    assert mock_verifier("x", b"k").salt != mock_verifier("y", b"k").salt
    found = Exchange(mock_verifier("user", b"k"), SERVER_NONCE)
    found.first(FIRST)
    with pytest.raises(LoginError):
        found.final(FINAL)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"p=tls-server-end-point,,n=,r=abc",
        b"n,a=other,n=,r=abc",
        b"\xff",
        b"n,,n=u,r=",
    ],
)
def test_a_first_message_that_makes_no_sense(message: bytes) -> None:
    """Anything but client-first-message without channel binding is a LoginError."""
    with pytest.raises(LoginError):
        exchange().first(message)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"c=biws,r=other,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        FINAL.replace(b"biws", b"eSws"),
        FINAL.split(b",p=")[0],
        FINAL.split(b",p=")[0] + b",p=AAAA",
        FINAL.split(b",p=")[0] + b",p=!!!!",
    ],
)
def test_a_final_message_that_makes_no_sense(message: bytes) -> None:
    """Another nonce, another header, a missing or short proof: a LoginError each."""
    found = exchange()
    found.first(FIRST)
    with pytest.raises(LoginError):
        found.final(message)


def test_passwords_are_prepared() -> None:
    """SASLprep (RFC 4013 §3): soft hyphens go, compatibility forms are unified."""
    assert prepared("I\u00adX") == "IX"
    assert prepared("\u2168") == "IX"
    assert prepared("\u00aa") == "a"
    assert prepared("\u0627\u0031") == "\u0627\u0031"  # forbidden: taken as it is
