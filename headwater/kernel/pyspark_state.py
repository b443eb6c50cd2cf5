"""What PySpark keeps for the whole process: one gateway, one context, one session that all others come from.

PySpark has no public way to tell whether a session runs without making one, nor to let go of a Java process
that ended under it. This module is the only one that looks at those names. It never changes them for a
session that is not ours.
"""

from __future__ import annotations

import contextlib
import logging
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

# How errors look that may be of a Java process that has ended, or is about to.
LOST_ERRORS = ("Py4JNetworkError", "Py4JError", "EOFError")
LOST_WORDS = ("SparkContext was shut down", "stopped SparkContext", "Connection refused")


def running_session() -> SparkSession | None:
    """The session that runs in this process, whoever made it; PySpark is not imported for that."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    session = SparkSession._instantiatedSession
    if session is not None and not is_stopped(session):
        return session
    context = SparkContext._active_spark_context
    if context is None or _is_stopped(context):
        return None
    return SparkSession(context)  # a program that has a context only: its first session


def is_stopped(session: SparkSession) -> bool:
    """Whether somebody stopped the context of a session."""
    return _is_stopped(session.sparkContext)


def is_being_stopped(session: SparkSession) -> bool:
    """Whether SparkSession.stop() may still be at work: the context goes first, the session's name last."""
    pyspark = sys.modules.get("pyspark.sql")
    return pyspark is not None and pyspark.SparkSession._instantiatedSession is session


def _is_stopped(context: SparkContext) -> bool:
    return getattr(context, "_jsc", None) is None


def master_of(session: SparkSession) -> str:
    """Where a session runs."""
    return str(session.sparkContext.master)


def java_process(session: SparkSession) -> subprocess.Popen[bytes] | None:
    """The Java process that PySpark started for a session; None if it did not start one."""
    gateway = session.sparkContext._gateway
    found = None if gateway is None else gateway.__dict__.get("proc")
    return found if isinstance(found, subprocess.Popen) else None


def looks_lost(error: BaseException) -> bool:
    """Whether an error may come from a Java process that has ended, or a context that was stopped."""
    if type(error).__name__ in LOST_ERRORS or isinstance(error, OSError):
        return True
    return any(words in str(error) for words in LOST_WORDS)


def hush(session: SparkSession) -> None:
    """Keeps PySpark from printing stack traces when the Java process of our own session ends."""
    ignore_py4j()
    server = getattr(session.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None


def ignore_py4j() -> None:
    """py4j logs lost connections through the root logger; nobody else's messages are touched."""
    logging.getLogger().addFilter(_not_of_py4j)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname


def forget(port: int) -> None:
    """Lets PySpark start anew in this process after the Java process of ours at a port has ended."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession, SQLContext

    gateway = SparkContext._gateway
    if gateway is None or gateway.gateway_parameters.port != port:
        return  # PySpark never came to know it
    context = SparkContext._active_spark_context
    if context is not None:
        context._jsc = None  # else stop() calls Java, and warns
        with contextlib.suppress(Exception):
            context.stop()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SQLContext._instantiatedContext = None
    for end in (gateway.shutdown, gateway.shutdown_callback_server):
        with contextlib.suppress(Exception):  # there is nobody at the other end any more
            end()
