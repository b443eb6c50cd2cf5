"""The command line: `headwater sql`, `serve`, `demo`, `doctor`, `bench`, `version`."""
