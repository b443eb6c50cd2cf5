"""Spark's Python daemon with the modules of a factory in it: one that is started again is there at once.

Spark starts this in the place of its own daemon (`spark.python.daemon.module`), once per Java process; the
Python process of each task is a fork of it. Loading the modules takes a second of processor time, which
every factory would need, in each of its lives.
"""

from __future__ import annotations

import gc
import importlib

from pyspark import daemon

MODULES = ("headwater.factories.task",)  # by name: what runs in a task stands above the kernel

if __name__ == "__main__":
    for module in MODULES:
        importlib.import_module(module)
    gc.freeze()  # forks share what is there: it is never looked at again
    daemon.manager()
