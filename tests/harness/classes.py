"""Records which classes Spark loads, so that the tests' Java processes start in half the time.

    HEADWATER_CACHE=FOLDER python -m tests.harness.classes

A run of the tests starts some twenty of them. The record is made with what `tests/conftest.py` sets for Java:
with anything else a record does not fit, and a database would begin to make its own beside the tests.
"""

from __future__ import annotations

import os

import tests.conftest  # noqa: F401  (for what it sets)
from headwater.kernel import aot
from headwater.kernel.java import find_java

if __name__ == "__main__":
    assert os.environ["HEADWATER_CACHE"], "the folder of the user is not for the tests' record"
    java = find_java()
    if java.version >= aot.OLDEST_JAVA_WITH_CACHE:
        aot.train(java, int(os.environ["HEADWATER_DRIVER_MEMORY_MB"]))
