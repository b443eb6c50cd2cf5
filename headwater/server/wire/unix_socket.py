"""The wire protocol on a Unix socket, named as PostgreSQL names it: `psql -h FOLDER -p PORT` finds it.

Owns the folder and the file. A folder that it makes is its own user's alone. Must never take the place of
a socket that another server still answers at, nor leave the file behind when it stops.
"""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from headwater.errors import SettingError, StorageError
from headwater.server.wire.server import WireConnection, WireServer

LONGEST_PATH = 107  # bytes of sun_path, without the zero behind it
OFF = "none"
OWN_ALONE = 0o700
ANYBODY = 0o666  # whoever reaches the folder may connect, and is then asked who it is
BACKLOG = 128


def default_folder(environment: Mapping[str, str]) -> Path:
    """Where sockets are looked for when nobody says: what the system gives a service, or a user."""
    service, session = environment.get("RUNTIME_DIRECTORY"), environment.get("XDG_RUNTIME_DIR")
    if service:
        return Path(service.partition(":")[0])
    if session:
        return Path(session) / "headwater"
    return Path(tempfile.gettempdir()) / f"headwater-sockets-{os.geteuid()}"


def chosen_folder(given: str, environment: Mapping[str, str]) -> Path | None:
    """The folder of the option `socket`, made if it is not there; None where there shall be no socket."""
    if given == OFF:
        return None
    folder = Path(given or default_folder(environment)).absolute()
    try:
        folder.mkdir(mode=OWN_ALONE, exist_ok=True)
        found = folder.lstat() if not given else folder.stat()
    except OSError as error:
        raise StorageError(
            f"the folder {folder} for the Unix socket cannot be made", detail=str(error)
        ) from error
    if not given and not _is_ours(found):
        raise StorageError(
            f"the folder {folder} for the Unix socket is somebody else's",
            hint="--socket FOLDER chooses another, --socket none does without",
        )
    return folder


def _is_ours(found: os.stat_result) -> bool:
    """Whether nobody else can put a socket of his own there."""
    private = not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and private


class UnixListener:
    """Takes clients of a wire server at a Unix socket too; started after it, since its port is the name."""

    def __init__(self, wire: WireServer, folder: Path) -> None:
        self._wire, self.folder = wire, folder
        self._server: asyncio.Server | None = None
        self._path: Path | None = None
        self._inode = 0

    @property
    def address(self) -> tuple[str, int]:
        """The folder and the port, as clients are given them."""
        return str(self.folder), self._wire.address[1]

    async def start(self) -> None:
        """Listens; StorageError if another server does at the same place."""
        path = self.folder / f".s.PGSQL.{self._wire.address[1]}"
        listening = bound(path)
        self._path, self._inode = path, path.stat().st_ino
        self._server = await asyncio.get_running_loop().create_unix_server(
            lambda: WireConnection(self._wire), sock=listening, backlog=BACKLOG
        )

    async def stop(self) -> None:
        """Takes no more clients; those that are there are the wire server's to end."""
        if self._server is None or self._path is None:
            return
        self._server.close()
        if self._path.exists() and self._path.stat().st_ino == self._inode:
            self._path.unlink()
        await self._server.wait_closed()


def bound(path: Path) -> socket.socket:
    """A socket at a path; one that a server left behind when it was killed makes way."""
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise SettingError(
            f"the path {path} is too long for a Unix socket",
            hint=f"--socket with a shorter folder: {LONGEST_PATH} bytes at most, or --socket none",
        )
    if path.is_socket() and _is_answered(path):
        raise StorageError(
            f"the Unix socket {path} is in use by another server",
            sqlstate="55006",
            hint="--socket chooses another folder, --port another name in it",
        )
    if path.is_socket():
        path.unlink()
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        found.bind(os.fspath(path))
        path.chmod(ANYBODY)
    except BaseException:
        found.close()
        raise
    return found


def _is_answered(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as client:
        client.setblocking(False)  # a server whose queue is full is there as well
        try:
            client.connect(os.fspath(path))
        except BlockingIOError:
            return True
        except OSError:
            return False
    return True
