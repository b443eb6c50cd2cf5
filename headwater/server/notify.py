"""Tells systemd how the server is (sd_notify); does nothing elsewhere."""

from __future__ import annotations

import os
import socket


def notify(state: str) -> bool:
    """Sends a state such as READY=1; whether somebody wanted to know."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        try:
            sender.sendto(state.encode(), address.replace("@", "\0", 1))
        except OSError:
            return False  # nobody listens any more: the server goes on
    return True
