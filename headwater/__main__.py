"""`python -m headwater …` is the command `headwater …`, where the scripts are not on the path."""

from __future__ import annotations

from headwater.cli.main import run

if __name__ == "__main__":
    run()
