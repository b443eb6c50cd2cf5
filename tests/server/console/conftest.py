"""A database without Spark, a live server over it, and a client: those of the HTTP tests."""

from __future__ import annotations

from tests.server.http.conftest import client, live, plain

__all__ = ["client", "live", "plain"]
