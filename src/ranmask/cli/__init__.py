"""The command line: one file a command, its options and what it prints beside it."""
