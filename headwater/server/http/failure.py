"""Errors as HTTP answers: the status, and the body that says what every error of ours says.

Owns which SQLSTATE is which status. Must never put a statement's text into an answer.
"""

from __future__ import annotations

from typing import Any

from headwater.errors import Error
from headwater.server.attempts import ThrottledError

# The longest beginning of an SQLSTATE that is listed decides.
STATUSES = {
    "08003": 503,  # the database is closed
    "08": 400,
    "0A": 400,
    "21": 400,
    "22": 400,
    "23": 400,
    "28": 401,
    "2B": 409,
    "38": 400,
    "40": 409,
    "42": 400,
    "42501": 403,
    "42704": 404,
    "42P01": 404,
    "42P07": 409,
    "53": 503,
    "54": 413,
    "55": 409,
    "57014": 504,
    "57P01": 503,
}
OTHERS = 500


class HttpError(Error):
    """A request that is wrong as HTTP; `status` says how."""

    default_sqlstate = "08P01"

    def __init__(self, status: int, message: str, **more: Any) -> None:
        super().__init__(message, **more)
        self.status = status


def status_of(error: Error) -> int:
    """The status that an error is answered with."""
    if isinstance(error, HttpError):
        return error.status
    if isinstance(error, ThrottledError):
        return 429
    for length in (5, 2):
        found = STATUSES.get(error.sqlstate[:length])
        if found is not None:
            return found
    return OTHERS


def body_of(error: Error) -> dict[str, Any]:
    """The error as JSON; `position` counts characters of the statement from 1."""
    said: dict[str, Any] = {"sqlstate": error.sqlstate, "message": error.message}
    if error.detail:
        said["detail"] = error.detail
    if error.hint:
        said["hint"] = error.hint
    if error.place is not None:
        said["position"] = error.place.start + 1
        said["line"], said["column"] = error.place.line, error.place.column
    return {"error": said}


def as_error(error: BaseException) -> Error:
    """Any failure as one of ours; what nobody foresaw is named by its kind alone."""
    if isinstance(error, Error):
        return error
    return Error(
        f"an internal error: {type(error).__name__}",
        hint="this is a defect of Headwater; please report it",
    )
