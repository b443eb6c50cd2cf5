"""pyarrow finds pandas when a program loads it, and not before."""

from __future__ import annotations

import subprocess
import sys

import pytest

CONNECT = """
import sys
import headwater
with headwater.connect(":memory:", settings={"eager_spark": False}) as db:
    db.sql("CREATE TABLE t (a INT, at TIMESTAMP)")
    db.insert("t", [(1, None)])
    assert db.sql("SELECT * FROM t").rows() == [(1, None)]
"""
AS_EVER = """
import pandas, pyarrow
assert pyarrow.lib._pandas_api.have_pandas
assert pyarrow.array(pandas.Series([1.0, float("nan")])).null_count == 1
assert type(pandas.__spec__.loader).__name__ == type(pandas.__loader__).__name__ == "SourceFileLoader"
"""
WITHOUT = """
class Nobody:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(1, Nobody())
try:
    import pandas
except ModuleNotFoundError:
    pass
else:
    raise AssertionError
"""


@pytest.mark.parametrize(
    "program",
    [
        CONNECT + "assert 'pandas' not in sys.modules",
        CONNECT + AS_EVER,
        "import pandas" + CONNECT + AS_EVER,
        CONNECT + "import pandas.core.series" + AS_EVER,
        CONNECT + WITHOUT,
    ],
    ids=["not loaded", "loaded later", "loaded before", "loaded by a part", "not installed"],
)
def test_pyarrow_takes_what_pandas_has(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], check=True)
