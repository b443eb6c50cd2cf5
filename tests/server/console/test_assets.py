"""The console's files: what is served, under which policy, and that nothing else can be had."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import headwater
from headwater.server.console import assets
from tests.server.http.client import Client

FOLDER = Path(assets.__file__).parent


def test_every_file_is_in_the_table() -> None:
    """A file that is forgotten in the table would be missing in the browser only."""
    there = {p.name for p in FOLDER.iterdir() if p.is_file() and p.suffix != ".py"}
    assert there == {*assets.ASSETS, assets.PAGE}


def test_the_page_and_its_files_are_served(client: Client) -> None:
    """Whatever the page and the modules refer to is there, with its type and the policy."""
    page = client.ask("GET", "/")
    assert page.status == 200
    assert page.headers["content-type"].startswith("text/html")
    wanted = set(re.findall(r'"/console/([\w.]+)"', page.body.decode()))
    assert {"app.js", "console.css", "icon.svg"} <= wanted
    for name, kind in assets.ASSETS.items():
        found = client.ask("GET", f"/console/{name}")
        assert (found.status, found.headers["content-type"]) == (200, kind)
        assert found.headers["content-security-policy"].startswith("default-src 'none'")
        assert found.headers["x-content-type-options"] == "nosniff"
        wanted |= set(re.findall(r'from "\./([\w.]+)"', found.body.decode()))
    assert wanted <= assets.ASSETS.keys()


def test_the_policy_is_strict(client: Client) -> None:
    """Nothing from elsewhere, nothing in line, in no frame; and the page needs nothing of it."""
    page = client.ask("GET", "/")
    policy = page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"https?:|\*", policy)
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script>", page.body.decode())
    for name in assets.ASSETS:
        text = assets.content(name).decode()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|eval\(|document\.write", text)
        assert set(re.findall(r"https?://[\w.]+", text)) <= {"http://www.w3.org"}


@pytest.mark.parametrize(
    "path",
    [
        "/console/..%2fassets.py",
        "/console/../../settings.py",
        "/console/%2e%2e/http/server.py",
        "/console//etc/passwd",
        "/console/%2fetc%2fpasswd",
        "/console/assets.py",
        "/console/index.html/..",
        "/console/",
    ],
)
def test_no_other_file_can_be_had(client: Client, path: str) -> None:
    """A path is a key of a table, never a file's name."""
    assert client.ask("GET", path).status == 404


def test_without_a_login_there_is_the_page_but_no_data(
    client: Client, plain: headwater.Database
) -> None:
    """Where users exist the files are anybody's; names and numbers take a login."""
    plain.sql("CREATE USER r PASSWORD 'x' ROLE READER")
    assert client.ask("GET", "/").status == 200
    assert client.ask("GET", "/console/app.js").status == 200
    assert client.ask("GET", "/console/names").status == 401
    assert client.ask("GET", "/console/live").status == 401


def test_pages_of_other_sites_get_nothing(client: Client) -> None:
    """No page of another site reads the channel or the names."""
    for path in ("/console/names", "/console/live?show=overview"):
        assert client.ask("GET", path, Origin="http://evil.example").status == 403
        for site in ("cross-site", "same-site"):  # an image or a link: browsers send no Origin
            assert client.ask("GET", path, Sec_Fetch_Site=site).status == 403
    assert client.ask("GET", "/console/names", Sec_Fetch_Site="same-origin").status == 200
    assert client.ask("GET", "/", Sec_Fetch_Site="cross-site").status == 200
