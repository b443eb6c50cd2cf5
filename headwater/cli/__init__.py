"""The command line: `headwater sql`, `demo`, `doctor`, `bench`, `version`."""
