"""The files of the console: a fixed table, read once; and the rules that the browser gets with them.

Owns the content security policy. Must never make a file's name from a request: what is not in the
table does not exist.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from headwater.server.http.failure import HttpError

if TYPE_CHECKING:
    from headwater.server.http.connection import HttpConnection
    from headwater.server.http.server import HttpServer

HTML, CSS, SCRIPT = "text/html; charset=utf-8", "text/css; charset=utf-8", "text/javascript"
PAGE = "index.html"
ASSETS = {
    "app.js": SCRIPT,
    "chart.js": SCRIPT,
    "colour.js": SCRIPT,
    "console.css": CSS,
    "dom.js": SCRIPT,
    "editor.js": SCRIPT,
    "icon.svg": "image/svg+xml",
    "network.js": SCRIPT,
    "pages.js": SCRIPT,
    "query.js": SCRIPT,
    "road.js": SCRIPT,
    "wire.js": SCRIPT,
}
POLICY = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@cache
def content(name: str) -> bytes:
    """The bytes of a file of the table."""
    if name not in ASSETS and name != PAGE:
        raise KeyError(name)
    return files("headwater.server.console").joinpath(name).read_bytes()


async def show_page(_server: HttpServer, exchange: HttpConnection) -> None:
    """GET /"""
    await exchange.answer(200, content(PAGE), {"Content-Type": HTML, **POLICY})


async def show_asset(_server: HttpServer, exchange: HttpConnection) -> None:
    """GET /console/{asset}"""
    name = exchange.request.given["asset"]
    kind = ASSETS.get(name)
    if kind is None:
        raise HttpError(404, "there is no such file", sqlstate="42704")
    await exchange.answer(200, content(name), {"Content-Type": kind, **POLICY})
