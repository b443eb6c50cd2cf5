"""`python -m headwater.cli`: the same as the command `headwater`."""

from headwater.cli.main import run

if __name__ == "__main__":
    run()
