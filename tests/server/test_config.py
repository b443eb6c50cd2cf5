"""Options of `headwater serve`: one order of precedence, checked values, the files under deploy/."""

from __future__ import annotations

import os
import re
import socket
import tomllib
from pathlib import Path

import pytest

from headwater.cli.main import serve as command
from headwater.errors import SettingError
from headwater.server.config import OPTIONS, configured, file_of, from_file
from headwater.server.notify import notify

ROOT = Path(__file__).parents[2]
FILE = """
[serve]
path = "/from/file"
port = 1
http_port = 1
host = "file"
insecure = true
[settings]
block_rows = 5000
snapshot_s = 1.5
spark.sql.ansi.enabled = true
"""


def test_a_flag_beats_the_environment_which_beats_the_file() -> None:
    """Each option from each place; defaults where nobody says anything."""
    environment = {"HEADWATER_SERVE_PORT": "2", "HEADWATER_SERVE_HTTP_PORT": "2"}
    flags = {"port": 3, "path": None, "insecure": None}
    found = configured(flags, environment, FILE)
    assert (found.path, found.host, found.port, found.http_port) == ("/from/file", "file", 3, 2)
    assert found.insecure
    assert (found.master, found.tls_certificate) == ("", "")
    assert not configured({"path": "x"}, {"HEADWATER_SERVE_INSECURE": "off"}, FILE).insecure


def test_settings_have_the_same_order() -> None:
    """A variable of the environment beats the file's setting, `--set` beats both."""
    environment = {"HEADWATER_BLOCK_ROWS": "7000", "HEADWATER_SNAPSHOT_S": "9"}
    found = configured({}, environment, FILE, {"snapshot_s": "3"})
    assert found.settings == {"snapshot_s": "3", "spark.sql.ansi.enabled": True}
    assert configured({}, {}, FILE).settings["block_rows"] == 5000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[serve", "not TOML"),
        ("[server]", "no table server"),
        ("[serve]\nprt = 5", "option prt does not exist"),
        ("[serve]\nport = 'x'", "option port cannot be"),
        ("[serve]\nport = true", "option port cannot be"),
        ("[serve]\ninsecure = 1", "option insecure cannot be"),
        ("[serve]\nport = 70000", "option port cannot be 70000"),
        ("[serve]\ntls_key = 'k'", "certificate"),
    ],
)
def test_mistakes_are_named(text: str, message: str) -> None:
    """What is wrong in a file is said before anything starts."""
    with pytest.raises(SettingError, match=re.escape(message)):
        configured({"path": "x"}, {}, text)


def test_a_folder_is_needed() -> None:
    """Without a folder nothing starts."""
    with pytest.raises(SettingError, match="no data folder"):
        configured({}, {})
    with pytest.raises(SettingError, match="HEADWATER_SERVE_PORT"):
        configured({"path": "x"}, {"HEADWATER_SERVE_PORT": "x"})


def test_every_option_has_a_flag_and_is_documented() -> None:
    """The command, the table of options and the page say the same."""
    import inspect

    taken = set(inspect.signature(command).parameters) - {"config", "set_"}
    assert taken == set(OPTIONS)
    page = (ROOT / "docs" / "operating" / "configuration.md").read_text()
    for name in OPTIONS:
        assert f"| `{name}` |" in page
        assert f"`HEADWATER_SERVE_{name.upper()}`" in page


def test_the_file_is_a_flags_or_the_environments() -> None:
    """`--config` beats HEADWATER_SERVE_CONFIG."""
    variable = {"HEADWATER_SERVE_CONFIG": "/e"}
    assert file_of(Path("/f"), variable) == Path("/f")
    assert file_of(None, variable) == Path("/e")
    assert file_of(None, {}) is None


def test_the_files_of_deploy_are_right() -> None:
    """The sample configuration can be read, and unit and container name flags that there are."""
    text = (ROOT / "deploy" / "headwater.toml").read_text()
    from_file(text)
    from_file(re.sub(r"^# (\w+[\w.]* = )", r"\1", text, flags=re.M))
    assert tomllib.loads(text)["serve"]["path"] == "/var/lib/headwater"
    for name in ("headwater.service", "Containerfile"):
        used = re.findall(r"HEADWATER_SERVE_(\w+)", (ROOT / "deploy" / name).read_text())
        assert used
        assert {word.lower() for word in used} <= OPTIONS.keys() | {"config"}


def test_systemd_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """READY=1 goes to the socket that systemd names; without one nothing happens."""
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    assert not notify("READY=1")
    path = os.path.relpath(tmp_path / "s")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as system:
        system.bind(path)
        monkeypatch.setenv("NOTIFY_SOCKET", str((tmp_path / "s").resolve()))
        assert notify("READY=1")
        assert system.recv(100) == b"READY=1"
    assert not notify("STOPPING=1")
