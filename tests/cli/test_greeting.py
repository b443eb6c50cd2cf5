"""What `headwater serve` says once it listens: every line can be copied and works."""

from __future__ import annotations

from dataclasses import replace

from headwater.cli.greeting import Served, greeting

PLAIN = Served(("127.0.0.1", 5433), ("127.0.0.1", 8080), own_user="wim")


def lines(**more: object) -> list[str]:
    return list(greeting(replace(PLAIN, **more)))  # type: ignore[arg-type]


def test_the_usual() -> None:
    """How to connect over TCP, the Unix socket and HTTP, and who may without a password."""
    assert lines(folder="/run/user/7/headwater") == [
        "PostgreSQL clients: psql -h 127.0.0.1 -p 5433 -U headwater",
        "on this machine too: psql -h /run/user/7/headwater -p 5433 -U headwater",
        "HTTP: http://127.0.0.1:8080/openapi.json",
        "console: http://127.0.0.1:8080/",
        "OS user wim (or root) on this machine needs no password and is an admin; nobody else gets in "
        "before CREATE USER",
    ]


def test_no_line_names_all_addresses() -> None:
    """0.0.0.0 and :: are no address to connect to; IPv6 in a URL has brackets."""
    for host, shown in (("0.0.0.0", "127.0.0.1"), ("::", "[::1]")):
        said = lines(wire=(host, 1), http=(host, 2), tls=True, users=1, is_given=True)
        assert not any(f"{host}:" in line or f" {host} " in line for line in said)
        assert f"console: https://{shown}:2/" in said
        assert "from other machines: the same with the name of this one" in said


def test_who_may() -> None:
    """Users, trust in everybody, trust in this machine: each is said plainly."""
    assert lines(users=2)[-1] == "everybody needs a password or a token"
    assert lines(users=2)[0].endswith("-U USER")
    assert lines(users=2, is_given=True)[0].endswith("-U headwater")
    assert "on any machine" in lines(trusts_anyone=True)[-1]
    assert "every OS user" in lines(trusts_loopback=True)[-1]
    assert "root on this machine needs" in lines(own_user="root")[-1]
    assert "or root" not in lines(own_user="root")[-1]
